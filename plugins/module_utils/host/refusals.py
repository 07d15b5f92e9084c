# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fix for a refused change, by the kernel's error text: for files, kernel attributes and programs."""

from __future__ import annotations

import errno
import os

_ANY = "fix the cause that this error names, then run again"
_ROOM = "free space on {where} (df -h, df -i), then run again"
_GONE = "the device is not there any more: check whether it was pulled or has failed (dmesg), then run again"
#: Error -> its fix, whatever reports it. `where` is the file system, as far as it is known.
_REMEDIES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EROFS: (
        "the kernel log (dmesg) says why {where} is read-only: after an error have it checked (fsck), else make it writable"
        " (mount -o remount,rw), then run again"
    ),
    errno.EIO: (
        "the disk answers with an error, the kernel log (dmesg) has details: check disk and cable, then run again"
    ),
    errno.ENODEV: _GONE,
    errno.ENXIO: _GONE,
}
#: Of devices, and programs that change them.
_OF_DEVICES = {
    errno.EINVAL: "the device or its driver does not take that, the kernel log (dmesg) says why: fix it, then run again",
}
#: Of files.
_OF_FILES = {
    errno.EPERM: (
        "lsattr -d {path} {directory} shows which is immutable (i) or append-only (a), remove that (chattr -i -a); if none"
        " is, check what denies it (SELinux: ausearch -m avc); then run again"
    ),
    errno.EACCES: "check who may write in {directory}, and what denies it (SELinux: ausearch -m avc), then run again",
}


def remedy(message: str, path: str = "") -> str:
    """Return what to do about a refusal; `message`: its text; `path`: the file that it is about, '' for none."""
    known = {**_REMEDIES, **(_OF_FILES if path else _OF_DEVICES)}
    if not path and os.strerror(errno.ENOENT) in message and ("/dev/" in message or "/sys/" in message):
        return _GONE
    found = next((text for number, text in known.items() if os.strerror(number) in message), _ANY)
    where = _file_system(path) if path else "that file system"
    return found.format(where=where, path=path, directory=os.path.dirname(path))


def explained(error: OSError) -> str:
    """Return an error of a file system's, as a message: the path, the kernel's text, and what to do."""
    path = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    why = error.strerror or str(error)
    # A relative name is of a directory that is held open: where it is, the name does not tell.
    fix = remedy(why, path if os.path.isabs(path) else "")
    return f"{path}: {why}; {fix}" if path else f"{why}; {fix}"


def _file_system(path: str) -> str:
    """Return where the file system is mounted on which a path lies, or would lie."""
    place = os.path.realpath(path)
    while not os.path.ismount(place):
        place = os.path.dirname(place)
    return place
