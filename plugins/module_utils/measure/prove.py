# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests that an engine's commit causes in the block layer, counted: FUA, flush or neither."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from ..facts.classes import DiskFacts
from ..host.observation import UNKNOWN
from ..host.printable import Lines, lines
from ..host.seam import ChangeFailed, Host, Unobservable
from ..storage.flush import counted
from . import scratch
from .limits import MIB, chosen, number
from .patterns import BLOCK, PATTERNS, Log
from .targets import Place, find, may_be_redundant
from .trace import Trace

#: A commit is held to carry what at least this share of all commits was observed to carry...
MOST = 0.9
#: ...and not to carry what at most this share did.
FEW = 0.1
#: Seconds for which the disks are watched before the first write: what others do to them.
WATCH = 1.0
FUA, FLUSH, NEITHER, UNCLEAR = "FUA", "flush", "neither", "unclear"


class Limits(NamedTuple):
    """How much is written at most: commits and seconds for each pattern, commits in a second, MiB."""

    commits: int = 100
    seconds: int = 10
    rate: int = 200
    size: int = 4


class Observed(NamedTuple):
    """What reached each disk while so many commits were made, or none: flushes, and FUA writes.

    `fua` is None where it could not be counted, for `reason`.
    """

    commits: int
    seconds: float
    flushes: dict[str, int]
    fua: dict[str, int] | None
    reason: str | None


class Row(TypedDict):
    """What one pattern's commits carried to the disks of one mount, as the module returns it."""

    mount: str
    fstype: str
    pattern: str
    words: str
    commits: int
    found: str
    safety: str
    why: str
    flushes_per_commit: dict[str, float | None]
    fua_per_commit: dict[str, float | None]
    fua_unknown: str | None


class Verdict(NamedTuple):
    """FUA, flush, neither, unclear or unknown; whether that is ok, at_risk or unknown; and why."""

    word: str
    safety: str
    why: str


def limits_of(row: Mapping[str, Any]) -> Limits:
    """Return the limits that the module's options name. Raises Refused."""
    return Limits(
        commits=number("commits", row["commits"], 20, 1000),
        seconds=number("seconds", row["seconds"], 1, 60),
        rate=number("rate", row["rate"], 10, 2000),
        size=number("size", row["size"], 1, 64),
    )


def plan(host: Host, targets: Sequence[str], patterns: Sequence[str]) -> tuple[list[Place], list[str]]:
    """Return the places and patterns to prove; reads only. Raises Refused."""
    return find(host, targets), chosen("patterns", patterns, PATTERNS)


def run(host: Host, places: Sequence[Place], patterns: Sequence[str], limits: Limits) -> list[Row]:
    """Write as the engines do in each place and return a row for each (mount, pattern).

    Raises Refused or OSError. Whatever happens, the scratch files are removed.
    """
    rows = []
    with scratch.signals_end():
        for place in places:
            with scratch.directory(place["mount"]) as opened:
                names = [leaf["name"] for leaf in place["leaves"]]
                quiet = watch(host, names, limits.seconds, lambda: _wait(WATCH))
                for pattern in patterns:
                    rows.append(_prove(host, place, opened, pattern, quiet, limits))
    return rows


