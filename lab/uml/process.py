# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Starting and ending the processes of a machine. A lock that all of them hold tells whether any is left."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.errors import LabError, PortTakenError
from lab.paths import MachineFiles
from lab.process import command_line

ROOT = Path(__file__).resolve().parents[2]
SPACES = ("--mount", "--net", "--pid", "--fork", "--kill-child=SIGKILL")
KILL_LIMIT = 30.0


def unshare() -> list[str]:
    """Return the command that gives a program name spaces of its own; who is not root gets the rights for it in one more."""
    return ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), *SPACES]


def start(files: MachineFiles, port: int, config: dict[str, Any]) -> None:
    """Start a machine in the background, ssh on 127.0.0.1:`port`. PortTakenError: another has it."""
    path = config_file(files)
    path.write_text(json.dumps({**config, "processor": _processor()}))
    supervisor = (sys.executable, "-m", "lab.uml.supervisor")
    with _listener(port) as listener, _held(files) as lock, files.log.open("ab") as log:
        process = subprocess.Popen(
            [*unshare(), *supervisor, str(path), str(listener.fileno()), str(lock)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(listener.fileno(), lock),
        )
    files.pid.write_text(str(process.pid))


def config_file(files: MachineFiles) -> Path:
    """Return the file that says how the machine is run; its path is a word of the first process's command line."""
    return files.directory / "uml.json"


def running(files: MachineFiles) -> bool:
    """Tell whether any process of the machine lives."""
    try:
        with lock_file(files).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def kill(files: MachineFiles) -> None:
    """Kill the first process: the kernel ends all others of its name space with it."""
    try:
        pid = int(files.pid.read_text())
    except (OSError, ValueError):
        return
    if os.fsencode(config_file(files)) in command_line(pid):
        os.kill(pid, signal.SIGKILL)
    if not wait_ended(files, KILL_LIMIT):
        raise LabError(f"{files.directory.name} does not end; its first process is {pid}")


def wait_ended(files: MachineFiles, limit: float) -> bool:
    """Return whether the last process ended within `limit` seconds."""
    deadline = time.monotonic() + limit
    while running(files):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    _reap(files)
    return True


def lock_file(files: MachineFiles) -> Path:
    """Return the file that every process of the machine holds locked."""
    return files.directory / "alive.lock"


def _reap(files: MachineFiles) -> None:
    """Let go of the first process, if it was this one's child."""
    try:
        os.waitpid(int(files.pid.read_text()), os.WNOHANG)
    except (OSError, ValueError):
        return


def _processor() -> int:
    """Return the processor of this host that the fewest machines are bound to, of those that we may use."""
    machines = [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_kernel(entry)
    ]
    bound = Counter(number for pid in machines for number in _bound_to(pid))
    return min(os.sched_getaffinity(0), key=lambda number: (bound[number], number))


def _is_kernel(process: Path) -> bool:
    try:
        return (process / "comm").read_text().strip() == "linux.uml"
    except OSError:
        return False


def _bound_to(pid: int) -> set[int]:
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        return set()


@contextmanager
def _held(files: MachineFiles) -> Iterator[int]:
    """Lock the file, for whoever inherits the descriptor."""
    descriptor = os.open(lock_file(files), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # Others look by a shared lock, for a moment.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _listener(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise PortTakenError(f"port {port} of 127.0.0.1 is taken: {error.strerror}") from error
