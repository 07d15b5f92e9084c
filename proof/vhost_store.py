# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volatile disk as stores of lab.vhost: the same disk that nbd_plugin.py serves to QEMU.

A server of the lab names them as factories, `proof.vhost_store:disk` and `proof.vhost_store:ack`, with the directory
of the disk. Both of one directory share one log, and what waits for its time at the disk does not hold up the
acknowledgements.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError
from lab.vhost import store
from proof.log import Kind
from proof.logged import ACK_SIZE, Duration, Logged

KINDS = {
    store.Kind.WRITE: Kind.WRITE,
    store.Kind.ZERO: Kind.ZERO,
    store.Kind.DISCARD: Kind.TRIM,
    store.Kind.FLUSH: Kind.FLUSH,
}

_open: dict[Path, Logged] = {}


def disk(directory: str, flush: float = 0.0, slow: float = 0.0) -> VolatileStore:
    """Return the volatile disk of a directory, with its way of taking time."""
    try:
        duration = Duration(flush, slow)
    except ValueError as error:
        raise LabError(str(error)) from error
    return VolatileStore(_logged(directory), duration)


def ack(directory: str) -> AckStore:
    """Return the disk of acknowledgements that goes with it."""
    return AckStore(_logged(directory))


class VolatileStore:
    """Serves the newest data, and logs what it is told at the end of its time."""

    def __init__(self, logged: Logged, duration: Duration) -> None:
        """Note that it was opened."""
        self.size = logged.size
        self._logged = logged
        self._duration = duration
        logged.opened("disk")

    def seconds(self, kind: store.Kind, offset: int, length: int, fua: bool) -> float:
        """Return how long a request takes that begins now."""
        return self._duration.seconds(KINDS.get(kind), offset, length, fua)

    def read(self, offset: int, views: Sequence[memoryview]) -> None:
        """Serve the newest data, flushed or not."""
        self._logged.read(offset, views)

    def write(self, offset: int, views: Sequence[memoryview], fua: bool) -> None:
        """A write of the guest."""
        self._logged.write(offset, b"".join(views), fua)

    def zero(self, offset: int, length: int, fua: bool) -> None:
        """Zeros are logged without their bytes."""
        self._logged.clear(Kind.ZERO, offset, length, fua)

    def discard(self, offset: int, length: int) -> None:
        """What is trimmed reads as zeros."""
        self._logged.clear(Kind.TRIM, offset, length, False)

    def flush(self) -> None:
        """A flush of the guest."""
        self._logged.flush()

    def close(self) -> None:
        """The log stays open as long as its process: the other disk may go on."""


class AckStore:
    """Takes acknowledgements; it has nothing to flush and takes no time."""

    size = ACK_SIZE

    def __init__(self, logged: Logged) -> None:
        """Note that it was opened."""
        self._logged = logged
        logged.opened("ack")

    def read(self, offset: int, views: Sequence[memoryview]) -> None:
        """Return what was written last."""
        for view in views:
            view[:] = self._logged.read_acks(offset, len(view))
            offset += len(view)

    def write(self, offset: int, views: Sequence[memoryview], fua: bool) -> None:
        """One acknowledgement."""
        self._logged.acknowledge(offset, b"".join(views))

    def zero(self, offset: int, length: int, fua: bool) -> None:
        """An acknowledgement of zeros."""
        self._logged.acknowledge(offset, bytes(length))

    def discard(self, offset: int, length: int) -> None:
        """The same."""
        self._logged.acknowledge(offset, bytes(length))

    def flush(self) -> None:
        """Nothing is volatile here."""

    def close(self) -> None:
        """As above."""


def _logged(directory: str) -> Logged:
    """Return the one log of a directory in this process."""
    path = Path(directory).resolve()
    if path not in _open:
        _open[path] = Logged(path)
    return _open[path]
