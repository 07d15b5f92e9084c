# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The price: what commits cost on a rotating disk, beside what was published.

Measured on the machine: how many commits share a sync, and what the disk is told for each sync. Derived: commits for each
second, from the time that mechanics.py takes for exactly that, and the commit delay that nothing else hid. The disk of
these runs takes SCALE times that long, and so does the delay, so that the emulated processor counts for little; how
much it counted all the same stands in each row. Nothing is fitted to the published figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from proof import accounting
from proof.cells import DEFAULTS, NBD, Setting
from proof.errors import ProofError
from proof.judge import Record
from proof.log import Event, Kind
from proof.machine import MOUNT, Rig, Segment, record_jobs
from proof.mechanics import Drive, Mechanics
from proof.writer import Job

#: The disk, the delay and the journal's own interval are so many times slower than real.
SCALE = 10.0
#: Above this share of a run the emulated processor, and not the disk, decided how many commits met.
TOO_MUCH = 0.25
#: FairCom DB's COMMIT_DELAY 1, in seconds.
COMMIT_DELAY = 0.001
CLIENTS = (1, 10, 20, 40, 80)
COMMITS = 50
FAIRCOM = "osync"
#: Other delays, below 0 none, and the client count at which they are compared.
DELAYS, DELAY_CLIENTS = (-1.0, 0.02), 10
#: From the FairCom "Linux Performance and Safety Advisory": ext4 data=ordered, COMMIT_DELAY 1; commits for each second.
PUBLISHED = {
    ("off", "1"): (76, 236, 358, 483, 600),
    ("off", "0"): (76, 248, 349, 463, 592),
    ("on", "1"): (79, 220, 332, 434, 586),
    ("on", "0"): (1358, 3848, 4270, 4435, 3980),
}
_ON, _OFF = Setting("flush", "virtio", "ext4"), Setting("strict", "virtio", "ext4")
#: (write cache, barrier) of the settings of that table.
TABLE = {
    _OFF: ("off", "1"),
    Setting("strict", "virtio", "ext4", "barrier0"): ("off", "0"),
    _ON: ("on", "1"),
    Setting("flush", "virtio", "ext4", "barrier0"): ("on", "0"),
}
#: The one device here that passes FUA on as FUA: QEMU's SCSI disk makes a write and a full flush of it.
_FUA = Setting(DEFAULTS, NBD, "ext4")
#: SQL Server's log writer gathers commits into a block without a delay.
SQL_CLIENTS, SQL_DELAY = (1, 10, 40), 0.0
SQL_WAYS = {
    (_FUA, "direct_dsync"): "FUA (3979, 1/0)",
    (_FUA, "direct_fdatasync"): "forced flush (3982, 1/1)",
    (_ON, "direct_dsync"): "no FUA below: 3979, 1/0",
    (_ON, "direct_fdatasync"): "no FUA below: forced flush (3982, 1/1)",
}
#: Blocks of data files that each client leaves in the cache for each commit: none, or one.
SQL_NOISE = (0, 1)
#: From "SQL Server on Linux: Forced Unit Access (FUA) Internals": TPC-C, FUA against forced flush.
PUBLISHED_RATIOS = {"4 sockets": 36618 / 9108, "2 sockets": 18840 / 9606}
PUBLISHED_TRAFFIC = 0.5
SETTINGS = (*TABLE, _FUA)


def jobs(setting: Setting, device: str = "", ack: str = "") -> list[Job]:
    """Return what is written in one setting."""
    base = Job(MOUNT, FAIRCOM, device=device, ack=ack, commits=COMMITS, seconds=900.0)
    found = []
    if setting in TABLE:
        delay = COMMIT_DELAY * SCALE
        found += [_with(base, FAIRCOM, clients=clients, delay=delay) for clients in CLIENTS]
        found += [_with(base, FAIRCOM, clients=DELAY_CLIENTS, delay=other * SCALE) for other in DELAYS]
    for where, pattern in SQL_WAYS:
        if where == setting:
            found += [
                _with(base, pattern, clients=clients, delay=SQL_DELAY, noise=noise)
                for noise in SQL_NOISE
                for clients in SQL_CLIENTS
            ]
    return found


def _with(job: Job, pattern: str, **values: Any) -> Job:
    return Job(**{**asdict(job), "pattern": pattern, "directory": f"{job.directory}/{pattern}", **values})


