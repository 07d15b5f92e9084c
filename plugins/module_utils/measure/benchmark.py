# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commit latency on a host's own disks by write method, clients and setting, on several mounts at the same time."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from ..enforce import one_run
from ..host.printable import Lines, lines
from ..host.seam import ChangeFailed, Host, Unobservable
from ..storage.flush import flushes
from . import advice, costs, fio, grouped, scratch, transactions, variants
from .figures import Price, Result, Row, Run, median
from .limits import MIB, Refused
from .planned import Plan, Way
from .plot import as_lines, svg
from .targets import Place
from .variants import Variant

#: Seconds for which a disk is watched before anything is written, and how busy it may be: of 1.
WATCH, BUSY = 2.0, 0.2
#: Seconds that fio may take beyond its run time.
_PATIENCE = 60.0
#: The command that makes the plot, which is stored next to it.
MADE_BY = "ansible-playbook durable.dbhost.benchmark"


def expect_quiet(host: Host, names: Iterable[str]) -> None:
    """Raise Refused where others use the disks: they would be slowed, and the figures would be theirs."""
    before = {name: _busy(host, name) for name in names}
    time.sleep(WATCH)
    for name, was in before.items():
        share = (_busy(host, name) - was) / (WATCH * 1000)
        if share > BUSY:
            raise Refused(
                f"{name}: observed busy {share:.0%} of the time, expected at most {BUSY:.0%}: others use this disk;"
                " measure when it is quiet, or allow a busy disk"
            )


def run(host: Host, made: Plan, busy_allowed: bool) -> list[Row]:
    """Measure and return a row for each (variant, way, clients, mount).

    Raises Refused before anything is written, else ChangeFailed, Unobservable or OSError. Scratch files are
    removed and settings restored in each case.
    """
    names = [leaf["name"] for leaf in made.leaves]
    if not busy_allowed:
        expect_quiet(host, names)
    with scratch.signals_end(), ExitStack() as opened:
        if made.tried:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            alone = one_run.hold(host, "the module benchmark", now, made.tried, made.looked_at)
            opened.enter_context(alone)
        sizes = [made.size * MIB] * max(made.files(way, max(made.clients)) for way in made.ways)
        on_mounts = [opened.enter_context(_scratch(host, made, place, sizes)) for place in made.places]
        return [row for variant in made.variants for row in _under(host, made, variant, on_mounts)]


class _Scratch(NamedTuple):
    """The scratch files of one mount, and its scratch servers by load."""

    files: Sequence[int]
    servers: Mapping[str, transactions.Scratch]


@contextmanager
def _scratch(host: Host, made: Plan, place: Place, sizes: Sequence[int]) -> Iterator[_Scratch]:
    """Write the scratch files of a mount and start its scratch servers, all of which are removed at the end."""
    target = place["target"]
    with ExitStack() as opened:
        directory = opened.enter_context(scratch.directory(place["mount"]))
        files = opened.enter_context(scratch.files(target, directory, sizes))
        loads = sum(way.is_load for way in made.ways) * len(made.variants) * made.repeats
        seconds = 2.0 * made.runs * made.seconds + _PATIENCE
        seconds += loads * transactions.CONNECTION * sum(made.clients)
        # Two loads of one server share its tables.
        running: dict[transactions.Server, transactions.Scratch] = {}
        for server in made.servers.values():
            if server not in running:
                running[server] = opened.enter_context(
                    transactions.running(host, server, target, directory, max(made.clients), seconds)
                )
        yield _Scratch(files, {load: running[server] for load, server in made.servers.items()})


def _under(host: Host, made: Plan, variant: Variant, on_mounts: Sequence[_Scratch]) -> list[Row]:
    """Return what is measured under one variant: each measurement once, then each again."""
    with variants.in_force(host, made.places, variant):
        rounds = [
            [
                run
                for way in made.ways
                for clients in made.clients
                for run in _measure(host, made, way, clients, on_mounts)
            ]
            for _round in range(made.repeats)
        ]
    return [median(variant.name, runs) for runs in zip(*rounds)]


