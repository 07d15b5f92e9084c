# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's program: run, tighten or state."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time

from ...host.our_paths import RUNTIME
from ...host.printable import printable
from ...host.seam import Host
from . import state
from .ipc import never_wait, say
from .service import Service, tighten

#: Seconds that `tighten` waits for a guard that is just ending.
_PATIENCE = 10.0


def main(arguments: list[str] | None = None) -> int:
    """Run one of the commands; return the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    os.umask(0o022)
    if words == ["state"]:
        found = json.dumps(printable(state.read(Host())), indent=2, sort_keys=True)
        sys.stdout.write(f"{found}\n")
        return 0
    if words not in (["run"], ["tighten"]):
        sys.stderr.write("usage: guard.pyz run|tighten|state\n")
        return 2
    never_wait()
    try:
        held = _only_one(0.0 if words == ["run"] else _PATIENCE)
    except OSError as error:
        say(f"{RUNTIME}/lock: {error.strerror}", 3)
        return 1
    if held < 0:
        say(f"{RUNTIME}/lock: a guard runs already: systemctl stop it first", 3)
        return 1
    return Service(Host()).run() if words == ["run"] else tighten(Host())


def _only_one(patience: float) -> int:
    """Return the descriptor of the lock that only one guard holds, -1 where another has it. Raises OSError."""
    os.makedirs(RUNTIME, 0o755, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    held = os.open(f"{RUNTIME}/lock", flags, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return held
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(held)
                return -1
        time.sleep(0.1)
