# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A SCSI disk: the commands of SPC-3 and SBC-3 that Linux and its tools send."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from lab.vhost import inquiry, modes
from lab.vhost.disk import Disk, Outcome, Request
from lab.vhost.inquiry import Identity
from lab.vhost.sense import (
    ABORTED,
    INVALID_FIELD,
    INVALID_OPCODE,
    NO_SUCH_LUN,
    NONE,
    OUT_OF_RANGE,
    PARAMETER_LENGTH,
    POWER_ON,
    READ_ERROR,
    TARGET_FAILURE,
    WRITE_ERROR,
    Refused,
    Sense,
)
from lab.vhost.store import SECTOR, Kind

TEST_UNIT_READY, REQUEST_SENSE, INQUIRY, REPORT_LUNS = 0x00, 0x03, 0x12, 0xA0
READS, WRITES = (0x08, 0x28, 0xA8, 0x88), (0x0A, 0x2A, 0xAA, 0x8A)
SYNCHRONIZE_CACHE = (0x35, 0x91)
FUA = 8
UNMAP_BIT, NO_DATA = 8, 1
MOST_REPEATED = 32 << 20
_FAILURES = {Kind.READ: READ_ERROR, Kind.SELECT: TARGET_FAILURE}


class Command(Protocol):
    """One command, and where its answer goes: one of the last four is called, once."""

    cdb: bytes
    lun: int
    data: list[memoryview]
    room: list[memoryview]

    def good(self, data: bytes = b"") -> None:
        """It succeeded; `data` goes to the initiator, as far as there is room."""

    def moved(self, length: int) -> None:
        """It succeeded, and so much went from or to the buffers."""

    def check(self, sense: Sense) -> None:
        """It failed."""

    def overrun(self) -> None:
        """It wants more buffers than there are."""


