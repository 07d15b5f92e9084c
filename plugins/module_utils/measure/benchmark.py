# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commit latency on a host's own disks: by pattern, clients and setting, by fio(1)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..host.seam import ChangeFailed, Host, Unobservable
from ..storage.flush import flushes
from . import fio, scratch, variants
from .limits import MIB, Refused, chosen, number
from .plausible import doubt
from .plot import svg, table
from .targets import find
from .variants import Variant

#: Seconds for which a disk is watched before anything is written, and how busy it may be: of 1.
WATCH, BUSY = 2.0, 0.2
#: A setting is recommended when it is faster by this share at least: less is noise.
WORTH = 0.1
#: Seconds that fio may take beyond its run time.
_PATIENCE = 60.0


class Plan(NamedTuple):
    """What is measured on one mount; `size` is MiB for each client."""

    place: dict[str, Any]
    patterns: list[str]
    clients: list[int]
    variants: list[Variant]
    seconds: int
    size: int
    rate: int

    @property
    def runs(self) -> int:
        """Return how often fio runs."""
        return len(self.patterns) * len(self.clients) * len(self.variants)


def plan(host: Host, row: dict[str, Any]) -> Plan:
    """Return the plan that the module's options ask for; reads only. Raises Refused."""
    fio_there = _fio_version(host)
    if not fio_there:
        raise Refused("fio: not found; wanted fio 3 on this host: install it, or measure another host")
    patterns = chosen("patterns", row["patterns"], fio.WORDS)
    _expect_words(host, fio_there, patterns)
    place = find(host, [row["mount"]])[0]
    clients = [number("clients", count, 1, 64) for count in row["clients"]]
    if not clients:
        raise Refused("clients: seen none; wanted at least one number")
    schedulers = chosen("schedulers", row["schedulers"], variants.SCHEDULERS) if row["schedulers"] else []
    options = (
        chosen("mount_options", row["mount_options"], variants.MOUNT_OPTIONS) if row["mount_options"] else []
    )
    made = Plan(
        place=place,
        patterns=patterns,
        clients=list(dict.fromkeys(clients)),
        variants=variants.plan(place, schedulers, options),
        seconds=number("seconds", row["seconds"], 2, 60),
        size=number("size", row["size"], 1, 64),
        rate=number("rate", row["rate"], 64, 1_000_000),
    )
    most = number("minutes", row["minutes"], 1, 60) * 60
    if made.runs * made.seconds > most:
        raise Refused(
            f"{made.runs} runs of {made.seconds} s: seen {made.runs * made.seconds} s, wanted at most {most}:"
            " measure less, or allow more minutes"
        )
    return made


def expect_quiet(host: Host, place: dict[str, Any]) -> None:
    """Raise Refused where others use the disks: they would be slowed, and the figures would be theirs."""
    before = {leaf["name"]: _busy(host, leaf["name"]) for leaf in place["leaves"]}
    time.sleep(WATCH)
    for name, was in before.items():
        share = (_busy(host, name) - was) / (WATCH * 1000)
        if share > BUSY:
            raise Refused(
                f"{name}: seen busy {share:.0%} of the time, wanted at most {BUSY:.0%}: others use this disk;"
                " measure when it is quiet, or allow a busy disk"
            )


def run(host: Host, made: Plan, busy_allowed: bool) -> list[dict[str, Any]]:
    """Measure and return a row for each (variant, pattern, clients).

    Raises Refused before anything is written, else ChangeFailed, Unobservable or OSError. Scratch files are
    taken away and settings put back in each case.
    """
    rows = []
    place = made.place
    if not busy_allowed:
        expect_quiet(host, place)
    with scratch.signals_end(), scratch.directory(place["target"], place["device"]) as opened:
        sizes = [made.size * MIB] * max(made.clients)
        with scratch.files(place["target"], opened, sizes) as descriptors:
            for variant in made.variants:
                with variants.in_force(host, place, variant):
                    for pattern in made.patterns:
                        for clients in made.clients:
                            figures = _measure(host, made, pattern, descriptors[:clients])
                            rows.append({"variant": variant.words, **figures})
    return rows


def _measure(host: Host, made: Plan, pattern: str, descriptors: Sequence[int]) -> dict[str, Any]:
    for descriptor in descriptors:
        _prepare(descriptor, pattern, made.size * MIB)
    # By descriptor: nobody can put another file where a name was.
    paths = [f"/proc/{os.getpid()}/fd/{descriptor}" for descriptor in descriptors]
    names = [leaf["name"] for leaf in made.place["leaves"]]
    before = _flushes(host, names)
    argv = fio.argv(pattern, paths, made.size, made.seconds, made.rate)
    result = host.run(argv, timeout=made.seconds + _PATIENCE)
    if result.rc != 0:
        raise Unobservable(f"fio: exit {result.rc}: {(result.stderr.strip() or result.stdout.strip())[:500]}")
    found = fio.parse(result.stdout, len(descriptors))
    after = _flushes(host, names)
    each = max(
        ((after[name] - before[name]) / found.commits for name in before if name in after), default=0.0
    )
    return {
        "pattern": pattern,
        "clients": len(descriptors),
        **found._asdict(),
        "flushes_per_commit": round(each, 2) if before else "unknown",
        "held_back": "yes" if found.rate > 0.95 * made.rate else "no",
    }


def _prepare(descriptor: int, pattern: str, size: int) -> None:
    """Leave a file empty that is to grow, and full else. Raises OSError."""
    seen = os.fstat(descriptor).st_size
    if pattern == "append_fsync" and seen:
        os.ftruncate(descriptor, 0)
        os.fsync(descriptor)
    elif pattern != "append_fsync" and seen != size:
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        scratch.fill(descriptor, size)


