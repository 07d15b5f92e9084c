# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The price: rates from a log against hand calculation, the published table beside them, and the page. No machine."""

from __future__ import annotations

import json
import xml.etree.ElementTree as xml
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import costs
from proof import evidence, log, machine, price, run
from proof.cells import NBD, Setting, matrix
from proof.errors import ProofError
from proof.log import Event, Kind
from proof.machine import RECORD, Rig, Segment
from proof.mechanics import Drive
from proof.price import CLIENTS, COMMITS, PUBLISHED, SCALE, SETTINGS, TABLE, jobs, measured
from proof.writer import Job, acknowledgement

ON = Setting("flush", "virtio", "ext4")
FUA = Setting("defaults", NBD, "ext4")
DRIVE = Drive()
FAR = DRIVE.seek + DRIVE.turn / 2
SECTOR_TIME = 512 / DRIVE.rate
VERSIONS = {"qemu": "QEMU emulator version 7.2"}


def events(words: str) -> list[Event]:
    """Return a log: w a write, f a flush, F a FUA write, a an acknowledgement; writes are of one sector."""
    kinds = {"w": Kind.WRITE, "F": Kind.WRITE, "f": Kind.FLUSH, "a": Kind.ACK}
    return [
        Event(number, kinds[word], 0, 512 if word in "wFa" else 0, word == "F")
        for number, word in enumerate(words)
    ]


def segment(words: str, syncs: int, waited: float = 0.0, seconds: float = 1.0, **values: Any) -> Segment:
    """Return a run that is a whole log."""
    job = replace(Job("/d", "osync", clients=2, delay=0.01), **values)
    result = {"syncs": syncs, "waited": waited, "seconds": seconds}
    return Segment(job.pattern, job, 0, len(words), 0, len(words), {}, {}, result)


def test_a_rate_is_what_the_model_takes_for_what_was_sent() -> None:
    """Two syncs of a write and a flush, two commits each: a seek, then a whole turn, and the delay without its scale."""
    words = "wfaawfaa"
    (row,) = measured(events(words), [segment(words, syncs=2, waited=0.02, seconds=1.0)], 10.0)
    disk = 4 * DRIVE.command + FAR + DRIVE.turn + 2 * SECTOR_TIME
    assert row["commits"] == 4
    assert (row["commits_per_sync"], row["commits_per_flush"]) == (2.0, 2.0)
    assert (row["writes_per_sync"], row["flushes_per_sync"], row["moves_per_sync"]) == (1.0, 1.0, 1.0)
    assert row["disk_seconds"] == pytest.approx(disk, abs=1e-6)
    assert row["waited_seconds"] == pytest.approx(0.002)
    assert row["derived"] == pytest.approx(4 / (disk + 0.002), abs=0.1)
    assert row["as_it_ran"] == pytest.approx(40.0)
    assert row["emulation"] == pytest.approx(1 - (disk + 0.002) / 0.1, abs=1e-3)
    assert row["delay"] == pytest.approx(0.001)


def test_a_disk_without_a_cache_has_fua_writes_and_no_flush() -> None:
    """Each goes to the medium by itself."""
    words = "FaFa"
    (row,) = measured(events(words), [segment(words, syncs=2)], 10.0)
    assert (row["fua_per_sync"], row["flushes_per_sync"], row["commits_per_flush"]) == (1.0, 0.0, None)
    assert row["disk_seconds"] == pytest.approx(
        2 * DRIVE.command + FAR + DRIVE.turn + 2 * SECTOR_TIME, abs=1e-6
    )


def test_what_was_there_before_a_run_is_remembered_and_not_counted() -> None:
    """The head is on the track already, so the second run begins with a turn; the noise is not the log's write."""
    words = "wfawwfa"
    first = replace(segment(words, syncs=1), end=3)
    second = replace(segment(words, syncs=1, noise=1), begin=3)
    one, two = measured(events(words), [first, second], 10.0)
    assert one["disk_seconds"] == pytest.approx(2 * DRIVE.command + FAR + SECTOR_TIME, abs=1e-6)
    assert two["disk_seconds"] == pytest.approx(3 * DRIVE.command + DRIVE.turn + SECTOR_TIME, abs=1e-6)
    assert (one["writes_per_sync"], two["writes_per_sync"]) == (1.0, 1.0)


def test_what_is_run() -> None:
    """FairCom's way with each client count in each setting of the table; SQL Server's two with FUA and without."""
    for setting in TABLE:
        found = [job for job in jobs(setting) if job.pattern == "osync"]
        delayed = [job for job in found if job.delay == 0.001 * SCALE]
        assert [job.clients for job in delayed] == list(CLIENTS)
        others = [job for job in found if job not in delayed]
        assert [(job.clients, job.delay) for job in others] == [(10, -SCALE), (10, 0.02 * SCALE)]
        assert {(job.noise, job.commits) for job in found} == {(0, COMMITS)}
    for setting in (ON, FUA):
        sql = [job for job in jobs(setting) if job.pattern != "osync"]
        assert {job.pattern for job in sql} == {"direct_dsync", "direct_fdatasync"}
        assert {job.delay for job in sql} == {0.0}
        assert {(job.noise, job.clients) for job in sql} == {(n, c) for n in (0, 1) for c in (1, 10, 40)}
    assert set(TABLE.values()) == set(PUBLISHED)
    assert {setting for setting in SETTINGS if setting not in TABLE} == {FUA}
    known = {cell.setting for cell in matrix()} | {Setting("strict", "virtio", "ext4", "barrier0")}
    assert set(SETTINGS) <= known


