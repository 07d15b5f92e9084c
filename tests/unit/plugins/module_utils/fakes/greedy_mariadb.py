# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that speaks as much of MariaDB's protocol as it takes to request an authentication, and stores the answer.

Sources: "Connection Phase" in the manuals of both servers. The bytes are those that real servers send.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from pathlib import Path

_SALT = b"abcdefghijklmnopqrst"
#: What a server can do: all that a client knows, without TLS and compression.
_ABILITIES = 0x81BFF7DF & ~0x800 & ~0x20
_FULL_AUTHENTICATION = b"\x01\x04"
_DENIED = b"\xff\x15\x04#28000no"


class GreedyServer:
    """Listens at a path. `first` is the authentication that it names at once, `then` what it requests instead.

    `answers`: what each client sent, its first packet included.
    """

    def __init__(self, path: Path, first: str, then: str) -> None:
        self.first, self.then = first.encode(), then.encode()
        self.answers: list[bytes] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(5)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End. What is not answered by then is not."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _address = self._server.accept()
            except OSError:
                return
            client.settimeout(5)
            with client, contextlib.suppress(OSError):
                self._greet(client)

    def _greet(self, client: socket.socket) -> None:
        greeting = (
            b"\x0a5.5.5-10.11.19-MariaDB\0"
            + struct.pack("<I", 7)
            + _SALT[:8]
            + b"\0"
            + struct.pack("<HBHHB", _ABILITIES & 0xFFFF, 33, 2, _ABILITIES >> 16, 21)
            + b"\0" * 10
            + _SALT[8:]
            + b"\0"
            + self.first
            + b"\0"
        )
        number = self._say(client, 0, greeting)
        if self.then and number is not None:
            number = self._say(client, number, b"\xfe" + self.then + b"\0" + _SALT + b"\0")
        if number is not None and b"sha" in self.first + self.then:
            number = self._say(client, number, _FULL_AUTHENTICATION)
        if number is not None:
            self._say(client, number, _DENIED)

    def _say(self, client: socket.socket, number: int, body: bytes) -> int | None:
        """Send a packet and store what comes back. Return the number of the next packet, None at the end."""
        client.sendall(struct.pack("<I", len(body))[:3] + bytes([number]) + body)
        head = self._receive(client, 4)
        if len(head) < 4:
            return None
        self.answers.append(self._receive(client, int.from_bytes(head[:3], "little")))
        return head[3] + 1

    def _receive(self, client: socket.socket, length: int) -> bytes:
        found = b""
        while len(found) < length:
            piece = client.recv(length - len(found))
            if not piece:
                break
            found += piece
        return found
