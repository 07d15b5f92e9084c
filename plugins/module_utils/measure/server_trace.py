# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the synchronous writes of a running server reach the disks: with FUA, followed by a flush, or neither.

Read from a trace of the block layer (blktrace). Nothing is written to the mounts.
"""

from __future__ import annotations

import bisect
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..facts.storage import DiskFacts
from ..host.observation import UNKNOWN
from ..host.printable import name as name_of
from ..host.processes import Processes
from ..host.seam import Host, Unobservable
from .limits import Refused
from .prove import FEW, FLUSH, FUA, MOST, NEITHER, UNCLEAR, Row, Verdict, of_neither
from .targets import Place
from .trace import Trace

#: Only synchronous requests, flushes and FUA writes are logged.
_MASKS = ("-a", "sync", "-a", "flush", "-a", "fua")
#: Time in seconds and nanoseconds, disk, action, direction, first sector, sectors, thread.
_FORMAT = "%T %t %D %a %d %S %n %p\n"
#: Seconds within which a flush must follow a write. The journal's periodic commit flushes every 5 s, for no commit.
_SOON = 1.0
#: Fewer writes than this show nothing.
_LEAST = 20
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}")
#: So many other programs are named.
_SHOWN = 5
#: The parent of kernel threads: kthreadd(2).
_KTHREADD = "2"
#: Safety of a disk's writes, the worst first.
_WORST = ("at_risk", UNKNOWN, "ok")


class Event(NamedTuple):
    """One event: the time in seconds, the disk as `major,minor`, blktrace's action and direction, the thread."""

    time: float
    disk: str
    action: str
    direction: str
    sector: int
    sectors: int
    thread: int

    @property
    def is_flush(self) -> bool:
        """Return whether it is a flush without data."""
        return self.direction.startswith("F") and not self.sectors

    @property
    def is_write(self) -> bool:
        """Return whether it is a write with data."""
        return "W" in self.direction and self.sectors > 0

    @property
    def has_fua(self) -> bool:
        """Return whether it is a write with FUA: an F behind the W."""
        return self.is_write and "F" in self.direction.partition("W")[2]

    @property
    def is_synchronous(self) -> bool:
        """Return whether it is a flush, or a write that a program waits for."""
        return self.is_flush or self.has_fua or (self.is_write and "S" in self.direction)


class Counts(NamedTuple):
    """The synchronous writes of a server to one disk.

    `fua` of them were sent with FUA, `flushed` others were followed by a flush; `flushes`: all flushes sent to the disk.
    """

    writes: int = 0
    fua: int = 0
    flushed: int = 0
    flushes: int = 0


def expect_name(program: str | None) -> str | None:
    """Return the name of a program, or None. Raises Refused."""
    if program is not None and not _NAME.fullmatch(program):
        raise Refused(
            f"observe: observed {program!r}; expected the file name of a server's program, for example sqlservr"
        )
    return program


def run(host: Host, places: Sequence[Place], program: str, seconds: int) -> list[Row]:
    """Trace the disks of each place for some seconds and return a row for each. Raises Refused or Unobservable."""
    if not _threads(host, program):
        raise Refused(f"observe: no process runs {program}; expected a running server: start it")
    return [_observe(host, place, program, seconds) for place in places]


def _observe(host: Host, place: Place, program: str, seconds: int) -> Row:
    names = [leaf["name"] for leaf in place["leaves"]]
    threads = _threads(host, program)
    trace = Trace(host, names, seconds + 30, _MASKS, _FORMAT)
    try:
        time.sleep(seconds)
        threads |= _threads(host, program)
        text = trace.text()
    finally:
        trace.abandon()
    found = list(events(text))
    numbers = {name: host.read(f"/sys/block/{name}/dev").strip().replace(":", ",") for name in names}
    counts = {
        name: of_disk([event for event in found if event.disk == numbers[name]], threads) for name in names
    }
    foreign = _programs(host, others(found, numbers.values(), threads))
    verdict = assess(counts, place["leaves"], foreign, program)
    return {
        "mount": place["target"],
        "fstype": place["fstype"],
        "pattern": "observed",
        "words": f"synchronous writes of {program}",
        "commits": sum(each.writes for each in counts.values()),
        "found": verdict.word,
        "safety": verdict.safety,
        "why": verdict.why,
        "flushes_per_commit": {name: _share(each.flushes, each) for name, each in counts.items()},
        "fua_per_commit": {name: _share(each.fua, each) for name, each in counts.items()},
        "fua_unknown": None,
    }


