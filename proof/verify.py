# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a power cut took: acknowledged commits that an image lacks, or has in part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from proof.errors import ProofError
from proof.log import Event
from proof.writer import (
    ACK_MAGIC,
    PATTERNS,
    RECORD,
    SECTOR,
    Job,
    acknowledgement,
    acknowledgement_place,
    record,
)


class Acknowledged:
    """How many commits of each client were acknowledged so far."""

    def __init__(self, job: Job) -> None:
        """Begin with none."""
        self.counts = [0] * job.clients
        self._job = job

    def take(self, event: Event) -> None:
        """Count one acknowledgement; ProofError if it is not the next one of a client of this job."""
        data = bytes(event.data)
        magic, client, number = RECORD.unpack_from(data.ljust(RECORD.size, b"\0"))
        if magic != ACK_MAGIC or data != acknowledgement(client, number):
            raise ProofError(f"event {event.sequence} is no acknowledgement")
        if client >= self._job.clients or event.offset != acknowledgement_place(client):
            raise ProofError(
                f"event {event.sequence} acknowledges for client {client}, whom the job does not have"
            )
        if number != self.counts[client]:
            raise ProofError(f"client {client} acknowledges {number}, wanted {self.counts[client]}")
        self.counts[client] += 1


@dataclass(frozen=True)
class Losses:
    """Acknowledged commits as (client, number): of `missing` ones no sector is there, of `torn` ones not all."""

    acknowledged: int
    missing: list[tuple[int, int]]
    torn: list[tuple[int, int]]

    @property
    def count(self) -> int:
        """How many are lost in all."""
        return len(self.missing) + len(self.torn)


class Records:
    """The commits of a job, and whether files have them."""

    def __init__(self, job: Job) -> None:
        """Take a job."""
        self.job = job

    @property
    def files(self) -> list[str]:
        """The names of all files with commits."""
        return sorted({self.job.file_of(client) for client in range(self.job.clients)})

    def losses(self, files: Mapping[str, bytes | None], counts: Sequence[int]) -> Losses:
        """Compare files, None for one that is gone, with what was acknowledged."""
        missing = list[tuple[int, int]]()
        torn = list[tuple[int, int]]()
        if PATTERNS[self.job.pattern].replaces:
            return self._losses_of_files(files, counts)
        for client, count in enumerate(counts):
            content = files[self.job.file_of(client)] or b""
            for number, (offset, expected) in enumerate(self._all[client][:count]):
                found = content[offset : offset + self.job.size]
                if found != expected:
                    (torn if _in_part(found, expected) else missing).append((client, number))
        return Losses(sum(counts), missing, torn)

    def _losses_of_files(self, files: Mapping[str, bytes | None], counts: Sequence[int]) -> Losses:
        """Look whether each file is whole, as the last acknowledged commit or a later one made it, or as it was before any."""
        missing = list[tuple[int, int]]()
        torn = list[tuple[int, int]]()
        for client, count in enumerate(counts):
            content = files[self.job.file_of(client)] or b""
            versions = {data: number for number, (_offset, data) in enumerate(self._all[client])}
            last = versions.get(content, -1 if content == b"" else None)
            if last is None:
                torn.append((client, max(count - 1, 0)))
            else:
                missing += [(client, number) for number in range(last + 1, count)]
        return Losses(sum(counts), missing, torn)

    @cached_property
    def _all(self) -> list[list[tuple[int, bytes]]]:
        """The place and the bytes of each commit of each client."""
        job = self.job
        return [
            [(job.offset_of(client, number), record(job, client, number)) for number in range(job.commits)]
            for client in range(job.clients)
        ]


def _in_part(found: bytes, expected: bytes) -> bool:
    places = range(0, len(expected), SECTOR)
    return any(found[place : place + SECTOR] == expected[place : place + SECTOR] for place in places)
