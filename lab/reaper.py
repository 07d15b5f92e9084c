# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command, and end all processes that it started when the caller ends, in whatever way.

    python3 lab/reaper.py PARENT COMMAND...

PARENT is the id of the process that starts this one. When it ends, all descendants are told to end, and killed some seconds
later: also those in sessions or name spaces of their own, and those whose parents have ended. The exit code is the
command's, 128 and more for a signal. What is left when the command ends by itself stays: a machine may be kept. Not so when
it ends because a terminal told it to.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

#: linux/prctl.h.
_DEATH_SIGNAL, _SUBREAPER = 1, 36
#: A terminal tells the command as well, which ends in its own way. Not ignored: the command would ignore them too.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
#: Seconds for what is told to end, and then for what is killed.
_LIMIT = 5.0


class ParentEnded(Exception):
    """Or this process was told to end, as if it had."""


def reaped(command: Iterable[str]) -> tuple[str, ...]:
    """Return a command that ends with this process, with all that it has started, however this one ends."""
    return (sys.executable, "-IS", __file__, str(os.getpid()), *command)


def main(parent: str, *command: str) -> int:
    """Return the exit code of the command."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _end)
    told = list[int]()
    for number in _FROM_TERMINAL:
        signal.signal(number, lambda number, _frame: told.append(number))
    try:
        libc.prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != int(parent):  # it ended before the kernel was asked to tell
            raise ParentEnded
        # Kept: what nothing refers to reaps its own process, if that has ended.
        process = subprocess.Popen(command)
        code = _wait(process.pid)
        if told:
            _end_descendants()
        return code
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    except ParentEnded:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_descendants()
        return 128 + signal.SIGTERM


def _end(*_: object) -> None:
    raise ParentEnded


def _wait(command: int) -> int:
    """Wait for the command, and reap on the way what has lost its parent."""
    while True:
        pid, status = os.wait()
        if pid == command:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _end_descendants() -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline, told = time.monotonic() + _LIMIT, set[int]()
        while (left := _descendants()) and time.monotonic() < deadline:
            for pid in left - told:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            told |= left
            _reap()
            time.sleep(0.05)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def _descendants() -> set[int]:
    """Return all processes below this one. One whose parent has ended is a child of this one."""
    children = defaultdict[int, list[int]](list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in brackets, may hold anything.
            _state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            children[int(parent)].append(int(path.parent.name))
    found, todo = set[int](), [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found.update(below)
        todo += below
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
