# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The messages of the vhost-user protocol, as QEMU's docs/interop/vhost-user.rst has them."""

from __future__ import annotations

import array
import enum
import os
import socket
import struct
from dataclasses import dataclass

from lab.errors import LabError
from lab.vhost.memory import Region

HEADER = struct.Struct("<III")
NUMBER = struct.Struct("<Q")
PAIR = struct.Struct("<II")
CONFIG = struct.Struct("<III")
REGION = struct.Struct("<QQQQ")
ADDRESSES = struct.Struct("<IIQQQQ")
VERSION = 1
REPLY = 1 << 2
NEED_REPLY = 1 << 3
NO_FILE = 1 << 8
INDEX = 0xFF
LARGEST = 4096
MOST_FILES = 8

PROTOCOL_FEATURES = 1 << 30
REPLY_ACK = 1 << 3
BACKEND_REQ = 1 << 5
CONFIG_SPACE = 1 << 9


class Code(enum.IntEnum):
    """Requests of the master that are understood here."""

    GET_FEATURES = 1
    SET_FEATURES = 2
    SET_OWNER = 3
    RESET_OWNER = 4
    SET_MEM_TABLE = 5
    SET_VRING_NUM = 8
    SET_VRING_ADDR = 9
    SET_VRING_BASE = 10
    GET_VRING_BASE = 11
    SET_VRING_KICK = 12
    SET_VRING_CALL = 13
    SET_VRING_ERR = 14
    GET_PROTOCOL_FEATURES = 15
    SET_PROTOCOL_FEATURES = 16
    GET_QUEUE_NUM = 17
    SET_VRING_ENABLE = 18
    SET_BACKEND_REQ_FD = 21
    GET_CONFIG = 24
    SET_CONFIG = 25


@dataclass
class Message:
    """One request of the master. Who takes a file out of `files` has to close it."""

    code: int
    flags: int
    payload: bytes
    files: list[int]

    def take_file(self) -> int:
        """Return the file that came along; LabError: there is not exactly one."""
        if len(self.files) != 1:
            raise LabError(f"message {name(self.code)} came with {len(self.files)} files, not one")
        return self.files.pop()

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """Return the payload's numbers; LabError: it has another size."""
        if len(self.payload) != layout.size:
            raise LabError(f"message {name(self.code)} has {len(self.payload)} bytes, not {layout.size}")
        return layout.unpack(self.payload)


class Stream:
    """Cuts what comes from a master into messages. The socket does not block."""

    def __init__(self, connection: socket.socket) -> None:
        """Begin with nothing read."""
        self._connection = connection
        self._buffer = bytearray()
        self._files: list[int] = []
        self._wanted = HEADER.size

    def receive(self) -> Message | None:
        """Return the next message, None if it is not whole yet. EOFError: the master is gone.

        Never more is read than belongs to one message, so the files that come along belong to it too.
        """
        while len(self._buffer) < self._wanted:
            try:
                data = self._read(self._wanted - len(self._buffer))
            except BlockingIOError:
                return None
            except ConnectionError as error:
                raise EOFError from error
            if not data:
                raise EOFError
            self._buffer += data
            if len(self._buffer) == HEADER.size == self._wanted:
                self._wanted += _payload_size(self._buffer)
        return self._message()

    def reply(self, message: Message, payload: bytes) -> None:
        """Answer a message."""
        self._connection.sendall(HEADER.pack(message.code, VERSION | REPLY, len(payload)) + payload)

    def close(self) -> None:
        """Close the connection, and files that nobody took."""
        self._connection.close()
        for file in self._files:
            os.close(file)
        self._files.clear()

    def _read(self, count: int) -> bytes:
        room = socket.CMSG_SPACE(MOST_FILES * 4)
        data, ancillary, _, _ = self._connection.recvmsg(count, room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                files = array.array("i")
                files.frombytes(content[: len(content) // 4 * 4])
                self._files += files
        return data

    def _message(self) -> Message:
        code, flags, _ = HEADER.unpack_from(self._buffer)
        message = Message(code, flags, bytes(self._buffer[HEADER.size :]), self._files)
        self._files, self._wanted = [], HEADER.size
        self._buffer.clear()
        if flags & 3 != VERSION or flags & REPLY:
            raise LabError(f"message {name(code)} has the flags {flags:#x}, not of version {VERSION}")
        return message


def regions(message: Message) -> list[Region]:
    """Read a memory table."""
    if len(message.payload) < 8:
        raise LabError(f"a memory table of {len(message.payload)} bytes")
    count = PAIR.unpack_from(message.payload)[0]
    if count > MOST_FILES or len(message.payload) < 8 + count * REGION.size:
        raise LabError(f"a memory table of {count} regions in {len(message.payload)} bytes")
    words = (REGION.unpack_from(message.payload, 8 + number * REGION.size) for number in range(count))
    return [Region(*each) for each in words]


def name(code: int) -> str:
    """Return a request's name for messages to people."""
    return Code(code).name if code in Code.__members__.values() else str(code)


def _payload_size(header: bytearray) -> int:
    code, _, size = HEADER.unpack(header)
    if size > LARGEST:
        raise LabError(f"message {name(code)} claims {size} bytes, more than {LARGEST}")
    return int(size)
