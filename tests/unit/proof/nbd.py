# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small NBD client: one request at a time, over the unix socket of a test's nbdkit."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

READ, WRITE, FLUSH, TRIM, ZERO = 0, 1, 3, 4, 6
FUA = 1
SENDS_FLUSH, SENDS_FUA, ROTATIONAL, SENDS_TRIM = 1 << 2, 1 << 3, 1 << 4, 1 << 5
MULTI_CONN = 1 << 8
OPTION_GO, REPLY_ACK, REPLY_INFO = 7, 1, 3


class Refused(Exception):
    """The server does not serve this export, or answered with an error number."""


class Client:
    """A connection to one export; `size` in bytes and the flags that the server gave."""

    def __init__(self, path: Path, export: str) -> None:
        """Connect and open the export."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._handle = 0
        self.size = self.flags = 0
        self._negotiate(export.encode())

    def close(self) -> None:
        """Say good-bye."""
        self._socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 2, 0, 0, 0))
        self._socket.close()

    def read(self, offset: int, length: int) -> bytes:
        """Read bytes."""
        return self._ask(READ, offset, length)

    def write(self, offset: int, data: bytes, fua: bool = False) -> None:
        """Write bytes."""
        self._ask(WRITE, offset, len(data), fua, data)

    def zero(self, offset: int, length: int, fua: bool = False) -> None:
        """Write zeros."""
        self._ask(ZERO, offset, length, fua)

    def trim(self, offset: int, length: int, fua: bool = False) -> None:
        """Discard."""
        self._ask(TRIM, offset, length, fua)

    def flush(self) -> None:
        """Flush the cache."""
        self._ask(FLUSH, 0, 0)

    def _negotiate(self, export: bytes) -> None:
        self._take(18)
        self._socket.sendall(struct.pack(">I", 3))
        body = struct.pack(">I", len(export)) + export + struct.pack(">H", 0)
        self._socket.sendall(b"IHAVEOPT" + struct.pack(">II", OPTION_GO, len(body)) + body)
        while True:
            _, _, kind, length = struct.unpack(">QIII", self._take(20))
            data = self._take(length)
            if kind == REPLY_INFO and struct.unpack(">H", data[:2])[0] == 0:
                self.size, self.flags = struct.unpack(">QH", data[2:12])
            elif kind == REPLY_ACK:
                return
            elif kind != REPLY_INFO:
                raise Refused(data.decode())

    def _ask(self, command: int, offset: int, length: int, fua: bool = False, data: bytes = b"") -> bytes:
        self._handle += 1
        words = (0x25609513, FUA if fua else 0, command, self._handle, offset, length)
        self._socket.sendall(struct.pack(">IHHQQI", *words) + data)
        magic, error, handle = struct.unpack(">IIQ", self._take(16))
        assert (magic, handle) == (0x67446698, self._handle)
        if error:
            raise Refused(str(error))
        return self._take(length) if command == READ else b""

    def _take(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = self._socket.recv(count - len(found))
            if not more:
                raise Refused("the server hung up")
            found += more
        return found
