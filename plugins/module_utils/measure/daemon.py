# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that outlives the module that started it."""

from __future__ import annotations

import os
import selectors
from typing import Callable

#: Bytes that it may say once it is under way.
_LONGEST = 4096


def detach(work: Callable[[Callable[[str], None]], None], patience: float) -> str:
    """Run `work` in a separate process and return its first message, '' if none comes in time.

    `work` gets a function that sends a message, once; it raises OSError if no reader is left.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _become_daemon(reader, writer, work)
    os.close(writer)
    os.waitpid(child, 0)
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        message = os.read(reader, _LONGEST) if selector.select(patience) else b""
    os.close(reader)
    return message.decode("utf-8", "replace")


def _become_daemon(reader: int, writer: int, work: Callable[[Callable[[str], None]], None]) -> None:
    """Never returns: whatever happens, the child does not go on with what its parent was at."""
    try:
        os.close(reader)
        os.setsid()
        if os.fork() == 0:
            # Ansible waits for its module's output to be closed.
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            os.chdir("/")
            work(lambda word: _say(writer, word))
    except Exception as error:
        try:
            _say(writer, f"failed: {error}")
        except OSError:
            pass  # Nobody listens.
    finally:
        os._exit(0)


def _say(writer: int, word: str) -> None:
    os.write(writer, word.encode("utf-8", "replace")[:_LONGEST])