def _prove(host: Host, place: Place, opened: int, name: str, quiet: Observed, limits: Limits) -> Row:
    pattern = PATTERNS[name]
    size = limits.size * MIB
    names = [leaf["name"] for leaf in place["leaves"]]
    with scratch.files(place["target"], opened, [size]) as (descriptor,):
        log = Log(descriptor, pattern)
        try:
            observed = watch(host, names, limits.seconds, lambda: _write(log, limits, size // BLOCK))
        finally:
            log.close()
    no_fua = {leaf["name"]: 0 for leaf in place["leaves"] if _takes_no_fua(leaf)}
    fua = no_fua if observed.fua is None else observed.fua
    verdict = assess(observed, quiet, place["leaves"], may_be_redundant(place))
    return {
        "mount": place["target"],
        "fstype": place["fstype"],
        "pattern": name,
        "words": pattern.meaning,
        "commits": observed.commits,
        "found": verdict.word,
        "safety": verdict.safety,
        "why": verdict.why,
        "flushes_per_commit": {disk: _each(observed, count) for disk, count in observed.flushes.items()},
        "fua_per_commit": {disk: _each(observed, count) for disk, count in fua.items()},
        "fua_unknown": observed.reason,
    }


def watch(host: Host, names: Sequence[str], seconds: int, act: Callable[[], int]) -> Observed:
    """Count what reaches the disks while `act` runs, which returns how many commits it made."""
    trace, reason = None, None
    try:
        trace = Trace(host, names, seconds + 30)
    except Unobservable as error:
        reason = str(error)
    found = None
    try:
        with _counted(host, names) as count:
            began = time.monotonic()
            commits = act()
            took, flushes = time.monotonic() - began, count()
        if trace:
            try:
                found = trace.stop()
            except Unobservable as error:
                reason = str(error)
    finally:
        if trace:
            trace.abandon()
    return Observed(commits, took, flushes, found, reason)


def assess(observed: Observed, quiet: Observed, leaves: Sequence[DiskFacts], redundant: bool) -> Verdict:
    """Say what a commit carried to the disks, from the counts with and without our writes. Pure.

    `redundant`: one write may go to several of the disks, so that each must be sent what one is.
    """
    if not observed.commits:
        return Verdict(UNKNOWN, UNKNOWN, "no commit was made within the time limit")
    flushed = [
        _share(observed, quiet, observed.flushes[leaf["name"]], quiet.flushes[leaf["name"]])
        for leaf in leaves
    ]
    if all(low >= MOST for low, _high in flushed):
        return Verdict(FLUSH, "ok", "each commit was flushed to every disk below")
    few_flushes = all(high <= FEW for _low, high in flushed)
    fua = _fua_shares(observed, quiet, leaves)
    if fua is None:
        reason = f"FUA writes could not be counted: {observed.reason or quiet.reason}"
        if not few_flushes:
            return Verdict(UNCLEAR, UNKNOWN, f"some commits only were flushed; {reason}")
        return Verdict(UNKNOWN, UNKNOWN, f"no flush was sent, so it is FUA or neither; {reason}")
    sums = [sum(low for low, _high in fua), sum(high for _low, high in fua)]
    carried = all(low >= MOST for low, _high in fua) if redundant else sums[0] >= MOST
    if carried:
        return Verdict(FUA, "ok", "each commit was one write with FUA")
    if few_flushes and sums[1] <= FEW:
        return Verdict(NEITHER, *of_neither(leaves))
    return Verdict(
        UNCLEAR,
        UNKNOWN,
        "some commits only carried a flush or FUA, or others write to the same disks: run again when they are quiet",
    )


def _fua_shares(
    observed: Observed, quiet: Observed, leaves: Sequence[DiskFacts]
) -> list[tuple[float, float]] | None:
    """Return the share of commits with FUA for each disk, None if that is unknown."""
    if all(_takes_no_fua(leaf) for leaf in leaves):
        return [(0.0, 0.0) for _leaf in leaves]
    if observed.fua is None or quiet.fua is None:
        return None
    names = [leaf["name"] for leaf in leaves]
    return [_share(observed, quiet, observed.fua[name], quiet.fua[name]) for name in names]


def _takes_no_fua(leaf: DiskFacts) -> bool:
    """Return whether the kernel strips FUA from all that it sends to a disk."""
    return bool(leaf["fua"] == "unsupported" or leaf["write_cache"]["kernel"] == "write through")


def _share(observed: Observed, quiet: Observed, count: int, of_others: int) -> tuple[float, float]:
    """Return the least and the greatest share of commits that `count` can mean: others write too."""
    others = of_others / quiet.seconds * observed.seconds if quiet.seconds else 0.0
    return max(0.0, count - others) / observed.commits, count / observed.commits


def of_neither(leaves: Sequence[DiskFacts]) -> tuple[str, str]:
    """Return the safety of commits that carry neither, and why."""
    caches = {leaf["name"]: leaf["write_cache"] for leaf in leaves}
    caching = [name for name, cache in caches.items() if cache["kernel"] != "write through"]
    if caching:
        why = (
            f"the kernel would flush {', '.join(caching)}, and the file system asks for nothing: barriers are off,"
            " or a layer between passes nothing on"
        )
        return "at_risk", why
    cached = [name for name, cache in caches.items() if cache["device"] == "enabled"]
    if cached:
        why = f"{', '.join(cached)} caches, and its kernel cache mode is write through: commits can be lost"
        return "at_risk", why
    unsure = [name for name, cache in caches.items() if cache["device"] not in ("disabled", "none")]
    if unsure:
        return UNKNOWN, f"whether {', '.join(unsure)} caches is unknown"
    return "ok", "no disk below caches, by its own word, so nothing must be flushed"


def _write(log: Log, limits: Limits, slots: int) -> int:
    """Commit until the number, the time or a growing file's size is reached; return the commits."""
    began = time.monotonic()
    data = os.urandom(BLOCK)
    for done in range(min(limits.commits, slots)):
        due = began + done / limits.rate
        now = time.monotonic()
        if now - began > limits.seconds:
            return done
        if due > now:
            time.sleep(due - now)
        log.commit(data, done)
    return min(limits.commits, slots)


def _wait(seconds: float) -> int:
    time.sleep(seconds)
    return 0


@contextlib.contextmanager
def _counted(host: Host, names: Sequence[str]) -> Iterator[Callable[[], dict[str, int]]]:
    """Count the flushes of each disk, {name: since}. Raises Unobservable."""
    try:
        with contextlib.ExitStack() as stack:
            counts = {name: stack.enter_context(counted(host, name)) for name in names}
            yield lambda: {name: count() for name, count in counts.items()}
    except ChangeFailed as error:
        raise Unobservable(str(error)) from error


def _each(observed: Observed, count: int) -> float | None:
    return round(count / observed.commits, 3) if observed.commits else None


def table(rows: Sequence[Row]) -> Lines:
    """Return the rows as the text that a run shows."""
    found = []
    for row in rows:
        flushed = _figures(row["flushes_per_commit"])
        fua = _figures(row["fua_per_commit"]) or "unknown"
        found += [
            f"{row['mount']}  {row['pattern']:<17} {row['found']:<8} {row['safety']:<8}"
            f" flushes per commit: {flushed}; FUA: {fua}",
            f"    {row['why']}",
        ]
    return lines(found)


def _figures(shares: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {share}" for name, share in shares.items())