def _measure(host: Host, made: Plan, way: Way, clients: int, on_mounts: Sequence[_Scratch]) -> Iterator[Run]:
    """Yield a row for each mount."""
    files = [each.files[: made.files(way, clients)] for each in on_mounts]
    for descriptor in (each for descriptors in files for each in descriptors):
        _prepare(descriptor, way.pattern, made.size * MIB)
    every = [leaf["name"] for leaf in made.leaves]
    before = _flushes(host, every)
    if way.is_load:
        found = [each.servers[way.pattern].measure(way.pattern, clients, made.seconds) for each in on_mounts]
    else:
        found = _commit(host, made, way, clients, files)
    after = _flushes(host, every)
    held = Counter(leaf["name"] for place in made.places for leaf in place["leaves"])
    for place, figures in zip(made.places, found):
        names = [leaf["name"] for leaf in place["leaves"]]
        # Of a disk that two mounts share nobody knows for which of them it was flushed.
        counts = [
            (after[name] - before[name]) / figures.commits
            for name in names
            if name in before and name in after and held[name] == 1
        ]
        yield {
            "mount": place["target"],
            "pattern": way.pattern,
            "commit_delay": way.delay,
            "clients": clients,
            "commits": figures.commits,
            "rate": figures.rate,
            "mean": figures.mean,
            "p99": figures.p99,
            "flushes_per_commit": round(max(counts), 2) if len(counts) == len(names) else "unknown",
            "held_back": "yes" if figures.rate > 0.95 * made.rate and not way.is_load else "no",
            "server": made.servers[way.pattern].version if way.is_load else None,
        }


def _commit(
    host: Host, made: Plan, way: Way, clients: int, files: Sequence[Sequence[int]]
) -> list[fio.Figures]:
    """Let the clients of all mounts commit at the same time, and return the figures of each mount."""
    if way.delay is not None:
        logs = [descriptors[0] for descriptors in files]
        return grouped.measure(logs, clients, way.delay, made.seconds, made.rate)
    # By descriptor: nobody can put another file where a name was.
    paths = [[f"/proc/{os.getpid()}/fd/{each}" for each in descriptors] for descriptors in files]
    argv = fio.argv(way.pattern, paths, made.size, made.seconds, made.rate)
    result = host.run(argv, timeout=made.seconds + _PATIENCE)
    if result.rc != 0:
        raise Unobservable(f"fio: exit {result.rc}: {(result.stderr.strip() or result.stdout.strip())[:500]}")
    return fio.parse(result.stdout, len(files), clients)


def _prepare(descriptor: int, pattern: str, size: int) -> None:
    """Leave a file empty that is to grow, and full else. Raises OSError."""
    found_size = os.fstat(descriptor).st_size
    if pattern == "append_fsync" and found_size:
        os.ftruncate(descriptor, 0)
        os.fsync(descriptor)
    elif pattern != "append_fsync" and found_size != size:
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        scratch.fill(descriptor, size)


def result_of(
    made: Plan,
    rows: list[Row],
    profiles: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, Mapping[str, Any]],
) -> Result:
    """Return what the module hands on of its rows: doubts, recommendations, prices, table and plot. Pure.

    `profiles`: those that mounts are pinned to, by mount; `known`: all whose cost is reported, by name.
    """
    doubts = advice.doubts(made, rows)
    priced = costs.of(made, rows, known) if rows else []
    advised = advice.all_of(made, rows, profiles, priced, doubts) if rows else []
    copied = advice.group_vars(made, rows, profiles, priced) if rows and not doubts else []
    notes = [*(f"WARNING: {line}" for line in doubts), *advised]
    return {
        "mounts": made.targets,
        "disks": {place["target"]: [leaf["id"] for leaf in place["leaves"]] for place in made.places},
        "rows": rows,
        "doubts": doubts,
        "advice": advised,
        "prices": priced,
        "group_vars": copied,
        "table": lines([*costs.as_lines(priced), *as_lines(rows, notes), *_to_copy(copied)]) if rows else "",
        "svg": _plot(made, rows, priced) if rows else "",
    }


def _to_copy(group_vars: Sequence[str]) -> list[str]:
    return ["for group_vars, if measured hosts alike share them:", *group_vars] if group_vars else []


def _plot(made: Plan, rows: list[Row], priced: list[Price]) -> Lines:
    title = costs.headline(priced) or f"Commits on {', '.join(made.targets)}"
    named: dict[tuple[str, str], str] = {}
    for price in priced:
        if price["variant"]:
            at = (price["mount"], price["variant"])
            named[at] = ", ".join(filter(None, (named.get(at), price["profile"])))
    return svg(title, rows, named, MADE_BY)


def _busy(host: Host, name: str) -> int:
    """Return the milliseconds for which a disk was busy since the boot (field 10 of its stat file)."""
    fields = host.read(f"/sys/block/{name}/stat").split()
    if len(fields) < 10:
        raise Unobservable(f"/sys/block/{name}/stat: too short")
    return int(fields[9])


def _flushes(host: Host, names: Sequence[str]) -> dict[str, int]:
    """Return the flushes of each disk, or nothing if one cannot be counted: the numbers are optional."""
    try:
        return {name: flushes(host, name) for name in names}
    except ChangeFailed:
        return {}
