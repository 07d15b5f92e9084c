# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux labels of written files: the kernel labels a file after the directory in which it is created.

A file that replaces another needs the other's label, and a new one the label that the policy has for its path: as
restorecon(8) does, before the file gets its name. A server may not read a file of another label.
"""

from __future__ import annotations

import errno
import functools
import os
from typing import Any

NAME = "security.selinux"
_LIBRARY = "libselinux.so.1"


def keep(path: str, descriptor: int) -> None:
    """Give an open file the label of the one at `path`. Raises OSError."""
    _give(descriptor, os.getxattr(path, NAME))


def give_policys(path: str, descriptor: int) -> None:
    """Give what is open, and new, the type that the policy has for `path`. Raises OSError.

    User, role and level stay those of its maker. Nothing is done where SELinux is off, or the policy has no type.
    """
    if not is_on():
        return
    wanted = _policys(path, os.fstat(descriptor).st_mode)
    label = _label(descriptor).split(b":", 3)
    if wanted and len(label) > 2:
        _give(descriptor, b":".join([*label[:2], wanted.split(b":", 3)[2], *label[3:]]))


def is_on() -> bool:
    """Return whether the kernel asks a policy of SELinux, enforcing or not."""
    library = _library()
    return bool(library) and library.is_selinux_enabled() == 1


def _give(descriptor: int, label: bytes) -> None:
    # A mount with one label for all its files refuses even that one.
    if _label(descriptor) == label.rstrip(b"\0"):
        return
    try:
        os.setxattr(descriptor, NAME, label)
    except OSError as error:
        if is_on():
            text = label.rstrip(b"\0").decode("ascii", "backslashreplace")
            raise OSError(error.errno, f"its SELinux label {text} cannot be set: {error.strerror}") from error


def _label(descriptor: int) -> bytes:
    """Return the label of what is open; nothing where it has none."""
    try:
        return os.getxattr(descriptor, NAME).rstrip(b"\0")
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return b""
        raise


def _policys(path: str, mode: int) -> bytes | None:
    """Return the label that the policy has for a path and a kind of file; None where it has none."""
    import ctypes

    found = ctypes.c_char_p()
    if _library().matchpathcon(os.fsencode(path), mode, ctypes.byref(found)) != 0:
        return None
    try:
        return found.value
    finally:
        _library().freecon(found)


@functools.cache
def _library() -> Any:
    """Return libselinux, which systemd needs too on a host with SELinux; None if there is none.

    Only who writes pays for it, and a Python may have been built without ctypes.
    """
    try:
        import ctypes

        return ctypes.CDLL(_LIBRARY)
    except (ImportError, OSError):
        return None
