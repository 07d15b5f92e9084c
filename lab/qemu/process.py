# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Starting and ending QEMU. Only a process that is provably this machine's is ever signalled."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from lab.errors import LabError, PortTakenError
from lab.paths import MachineFiles
from lab.process import command_line, wait_ended

PORT_TAKEN = "Could not set up host forwarding rule"


def running(files: MachineFiles) -> int | None:
    """Return the process id of this machine's QEMU, None if it is not alive."""
    try:
        pid = int(files.pid.read_text())
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(files.pid) in command_line(pid) else None


def start(argv: list[str], log: Path) -> None:
    """Run QEMU; it goes to the background once the machine is made. LabError: what it said.

    `log` is the file that `-D` names: in the background QEMU says there what is wrong, not on its stderr.
    """
    log.unlink(missing_ok=True)
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode:
        said = (done.stderr + complaint(log)).strip()
        raise (PortTakenError if PORT_TAKEN in said else LabError)(f"QEMU does not start: {said}")


def complaint(log: Path) -> str:
    """Return what QEMU wrote to its log."""
    return log.read_text(errors="replace").strip() if log.exists() else ""


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