class Target:
    """One disk at LUN 0."""

    def __init__(self, disk: Disk, identity: Identity, fua: bool) -> None:
        """`fua`: whether the disk says that it knows the FUA bit. It heeds the bit in any case."""
        self.disk = disk
        self._identity = identity
        self._fua = fua
        self._attention: Sense | None = None

    def power_on(self) -> None:
        """Settings are those of the start, and the next command is told."""
        self._attention = POWER_ON
        self.disk.power_on()

    def reset(self) -> None:
        """The same for a disk at work: what was not done yet is aborted."""
        self.disk.abort()
        self.power_on()

    def execute(self, command: Command) -> None:
        """Carry out a command, now or after those before it."""
        try:
            self._execute(command)
        except Refused as refused:
            command.check(refused.sense)

    def _execute(self, command: Command) -> None:
        code = command.cdb[0]
        if command.lun:
            self._elsewhere(code, command)
            return
        if self._attention and code not in (INQUIRY, REPORT_LUNS, REQUEST_SENSE):
            raise Refused(self._told())
        act = _ACTS.get(code)
        if act is None:
            raise Refused(INVALID_OPCODE)
        act(self, command)

    def _told(self) -> Sense:
        sense, self._attention = self._attention or NONE, None
        return sense

    def _elsewhere(self, code: int, command: Command) -> None:
        """There is no other unit."""
        if code == REPORT_LUNS:
            self._report_luns(command)
        elif code == INQUIRY:
            command.good(inquiry.no_unit())
        else:
            raise Refused(NO_SUCH_LUN)

    def _ready(self, command: Command) -> None:
        command.good()

    def _request_sense(self, command: Command) -> None:
        sense = self._told()
        command.good(_allocated(sense.descriptor() if command.cdb[1] & 1 else sense.fixed(), command.cdb[4]))

    def _inquiry(self, command: Command) -> None:
        cdb = command.cdb
        length = int.from_bytes(cdb[3:5], "big")
        data: bytes | None = None
        if cdb[1] & 1:
            data = inquiry.page(cdb[2], self._identity)
        elif not cdb[2]:
            data = inquiry.standard(length)
        if data is None:
            raise Refused(INVALID_FIELD)
        command.good(_allocated(data, length))

    def _report_luns(self, command: Command) -> None:
        length = int.from_bytes(command.cdb[6:10], "big")
        if length < 16:
            raise Refused(INVALID_FIELD)
        command.good(_allocated((8).to_bytes(4, "big") + bytes(12), length))

    def _mode_sense(self, command: Command) -> None:
        cdb = command.cdb
        data = modes.sense(cdb, self.disk.cache, self._fua, self._blocks)
        command.good(_allocated(data, cdb[4] if cdb[0] == 0x1A else int.from_bytes(cdb[7:9], "big")))

    def _mode_select(self, command: Command) -> None:
        """A cache that is off is emptied first."""
        cdb = command.cdb
        length = cdb[4] if cdb[0] == 0x15 else int.from_bytes(cdb[7:9], "big")
        data = b"".join(command.data)
        if len(data) < length:
            command.overrun()
            return
        turn_on = modes.select(cdb, data[:length], self.disk.cache)
        finish = partial(_finished, command, Kind.SELECT, length)
        self.disk.submit(Request(Kind.SELECT, 0, 0, [], finish, turn_on=turn_on))

    def _capacity_10(self, command: Command) -> None:
        last = min(self._blocks - 1, 0xFFFFFFFF)
        command.good(last.to_bytes(4, "big") + SECTOR.to_bytes(4, "big"))

    def _service_action_in(self, command: Command) -> None:
        """READ CAPACITY (16) is the one that there is; LBPME says that blocks can be unmapped."""
        cdb = command.cdb
        if cdb[1] & 0x1F != 0x10:
            raise Refused(INVALID_FIELD)
        data = (self._blocks - 1).to_bytes(8, "big") + SECTOR.to_bytes(4, "big") + b"\0\0\x80"
        command.good(_allocated(data.ljust(32, b"\0"), int.from_bytes(cdb[10:14], "big")))

    def _read(self, command: Command) -> None:
        self._transfer(Kind.READ, command, command.room)

    def _write(self, command: Command) -> None:
        self._transfer(Kind.WRITE, command, command.data)

    def _transfer(self, kind: Kind, command: Command, views: list[memoryview]) -> None:
        cdb = command.cdb
        block, count = _extent(cdb)
        is_short = cdb[0] < 0x20
        if not is_short and cdb[1] & 0xE0:
            raise Refused(INVALID_FIELD)  # protection information
        self._check_range(block, count)
        length = count * SECTOR
        there = sum(map(len, views))
        if there < length:
            command.overrun()
        elif not length:
            command.good()
        else:
            fua = kind is Kind.WRITE and not is_short and bool(cdb[1] & FUA)
            self._submit(kind, block * SECTOR, length, command, length, _first(views, length, there), fua)

    def _synchronize(self, command: Command) -> None:
        """All of it, whatever the range."""
        self._submit(Kind.FLUSH, 0, 0, command, 0)

    def _write_same(self, command: Command) -> None:
        cdb = command.cdb
        block, count = _extent(cdb)
        if not count or cdb[1] & 0xF6 & ~UNMAP_BIT:
            raise Refused(INVALID_FIELD)
        self._check_range(block, count)
        data = bytes(SECTOR) if cdb[0] == 0x93 and cdb[1] & NO_DATA else b"".join(command.data)[:SECTOR]
        length = count * SECTOR
        if len(data) < SECTOR:
            command.overrun()
        elif not any(data):
            self._submit(Kind.ZERO, block * SECTOR, length, command, len(command.data) and SECTOR)
        elif length > MOST_REPEATED:
            raise Refused(INVALID_FIELD)
        else:
            self._submit(Kind.WRITE, block * SECTOR, length, command, SECTOR, [memoryview(data * count)])

    def _unmap(self, command: Command) -> None:
        """Descriptors of 16 bytes after a header of 8 (SBC-3, section 5.28)."""
        cdb, data = command.cdb, b"".join(command.data)
        length = int.from_bytes(cdb[7:9], "big")
        if cdb[1] & 1:
            raise Refused(INVALID_FIELD)  # anchored blocks
        if len(data) < length:
            command.overrun()
            return
        size = int.from_bytes(data[2:4], "big")
        if length < 8 or length < 8 + size or size % 16:
            raise Refused(PARAMETER_LENGTH)
        ranges = [_range(data, at) for at in range(8, 8 + size, 16)]
        for block, count in ranges:
            self._check_range(block, count)
        ranges = [each for each in ranges if each[1]]
        if not ranges:
            command.moved(length)
            return
        for block, count in ranges[:-1]:
            self.disk.submit(Request(Kind.DISCARD, block * SECTOR, count * SECTOR, [], _ignore))
        block, count = ranges[-1]
        self._submit(Kind.DISCARD, block * SECTOR, count * SECTOR, command, length)

    def _submit(
        self,
        kind: Kind,
        offset: int,
        length: int,
        command: Command,
        moved: int,
        views: list[memoryview] | None = None,
        fua: bool = False,
    ) -> None:
        finish = partial(_finished, command, kind, moved)
        self.disk.submit(Request(kind, offset, length, views or [], finish, fua))

    @property
    def _blocks(self) -> int:
        return self.disk.size // SECTOR

    def _check_range(self, block: int, count: int) -> None:
        if block + count > self._blocks:
            raise Refused(OUT_OF_RANGE)


