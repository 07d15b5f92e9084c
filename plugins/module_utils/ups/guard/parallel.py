# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Concurrent tasks, none of which can delay another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable


def together(names: Iterable[str], act: Callable[[str], None], limit: float) -> dict[str, str]:
    """Act on every name at once; return {name: why} of those that failed or did not end within `limit` seconds.

    A thread that hangs is left behind: it does not keep the process from ending.
    """
    failures: dict[str, str] = {}
    ended: set[str] = set()

    def take(name: str) -> None:
        try:
            act(name)
        except BaseException as error:
            # Nothing may be lost with a thread: whatever it was, the name was not done.
            failures[name] = str(error) or type(error).__name__
        ended.add(name)

    threads = {name: threading.Thread(target=take, args=(name,), daemon=True) for name in names}
    deadline = time.monotonic() + limit
    for name, thread in threads.items():
        try:
            thread.start()
        except RuntimeError:
            take(name)  # No more threads are given out: one after the other, then.
    for thread in threads.values():
        if thread.ident is not None:
            thread.join(max(0.0, deadline - time.monotonic()))
    late = {name: f"{name}: not done within {limit:g} s" for name in threads if name not in ended}
    return {**late, **{name: why for name, why in list(failures.items()) if name not in late}}
