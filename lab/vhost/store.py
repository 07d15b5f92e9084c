# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the bytes of a disk lie."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from lab.errors import LabError
from lab.vhost.sparse import punch

SECTOR = 512


class Kind(enum.Enum):
    """What a disk is asked to do."""

    READ = "read"
    WRITE = "write"
    ZERO = "zero"
    DISCARD = "discard"
    FLUSH = "flush"
    SELECT = "mode_select"


class Store(Protocol):
    """The bytes of one disk. Offsets and lengths are checked before, and whole sectors.

    `fua`: what is written must be durable before the method returns. OSError: the request failed.
    """

    size: int

    def read(self, offset: int, views: Sequence[memoryview]) -> None:
        """Fill the buffers."""

    def write(self, offset: int, views: Sequence[memoryview], fua: bool) -> None:
        """Store what is in the buffers."""

    def zero(self, offset: int, length: int, fua: bool) -> None:
        """Make a range zeros."""

    def discard(self, offset: int, length: int) -> None:
        """Forget a range."""

    def flush(self) -> None:
        """Make all that was written before durable."""

    def close(self) -> None:
        """Let go of all files."""


@runtime_checkable
class Timed(Protocol):
    """A store whose requests take time: each is carried out at its end."""

    def seconds(self, kind: Kind, offset: int, length: int, fua: bool) -> float:
        """Return how long a request takes; asked once, when the disk begins with it."""


class File:
    """A raw file, which may be sparse.

    Its flush does nothing: what the kernel of this host has outlives the machine and the server. A store that loses
    what was not flushed is another one.
    """

    def __init__(self, path: Path) -> None:
        """Open a file that is there; OSError if it is not."""
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.size = whole(os.fstat(self._file).st_size, path)

    def read(self, offset: int, views: Sequence[memoryview]) -> None:
        """Straight into the buffers."""
        read_all(self._file, views, offset)

    def write(self, offset: int, views: Sequence[memoryview], fua: bool) -> None:
        """Straight from the buffers."""
        write_all(self._file, views, offset)

    def zero(self, offset: int, length: int, fua: bool) -> None:
        """A hole reads as zeros."""
        punch(self._file, offset, length)

    def discard(self, offset: int, length: int) -> None:
        """Give the space back."""
        punch(self._file, offset, length)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def whole(size: int, path: Path) -> int:
    """Return a size in bytes; LabError: it is not one of a disk."""
    if not size or size % SECTOR:
        raise LabError(f"{path} has {size} bytes: a disk has whole sectors of {SECTOR}")
    return size


def read_all(file: int, views: Sequence[memoryview], offset: int) -> None:
    """Read until all buffers are full; what lies behind the end of the file reads as zeros."""
    done = os.preadv(file, views, offset)
    for view, at in _left(views, done, offset):
        while view:
            count = os.preadv(file, [view], at)
            if not count:
                view[:] = bytes(len(view))
                break
            view, at = view[count:], at + count  # noqa: PLW2901


def write_all(file: int, views: Sequence[memoryview], offset: int) -> None:
    """Write all of it."""
    done = os.pwritev(file, views, offset)
    for view, at in _left(views, done, offset):
        while view:
            count = os.pwritev(file, [view], at)
            view, at = view[count:], at + count  # noqa: PLW2901


def _left(views: Sequence[memoryview], done: int, offset: int) -> Iterator[tuple[memoryview, int]]:
    """Yield what a call left out, with the place of each part: nothing, nearly always."""
    if done == sum(map(len, views)):
        return
    at = offset
    for view in views:
        if done < len(view):
            yield view[done:], at + done
            done = 0
        else:
            done -= len(view)
        at += len(view)
