# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The control socket: one JSON object a line, one answer a line, in their order."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.vhost.listener import Listener
from lab.vhost.loop import Loop

LONGEST_LINE = 1 << 16
Command = Callable[..., Any]


class Control:
    """Where commands come from: {"command": NAME, ARGUMENT: VALUE...} is answered {"return": ...} or {"error": TEXT}."""

    def __init__(self, path: Path, loop: Loop, commands: dict[str, tuple[Command, dict[str, type]]]) -> None:
        """Each command has a function, and the arguments that it takes by name, all of which it needs."""
        self._loop = loop
        self._commands = commands
        self._buffers: dict[socket.socket, bytearray] = {}
        self._listener = Listener(path, loop, self._accepted)

    def close(self) -> None:
        """Take no commands any more."""
        self._listener.close()
        for connection in list(self._buffers):
            self._drop(connection)

    def _accepted(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._buffers[connection] = bytearray()
        self._loop.add(connection.fileno(), lambda: self._readable(connection))

    def _drop(self, connection: socket.socket) -> None:
        del self._buffers[connection]
        self._loop.remove(connection.fileno())
        connection.close()

    def _readable(self, connection: socket.socket) -> None:
        buffer = self._buffers[connection]
        try:
            data = connection.recv(LONGEST_LINE)
            buffer += data
            while (at := buffer.find(b"\n")) >= 0:
                line = bytes(buffer[:at])
                del buffer[: at + 1]
                connection.sendall(json.dumps(self._answer(line)).encode() + b"\n")
        except OSError:
            data = b""
        if not data or len(buffer) > LONGEST_LINE:
            self._drop(connection)

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            return {"return": self._carry_out(json.loads(line))}
        except (LabError, OSError, ValueError) as error:
            print(f"control: {line.decode(errors='replace')} is refused: {error}", file=sys.stderr)
            return {"error": str(error)}

    def _carry_out(self, words: Any) -> Any:
        if not isinstance(words, dict) or words.get("command") not in self._commands:
            known = ", ".join(self._commands)
            raise LabError(
                f'observed is {json.dumps(words)}, expected is {{"command": ...}} with one of {known}'
            )
        name = words.pop("command")
        act, kinds = self._commands[name]
        for key, kind in kinds.items():
            if type(words.get(key)) is not kind:
                raise LabError(f"{name}: {key!r} is {words.get(key)!r}, expected is a {kind.__name__}")
        unknown = sorted(words.keys() - kinds.keys())
        if unknown:
            raise LabError(f"{name}: unknown {unknown[0]!r}; expected is {', '.join(kinds) or 'nothing'}")
        return act(**words)
