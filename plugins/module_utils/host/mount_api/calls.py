# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's mount system calls, which Python and older C libraries do not provide.

Source: fsopen(2), fsconfig(2), fspick(2), fsmount(2), mount_setattr(2), mount(2), syncfs(2); include/uapi/linux/mount.h.
Each function raises OSError. A missing call raises it with one of MISSING.
"""

from __future__ import annotations

import errno
import functools
import os
from typing import Any

try:
    import ctypes
except ImportError:  # A Python that was built without libffi: facts are collected all the same.
    ctypes = None  # type: ignore[assignment]

#: The kernel lacks a call, or a filter of system calls refuses it.
MISSING = (errno.ENOSYS, errno.EPERM)

# The same numbers on each architecture of Linux that has no offset of its own.
_FSOPEN, _FSCONFIG, _FSMOUNT, _FSPICK, _MOUNT_SETATTR = 430, 431, 432, 433, 442
_WITH_OFFSET = ("alpha", "mips")

_CLOEXEC = 1
_SET_FLAG, _SET_STRING, _CREATE, _RECONFIGURE = 0, 1, 6, 7
_PICK_EMPTY_PATH = 8
_EMPTY_PATH = 0x1000

#: Flags of mount(2).
RDONLY, NOSUID, NODEV, NOEXEC, SYNCHRONOUS, REMOUNT, MANDLOCK, DIRSYNC = 1, 2, 4, 8, 16, 32, 64, 128
NOSYMFOLLOW, NOATIME, NODIRATIME, BIND = 256, 1024, 2048, 4096
RELATIME, STRICTATIME, LAZYTIME = 1 << 21, 1 << 24, 1 << 25

#: Attributes of mount_setattr(2). The three values of atime are one field.
ATTRIBUTE_RDONLY, ATTRIBUTE_ATIME = 0x1, 0x70
ATTRIBUTES_OF_ATIME = {"relatime": 0x00, "noatime": 0x10, "strictatime": 0x20}

#: The longest message that the kernel writes for a file system context.
_MESSAGE = 8192


def load() -> None:
    """Load the C library. Call it before a fork: a thread may hold a lock that the load needs."""
    if ctypes is not None:
        _library()


def fsopen(fstype: str) -> int:
    """Return the descriptor of a new context for a type of file system."""
    return _call(_FSOPEN, os.fsencode(fstype), _CLOEXEC)


def fspick(mount: int) -> int:
    """Return the descriptor of a context that changes the superblock of an open mount."""
    return _call(_FSPICK, mount, b"", _CLOEXEC | _PICK_EMPTY_PATH)


def set_option(context: int, option: str) -> None:
    """Give a context one option: `word`, or `word=value`."""
    name, equals, value = option.partition("=")
    if equals:
        _call(_FSCONFIG, context, _SET_STRING, os.fsencode(name), os.fsencode(value), 0)
    else:
        _call(_FSCONFIG, context, _SET_FLAG, os.fsencode(name), None, 0)


def create(context: int) -> None:
    """Make a superblock as the context describes it."""
    _call(_FSCONFIG, context, _CREATE, None, None, 0)


def reconfigure(context: int) -> None:
    """Change a superblock as the context describes it."""
    _call(_FSCONFIG, context, _RECONFIGURE, None, None, 0)


def fsmount(context: int, attributes: int = 0) -> int:
    """Return the descriptor of a mount that no path leads to. It ends when the descriptor is closed."""
    return _call(_FSMOUNT, context, _CLOEXEC, attributes)


def messages(context: int) -> list[str]:
    """Return the kernel's messages about a context, each without its level. Reads them off the context."""
    found: list[str] = []
    while True:
        try:
            text = os.read(context, _MESSAGE)
        except OSError:
            return found  # ENODATA: there are no more.
        if not text:
            return found
        found.append(text.decode("utf-8", "replace").strip()[2:])


def mount_setattr(mount: int, add: int, remove: int) -> None:
    """Change attributes of an open mount: `remove` is cleared before `add` is set."""
    _library()
    attributes = (ctypes.c_uint64 * 4)(add, remove, 0, 0)
    _call(_MOUNT_SETATTR, mount, b"", _EMPTY_PATH, ctypes.byref(attributes), ctypes.sizeof(attributes))


def remount(mount: int, flags: int, options: str = "") -> None:
    """Do mount(2) with MS_REMOUNT on an open mount. All of its flags are set again."""
    library = _library()
    target = f"/proc/self/fd/{mount}".encode("ascii")
    data = os.fsencode(options) if options else None
    _check(library.mount(None, target, None, ctypes.c_ulong(REMOUNT | flags), data))


def syncfs(descriptor: int) -> None:
    """Write all data of the file system of an open file to its device."""
    _check(_library().syncfs(descriptor))


def _call(number: int, *arguments: Any) -> int:
    library = _library()
    if os.uname().machine.startswith(_WITH_OFFSET):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    # syscall(2) takes words: an int alone would leave the upper half of a register undefined.
    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _check(library.syscall(ctypes.c_long(number), *words))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    if ctypes is None:
        raise OSError(errno.ENOSYS, "this Python has no ctypes module. Fix: install Python with libffi")
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library
