# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk with a volatile write cache, as a pure model: what a power cut leaves of what it was told.

The unit is the sector of 512 bytes: no disk tears one. A write lies in the cache until a flush, its own FUA bit or
write-back makes it durable. A cut keeps, of each atom (a sector, or 4 KiB of a disk with such sectors), what
was durable and a prefix of what was written to it since: order holds within an atom and nowhere else.

Nothing here holds an image. The disk answers with pieces, to be written over what lies there already.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from proof.errors import ProofError
from proof.log import CHANGES, SECTOR, Event, Kind

#: Write-back takes one of this many of the oldest writes, so that not even it keeps their order.
WINDOW = 16


#: A sector, and the write of which it has its content.
Kept = tuple[int, Event]


class Piece(NamedTuple):
    """Bytes to write at an offset; None stands for zeros."""

    offset: int
    length: int
    data: memoryview | None


@dataclass(frozen=True)
class Policy:
    """What a cut keeps of the cache: none, all, or a seeded part of its atoms of so many bytes."""

    name: str
    keeps: str
    atom: int = SECTOR


DROP = Policy("drop all", "none")
KEEP = Policy("keep all", "all")
SECTORS = Policy("random 512 B", "some", SECTOR)
BLOCKS = Policy("random 4 KiB", "some", 4096)
POLICIES = {policy.name: policy for policy in (DROP, KEEP, SECTORS, BLOCKS)}


@dataclass(frozen=True)
class WriteBack:
    """When the cache writes back by itself: above so many bytes, and, at a write, what is older than so many events."""

    bytes: int = 4 << 20
    age: int = 2048


@dataclass(frozen=True)
class Faults:
    """What a lying disk does: ignore every Nth flush (0: none), so many in a row, and the FUA bit.

    It has had `flushes` before.
    """

    ignore_flush_every: int = 0
    in_a_row: int = 1
    ignore_fua: bool = False
    flushes: int = 0


