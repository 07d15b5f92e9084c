# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits of a log for the test of the rig itself: a safe run less one flush, or less one FUA bit, must be caught."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from proof.errors import ProofError
from proof.log import CHANGES, SECTOR, Event, Kind
from proof.writer import RECORD, RECORD_MAGIC, Job


class Edit(NamedTuple):
    """An edited log, the sequence of what was taken, and of the event up to which that can matter.

    The next flush makes good what the disk was not told; where none follows, that is the end of the log.
    """

    events: list[Event]
    taken: int
    until: int


def without_flush(events: Sequence[Event], seed: object) -> Edit:
    """Leave out one flush, drawn from those that had something to do while commits were acknowledged."""
    at = _drawn(list(_working_flushes(events)), events, seed, "flush")
    return Edit([*events[:at], *events[at + 1 :]], events[at].sequence, _until(events, at))


def without_fua(events: Sequence[Event], seed: object) -> Edit:
    """Take the FUA bit from one write, drawn from those made while commits were acknowledged."""
    at = _drawn([place for place, event in enumerate(events) if _is_fua(event)], events, seed, "FUA write")
    plain = replace(events[at], fua=False)
    return Edit([*events[:at], plain, *events[at + 1 :]], events[at].sequence, _until(events, at))


def needed(events: Sequence[Event], job: Job) -> set[int]:
    """Return the sequences of all that some acknowledged commit rests upon alone, by its own bytes in the log.

    That is the FUA write that holds it, or the only flush between the write that holds it and its acknowledgement.
    With more clients most commits have two: the kernel waits for a flush that begins after the write, and another
    one ended in between. Metadata is not looked at, so there may be more.
    """
    found = set[int]()
    flushes = list[int]()
    holds: dict[tuple[int, int], Event] = {}
    for event in events:
        if event.kind is Kind.FLUSH:
            flushes.append(event.sequence)
        elif event.kind is Kind.WRITE:
            holds.update({(client, number): event for _at, client, number in commits_in(event, job)})
        elif event.kind is Kind.ACK:
            _, client, number = RECORD.unpack_from(event.data)
            write = holds.get((client, number))
            if write is None:
                continue
            after = flushes[bisect(flushes, write.sequence) :]
            if write.fua and not after:
                found.add(write.sequence)
            elif not write.fua and len(after) == 1:
                found.add(after[0])
    return found


def commits_in(event: Event, job: Job) -> Iterator[tuple[int, int, int]]:
    """Yield (place, client, number) of what a write holds; commits begin at multiples of their size, or of a sector."""
    step = min(SECTOR, job.size)
    for at in range(0, len(event.data) - RECORD.size + 1, step):
        magic, client, number = RECORD.unpack_from(event.data, at)
        if magic == RECORD_MAGIC:
            yield at, client, number


def _drawn(places: list[int], events: Sequence[Event], seed: object, what: str) -> int:
    acks = [place for place, event in enumerate(events) if event.kind is Kind.ACK]
    among = [place for place in places if acks and acks[0] < place < acks[-1]]
    if not among:
        raise ProofError(f"no {what} lies between the first acknowledgement and the last")
    return random.Random(f"edit {seed}").choice(among)


def _working_flushes(events: Sequence[Event]) -> Iterator[int]:
    dirty = False
    for place, event in enumerate(events):
        if event.kind is Kind.FLUSH:
            if dirty:
                yield place
            dirty = False
        elif event.kind in CHANGES and not event.fua:
            dirty = True


def _is_fua(event: Event) -> bool:
    return event.kind in CHANGES and event.fua


def _until(events: Sequence[Event], at: int) -> int:
    later = (event.sequence for event in events[at + 1 :] if event.kind is Kind.FLUSH)
    return next(later, events[-1].sequence)


EDITS: dict[str, Callable[[Sequence[Event], object], Edit]] = {"flush": without_flush, "fua": without_fua}
