# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes that judge cells side by side, while the next setting is recorded; they end with the run that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from proof import judge, loop
from proof.cells import Cell

#: What judges gives way to the machine that is recorded meanwhile.
NICE = 10
#: Seconds after which a process that is to end and did not is told again.
AGAIN = 5


def pool(jobs: int) -> Executor:
    """Return what judges: so many processes, or one thread of this one."""
    if jobs == 1:
        return ThreadPoolExecutor(1)
    # spawned: a process must not inherit what a recording holds open
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(context.Value("i"),))


def judged(cell: Cell, directory: Path, cuts: int) -> dict[str, Any]:
    """Return the evidence for one cell of a record, in a process of the pool."""
    try:
        return judge.kept_or_judged(cell, directory, cuts)
    except SystemExit:
        # of the signal: all is put away by now, and the pool would go on with the next cell
        os._exit(1)


def _begin(begun: Synchronized[int]) -> None:
    """Give way to machines, and leave nothing behind when this run is killed. `begun`: how many have begun before."""
    os.nice(NICE)
    with begun.get_lock():
        number, begun.value = begun.value, begun.value + 1
    # It and its tools wait for each other, and so do the threads of xfs_repair: on one processor they need not be woken up.
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[number % len(processors)]})
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _end)
    loop.end_with_parent(signal.SIGTERM)
    parent = multiprocessing.parent_process()
    if parent is None or os.getppid() != parent.pid:  # it ended before the kernel was asked to tell
        os._exit(1)
    if os.geteuid() == 0:
        loop.own_mounts()


def _end(*_: object) -> None:
    """End by an exception, so that mounts and scratch files are put away; again, should anything swallow it.

    The same signal may come from the run and from the kernel: the second must not end the putting away.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(AGAIN)
    sys.exit(1)
