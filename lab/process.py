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


def start(argv: list[str]) -> None:
    """Run QEMU; it goes to the background once the machine is made. LabError: what it said."""
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode:
        raise LabError(f"QEMU does not start: {done.stderr.strip()}")


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
    wait_ended(files, 30.0)


def wait_ended(files: MachineFiles, limit: float) -> bool:
    """Return whether QEMU ended within `limit` seconds."""
    deadline = time.monotonic() + limit
    while running(files) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
