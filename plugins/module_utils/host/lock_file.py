# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a lock. flock(2) alone decides which process holds it; the text is information.

Each function raises OSError.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

#: Bytes of the text that are read.
_LONGEST = 65536
#: Seconds for which processes that only test the lock are waited for: each has it for an instant.
_PATIENCE, _PAUSE = 5.0, 0.01


def open_file(path: str) -> int:
    """Return a descriptor of a lock's file, which is created if it is missing. Follows no link."""
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def take(descriptor: int) -> bool:
    """Lock a file for this process alone; return whether that worked. Another process that only tests is no holder."""
    end = time.monotonic() + _PATIENCE
    while not _flock(descriptor, fcntl.LOCK_EX):
        if not _flock(descriptor, fcntl.LOCK_SH) or time.monotonic() > end:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_PAUSE)
    return True


def read(descriptor: int) -> str:
    """Return the text in a lock's file, byte for byte."""
    return os.pread(descriptor, _LONGEST, 0).decode("utf-8", "surrogateescape")


def read_free(path: str) -> str | None:
    """Return the text in a lock's file, '' for no file, None if a process holds the lock. It cannot change meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        return read(descriptor) if _flock(descriptor, fcntl.LOCK_SH) else None
    finally:
        os.close(descriptor)


def write(descriptor: int, text: str) -> None:
    """Replace the text, padded with newlines to the length of the old one, in one write(2).

    The file never becomes shorter, so it is never empty again. After a kill it holds the old text, the new text, or
    the beginning of the new and the end of the old one.
    """
    content = text.encode("utf-8", "surrogateescape")
    content += b"\n" * (os.fstat(descriptor).st_size - len(content))
    if os.pwrite(descriptor, content, 0) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def spoil(descriptor: int) -> None:
    """Make the text one that no process wrote. It needs no free space."""
    if os.fstat(descriptor).st_size:
        os.pwrite(descriptor, b"\0", 0)
    else:
        os.ftruncate(descriptor, 1)


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
