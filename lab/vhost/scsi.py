# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The virtio SCSI host device (virtio 1.x, section 5.6): a controller with a disk at each target."""

from __future__ import annotations

import struct
from collections import deque

from lab.errors import LabError
from lab.vhost.device import COMMON
from lab.vhost.ring import Chain, Ring, joined, split
from lab.vhost.sbc import Target
from lab.vhost.sense import Sense

HOTPLUG = 1 << 1
EVENTS, REQUESTS = 1, 2
OK, OVERRUN, BAD_TARGET, REJECTED = 0, 1, 3, 11
CHECK_CONDITION = 2
TMF, ASYNC_QUERY, ASYNC_SUBSCRIBE = 0, 1, 2
NEXUS_RESET, UNIT_RESET = 4, 5
TRANSPORT_RESET, MISSED = 1, 1 << 31
RESCAN, REMOVED = 1, 2
SENSE_SIZE, CDB_SIZE, TARGETS = 96, 32, 64

REQUEST = struct.Struct("<BBHIQBBB32s")
RESPONSE = struct.Struct("<IIHBB96s")
TASK = struct.Struct("<IIBBHIQ")
TASK_ANSWER = struct.Struct("<B")
ASYNC_ANSWER = struct.Struct("<IB")
EVENT = struct.Struct("<IBBHII")
# queues, segments, sectors, commands for each unit, size of events, of sense data, of CDBs, then the highest numbers
CONFIG = struct.Struct("<IIIIIIIHHI")
SIZES = 20
SEGMENTS, MOST_SECTORS, COMMANDS = 254, 0xFFFF, 128


class Controller:
    """Takes commands to its targets, and tells the driver of those that come and go."""

    name = "SCSI controller"
    features = COMMON | HOTPLUG
    queues = 3

    def __init__(self) -> None:
        """Begin without a disk."""
        self._targets: dict[int, Target] = {}
        self._buffers: deque[tuple[Ring, Chain]] = deque()
        self._has_hotplug = False
        self._has_missed = False

    def free(self) -> int:
        """Return the lowest target that is free."""
        for number in range(TARGETS):
            if number not in self._targets:
                return number
        raise LabError(f"all {TARGETS} targets of the SCSI controller are taken")

    def plug(self, number: int, target: Target) -> None:
        """Add a disk, and tell the driver."""
        if number in self._targets:
            raise LabError(f"target {number} is that of disk {self._targets[number].disk.serial}")
        self._targets[number] = target
        target.power_on()
        self._tell(number, RESCAN)

    def unplug(self, target: Target) -> None:
        """Take a disk away at once, and tell the driver."""
        number = next(number for number, each in self._targets.items() if each is target)
        target.reset()
        del self._targets[number]
        self._tell(number, REMOVED)

    def reset(self, features: int) -> None:
        """A driver begins: all disks are as after power-on."""
        self.abandon()
        self._has_hotplug = bool(features & HOTPLUG)
        self._has_missed = False
        for target in self._targets.values():
            target.power_on()

    def config(self) -> bytes:
        """Return the configuration space."""
        sizes = (EVENT.size, SENSE_SIZE, CDB_SIZE)
        return CONFIG.pack(1, SEGMENTS, MOST_SECTORS, COMMANDS, *sizes, 0, TARGETS - 1, 0)

    def set_config(self, offset: int, data: bytes) -> None:
        """The driver may write the sizes of sense data and CDBs; only those that are there already are taken."""
        space = self.config()
        if offset not in (SIZES, SIZES + 4) or data != space[offset : offset + len(data)]:
            raise LabError(f"{data.hex()} written at {offset} of the configuration space of the controller")

    def abandon(self) -> None:
        """Nobody waits for answers any more."""
        self._buffers.clear()
        for target in self._targets.values():
            target.disk.abandon()

    def abort(self) -> None:
        """Fail what is not done yet."""
        for target in self._targets.values():
            target.disk.abort()

    def handle(self, index: int, ring: Ring, chain: Chain) -> None:
        """Take what came in one of the three rings."""
        if index == REQUESTS:
            self._command(ring, chain)
        elif index == EVENTS:
            self._buffers.append((ring, chain))
            if self._has_missed:
                self._has_missed = False
                self._event(MISSED, 0, 0)
        else:
            self._control(ring, chain)

    def _command(self, ring: Ring, chain: Chain) -> None:
        header, data = split(chain.readable, REQUEST.size)
        response, room = split(chain.writable, RESPONSE.size)
        one, number, lun, *_, cdb = REQUEST.unpack(joined(header))
        command = ScsiCommand(ring, chain.head, response, cdb, _lun(lun), data, room)
        target = self._targets.get(number) if one == 1 else None
        if target is None:
            command.answer(BAD_TARGET)
        else:
            target.execute(command)

    def _control(self, ring: Ring, chain: Chain) -> None:
        kind = int.from_bytes(joined(split(chain.readable, 4)[0]), "little")
        if kind == TMF:
            answer = TASK_ANSWER.pack(self._task(*TASK.unpack(joined(split(chain.readable, TASK.size)[0]))))
        elif kind in (ASYNC_QUERY, ASYNC_SUBSCRIBE):
            answer = ASYNC_ANSWER.pack(0, OK)
        else:
            raise LabError(f"a control request of the type {kind}")
        _store(split(chain.writable, len(answer))[0], answer)
        ring.push(chain.head, len(answer))

    def _task(self, kind: int, function: int, one: int, number: int, lun: int, _: int, tag: int) -> int:
        """Resets are carried out; single commands are not aborted."""
        target = self._targets.get(number) if one == 1 else None
        if target is None:
            return BAD_TARGET
        if function not in (NEXUS_RESET, UNIT_RESET):
            return REJECTED
        target.reset()
        return OK

    def _tell(self, number: int, reason: int) -> None:
        if self._has_hotplug:
            self._event(TRANSPORT_RESET, number, reason)

    def _event(self, event: int, number: int, reason: int) -> None:
        """Use one of the driver's buffers; where there is none, it is told of that with the next (5.6.6.3)."""
        if not self._buffers:
            self._has_missed = True
            return
        ring, chain = self._buffers.popleft()
        _store(split(chain.writable, EVENT.size)[0], EVENT.pack(event, 1, number, 0, 0, reason))
        ring.push(chain.head, EVENT.size)


