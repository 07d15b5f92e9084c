# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A time limit for one execution on a host, within Ansible's own limit for the task."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Seconds before the end of Ansible's own limit. Then the task still has a result, and the host its report.
_EARLIER = 2.0
#: A timer of 0 seconds would be none.
_AT_ONCE = 0.01
#: Seconds until Expired is raised once more, for a handler that hangs on the way out, and where Python ignores exceptions.
_AGAIN = 1.0


class Expired(BaseException):
    """The time limit is over. It is no Exception, so that no handler of errors below the limit catches it."""


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise Expired in the block after some seconds, 0 for never, and end the processes that the block has started.

    Only for the main thread, as signals are. A timer that runs already, such as that of ANSIBLE_TASK_TIMEOUT, goes on
    afterwards; one that would end first shortens this limit.
    """
    is_active = False

    def expire(_signal: int, _frame: Any) -> None:
        if is_active:
            raise Expired

    started, before = time.monotonic(), _children()
    handler = signal.signal(signal.SIGALRM, expire)
    outer, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    limits = [limit for limit in (seconds, max(outer - _EARLIER, outer / 2)) if limit]
    try:
        try:
            is_active = True
            signal.setitimer(signal.ITIMER_REAL, min(limits, default=0), _AGAIN)
            yield
        finally:
            is_active = False
    except Expired:
        # It may have been raised before the line above.
        is_active = False
        _end(_children() - before)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:
            left = outer - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(left, _AT_ONCE), interval)


def _children() -> set[int]:
    """Return the processes that this one has started; none where the kernel does not list them."""
    try:
        tables = Path(f"/proc/{os.getpid()}/task").glob("*/children")
        return {int(pid) for table in tables for pid in table.read_text(encoding="ascii").split()}
    except OSError:
        return set()


def _end(processes: set[int]) -> None:
    """End processes, such as an ssh that would wait for its host indefinitely."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGTERM)
