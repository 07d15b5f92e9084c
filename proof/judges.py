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
from pathlib import Path
from typing import Any

from proof import judge, loop
from proof.cells import Cell

#: What judges gives way to the machine that is recorded meanwhile.
NICE = 10


def pool(jobs: int) -> Executor:
    """Return what judges: so many processes, or one thread of this one."""
    if jobs == 1:
        return ThreadPoolExecutor(1)
    # spawned: a process must not inherit what a recording holds open
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_begin)


def judged(cell: Cell, directory: Path, cuts: int) -> dict[str, Any]:
    """Return the evidence for one cell of a record, in a process of the pool."""
    try:
        return judge.kept_or_judged(cell, directory, cuts)
    except SystemExit:
        # of the signal: all is put away by now, and the pool would go on with the next cell
        os._exit(1)


def _begin() -> None:
    """Give way to machines, and leave nothing behind when this run is killed."""
    os.nice(NICE)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    loop.end_with_parent(signal.SIGTERM)
    if os.geteuid() == 0:
        loop.own_mounts()