class ScsiCommand:
    """One command, and its response."""

    __slots__ = ("_head", "_response", "_ring", "cdb", "data", "lun", "room")

    def __init__(
        self,
        ring: Ring,
        head: int,
        response: list[memoryview],
        cdb: bytes,
        lun: int,
        data: list[memoryview],
        room: list[memoryview],
    ) -> None:
        """`data` comes from the driver, `room` is for data to it."""
        self._ring = ring
        self._head = head
        self._response = response
        self.cdb = cdb
        self.lun = lun
        self.data = data
        self.room = room

    def good(self, data: bytes = b"") -> None:
        """Give data, and tell how much room is left."""
        self.moved(_store(self.room, data))

    def moved(self, length: int) -> None:
        """Tell how much of the buffers was not used."""
        there = sum(map(len, self.room)) + sum(map(len, self.data))
        self.answer(OK, there - length)

    def check(self, sense: Sense) -> None:
        """Give sense data."""
        self.answer(OK, sum(map(len, self.room)) + sum(map(len, self.data)), CHECK_CONDITION, sense.fixed())

    def overrun(self) -> None:
        """The driver gave too little."""
        self.answer(OVERRUN)

    def answer(self, response: int, left: int = 0, status: int = 0, sense: bytes = b"") -> None:
        """Give the command back."""
        _store(self._response, RESPONSE.pack(len(sense), max(0, left), 0, status, response, sense))
        room = sum(map(len, self.room))
        self._ring.push(self._head, RESPONSE.size + (max(0, room - left) if room else 0))


def _lun(word: int) -> int:
    """Return the number in the second and third byte, which are big-endian and may say "flat" (SAM-3, 4.9)."""
    return (word >> 8 | (word & 0xFF) << 8) & 0x3FFF


def _store(views: list[memoryview], data: bytes) -> int:
    """Copy into buffers as far as they go; return how far that was."""
    done = 0
    for view in views:
        part = data[done : done + len(view)]
        view[: len(part)] = part
        done += len(part)
    return done
