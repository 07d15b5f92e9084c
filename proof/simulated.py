# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest without a kernel: clients whose writes go straight to a disk, as direct writes to a preallocated file do."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proof import writer
from proof.checks import Checked
from proof.log import Event, Kind
from proof.sweep import Files, Run
from proof.writer import BLOCK, Job

#: Where noise goes on a raw disk: behind all commits.
NOISE_AT = 32 << 20


@dataclass(frozen=True)
class Setup:
    """How commits are made durable: by a flush, a FUA write, or not at all; where the log lies; how much noise."""

    by: str = "flush"
    at: int = 0
    noise: int = 1
    noise_at: int = NOISE_AT


def events(job: Job, setup: Setup) -> list[Event]:
    """Return the log of a run of all clients at once, their steps mixed by the job's seed."""
    chance = random.Random(job.seed)
    clients = [_steps(job, setup, client, chance) for client in range(job.clients)]
    found = list[Event]()
    while clients:
        client = chance.choice(clients)
        step = next(client, None)
        if step is None:
            clients.remove(client)
        else:
            kind, offset, data, fua = step
            found.append(Event(len(found), kind, offset, len(data), fua, data))
    return found


def _steps(
    job: Job, setup: Setup, client: int, chance: random.Random
) -> Iterator[tuple[Kind, int, bytes, bool]]:
    for number in range(job.commits):
        for _ in range(setup.noise):
            yield Kind.WRITE, setup.noise_at + chance.randrange(64) * BLOCK, chance.randbytes(BLOCK), False
        offset = setup.at + job.offset_of(client, number)
        yield Kind.WRITE, offset, writer.record(job, client, number), setup.by == "fua"
        if setup.by == "flush":
            yield Kind.FLUSH, 0, b"", False
        yield Kind.ACK, writer.acknowledgement_place(client), writer.acknowledgement(client, number), False


def raw_run(directory: Path, job: Job, setup: Setup, size: int = 64 << 20) -> Run:
    """Return a run on a disk without a file system: the log of commits is its beginning."""
    base = directory / "base.img"
    base.touch()
    with base.open("r+b") as file:
        file.truncate(size)
    return Run(base, events(job, setup), job)


class Raw:
    """The check of a disk without a file system; it counts how often it was asked."""

    def __init__(self, size: int) -> None:
        """Take the size of the log of commits."""
        self.size = size
        self.asked = 0

    def __call__(self, image: Path, paths: Sequence[str], scratch: Path) -> Checked:
        """Read the begin of the disk."""
        self.asked += 1
        with image.open("rb") as file:
            return Checked(True, "", dict.fromkeys(paths, file.read(self.size)))


def raw_judge(job: Job) -> Files:
    """Return the judge for a job on a raw disk."""
    return Files(Raw(job.clients * job.commits * job.size), job)