def _finished(command: Command, kind: Kind, moved: int, outcome: Outcome) -> None:
    if outcome is Outcome.DONE:
        command.moved(moved)
    elif outcome is Outcome.ABORTED:
        command.check(ABORTED)
    else:
        command.check(_FAILURES.get(kind, WRITE_ERROR))


def _ignore(outcome: Outcome) -> None:
    """A range that could not be unmapped keeps its data: nothing is lost."""


def _extent(cdb: bytes) -> tuple[int, int]:
    """Return the first block and the number of blocks of a command of any length."""
    group = cdb[0] >> 5
    if group == 0:
        return int.from_bytes(cdb[1:4], "big") & 0x1FFFFF, cdb[4] or 256
    if group == 4:
        return int.from_bytes(cdb[2:10], "big"), int.from_bytes(cdb[10:14], "big")
    count = cdb[6:10] if group == 5 else cdb[7:9]
    return int.from_bytes(cdb[2:6], "big"), int.from_bytes(count, "big")


def _range(data: bytes, at: int) -> tuple[int, int]:
    return int.from_bytes(data[at : at + 8], "big"), int.from_bytes(data[at + 8 : at + 12], "big")


def _allocated(data: bytes, length: int) -> bytes:
    return data[:length]


def _first(views: list[memoryview], length: int, there: int) -> list[memoryview]:
    """Return the first part of buffers that are longer than needed."""
    if there == length:
        return views
    parts = []
    for view in views:
        parts.append(view[:length])
        length -= len(parts[-1])
    return [part for part in parts if part]


_ACTS: dict[int, Callable[[Target, Command], None]] = {
    TEST_UNIT_READY: Target._ready,
    REQUEST_SENSE: Target._request_sense,
    INQUIRY: Target._inquiry,
    REPORT_LUNS: Target._report_luns,
    0x15: Target._mode_select,
    0x55: Target._mode_select,
    0x1A: Target._mode_sense,
    0x5A: Target._mode_sense,
    0x1B: Target._ready,  # START STOP UNIT: it always turns
    0x1E: Target._ready,  # PREVENT ALLOW MEDIUM REMOVAL: there is none to remove
    0x25: Target._capacity_10,
    0x9E: Target._service_action_in,
    0x41: Target._write_same,
    0x93: Target._write_same,
    0x42: Target._unmap,
    **dict.fromkeys(READS, Target._read),
    **dict.fromkeys(WRITES, Target._write),
    **dict.fromkeys(SYNCHRONIZE_CACHE, Target._synchronize),
}
