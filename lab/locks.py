# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Locks, so that two processes never build the same image or machine at the same time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from lab.paths import Lab
from lab.progress import say


@contextmanager
def locked(lab: Lab, what: str) -> Iterator[None]:
    """Hold the lock named `what`; the kernel frees it if this process dies."""
    lab.locks.mkdir(parents=True, exist_ok=True)
    with (lab.locks / f"{what}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting: another process works on {what}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
