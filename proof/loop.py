# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mounts of images, by the kernel's own calls: for thousands of cuts mount(8) and umount(8) cost more than the mount.

And how a process of them leaves nothing mounted, nor running, whatever ends it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: linux/loop.h, since Linux 5.8: the file, the size of a block, and of loop_info64 the flags alone.
_GET_FREE, _CONFIGURE, _AUTOCLEAR = 0x4C82, 0x4C0A, 4
_CONFIG = struct.Struct("<II52xI240x")
#: sched.h: CLONE_NEWNS; sys/mount.h: MS_REC and MS_PRIVATE; linux/prctl.h: PR_SET_PDEATHSIG.
_NEW_NAMESPACE, _PRIVATE, _DEATH_SIGNAL = 0x20000, 1 << 14 | 1 << 18, 1
_libc = ctypes.CDLL(None, use_errno=True)


def mount(image: Path, target: Path, file_system: str, options: str) -> None:
    """Mount an image over a loop device, which goes with the mount. OSError: the kernel does not."""
    with _attached(image) as device:
        words = (os.fsencode(word) for word in (device, target, file_system))
        _must(_libc.mount(*words, 0, options.encode()))


def unmount(target: Path) -> None:
    """Unmount it. OSError: the kernel does not."""
    _must(_libc.umount2(os.fsencode(target), 0))


def own_mounts() -> None:
    """Give this process mounts of its own, which end with it however it ends. OSError: the kernel does not."""
    _must(_libc.unshare(_NEW_NAMESPACE))
    _must(_libc.mount(b"none", b"/", None, _PRIVATE, None))


def end_with_parent(number: int) -> None:
    """Let the kernel send this signal when the thread that has started this process ends."""
    _must(_libc.prctl(_DEATH_SIGNAL, number, 0, 0, 0))


@contextmanager
def _attached(image: Path) -> Iterator[str]:
    """Give the loop device of an image; unless it is mounted, it is free again at the end."""
    with image.open("r+b") as file, open("/dev/loop-control", "rb") as control:
        while True:
            name = f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}"
            device = os.open(name, os.O_RDWR)
            try:
                fcntl.ioctl(device, _CONFIGURE, _CONFIG.pack(file.fileno(), 0, _AUTOCLEAR))
            except OSError as error:
                os.close(device)
                if error.errno != errno.EBUSY:  # another process was quicker
                    raise
                continue
            break
    try:
        yield name
    finally:
        os.close(device)


def _must(returned: int) -> None:
    if returned:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