def doubts(made: Plan, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return why some rates are not believed; the worst of each disk. Pure."""
    found: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: float(row["rate"] / row["clients"])):
        for leaf in made.place["leaves"]:
            why = doubt(leaf, row["rate"], row["clients"])
            if why:
                found[leaf["name"]] = why
    return list(found.values())


def recommend(made: Plan, rows: Sequence[dict[str, Any]], profile: dict[str, Any] | None) -> list[str]:
    """Return what the figures recommend within a profile. Pure.

    All that is measured keeps a profile's promise: each pattern waits for the disk, and the settings are about
    speed. `profile`: the pinned one's fields, None for an unpinned host.
    """
    said = []
    for clients in made.clients:
        here = [row for row in rows if row["clients"] == clients and row["variant"] == variants.AS_IT_IS]
        best = max(here, key=lambda row: float(row["rate"]))
        said.append(f"{clients} client(s): {best['pattern']} is the fastest way to commit, {best['mean']} ms")
    by_name = {variant.words: variant for variant in made.variants}
    gains = {name: _gain(rows, name) for name in by_name if name != variants.AS_IT_IS}
    best_name = max(gains, key=lambda name: gains[name], default=None)
    if best_name is None:
        return said
    if gains[best_name] < WORTH:
        return [*said, f"keep the settings as they are: nothing tried was faster by {WORTH:.0%}"]
    return [
        *said,
        f"{best_name}: faster by {gains[best_name]:.0%}; {_how(made, by_name[best_name], profile)}",
    ]


def _gain(rows: Sequence[dict[str, Any]], name: str) -> float:
    """Return by which share the commits of a variant are faster, the geometric mean over what was measured."""
    was = {
        (row["pattern"], row["clients"]): row["rate"] for row in rows if row["variant"] == variants.AS_IT_IS
    }
    ratios = [row["rate"] / was[row["pattern"], row["clients"]] for row in rows if row["variant"] == name]
    product = 1.0
    for ratio in ratios:
        product *= ratio
    return float(product ** (1 / len(ratios)) - 1) if ratios else 0.0


def _how(made: Plan, variant: Variant, profile: dict[str, Any] | None) -> str:
    if variant.setting == "sync":
        return "no profile sets it: put it into fstab by hand, if slower buffered writes are all right"
    setting = "atime" if variant.setting == "atime" else _scheduler_setting(made.place["leaves"])
    if setting is None:
        return "no profile sets a scheduler for this kind of disk"
    if profile is None:
        return f"pin a profile, and set durable_overrides: {{{setting}: {variant.value}}}"
    if profile.get(setting) == variant.value:
        return "the pinned profile wants it already: run harden-db"
    return f"it keeps the promise of the profile: durable_overrides: {{{setting}: {variant.value}}}"


def _scheduler_setting(leaves: Sequence[dict[str, Any]]) -> str | None:
    kinds = {(leaf["kind"], leaf["rotational"]) for leaf in leaves}
    if len(kinds) != 1:
        return None
    kind, rotational = kinds.pop()
    if kind == "virtual":
        return "scheduler_virtual"
    if kind != "physical":
        return None
    return {"yes": "scheduler_rotational", "no": "scheduler_solid_state"}.get(rotational)


def result_of(made: Plan, rows: list[dict[str, Any]], profile: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the module hands on of its rows: doubts, recommendations, table and plot. Pure."""
    mount = made.place["target"]
    warnings = doubts(made, rows) if rows else []
    advice = recommend(made, rows, profile) if rows else []
    limited = [row for row in rows if row["held_back"] == "yes"]
    if limited:
        advice.append(
            f"{len(limited)} run(s) reached the limit of {made.rate} commits/s: these could be faster"
        )
    if rows and warnings:
        advice.insert(0, "do not choose by these figures before the warnings are settled")
    notes = [*(f"WARNING: {line}" for line in warnings), *advice]
    return {
        "mount": mount,
        "rows": rows,
        "doubts": warnings,
        "advice": advice,
        "table": table(mount, rows, notes) if rows else "",
        "svg": svg(f"Mean commit latency on {mount}", rows) if rows else "",
    }


def _fio_version(host: Host) -> str | None:
    try:
        said = host.run(["fio", "--version"])
    except Unobservable:
        return None
    return said.stdout.strip() if said.rc == 0 and said.stdout.startswith("fio-") else None


def _expect_words(host: Host, version: str, patterns: Sequence[str]) -> None:
    """Raise Refused where this fio knows no O_DSYNC: until 2020 its option `sync` was yes or no."""
    wanting = [pattern for pattern in patterns if fio.DSYNC in fio.WORDS[pattern]]
    if wanting and "dsync" not in host.run(["fio", "--cmdhelp=sync"]).stdout.split():
        raise Refused(
            f"patterns: seen {version}, which knows no O_DSYNC; wanted a newer one, such as 3.33: install that,"
            f" or measure without {', '.join(wanting)}"
        )


def _busy(host: Host, name: str) -> int:
    """Return the milliseconds for which a disk was busy since the boot (field 10 of its stat file)."""
    fields = host.read(f"/sys/block/{name}/stat").split()
    if len(fields) < 10:
        raise Unobservable(f"/sys/block/{name}/stat: too short")
    return int(fields[9])


def _flushes(host: Host, names: Sequence[str]) -> dict[str, int]:
    """Return the flushes of each disk; nothing where one cannot be counted: it is told, not needed."""
    try:
        return {name: flushes(host, name) for name in names}
    except ChangeFailed:
        return {}