class Disk:
    """The cache of one disk. `pending` maps a sector to the writes that wait there, oldest first."""

    def __init__(
        self, write_back: WriteBack | None = None, faults: Faults | None = None, seed: int = 0
    ) -> None:
        """Begin with an empty cache; the seed is for write-back alone."""
        self.pending: dict[int, list[Event]] = {}
        self._write_back = write_back or WriteBack()
        self._faults = faults or Faults()
        self._random = random.Random(f"write-back {seed}")
        self._queue: deque[Event] = deque()
        self._flushes = self._faults.flushes
        self._order: list[int] | None = None

    def copy(self) -> Disk:
        """Return a disk of its own in the same state."""
        other = Disk(self._write_back, self._faults)
        other.pending = {sector: events.copy() for sector, events in self.pending.items()}
        other._random.setstate(self._random.getstate())
        other._queue, other._flushes = self._queue.copy(), self._flushes
        return other

    @property
    def pending_bytes(self) -> int:
        """How much a power cut could take."""
        return len(self.pending) * SECTOR

    def apply(self, event: Event) -> list[Piece]:
        """Take one event and return what it made durable, to be written in this order."""
        if event.kind is Kind.FLUSH:
            return self._flush()
        if event.kind not in CHANGES:
            return []
        self._order = None
        if event.offset % SECTOR or event.length % SECTOR:
            raise ProofError(f"event {event.sequence} is not whole sectors: {event.offset}+{event.length}")
        return [*self._take(event), *self._written_back(event)]

    def cut(self, policy: Policy, seed: object) -> list[Piece]:
        """Return what a power cut now keeps of the cache; the cache stays as it is."""
        return joined(self.kept(policy, seed))

    def kept(self, policy: Policy, seed: object) -> list[Kept]:
        """Return the same sector by sector, in their order."""
        if policy.keeps == "none":
            return []
        if self._order is None:
            self._order = sorted(self.pending)
        if policy.keeps == "all":
            return [(sector, self.pending[sector][-1]) for sector in self._order]
        chance = random.Random(f"cut {seed}")
        # How much survives is drawn for each cut: nearly none to nearly all.
        if policy.atom == SECTOR:
            return self._sectors_kept(self._order, chance.random(), chance.random)
        return list(self._atoms_kept(policy.atom // SECTOR, chance.random(), chance.random))

    def _take(self, event: Event) -> list[Piece]:
        if event.fua and not self._faults.ignore_fua:
            for sector in _sectors(event):
                self.pending.pop(sector, None)
            return [_piece(event, event.offset // SECTOR, event.length // SECTOR)]
        for sector in _sectors(event):
            self.pending.setdefault(sector, []).append(event)
        self._queue.append(event)
        return []

    def _flush(self) -> list[Piece]:
        self._flushes += 1
        every = self._faults.ignore_flush_every
        if every and self._flushes % every < self._faults.in_a_row:
            return []
        durable = self.cut(KEEP, 0)
        self._order = None
        self.pending.clear()
        self._queue.clear()
        return durable

    def _written_back(self, newest: Event) -> Iterator[Piece]:
        """Make the oldest durable until the cache is within its bounds."""
        while self._queue and newest.sequence - self._queue[0].sequence > self._write_back.age:
            yield from self._destage(self._queue.popleft())
        while self._queue and len(self.pending) * SECTOR > self._write_back.bytes:
            place = int(self._random.random() * min(WINDOW, len(self._queue)))
            event = self._queue[place]
            del self._queue[place]
            yield from self._destage(event)

    def _destage(self, event: Event) -> list[Piece]:
        """Make durable what still waits of one write, and so what waited before it in the same sectors."""
        done = []
        for sector in _sectors(event):
            events = self.pending.get(sector, [])
            if event in events:
                done.append((sector, event))
                del events[: events.index(event) + 1]
                if not events:
                    del self.pending[sector]
        return joined(done)

    def _sectors_kept(self, order: Iterable[int], share: float, chance: Callable[[], float]) -> list[Kept]:
        """Return the sectors that survive, each by itself: a tight loop, for thousands may wait."""
        pending, found = self.pending, list[Kept]()
        for sector in order:
            events = pending[sector]
            count = len(events) if chance() < share else int(chance() * len(events))
            if count:
                found.append((sector, events[count - 1]))
        return found

    def _atoms_kept(self, width: int, share: float, chance: Callable[[], float]) -> Iterator[Kept]:
        """Yield the sectors that survive of atoms of `width` sectors."""
        pending = self.pending
        for sectors in _atoms(self._order or (), width):
            first = pending[sectors[0]]
            # Nearly always they were written together, each time.
            if all(pending[sector] == first for sector in sectors):
                count = len(first) if chance() < share else int(chance() * len(first))
                if count:
                    yield from ((sector, first[count - 1]) for sector in sectors)
                continue
            versions = sorted({event.sequence for sector in sectors for event in pending[sector]})
            count = len(versions) if chance() < share else int(chance() * len(versions))
            if not count:
                continue
            last = versions[count - 1]
            for sector in sectors:
                survivors = [event for event in pending[sector] if event.sequence <= last]
                if survivors:
                    yield sector, survivors[-1]


def _atoms(order: Iterable[int], width: int) -> Iterator[list[int]]:
    """Yield sectors, which are in order, as a list for each atom of `width` sectors."""
    for _, sectors in itertools.groupby(order, lambda sector: sector // width):
        yield list(sectors)


def joined(chosen: Iterable[Kept]) -> list[Piece]:
    """Join neighbouring sectors of the same write."""
    pieces: list[Piece] = []
    start, count, of = 0, 0, None
    for sector, event in chosen:
        if event is of and sector == start + count:
            count += 1
            continue
        if of is not None:
            pieces.append(_piece(of, start, count))
        start, count, of = sector, 1, event
    if of is not None:
        pieces.append(_piece(of, start, count))
    return pieces


def _piece(event: Event, sector: int, count: int) -> Piece:
    offset, length = sector * SECTOR, count * SECTOR
    if event.kind is not Kind.WRITE:
        return Piece(offset, length, None)
    begin = offset - event.offset
    return Piece(offset, length, memoryview(event.data)[begin : begin + length])


def _sectors(event: Event) -> range:
    return range(event.offset // SECTOR, (event.offset + event.length) // SECTOR)
