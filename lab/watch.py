# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""End machines when their run ends, in whatever way.

A machine outlives the command that started it. What is started for a test run alone belongs to that run's process, which
$DBHOST_LAB_OWNER names: a watcher for each machine waits for the end of both, and kills the machine if the owner is first.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.paths import MachineFiles

OWNER = "DBHOST_LAB_OWNER"
ROOT = Path(__file__).resolve().parent.parent


def end_with_owner(files: MachineFiles) -> None:
    """Let a machine, whose first process is in its pid file, end with the process that the environment names, if any."""
    owner = os.environ.get(OWNER)
    if owner:
        argv = [sys.executable, "-m", "lab.watch", owner, files.pid.read_text().strip()]
        none = subprocess.DEVNULL
        subprocess.Popen(argv, cwd=ROOT, stdin=none, stdout=none, stderr=none, start_new_session=True)


def own() -> None:
    """Make this process the owner of all machines that it, or what it starts, brings up from now on."""
    os.environ.setdefault(OWNER, str(os.getpid()))


def main(owner: str, machine: str) -> None:
    """Wait for either to end; the machine never outlives the owner."""
    with suppress(ProcessLookupError), _handle(int(machine)) as watched:
        try:
            with _handle(int(owner)) as handle:
                ended = select.select([handle, watched], [], [])[0]
        except ProcessLookupError:
            ended = []
        if watched not in ended:
            signal.pidfd_send_signal(watched, signal.SIGKILL)


@contextmanager
def _handle(pid: int) -> Iterator[int]:
    """Open a process, so that no later one with its id is taken for it."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(*sys.argv[1:])
