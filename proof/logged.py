# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volatile disk and the disk of acknowledgements: they serve the newest data and log all that they are told.

One log has both, in the order in which requests were carried out. Nothing volatile is kept apart: what serves is not
what fails. What a power cut leaves is rebuilt from the log. Whoever uses this gives it one request at a time, and
each at the end of its seconds: it counts, and is logged, just before the answer, as late as a disk may do it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from proof.log import Kind, Writer
from proof.mechanics import Mechanics

NEWEST = "newest.img"
ACK_SIZE = 1 << 20
STEP = 1 << 20


class Logged:
    """The disk in a directory, and the acknowledgements that go with it."""

    def __init__(self, directory: Path) -> None:
        """Open the disk and begin its log. FileNotFoundError: there is no disk; FileExistsError: there is a log."""
        if not (directory / NEWEST).is_file():
            raise FileNotFoundError(f"there is no {NEWEST} in the directory {directory}")
        self._image = os.open(directory / NEWEST, os.O_RDWR | os.O_CLOEXEC)
        self.size = os.fstat(self._image).st_size
        self._acks = memoryview(bytearray(ACK_SIZE))
        self._log = Writer(directory, self.size)

    def opened(self, name: str) -> None:
        """Note that "disk" or "ack" was opened."""
        self._log.append(Kind.NOTE, data=f"opened {name}".encode())

    def read(self, offset: int, buffers: Sequence[memoryview]) -> None:
        """Serve the newest data, flushed or not."""
        done = os.preadv(self._image, buffers, offset)
        if done != sum(map(len, buffers)):
            raise OSError(f"{NEWEST} ends at {offset + done}")

    def write(self, offset: int, data: bytes, fua: bool) -> None:
        """Log first: what is answered is in the log."""
        self._log.append(Kind.WRITE, offset, fua=fua, data=data)
        self._store(memoryview(data), offset)

    def clear(self, kind: Kind, offset: int, length: int, fua: bool) -> None:
        """Make zeros of a range by ZERO or TRIM, cached like any write."""
        self._log.append(kind, offset, length, fua=fua)
        for at in range(offset, offset + length, STEP):
            self._store(memoryview(bytes(min(STEP, offset + length - at))), at)

    def flush(self) -> None:
        """Log it."""
        self._log.append(Kind.FLUSH)

    def read_acks(self, offset: int, length: int) -> memoryview:
        """Return what was acknowledged last at a place."""
        return self._acks[offset : offset + length]

    def acknowledge(self, offset: int, data: bytes) -> None:
        """Log an acknowledgement."""
        self._log.append(Kind.ACK, offset, data=data)
        self._acks[offset : offset + len(data)] = data

    def close(self) -> None:
        """Close the files."""
        self._log.close()
        os.close(self._image)

    def _store(self, data: memoryview, offset: int) -> None:
        while data:
            done = os.pwrite(self._image, data, offset)
            data, offset = data[done:], offset + done


class Duration:
    """How long a request takes.

    `flush` is how long a flush or a FUA write takes. Acknowledgements go on meanwhile, and what else is sent to the
    disk waits and gathers, so more is volatile at a cut.

    `slow` gives each request the time that mechanics.py says it takes, multiplied by a factor, so that the processor
    of an emulated guest is not what is measured.
    """

    def __init__(self, flush: float, slow: float) -> None:
        """Take one of them, or none. ValueError: both are given."""
        if flush and slow:
            raise ValueError("both flush and slow are given: a disk has one way of taking its time")
        self._flush = flush
        self._slow = slow
        self._mechanics = Mechanics()

    def seconds(self, kind: Kind | None, offset: int, length: int, fua: bool) -> float:
        """Return the seconds of one request that begins now; None is a read, which takes none."""
        if kind is None:
            return 0.0
        if self._slow:
            return self._slow * self._mechanics.take(kind, offset, length, fua)
        return self._flush if fua or kind is Kind.FLUSH else 0.0