def raw_record(setting: Setting, records: Path, mount: str = "rw,commit=50") -> None:
    """Write a record as a machine would: each job one sync of a write and a flush for all its clients."""
    directory = price.directory_of(setting, records)
    (directory / "disk").mkdir(parents=True)
    out = log.Writer(directory / "disk", 1 << 20)
    segments = []
    for job in jobs(setting, "/dev/vdb", "/dev/vdc"):
        begin = log.count(directory / "disk")
        out.append(Kind.WRITE, 0, data=bytes(512), fua=job.pattern == "direct_dsync")
        if job.pattern != "direct_dsync":
            out.append(Kind.FLUSH)
        for client in range(job.clients):
            out.append(Kind.ACK, client * 512, data=acknowledgement(client, 0))
        end = log.count(directory / "disk")
        result = {"syncs": 1, "waited": max(0.0, job.delay), "seconds": 0.5, "commits": [1] * job.clients}
        segments.append(asdict(Segment(job.pattern, job, begin, end, begin, end, {}, {}, result)))
    out.close()
    words = {"hardened": {}, "seen": {"mount": mount}, "seen_after": {}, "versions": VERSIONS}
    raw = {"setting": asdict(setting), "slow": SCALE, "segments": segments, **words}
    (directory / RECORD).write_text(json.dumps(raw))


def judged(tmp_path: Path) -> dict[str, Any]:
    """Return the price of all settings from such records."""
    for setting in SETTINGS:
        raw_record(setting, tmp_path)
    return {setting.name: price.judged(setting, tmp_path) for setting in SETTINGS}


def test_the_published_table_stands_beside_what_was_derived(tmp_path: Path) -> None:
    """Each combination and client count once; no published figure enters a derived one."""
    found = price.table(judged(tmp_path))
    assert [(row["cache"], row["barrier"]) for row in found[::5]] == list(PUBLISHED)
    assert [row["clients"] for row in found[:5]] == list(CLIENTS)
    assert [row["published"] for row in found[:5]] == [76, 236, 358, 483, 600]
    later = next(row for row in found if (row["cache"], row["clients"]) == ("off", 10))
    one = DRIVE.turn + SECTOR_TIME + 2 * DRIVE.command + 0.001
    assert later["derived"] == pytest.approx(10 / one, rel=0.001)
    assert later["ratio"] == pytest.approx(10 / one / 236, abs=0.01)
    assert later["like_one"] == pytest.approx(236 / 76, abs=0.01)


def test_delays_are_compared(tmp_path: Path) -> None:
    """None, the usual, and a long one that costs its own time; the table has the usual one alone."""
    found = judged(tmp_path)
    assert [(row["cache"], row["barrier"]) for row in price.delays(found)] == list(PUBLISHED)
    rates = price.delays(found)[0]["rates"]
    assert list(rates) == [-1.0, 0.001, 0.02]
    assert rates[0.001] == next(row["derived"] for row in price.table(found) if row["clients"] == 10)
    assert 10 / rates[0.02] - 10 / rates[0.001] == pytest.approx(0.019, rel=0.01)
    assert len(price.table(found)) == 20


def test_sql_servers_ways_are_compared_with_forced_flush(tmp_path: Path) -> None:
    """On the same device, with as many clients and as much noise: half the requests, and what is saved of the time."""
    found = [row for row in price.ways(judged(tmp_path)) if row["clients"] == 10 and not row["noise"]]
    fua, flushed = (row for row in found if row["device"] == NBD)
    assert (fua["way"], fua["traffic"]) == ("FUA (3979, 1/0)", 0.5)
    assert fua["gain"] == pytest.approx(fua["derived"] / flushed["derived"], abs=0.01)
    assert (flushed["gain"], flushed["traffic"]) == (1.0, 1.0)


def test_deviations_are_said_with_numbers(tmp_path: Path) -> None:
    """What one sync takes, how many share one, and where the emulated processor decided."""
    found = judged(tmp_path)
    lines = price.deviations(found)
    assert len(lines) >= 4
    assert "one client's sync takes" in lines[0] and "13.2 ms by the published rate" in lines[0]
    assert "With 80 clients 80.0 commits share a sync here; the published rate is 7.9 times" in lines[0]
    assert any("the emulated processor took" in line for line in lines)
    for row in found[ON.name]["rows"]:
        row["emulation"] = price.TOO_MUCH
    told = " ".join(price.deviations({ON.name: found[ON.name]}))
    assert "cache on, barrier 1: one client" in told and "processor" not in told


