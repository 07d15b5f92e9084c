# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes and ports of this host."""

from __future__ import annotations

import socket
import time
from pathlib import Path


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_ended(pid: int | None, limit: float) -> bool:
    """Return whether a process (None: there is none) ended within `limit` seconds, and so let go of files and ports.

    Its command line goes first, with its memory: that is not yet the end.
    """
    deadline = time.monotonic() + limit
    while pid is not None and _lives(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def command_line(pid: int) -> list[bytes]:
    """Return the arguments of a process; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    except OSError:
        return []


def _lives(pid: int) -> bool:
    """Tell whether any thread of a process goes on: one may hold its files for a while after the first has ended."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False
    return any(_goes_on(thread) for thread in threads)


def _goes_on(thread: Path) -> bool:
    try:
        state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
