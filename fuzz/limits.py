# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of processor time and memory for one input of a parser."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds of processor time: those of the clock would count what else the machine does.
SECONDS = 1.0
#: Bytes by which the process may grow while it parses.
BYTES = 50 * 2**20


class Beyond(BaseException):
    """An input cost more than it may. No parser's `except Exception` may catch it."""


class Hang(Beyond):
    """It took too long."""


class Growth(Beyond):
    """It took too much memory."""


def within(parse: Callable[[bytes], object], data: bytes) -> None:
    """Parse, and let through what it raises. Raises Hang or Growth for an input beyond the bounds.

    A loop is broken off; a call into C that ends too late, or has taken too much, is told afterwards.
    """
    before, began = _peak(forget=True), time.process_time()
    try:
        with _alarm():
            parse(data)
    finally:
        took, grown = time.process_time() - began, _peak() - before
        if took > SECONDS:
            raise Hang(f"{took:.1f} s for {len(data)} bytes; expected at most {SECONDS:g} s")
        if grown > BYTES:
            raise Growth(f"{grown // 2**20} MiB for {len(data)} bytes; expected at most {BYTES // 2**20} MiB")


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(_number: int, _frame: Any) -> None:
        raise Hang(f"more than {SECONDS:g} s")

    # Not SIGALRM: libFuzzer has it.
    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _peak(forget: bool = False) -> int:
    """Return the most memory that this process has had, in bytes; `forget`: now, and from now on."""
    if forget:
        # proc_pid_clear_refs(5): 5 makes the peak what there is now.
        descriptor = os.open("/proc/self/clear_refs", os.O_WRONLY)
        try:
            os.write(descriptor, b"5")
        finally:
            os.close(descriptor)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
