# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a mounted file system through a descriptor of its mount.

The owner of a directory above a mount point can exchange that directory at any moment. So a mount is opened once,
compared with the mount that was assessed, and changed through its descriptor. "No error" is no proof: read the value
back. Each function blocks for as long as a disk or file system does, and raises OSError.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..mountinfo import Mount, by_id
from . import calls

_TABLE = "/proc/self/mountinfo"
#: Flags of mount(2), by the word that mountinfo has for them: of one mount, and of the superblock.
_OF_MOUNT = {
    "ro": calls.RDONLY,
    "nosuid": calls.NOSUID,
    "nodev": calls.NODEV,
    "noexec": calls.NOEXEC,
    "nosymfollow": calls.NOSYMFOLLOW,
    "nodiratime": calls.NODIRATIME,
}
_OF_SUPERBLOCK = {
    "ro": calls.RDONLY,
    "sync": calls.SYNCHRONOUS,
    "dirsync": calls.DIRSYNC,
    "mand": calls.MANDLOCK,
    "lazytime": calls.LAZYTIME,
}
_CLEARED = {"rw": calls.RDONLY, "async": calls.SYNCHRONOUS}
_ATIMES = {"noatime": calls.NOATIME, "relatime": calls.RELATIME, "strictatime": calls.STRICTATIME}


@contextmanager
def opened(mount: Mount) -> Iterator[tuple[int, Mount]]:
    """Open a mount; yield its descriptor, and the mount as the kernel lists it now.

    Raises OSError with ESTALE if another mount is at the path by now.
    """
    # With O_PATH nothing is opened of what lies there: neither a device nor a file system of another user acts.
    descriptor = os.open(mount.target, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor, _same(descriptor, mount)
    finally:
        os.close(descriptor)


def set_options(mount: Mount, options: Iterable[str]) -> None:
    """Change options of the superblock, and nothing else of it or of its mounts."""
    with opened(mount) as (descriptor, now):
        _set_options(descriptor, now, list(options))


def set_atime(mount: Mount, atime: str) -> None:
    """Set the atime of one mount: `noatime`, `relatime` or `strictatime`."""
    with opened(mount) as (descriptor, now):
        try:
            calls.mount_setattr(descriptor, calls.ATTRIBUTES_OF_ATIME[atime], calls.ATTRIBUTE_ATIME)
        except OSError as error:
            if error.errno not in calls.MISSING:
                raise
            calls.remount(descriptor, calls.BIND | _flags(now, atime))


def make_writable(mount: Mount) -> None:
    """Make a read-only mount and its superblock writable."""
    with opened(mount) as (descriptor, now):
        _set_options(descriptor, now, ["rw"])
        try:
            calls.mount_setattr(descriptor, 0, calls.ATTRIBUTE_RDONLY)
        except OSError as error:
            if error.errno not in calls.MISSING:
                raise
            calls.remount(descriptor, calls.BIND | (_flags(now, _atime(now)) & ~calls.RDONLY))


def sync(mount: Mount) -> None:
    """Write all data of the file system to its devices."""
    with opened(mount) as (descriptor, _now):
        readable = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            calls.syncfs(readable)
        finally:
            os.close(readable)


def _set_options(descriptor: int, now: Mount, options: list[str]) -> None:
    try:
        context = calls.fspick(descriptor)
    except OSError as error:
        if error.errno not in calls.MISSING:
            raise
        _remount(descriptor, now, options)
        return
    try:
        # A read-only superblock becomes writable unless `ro` is set again (ext4, btrfs).
        is_read_only = "ro" in now.super_options and "rw" not in options
        for option in [*(["ro"] if is_read_only else []), *options]:
            calls.set_option(context, option)
        calls.reconfigure(context)
    except OSError as error:
        raise OSError(error.errno, "; ".join(calls.messages(context)) or error.strerror) from error
    finally:
        os.close(context)


def _remount(descriptor: int, now: Mount, options: list[str]) -> None:
    """Change options by mount(2), which sets all flags of the mount and of the superblock again."""
    if now.read_only_by_itself:
        raise OSError(
            errno.EROFS,
            "it is mounted read-only over a writable file system, and this kernel has no fspick(2): a remount would make"
            " the whole file system read-only. Fix: mount it writable elsewhere, then run again",
        )
    flags = _flags(now, _atime(now))
    for word, flag in _OF_SUPERBLOCK.items():
        flags |= flag if word in (*now.super_options, *options) else 0
    for word, flag in _CLEARED.items():
        flags &= ~flag if word in options else ~0
    others = [option for option in options if option not in (*_OF_SUPERBLOCK, *_CLEARED)]
    calls.remount(descriptor, flags, ",".join(others))


def _flags(now: Mount, atime: str) -> int:
    found = _ATIMES[atime]
    for word, flag in _OF_MOUNT.items():
        found |= flag if word in now.options else 0
    return found


def _atime(now: Mount) -> str:
    """Return the atime of a mount; mountinfo has no word for strictatime."""
    return next((word for word in _ATIMES if word in now.options), "strictatime")


def _same(descriptor: int, mount: Mount) -> Mount:
    """Return the line of the mount table of an open mount. Raises OSError unless it is the expected mount."""
    number = _mount_id(descriptor)
    with open(_TABLE, encoding="utf-8", errors="surrogateescape") as table:
        now = by_id(table.read()).get(number)
    # A mount ID alone is used again after an unmount.
    if now is None or number != mount.number or (now.device, now.root) != (mount.device, mount.root):
        found = f"mount {number} of {now.device}" if now else f"mount {number}"
        raise OSError(
            errno.ESTALE,
            f"expected mount {mount.number} of {mount.device}, found {found}: the mount, or a directory above it, was"
            " exchanged. Fix: run again; if it fails again, find who exchanges directories there",
        )
    return now


def _mount_id(descriptor: int) -> str:
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as lines:
        return next(line.split()[1] for line in lines if line.startswith("mnt_id:"))
