# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A trial mount of a scratch image, detached from every path.

The mount and its loop device end with the descriptors that hold them, also if this process is killed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from . import calls, options

# Of include/uapi/linux/loop.h.
_SET_FD, _SET_STATUS, _GET_FREE = 0x4C00, 0x4C04, 0x4C82
#: struct loop_info64: five words, four integers of which the last is the flags, names and keys.
_INFO = struct.Struct("=5Q4I176x")
_AUTOCLEAR = 4
#: Another process may take the free device first.
_ATTEMPTS = 10
#: Messages of a mount that worked.
_NO_REASON = (
    "mounted filesystem",
    "unmounting filesystem",
    "Unmounting Filesystem",
    "Mounting V",
    "Ending clean mount",
)
_RECORD = 8192


def try_mount(image: str, fstype: str, steps: Sequence[Iterable[str]]) -> None:
    """Mount an image with the options of the first step, and reconfigure it with those of each further step.

    Writes to the image. Raises OSError; its text is the kernel's reason.
    """
    with _loop_device(image) as device, _kernel_log() as log:
        context = calls.fsopen(fstype)
        try:
            calls.set_option(context, f"source={device}")
            for number, step in enumerate(steps):
                for option in options.for_file_system(step):
                    calls.set_option(context, option)
                if number == 0:
                    calls.create(context)
                    os.close(calls.fsmount(context))
                else:
                    calls.reconfigure(context)
        except OSError as error:
            reasons = calls.messages(context) or _reasons(log, os.path.basename(device))
            raise OSError(error.errno, reasons[-1] if reasons else error.strerror) from error
        finally:
            os.close(context)


@contextmanager
def _loop_device(image: str) -> Iterator[str]:
    """Yield a loop device over an image. It is detached once nothing has it open."""
    with contextlib.ExitStack() as stack:
        backing = _open(stack, image, os.O_RDWR)
        control = _open(stack, "/dev/loop-control", os.O_RDWR)
        for _attempt in range(_ATTEMPTS):
            name = f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}"
            device = _open(stack, name, os.O_RDWR)
            try:
                fcntl.ioctl(device, _SET_FD, backing)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    continue
                raise
            fcntl.ioctl(device, _SET_STATUS, _INFO.pack(*[0] * 8, _AUTOCLEAR))
            yield name
            return
        raise OSError(errno.EBUSY, f"no free loop device in {_ATTEMPTS} attempts")


@contextmanager
def _kernel_log() -> Iterator[int]:
    """Yield a descriptor that reads the messages from now on, -1 if the kernel gives none."""
    try:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield -1
        return
    try:
        os.lseek(log, 0, os.SEEK_END)
        yield log
    finally:
        os.close(log)


def _reasons(log: int, device: str) -> list[str]:
    """Return what a driver wrote about a device: older drivers give a context no messages."""
    found = []
    # "EXT4-fs (loop0): ", "BTRFS error (device loop0): ", and without a device "EXT4-fs: ".
    about = re.compile(
        rf"(?:EXT4-fs|XFS|BTRFS)[\w ]*(?:\((?:device )?{re.escape(device)}(?: [^)]*)?\))?: (.*)"
    )
    with contextlib.suppress(OSError):  # EAGAIN: there are no more.
        while log >= 0:
            record = os.read(log, _RECORD).decode("utf-8", "replace")
            match = about.match(record.partition(";")[2].split("\n")[0])
            if match and not match[1].startswith(_NO_REASON):
                found.append(match[1])
    return found


def _open(stack: contextlib.ExitStack, path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor
