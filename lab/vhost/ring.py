# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The split virtqueue of virtio 1.x (section 2.7), from the device's side.

Loads and stores keep their order on x86, the one architecture of User Mode Linux, except that a load may overtake an
earlier store: where that would lose a notification there is a fence.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass

from lab.errors import LabError
from lab.vhost.memory import Memory

DESCRIPTOR = struct.Struct("<QIHH")
NEXT, WRITE, INDIRECT = 1, 2, 4
NO_NOTIFY = 1
NO_INTERRUPT = 1
LARGEST = 32768
ONE = struct.pack("<Q", 1)

_lock = threading.Lock()


class Chain:
    """One request of the driver: what the device may read of it, and what it may write."""

    __slots__ = ("head", "readable", "writable")

    def __init__(self, head: int, readable: list[memoryview], writable: list[memoryview]) -> None:
        """Take the parts, in their order."""
        self.head = head
        self.readable = readable
        self.writable = writable


@dataclass
class Setup:
    """What a master says of a ring before it runs; addresses are its own virtual ones."""

    size: int = 0
    base: int = 0
    table: int = 0
    avail: int = 0
    used: int = 0


class Ring:
    """A ring that runs. LabError: the driver broke the rules; the ring must not be used any more."""

    def __init__(self, setup: Setup, memory: Memory, at_end: list[Callable[[], None]]) -> None:
        """Look into the memory of the rings; `at_end` is what the loop does after each round."""
        size = setup.size
        if not 0 < size <= LARGEST or size & (size - 1):
            raise LabError(f"a ring has {size} entries, not a power of 2 up to {LARGEST}")
        self._memory = memory
        self._size = size
        self._mask = size - 1
        self._table = memory.user_view(setup.table, 16 * size)
        self._avail = memory.user_view(setup.avail, 4 + 2 * size).cast("H")
        used = memory.user_view(setup.used, 4 + 8 * size)
        self._used = used[:4].cast("H")
        self._elements = used[4:].cast("I")
        self._at_end = at_end
        self._is_new = False
        self._done = self._used[1]
        self.base = setup.base
        self.call = -1

    def pop(self) -> Chain | None:
        """Return the next request, None if there is none."""
        there = self._avail[1]
        base = self.base
        if there == base:
            return None
        if (there - base) & 0xFFFF > self._size:
            raise LabError(f"the driver offers requests {base} to {there} in a ring of {self._size}")
        head = self._avail[2 + (base & self._mask)]
        self.base = (base + 1) & 0xFFFF
        return self._chain(head)

    def push(self, head: int, written: int) -> None:
        """Give a request back with the number of bytes written; the driver is told at the end of the round."""
        place = 2 * (self._done & self._mask)
        self._elements[place] = head
        self._elements[place + 1] = written
        self._done = (self._done + 1) & 0xFFFF
        self._used[1] = self._done
        if not self._is_new:
            self._is_new = True
            self._at_end.append(self.notify)

    def quiet(self) -> None:
        """Ask the driver not to kick: what it adds is seen without."""
        self._used[0] = NO_NOTIFY

    def listen(self) -> bool:
        """Ask for kicks again; tell whether something came before."""
        self._used[0] = 0
        fence()
        return self._avail[1] != self.base

    def notify(self) -> None:
        """Tell the driver of what was given back since the last time, if it wants to know."""
        if not self._is_new:
            return
        self._is_new = False
        fence()
        if self.call < 0 or self._avail[0] & NO_INTERRUPT:
            return
        try:
            os.write(self.call, ONE)
        except BlockingIOError:
            pass  # unread notifications wait there already
        except BrokenPipeError:
            pass  # the machine ended; its connection tells

    def _chain(self, head: int) -> Chain:
        table, count, index = self._table, self._size, head
        readable: list[memoryview] = []
        writable: list[memoryview] = []
        left = count
        while left:
            if index >= count:
                raise LabError(f"descriptor {index} of a table of {count}")
            address, length, flags, following = DESCRIPTOR.unpack_from(table, 16 * index)
            left -= 1
            if flags & INDIRECT:
                if table is not self._table or flags & NEXT or not length or length % 16:
                    raise LabError(f"a bad indirect descriptor: flags {flags}, {length} bytes")
                table, count, index = self._memory.view(address, length), length // 16, 0
                left = count
                continue
            if flags & WRITE:
                writable.append(self._memory.view(address, length))
            elif writable:
                raise LabError("a buffer to read follows one to write")
            else:
                readable.append(self._memory.readable(address, length))
            if not flags & NEXT:
                return Chain(head, readable, writable)
            index = following
        raise LabError(f"a chain of more than {count} descriptors: it has a loop")


def fence() -> None:
    """Let no later load overtake an earlier store: taking a lock is an atomic instruction, which orders both."""
    with _lock:
        pass


def split(views: list[memoryview], length: int) -> tuple[list[memoryview], list[memoryview]]:
    """Divide buffers after `length` bytes; LabError: there are not that many."""
    if views and len(views[0]) == length:
        return views[:1], views[1:]
    first: list[memoryview] = []
    rest = iter(views)
    for view in rest:
        if len(view) >= length:
            first.append(view[:length])
            return first, [part for part in (view[length:], *rest) if part]
        first.append(view)
        length -= len(view)
    if length:
        raise LabError(f"the buffers of a request are {length} bytes short")
    return first, []


def joined(views: list[memoryview]) -> bytes | memoryview:
    """Return the bytes of buffers, without a copy where there is one."""
    return views[0] if len(views) == 1 else b"".join(views)
