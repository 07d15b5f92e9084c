# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start commands in a new, empty session keyring: session-keyring(7).

A child inherits its parent's session keyring and possesses the keys in it, also after a change of user.
"""

from __future__ import annotations

import errno
import functools
import os
import struct
import threading
from collections.abc import Callable
from typing import Any

#: The number of keyctl(2) by architecture and bits of a pointer: the kernel's system call tables.
_NUMBERS = {
    ("aarch64", 64): 219,
    ("armv7l", 32): 311,
    ("i686", 32): 288,
    ("loongarch64", 64): 219,
    ("ppc64", 64): 271,
    ("ppc64le", 64): 271,
    ("riscv64", 64): 219,
    ("s390x", 64): 280,
    ("x86_64", 64): 250,
}
_JOIN_SESSION_KEYRING = 1
#: ENOSYS: this kernel has no keys. EPERM: a filter of system calls, which the child inherits.
_NO_KEYS = (errno.ENOSYS, errno.EPERM)


def missing() -> str:
    """Return why this process cannot make a session keyring, '' if it can."""
    if _number() is None:
        return f"the number of keyctl(2) on {os.uname().machine} with {_bits()} bits is unknown"
    return "" if _library() else "this Python has no ctypes"


def start(act: Callable[[], None]) -> None:
    """Call a function that starts a child, in a new session keyring. Raises OSError and what it raises.

    Keyrings belong to a thread (credentials(7)), and a child has those of the thread that started it. So a
    thread for each child joins a new keyring, and this process keeps its own. No preexec_fn: that is
    unsafe in a process with threads, which the guard is. If `missing`, the function is still called.
    """
    if missing():
        act()
        return
    thread = _Thread(act)
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error)) from error
    try:
        thread.join()
    finally:
        thread.join()  # A signal's handler may have ended the first one.
    if thread.error:
        raise thread.error


class _Thread(threading.Thread):
    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._act = act
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            _join()
            self._act()
        except BaseException as error:
            self.error = error


def _join() -> None:
    import ctypes

    if _library().syscall(ctypes.c_long(_number() or -1), ctypes.c_long(_JOIN_SESSION_KEYRING), None) < 0:
        number = ctypes.get_errno()
        if number not in _NO_KEYS:
            raise OSError(number, f"no new session keyring: {os.strerror(number)}")


def _number() -> int | None:
    return _NUMBERS.get((os.uname().machine, _bits()))


def _bits() -> int:
    return struct.calcsize("P") * 8


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    """Return the C library, None if this Python was built without ctypes."""
    try:
        import ctypes
    except ImportError:
        return None
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library
