# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A copy-on-write store: a base that is never written, and a file over it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.errors import LabError
from lab.vhost.sparse import punch
from lab.vhost.store import read_all, whole, write_all

BLOCK = 4096
OWN = b"\1"
BASE = b"\0"


class Overlay:
    """Blocks of 4 KiB come from the top file where the map has a 1, else from the base.

    The map is a file of one byte for each block, mapped shared: it and the top file lie in the page cache of this
    host, so they outlive the server whatever ends it. Data is written before its mark, so a mark never lies.
    """

    def __init__(self, base: Path, top: Path, marks: Path) -> None:
        """Open the base; top and map are made where both are missing. LabError: they do not fit together."""
        self._base = os.open(base, os.O_RDONLY | os.O_CLOEXEC)
        self.size = whole(os.fstat(self._base).st_size, base)
        if top.exists() != marks.exists():
            there, missing = (top, marks) if top.exists() else (marks, top)
            raise LabError(f"there is {there}, and no {missing}: an overlay has both or neither")
        blocks = -(-self.size // BLOCK)
        self._top = _opened(top, self.size)
        self._map = _mapped(marks, blocks)

    def read(self, offset: int, views: Sequence[memoryview]) -> None:
        """One call for each run of blocks from one file."""
        length = sum(map(len, views))
        for start, end, is_own in self._runs(offset, length):
            part = (
                views
                if (start, end) == (offset, offset + length)
                else cut(views, start - offset, end - offset)
            )
            read_all(self._top if is_own else self._base, part, start)

    def write(self, offset: int, views: Sequence[memoryview], fua: bool) -> None:
        """Blocks that are written in part only come from the base first."""
        end = offset + sum(map(len, views))
        self._fill_edges(offset, end)
        write_all(self._top, views, offset)
        self._mark(offset, end)

    def zero(self, offset: int, length: int, fua: bool) -> None:
        """A hole in the top file that counts as its own."""
        self._fill_edges(offset, offset + length)
        punch(self._top, offset, length)
        self._mark(offset, offset + length)

    def discard(self, offset: int, length: int) -> None:
        """The same: what was discarded must not show the base again."""
        self.zero(offset, length, False)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Close the files."""
        self._map.close()
        os.close(self._top)
        os.close(self._base)

    def _runs(self, offset: int, length: int) -> Iterator[tuple[int, int, bool]]:
        """Yield ranges of bytes whose blocks lie in one file, and whether that is the top file."""
        marks, end = self._map, offset + length
        last = -(-end // BLOCK)
        while offset < end:
            block = offset // BLOCK
            is_own = marks[block] != 0
            change = marks.find(BASE if is_own else OWN, block, last)
            stop = end if change < 0 else min(end, change * BLOCK)
            yield offset, stop, is_own
            offset = stop

    def _fill_edges(self, start: int, end: int) -> None:
        """Copy the first and the last block from the base where they are not overwritten as a whole."""
        if start % BLOCK:
            self._fill(start // BLOCK)
        if end % BLOCK and end < self.size:
            self._fill(end // BLOCK)

    def _fill(self, block: int) -> None:
        if not self._map[block]:
            place = block * BLOCK
            buffer = memoryview(bytearray(min(BLOCK, self.size - place)))
            read_all(self._base, [buffer], place)
            write_all(self._top, [buffer], place)
            self._map[block] = 1

    def _mark(self, start: int, end: int) -> None:
        first, last = start // BLOCK, -(-end // BLOCK)
        if last - first == 1:
            self._map[first] = 1
        else:
            self._map[first:last] = OWN * (last - first)


def cut(views: Sequence[memoryview], start: int, end: int) -> list[memoryview]:
    """Return what lies between two places of buffers."""
    parts, at = [], 0
    for view in views:
        part = view[max(0, start - at) : max(0, end - at)]
        if part:
            parts.append(part)
        at += len(view)
    return parts


def _opened(path: Path, size: int) -> int:
    """Open a file of a size, made if it is missing."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    there = os.fstat(file).st_size
    if there == 0:
        os.ftruncate(file, size)
    elif there != size:
        os.close(file)
        raise LabError(f"{path} has {there} bytes, and what it lies over wants {size}")
    return file


def _mapped(path: Path, size: int) -> mmap.mmap:
    file = _opened(path, size)
    try:
        return mmap.mmap(file, size)
    finally:
        os.close(file)
