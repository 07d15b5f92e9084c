# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images of one disk at one cut after another, in one sparse file.

The file holds what is durable. A cut is laid over it, looked at and taken back, so the work of a step follows
what changed since the last one and what waited in the cache, never the size of the disk.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proof.errors import ProofError
from proof.volatile import Piece

STEP = 1 << 20
ZEROS = memoryview(bytes(STEP))
#: linux/falloc.h: a hole, and the file keeps its size.
_PUNCH_HOLE = 3
_libc = ctypes.CDLL(None, use_errno=True)


class Image:
    """One file that holds a disk. `written` counts bytes, to show what a sweep costs."""

    def __init__(self, path: Path) -> None:
        """Open a file that holds what was durable at first."""
        self.path = path
        self.written = 0
        with path.open("r+b") as file:
            # a cut is many small pieces, and a call of the system for each would cost most of it
            self._bytes = mmap.mmap(file.fileno(), 0)

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()

    def read(self, offset: int, length: int) -> bytes:
        """Return what is durable there."""
        return self._get(Piece(offset, length, None))

    def make_durable(self, pieces: Iterable[Piece]) -> None:
        """Write what the disk has made durable."""
        for piece in pieces:
            self._put(piece)

    @contextmanager
    def at_cut(self, pieces: Iterable[Piece]) -> Iterator[Path]:
        """Lay over it what a cut keeps, and take that back at the end. Nobody may write to the file meanwhile."""
        undo = list[tuple[int, bytes]]()
        try:
            for piece in pieces:
                undo.append((piece.offset, self._get(piece)))
                self._put(piece)
            yield self.path
        finally:
            for offset, old in reversed(undo):
                self._put(Piece(offset, len(old), memoryview(old)))

    def _get(self, piece: Piece) -> bytes:
        old = self._bytes[piece.offset : piece.offset + piece.length]
        if len(old) != piece.length:
            raise ProofError(f"{self.path} ends before {piece.offset + piece.length}")
        return old

    def _put(self, piece: Piece) -> None:
        self.written += piece.length
        end = piece.offset + piece.length
        if piece.data is not None:
            self._bytes[piece.offset : end] = piece.data
            return
        for offset in range(piece.offset, end, STEP):
            length = min(STEP, end - offset)
            self._bytes[offset : offset + length] = ZEROS[:length]


class Twin:
    """A copy of an image, for those who change it: one file, renewed for each of them.

    Both files stay mapped, and pages that are there are written over: new ones take ten times as long.
    """

    def __init__(self, source: Path, path: Path) -> None:
        """Map both; the copy, which is there already, gets the size of its source."""
        self.path, self._from = path, source
        os.truncate(path, source.stat().st_size)
        with source.open("rb") as read, path.open("r+b") as write:
            self._source = memoryview(mmap.mmap(read.fileno(), 0, access=mmap.ACCESS_READ))
            self._copy = mmap.mmap(write.fileno(), 0)

    def renew(self) -> None:
        """Make it the same as its source again, holes too."""
        with self._from.open("rb") as read, self.path.open("r+b") as write:
            size = len(self._copy)
            data = list(_extents(read.fileno(), size))
            for extent in list(_extents(write.fileno(), size)):
                for begin, end in _less(extent, data):
                    _punch(write.fileno(), begin, end)
        for begin, end in data:
            self._copy[begin:end] = self._source[begin:end]


def copy_sparse(source: Path, target: Path, without: Sequence[tuple[int, int]] = ()) -> None:
    """Copy a file, without its holes and without these ranges, (begin, end) in their order: they become holes."""
    with source.open("rb") as read, target.open("wb") as write:
        size = os.fstat(read.fileno()).st_size
        os.truncate(write.fileno(), size)
        for extent in _extents(read.fileno(), size):
            for begin, end in _less(extent, without):
                _copy(read.fileno(), write.fileno(), begin, end)


def _less(extent: tuple[int, int], without: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield what is left of an extent."""
    at, end = extent
    for cut_begin, cut_end in without[max(0, bisect(without, (at,)) - 1) :]:
        if cut_begin >= end:
            break
        if at < cut_begin:
            yield at, cut_begin
        at = max(at, cut_end)
    if at < end:
        yield at, end


def _extents(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where data lies."""
    end = 0
    while end < size:
        try:
            begin = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return
            raise
        end = os.lseek(file, begin, os.SEEK_HOLE)
        yield begin, end


def _copy(read: int, write: int, begin: int, end: int) -> None:
    os.lseek(write, begin, os.SEEK_SET)
    while begin < end:
        done = os.sendfile(write, read, begin, end - begin)
        if not done:
            raise ProofError("a file got shorter while it was copied")
        begin += done


def _punch(file: int, begin: int, end: int) -> None:
    """Make a range of a file a hole."""
    if _libc.fallocate64(file, _PUNCH_HOLE, ctypes.c_int64(begin), ctypes.c_int64(end - begin)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