def events(text: str) -> Iterator[Event]:
    """Yield the events that blkparse printed, in their order. Other lines are skipped."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        numbers = [fields[place] for place in (0, 1, 5, 6, 7)] if len(fields) == 8 else [""]
        if all(number.isascii() and number.isdigit() and len(number) < 20 for number in numbers):
            seconds, nanoseconds, sector, sectors, thread = map(int, numbers)
            moment = seconds + nanoseconds / 1e9
            found.append(Event(moment, fields[2], fields[3], fields[4], sector, sectors, thread))
    yield from sorted(found, key=lambda event: event.time)


def of_disk(found: Sequence[Event], threads: Collection[int]) -> Counts:
    """Return the counts of one disk; `threads` are the server's. Pure.

    A write is queued (Q), issued (D) and completed (C). A flush that was issued before a write was completed does not
    cover it.
    """
    flushes = [event.time for event in found if event.is_flush and event.action == "D"]
    later: dict[tuple[int, str], list[Event]] = {}
    for event in found:
        if event.is_write:
            later.setdefault((event.sector, event.action), []).append(event)
    writes = fua = flushed = 0
    for event in found:
        if event.action != "Q" or not event.is_write or event.thread not in threads:
            continue
        writes += 1
        issued, done = (_next(later.get((event.sector, action), ()), event.time) for action in "DC")
        if issued and issued.has_fua:
            fua += 1
        elif done:
            place = bisect.bisect_left(flushes, done.time)
            flushed += place < len(flushes) and flushes[place] <= done.time + _SOON
    return Counts(writes, fua, flushed, len(flushes))


def others(found: Iterable[Event], disks: Collection[str], threads: Collection[int]) -> set[int]:
    """Return the threads other than the server's that queued a flush or a synchronous write to these disks. Pure.

    For fsync(2) of a program a kernel thread often queues the flush: jbd2, or a worker of XFS. If another program wrote
    synchronously too, it is unknown for which of them. An fsync(2) without data of its program is not recognised.
    """
    queued = (event for event in found if event.action == "Q" and event.disk in disks)
    return {event.thread for event in queued if event.is_synchronous}.difference(threads)


def _next(found: Sequence[Event], moment: float) -> Event | None:
    """Return the first event at or after a moment, None without one."""
    place = bisect.bisect_left([event.time for event in found], moment)
    return found[place] if place < len(found) else None


def assess(
    counts: Mapping[str, Counts], leaves: Sequence[DiskFacts], foreign: Sequence[str], program: str
) -> Verdict:
    """Return how the writes of a server reached the disks; `foreign`: other programs that wrote or flushed there. Pure."""
    writes = sum(each.writes for each in counts.values())
    if writes < _LEAST:
        return Verdict(
            UNKNOWN,
            UNKNOWN,
            f"{writes} synchronous writes of {program} were observed, expected at least {_LEAST}: run it while"
            " transactions commit. A RAID layer writes with its own threads, which this does not follow",
        )
    # The many writes to one disk must not hide the few to another.
    shown = [name for name, each in counts.items() if each.writes >= _LEAST]
    found = [
        _of_writes(counts[name], [leaf for leaf in leaves if leaf["name"] == name], foreign) for name in shown
    ] or [_of_writes(Counts(*map(sum, zip(*counts.values()))), leaves, foreign)]
    worst = min(found, key=lambda verdict: _WORST.index(verdict.safety))
    on = f"{shown[found.index(worst)]}: " if len(shown) > 1 else ""
    return worst._replace(why=f"{on}{worst.why}")


def _of_writes(counts: Counts, leaves: Sequence[DiskFacts], foreign: Sequence[str]) -> Verdict:
    """Return how so many writes reached these disks. Pure."""
    writes = counts.writes
    fua = counts.fua / writes
    covered = fua + counts.flushed / writes
    if fua >= MOST:
        return Verdict(FUA, "ok", f"{fua:.0%} of {writes} writes were sent with FUA")
    if covered >= MOST and foreign:
        why = (
            f"other programs write synchronously to the same disks or flush them ({', '.join(foreign[:_SHOWN])}):"
            " stop them, or use another disk"
        )
        return Verdict(FLUSH, UNKNOWN, f"a flush followed {covered:.0%} of {writes} writes, but {why}")
    if covered >= MOST:
        return Verdict(
            FLUSH, "ok", f"FUA or a flush within {_SOON:g} s followed {covered:.0%} of {writes} writes"
        )
    if covered <= FEW:
        return Verdict(NEITHER, *of_neither(leaves))
    return Verdict(
        UNCLEAR, UNKNOWN, f"FUA or a flush within {_SOON:g} s followed only {covered:.0%} of {writes} writes"
    )


def _threads(host: Host, program: str) -> set[int]:
    """Return the ids of all threads of a program; those that end meanwhile are left out."""
    found = set()
    for process in Processes(host).running([program]):
        try:
            found |= {int(name) for name in host.names(f"/proc/{process.pid}/task") if name.isdigit()}
        except Unobservable:
            continue
    return found


def _programs(host: Host, threads: Iterable[int]) -> list[str]:
    """Return the names of threads that are not the kernel's. A thread that has ended counts as a program."""
    found = set()
    for thread in threads:
        try:
            head, _bracket, tail = host.read(f"/proc/{thread}/stat").rpartition(")")
        except Unobservable:
            found.add(f"thread {thread}, which has ended")
            continue
        if tail.split()[1:2] != [_KTHREADD]:
            found.add(name_of(head.partition("(")[2]))
    return sorted(found)


def _share(count: int, counts: Counts) -> float | None:
    return round(count / counts.writes, 3) if counts.writes else None
