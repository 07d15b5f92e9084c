# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Starting and ending QEMU. Only a process that is provably this machine's is ever signalled."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from lab.errors import LabError
from lab.paths import MachineFiles

PORT_TAKEN = "Could not set up host forwarding rule"


def running(files: MachineFiles) -> int | None:
    """Return the process id of this machine's QEMU, None if it is not alive."""
    try:
        pid = int(files.pid.read_text())
        cmdline = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(files.pid) in cmdline else None


def start(argv: list[str], log: Path) -> None:
    """Run QEMU; it goes to the background once the machine is made. LabError: what it said.

    `log` is the file that `-D` names: in the background QEMU says there what is wrong, not on its stderr.
    """
    log.unlink(missing_ok=True)
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode:
        said = done.stderr + (log.read_text(errors="replace") if log.exists() else "")
        raise LabError(f"QEMU does not start: {said.strip()}")


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kill(files: MachineFiles) -> None:
    """SIGKILL: what the guest has not flushed out of QEMU is gone."""
    pid = running(files)
    if pid is None:
        return
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    wait_ended(pid, 30.0)


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