def directory_of(setting: Setting, records: Path) -> Path:
    """Return where the record of a setting lies."""
    return records / f"price-{setting.directory}"


def record(setting: Setting, records: Path) -> None:
    """Record one setting on a disk that takes the time of mechanics.py, SCALE times over."""

    def todo(rig: Rig) -> list[Job]:
        return jobs(setting, f"/dev/{rig.name}", rig.ack)

    record_jobs(setting, todo, directory_of(setting, records), SCALE)


def covers(setting: Setting, records: Path) -> bool:
    """Return whether a whole record has the runs that are wanted, at the scale that is wanted."""
    try:
        raw = Record.read(directory_of(setting, records)).raw
    except ProofError:
        return False
    ran = [_plan(Segment.read(segment).job) for segment in raw["segments"]]
    return raw.get("slow") == SCALE and ran == [_plan(job) for job in jobs(setting)]


def _plan(job: Job) -> dict[str, Any]:
    """Return a job without the names that the machine gave its disks."""
    return {**asdict(job), "device": "", "ack": ""}


def judged(setting: Setting, records: Path) -> dict[str, Any]:
    """Return the rows of one setting, and what they rest upon. ProofError unless its whole record is there."""
    if not covers(setting, records):
        raise ProofError(
            f"{directory_of(setting, records)} holds no record as it is wanted: record it (--price --fresh)"
        )
    kept = Record.read(directory_of(setting, records))
    segments = [Segment.read(raw) for raw in kept.raw["segments"]]
    words = ("hardened", "seen", "seen_after", "versions")
    return {
        "setting": asdict(setting),
        "name": setting.name,
        "scale": SCALE,
        "drive": asdict(Drive()),
        "rows": measured(kept.events, segments, SCALE),
        "problems": problems(kept.raw["seen"]),
        **{name: kept.raw[name] for name in words},
    }


def problems(seen: Mapping[str, str]) -> list[str]:
    """Return what makes a record worthless: a journal that went on at its own pace beside a disk that was slowed."""
    wanted = f"commit={round(accounting.JOURNAL_INTERVAL * SCALE)}"
    if wanted in seen["mount"].split(","):
        return []
    return [f"seen the mount options {seen['mount']}, wanted {wanted} among them: record it anew"]


