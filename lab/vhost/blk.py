# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The virtio block device (virtio 1.x, section 5.2)."""

from __future__ import annotations

import struct

from lab.errors import LabError
from lab.vhost.device import COMMON
from lab.vhost.disk import Disk, Effect, Outcome, Request
from lab.vhost.ring import Chain, Ring, joined, split
from lab.vhost.store import SECTOR, Kind

SEG_MAX, BLK_SIZE, FLUSH, TOPOLOGY = 1 << 2, 1 << 6, 1 << 9, 1 << 10
CONFIG_WCE, DISCARD, WRITE_ZEROES = 1 << 11, 1 << 13, 1 << 14
FEATURES = COMMON | SEG_MAX | BLK_SIZE | FLUSH | TOPOLOGY | CONFIG_WCE | DISCARD | WRITE_ZEROES

IN, OUT, T_FLUSH, GET_ID, T_DISCARD, T_WRITE_ZEROES = 0, 1, 4, 8, 11, 13
OK, IOERR, UNSUPP = 0, 1, 2

HEADER = struct.Struct("<IIQ")
RANGE = struct.Struct("<QII")
# capacity, size_max, seg_max, geometry, blk_size, topology, writeback, queues, discard and write zeroes limits
CONFIG = struct.Struct("<QIIHBBIBBHIBxHIIIIIB3x")
WRITEBACK = 32
SEGMENTS = 254
ID_LENGTH = 20
UNMAP = 1
MOST_SECTORS = 1 << 22


class Blk:
    """A disk of the kind /dev/vda."""

    features = FEATURES
    queues = 1

    def __init__(self, disk: Disk, unnamed: bool = False) -> None:
        """Serve this disk; of one that is `unnamed` the guest is told no serial."""
        self.name = f"virtio disk {disk.serial}"
        self.disk = disk
        self._id = (b"" if unnamed else disk.serial.encode()).ljust(ID_LENGTH, b"\0")

    def reset(self, features: int) -> None:
        """The cache comes up as the disk has it at power-on, and is none that this driver could not flush."""
        self.disk.power_on()
        if features and not features & FLUSH:
            self.disk.cache = False

    def config(self) -> bytes:
        """Return the configuration space; `writeback` is the switch of the cache."""
        sectors, limit = self.disk.size // SECTOR, MOST_SECTORS
        topology = (0, 0, 0, 0)
        ranges = (limit, 1, 1, limit, 1, 1)
        words = (sectors, 0, SEGMENTS, 0, 0, 0, SECTOR, *topology, self.disk.cache, self.queues, *ranges)
        return CONFIG.pack(*words)

    def set_config(self, offset: int, data: bytes) -> None:
        """Only `writeback` can be written. What was written before the switch stays volatile until a flush (5.2.6.2)."""
        if (offset, len(data)) != (WRITEBACK, 1) or data[0] > 1:
            raise LabError(
                f"{data.hex()} written at {offset} of the configuration space: only writeback can be"
            )
        if self.disk.effect_on(Kind.SELECT) is not Effect.LIE:
            self.disk.cache = bool(data[0])

    def abandon(self) -> None:
        """Nobody waits for answers any more."""
        self.disk.abandon()

    def abort(self) -> None:
        """Fail what is not done yet."""
        self.disk.abort()

    def handle(self, index: int, ring: Ring, chain: Chain) -> None:
        """Take one request. LabError: it has no room for an answer, or no header."""
        header, data = split(chain.readable, HEADER.size)
        kind, _, sector = HEADER.unpack(joined(header))
        room, status = _last_byte(chain.writable)
        answer = Answer(ring, chain.head, status, room)
        if kind in (IN, OUT):
            self._transfer(kind, sector * SECTOR, room if kind == IN else data, answer)
        elif kind == T_FLUSH:
            self.disk.submit(Request(Kind.FLUSH, 0, 0, [], answer.finish))
        elif kind == GET_ID:
            _fill(room, self._id)
            answer.give(OK)
        elif kind in (T_DISCARD, T_WRITE_ZEROES):
            self._clear(Kind.DISCARD if kind == T_DISCARD else Kind.ZERO, data, answer)
        else:
            answer.give(UNSUPP)

    def _transfer(self, kind: int, offset: int, views: list[memoryview], answer: Answer) -> None:
        length = sum(map(len, views))
        if length % SECTOR or offset + length > self.disk.size:
            answer.give(IOERR)
            return
        work = Kind.READ if kind == IN else Kind.WRITE
        self.disk.submit(Request(work, offset, length, views, answer.finish))

    def _clear(self, kind: Kind, data: list[memoryview], answer: Answer) -> None:
        ranges = bytes(joined(data))
        if len(ranges) != RANGE.size:
            answer.give(IOERR)
            return
        sector, count, flags = RANGE.unpack(ranges)
        offset, length = sector * SECTOR, count * SECTOR
        if offset + length > self.disk.size or count > MOST_SECTORS:
            answer.give(IOERR)
        elif flags not in ((0, UNMAP) if kind is Kind.ZERO else (0,)):
            answer.give(UNSUPP)
        else:
            self.disk.submit(Request(kind, offset, length, [], answer.finish))


class Answer:
    """Where the status of one request goes."""

    __slots__ = ("_head", "_ring", "_room", "_status")

    def __init__(self, ring: Ring, head: int, status: memoryview, room: list[memoryview]) -> None:
        """`room` is what the driver gave for data."""
        self._ring = ring
        self._head = head
        self._status = status
        self._room = room

    def finish(self, outcome: Outcome) -> None:
        """Tell how it ended."""
        self.give(OK if outcome is Outcome.DONE else IOERR)

    def give(self, status: int) -> None:
        """Give the request back."""
        self._status[0] = status
        self._ring.push(self._head, sum(map(len, self._room)) + 1 if status == OK else 1)


def _last_byte(views: list[memoryview]) -> tuple[list[memoryview], memoryview]:
    """Divide the buffers to write into those for data and the byte for the status."""
    if not views:
        raise LabError("a request without a writable buffer for its status")
    last = views[-1]
    if len(last) == 1:
        return views[:-1], last
    if not last:
        raise LabError("a request with an empty buffer for its status")
    return [*views[:-1], last[:-1]], last[-1:]


def _fill(views: list[memoryview], data: bytes) -> None:
    for view in views:
        part, data = data[: len(view)], data[len(view) :]
        view[: len(part)] = part
