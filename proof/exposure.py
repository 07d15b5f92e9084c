# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many acknowledged commits a power cut would take at each moment of a log, when a disk keeps nothing by itself.

A commit is exposed from its acknowledgement until a flush that comes after its write, or not at all if its write came
with FUA or was flushed before it was acknowledged.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proof.errors import ProofError
from proof.log import SECTOR, Event, Kind
from proof.writer import ACK_MAGIC, RECORD, RECORD_MAGIC, Job, record

#: A mark that somebody in the guest wrote to the disk of acknowledgements, to be found in the log's order.
MARK = b"mark "


@dataclass(frozen=True)
class Commit:
    """One acknowledged commit, by sequences of the log; `durable` is None where nothing made it durable to the end."""

    client: int
    number: int
    acknowledged: int
    durable: int | None

    def is_exposed(self, at: int) -> bool:
        """Tell whether a cut after the event with this sequence takes it."""
        return self.acknowledged <= at and (self.durable is None or self.durable > at)


def commits(events: Sequence[Event], job: Job) -> list[Commit]:
    """Return the acknowledged commits of a job, in the order of their acknowledgements.

    ProofError: one was acknowledged, and its write is not in the log.
    """
    flushes = [event.sequence for event in events if event.kind is Kind.FLUSH]
    written: dict[tuple[int, int], Event] = {}
    found = []
    for event in events:
        if event.kind is Kind.WRITE:
            for name in _records(event, job):
                written[name] = event
        elif is_acknowledgement(event):
            client, number = named(event)
            write = written.get((client, number))
            if write is None:
                raise ProofError(f"event {event.sequence} acknowledges a commit that was never written")
            found.append(Commit(client, number, event.sequence, _durable(write, flushes)))
    return found


def exposed(found: Iterable[Commit], at: int) -> int:
    """Return how many commits a cut after the event with this sequence takes."""
    return sum(commit.is_exposed(at) for commit in found)


def last_exposed(found: Iterable[Commit]) -> int:
    """Return the sequence from which on no commit is exposed; ProofError if one is at the end."""
    last = 0
    for commit in found:
        if commit.durable is None:
            raise ProofError(f"client {commit.client}: commit {commit.number} is exposed to the end")
        if commit.durable > commit.acknowledged:
            last = max(last, commit.durable)
    return last


def made_durable(events: Iterable[Event], words: bytes) -> int | None:
    """Return when the first write with these bytes in it was made durable, None if it was not.

    ProofError: no write has them.
    """
    write = None
    for event in events:
        if write is None and event.kind is Kind.WRITE and words in bytes(event.data):
            write = event
            if event.fua:
                return event.sequence
        elif write is not None and event.kind is Kind.FLUSH:
            return event.sequence
    if write is None:
        raise ProofError(f"no write of the log has {words!r}")
    return None


def marks(events: Iterable[Event]) -> dict[str, int]:
    """Return {word: sequence} of the marks; of one that was made twice the last."""
    return {
        bytes(event.data)[len(MARK) :].decode().strip(): event.sequence
        for event in events
        if event.kind is Kind.ACK and bytes(event.data).startswith(MARK)
    }


def is_acknowledgement(event: Event) -> bool:
    """Tell an acknowledgement of a commit from all else, a mark too."""
    return event.kind is Kind.ACK and bytes(event.data[: len(ACK_MAGIC)]) == ACK_MAGIC


def named(event: Event) -> tuple[int, int]:
    """Return client and number of an acknowledgement."""
    _magic, client, number = RECORD.unpack_from(event.data)
    return client, number


def only(events: Iterable[Event], begin: int, end: int) -> list[Event]:
    """Return the events, acknowledgements outside of `begin` to `end` and marks as notes: no event is missing.

    What is left of several runs in one log is then one run's.
    """

    def is_kept(event: Event) -> bool:
        is_ours = begin <= event.sequence < end and is_acknowledgement(event)
        return event.kind is not Kind.ACK or is_ours

    return [event if is_kept(event) else Event(event.sequence, Kind.NOTE) for event in events]


def _records(event: Event, job: Job) -> Iterable[tuple[int, int]]:
    """Yield the commits of the job that a write holds, by their first sector."""
    data = bytes(event.data)
    for place in range(0, len(data), SECTOR):
        if data.startswith(RECORD_MAGIC, place):
            _magic, client, number = RECORD.unpack_from(data, place)
            wanted = record(job, client, number)[:SECTOR]
            if data[place : place + SECTOR] == wanted:
                yield client, number


def _durable(write: Event, flushes: Sequence[int]) -> int | None:
    if write.fua:
        return write.sequence
    place = bisect.bisect(flushes, write.sequence)
    return flushes[place] if place < len(flushes) else None