def wrong(price: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the price of all settings together."""
    found = [f"{name}: {problem}" for name, own in price.items() for problem in own["problems"]]
    models = {(own["scale"], *own["drive"].values()) for own in price.values()}
    if len(models) > 1:
        found.append(
            f"seen {len(models)} models of the disk among the settings, wanted one: --price makes all anew"
        )
    return found


def measured(events: Sequence[Event], segments: Iterable[Segment], scale: float) -> list[dict[str, Any]]:
    """Return a row for each run: what was counted, and commits for each second as the model derives them.

    The model sees the whole log, for where the head is and what waits in the cache comes from before the run.
    """
    disk, seconds, moves = Mechanics(), [0.0], [0]
    for event in events:
        seconds.append(seconds[-1] + disk.take(event.kind, event.offset, event.length, event.fua))
        moves.append(disk.moves)
    rows = []
    for segment in segments:
        took = seconds[segment.end] - seconds[segment.begin]
        moved = moves[segment.end] - moves[segment.begin]
        rows.append(_row(events[segment.begin : segment.end], segment, took, moved, scale))
    return rows


def _row(events: Sequence[Event], segment: Segment, disk: float, moves: int, scale: float) -> dict[str, Any]:
    """Return one row: `disk` is the model's seconds for the run, `waited` the delay that nothing hid, not scaled."""
    commits = sum(event.kind is Kind.ACK for event in events)
    counted, result, job = accounting.of_log(events), segment.result, segment.job
    waited = result["waited"] / scale
    ideal, wall = disk + waited, result["seconds"] / scale
    return {
        "pattern": job.pattern,
        "clients": job.clients,
        "noise": job.noise,
        "delay": round(job.delay / scale, 6),
        "commits": commits,
        "syncs": result["syncs"],
        "commits_per_sync": round(commits / result["syncs"], 3),
        "commits_per_flush": round(commits / counted.flushes, 3) if counted.flushes else None,
        # writes of the noise are not the log's
        "writes_per_sync": round((counted.writes - commits * job.noise) / result["syncs"], 3),
        "flushes_per_sync": round(counted.flushes / result["syncs"], 3),
        "fua_per_sync": round(counted.fua / result["syncs"], 3),
        "moves_per_sync": round(moves / result["syncs"], 3),
        "disk_seconds": round(disk, 6),
        "waited_seconds": round(waited, 6),
        "sync_seconds": round(ideal / result["syncs"], 6),
        "derived": round(commits / ideal, 1),
        "as_it_ran": round(commits / wall, 1),
        "emulation": round(max(0.0, 1 - ideal / wall), 3),
    }


def table(price: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the published table beside those that are there: one for each combination and client count.

    `like_one`: the commits that would share a sync if all of the published gain over one client were theirs.
    """
    found = []
    for setting, (cache, barrier) in TABLE.items():
        own = _rows(price, setting, FAIRCOM)
        rows = {row["clients"]: row for row in own if row["delay"] == COMMIT_DELAY}
        published = PUBLISHED[cache, barrier]
        for clients, tps in zip(CLIENTS, published, strict=True):
            if clients in rows:
                row = rows[clients]
                beside = {
                    "published": tps,
                    "ratio": round(row["derived"] / tps, 2),
                    "like_one": round(tps / published[0], 2),
                }
                found.append({"cache": cache, "barrier": barrier, **row, **beside})
    return found


def delays(price: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return for each combination the rates without a commit delay, with the usual one, and with a long one."""
    found = []
    for setting, (cache, barrier) in TABLE.items():
        own = [row for row in _rows(price, setting, FAIRCOM) if row["clients"] == DELAY_CLIENTS]
        rates = {row["delay"]: row["derived"] for row in own}
        if len(rates) > len(DELAYS):
            found.append({"cache": cache, "barrier": barrier, "rates": dict(sorted(rates.items()))})
    return found


def ways(price: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return SQL Server's ways of writing, each with its rate beside that of forced flush on the same device."""
    found = []
    for (setting, pattern), way in SQL_WAYS.items():
        flushed = {_point(row): row for row in _rows(price, setting, "direct_fdatasync")}
        for row in _rows(price, setting, pattern):
            other = flushed.get(_point(row))
            if other and _requests(other):
                gain, traffic = row["derived"] / other["derived"], _requests(row) / _requests(other)
                beside = {"gain": round(gain, 2), "traffic": round(traffic, 2)}
                found.append({"way": way, "device": setting.device, **row, **beside})
    return found


def _requests(row: Mapping[str, Any]) -> float:
    """Return what the disk is told for each commit."""
    return float((row["writes_per_sync"] + row["flushes_per_sync"]) / row["commits_per_sync"])


def _point(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["noise"], row["clients"]


def _rows(price: Mapping[str, Any], setting: Setting, pattern: str) -> list[dict[str, Any]]:
    found = price.get(setting.name, {"rows": []})
    return [row for row in found["rows"] if row["pattern"] == pattern]


def deviations(price: Mapping[str, Any]) -> list[str]:
    """Return in words why derived and published rates differ: by what one sync costs, and by how many share it.

    Both are said with numbers of this run; nothing is corrected by them.
    """
    lines = []
    rows = table(price)
    for cache, barrier in PUBLISHED:
        own = [row for row in rows if (row["cache"], row["barrier"]) == (cache, barrier)]
        if not own or own[0]["clients"] != 1:
            continue
        one, most = own[0], own[-1]
        lines.append(
            f"cache {cache}, barrier {barrier}: one client's sync takes {1000 * one['sync_seconds']:.1f} ms here "
            f"({one['writes_per_sync']:.1f} writes, {one['flushes_per_sync']:.1f} flushes, "
            f"{one['moves_per_sync']:.1f} moves of the head), {1000 / one['published']:.1f} ms by the published rate. "
            f"With {most['clients']} clients {most['commits_per_sync']:.1f} commits share a sync here; "
            f"the published rate is {most['like_one']:.1f} times that of one client."
        )
        blurred = [row for row in own if row["emulation"] > TOO_MUCH]
        if blurred:
            counts = ", ".join(str(row["clients"]) for row in blurred)
            share = max(row["emulation"] for row in blurred)
            lines.append(
                f"cache {cache}, barrier {barrier}, clients {counts}: the emulated processor took up to {share:.0%} of a run, so "
                "how many commits met there is its doing too."
            )
    return lines