def test_a_record_that_is_not_as_wanted_is_none(tmp_path: Path) -> None:
    """None at all, another scale, other runs; and a journal at its own pace is a problem."""
    with pytest.raises(ProofError, match="record it"):
        price.judged(ON, tmp_path)
    raw_record(ON, tmp_path, mount="rw,relatime")
    (problem,) = price.judged(ON, tmp_path)["problems"]
    assert "wanted commit=50" in problem
    path = price.directory_of(ON, tmp_path) / RECORD
    raw = json.loads(path.read_text())
    for broken in ({**raw, "slow": 2.0}, {**raw, "segments": raw["segments"][1:]}):
        path.write_text(json.dumps(broken))
        assert not price.covers(ON, tmp_path)
    path.write_text(json.dumps(raw))
    assert price.covers(ON, tmp_path)


@pytest.fixture
def no_tools_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this host have all tools."""
    monkeypatch.setattr(run.needs, "missing", dict)


@pytest.mark.usefixtures("no_tools_wanted")
def test_the_command_writes_json_page_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From records alone; a setting without one is named, and the rest stands."""
    records, out = tmp_path / "records", tmp_path / "evidence"
    for setting in SETTINGS[1:]:
        raw_record(setting, records)
    words = ["--price", "--judge-only", "--records", str(records), "--evidence", str(out)]
    assert run.main(words) == 1
    assert f"not recorded or judged: {SETTINGS[0].name}" in capsys.readouterr().out
    raw_record(SETTINGS[0], records)
    assert run.main(words) == 0
    assert "the price: 5 of 5 settings" in capsys.readouterr().out
    assert set(json.loads((out / "price.json").read_text())) == {setting.name for setting in SETTINGS}
    text = (out / "README.md").read_text()
    assert "## The price" in text and "7200 rpm, a seek of 0.0085 s" in text and "10 times slower" in text
    assert text.count("| off | 1 | ") == text.count("| on | 0 | ") == 5 + 1
    assert "| cache | barrier | no delay | 1 ms | 20 ms |" in text
    assert "4.02 (4 sockets) and 1.96 (2 sockets)" in text
    assert "cache off, barrier 1, 80 clients: derived" in xml.parse(out / "price.svg").getroot().itertext()
    assert "- qemu: QEMU emulator version 7.2" in text


def test_a_problem_of_the_price_is_on_the_page(tmp_path: Path) -> None:
    """Among what is not shown."""
    raw_record(ON, tmp_path, mount="rw")
    evidence.write_price({ON.name: price.judged(ON, tmp_path)}, tmp_path / "evidence")
    assert (
        f"- the price: {ON.name}: seen the mount options rw" in (tmp_path / "evidence/README.md").read_text()
    )


def test_what_lies_there_already_stays_unless_its_model_is_another(tmp_path: Path) -> None:
    """As with cells; two models in one table would be a table of nothing."""
    raw_record(ON, tmp_path)
    found = price.judged(ON, tmp_path)
    evidence.write_price({ON.name: found}, tmp_path / "evidence")
    evidence.write_price({}, tmp_path / "evidence")
    kept = evidence.read_price(tmp_path / "evidence")
    assert kept == {ON.name: found} and price.wrong(kept) == []
    (mixed,) = price.wrong({**kept, FUA.name: {**found, "scale": 2.0}})
    assert "seen 2 models of the disk" in mixed


def test_the_price_is_recorded_on_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the scale, by a machine of its own name, and the jobs of the setting with the guest's disks."""
    seen = dict[str, Any]()

    def record_jobs(
        setting: Setting, todo: Callable[[Any], list[Job]], directory: Path, slow: float = 0.0
    ) -> None:
        guest = type("Guest", (), {"name": "vdb", "ack": "/dev/vdc"})
        seen.update(setting=setting, jobs=todo(guest), directory=directory, slow=slow)

    monkeypatch.setattr(price, "record_jobs", record_jobs)
    price.record(ON, tmp_path)
    assert seen["jobs"] == jobs(ON, "/dev/vdb", "/dev/vdc")
    assert (seen["slow"], seen["directory"]) == (SCALE, tmp_path / "price-flush-virtio-ext4")


def test_the_journal_goes_as_slowly_as_the_disk() -> None:
    """It is told, and the kernel has to say that it heard."""
    asked = list[tuple[str, ...]]()
    made = Rig.__new__(Rig)
    made.setting, made.name = ON, "vdb"
    made.shell = lambda step, script, *words: asked.append((script, *words)) or ""
    made.slow_journal(SCALE)
    ((script, *words),) = asked
    assert words == ["vdb", machine.MOUNT, "50"]
    assert "remount,commit=$3" in script and 'grep -qx "commit=$3"' in script


def test_an_audit_tells_the_published_rates_of_this_page() -> None:
    words = {"disabled": "off", "enabled": "on", "on": "1", "off": "0"}
    assert {(words[cache], words[barrier]): rates for (cache, barrier), rates in costs.PUBLISHED.items()} == {
        at: (rates[0], rates[-1]) for at, rates in PUBLISHED.items()
    }
