# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A function that runs in a child process with a time limit.

A disk or a file system that hangs then stops the child alone: a process in disk sleep cannot be ended.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import Any

from . import json_text

_PIECE = 65536


def run(act: Callable[[], Any], timeout: float) -> Any:
    """Return the result of a function, which must be JSON. It changes nothing in this process.

    Raises OSError as the function does; with ETIMEDOUT if it does not end in time, and with EIO if it ends
    without a result.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _serve(act, writer)
    os.close(writer)
    answer = None
    try:
        answer = _received(reader, time.monotonic() + timeout)
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        # Without an answer it may be in disk sleep, and is not waited for.
        os.waitpid(child, os.WNOHANG if answer is None else 0)
    if answer is None:
        raise OSError(errno.ETIMEDOUT, f"no result within {timeout:g} s")
    if not answer:
        raise OSError(errno.EIO, "its process ended without a result")
    found = json_text.loads(answer.decode("ascii"))
    if "errno" in found:
        raise OSError(found["errno"], found["text"])
    return found["result"]


def isolate(*preserved: int) -> None:
    """Close all files but some descriptors, and leave the parent's session and signals.

    A process that waits for the end of the parent's output must not wait for this one.
    """
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in preserved:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _serve(act: Callable[[], Any], writer: int) -> None:
    """Write the result of a function. Never returns: the child must not continue as its parent."""
    try:
        isolate(writer)
        try:
            answer = {"result": act()}
        except OSError as error:
            answer = {"errno": error.errno or errno.EIO, "text": error.strerror or str(error)}
        except Exception as error:
            answer = {"errno": errno.EIO, "text": f"{type(error).__name__}: {error}"}
        # Without an import: as another user this process may not read Python's own files.
        left = json.dumps(answer).encode("ascii")
        while left:
            left = left[os.write(writer, left) :]
    finally:
        os._exit(0)


def _received(reader: int, deadline: float) -> bytes | None:
    """Return all that the child writes, or None at the deadline."""
    found = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            piece = os.read(reader, _PIECE)
            if not piece:
                return bytes(found)
            found += piece
