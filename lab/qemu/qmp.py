# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's machine protocol: one command for each connection is enough here."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from lab.errors import LabError


def execute(path: Path, command: str, arguments: dict[str, Any], wait: float = 300.0) -> Any:
    """Send one command and return its result. LabError if QEMU refuses or does not answer."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(wait)
            connection.connect(str(path))
            with connection.makefile("rw") as stream:
                stream.readline()  # the greeting
                _ask(stream, "qmp_capabilities", {})
                return _ask(stream, command, arguments)
    except OSError as error:
        raise LabError(f"QEMU does not answer {command}: {error}") from error


def _ask(stream: Any, command: str, arguments: dict[str, Any]) -> Any:
    stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    stream.flush()
    for line in stream:  # events may come first
        answer = json.loads(line)
        if "error" in answer:
            raise LabError(f"QEMU refuses {command}: {answer['error']['desc']}")
        if "return" in answer:
            return answer["return"]
    if command == "quit":
        return None
    raise LabError(f"QEMU ended during {command}")
