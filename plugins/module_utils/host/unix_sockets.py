# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Socket files that are open, and the kernel's list of listening sockets.

Sources: sock_diag(7); unix(7), SO_PEERCRED; unix_diag.h and unix_diag.c of the kernel.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import struct
import threading
import time
from typing import NamedTuple

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_LISTENING = 1 << 10
_SHOW_VFS = 2
_ERROR, _DONE = 2, 3
_VFS = 1
#: struct nlmsghdr, struct unix_diag_req, struct unix_diag_msg, struct nlattr, struct unix_diag_vfs
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBHIIIII")
_ANSWER = struct.Struct("=BBBBIII")
_ATTRIBUTE = struct.Struct("=HH")
_FILE = struct.Struct("=II")
#: struct ucred: process, user, group
_CREDENTIALS = struct.Struct("=iII")
#: The kernel lists the lower half of an inode's number.
INODE = 0xFFFFFFFF
_MOUNT = re.compile(r"^mnt_id:\s*(\d+)$", re.M)
#: Socket files that one process holds at most: one for each server, and one more for each restart.
_MOST = 256
_HELD: dict[tuple[int, int], int] = {}
_LOCK = threading.Lock()


class HeldSocket(NamedTuple):
    """A socket file that this process holds open until it ends.

    `path` reaches this file and no other, from every process of this user. `inode` is its number,
    `mount` the ID of the mount through which it was opened.
    """

    path: str
    inode: int
    mount: str


class Listener(NamedTuple):
    """A listening socket: `number` as in `socket:[number]`, `device` as in mountinfo, `inode` of its file."""

    number: int
    device: str
    inode: int


def hold(path: str, timeout: float) -> HeldSocket:
    """Open a socket file, without a connection to it. Raises OSError, also if its disk does not answer in time."""
    found: list[int | OSError] = []
    is_late = threading.Event()

    def find() -> None:
        try:
            found.append(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
        except OSError as error:
            found.append(error)
        if is_late.is_set():
            _close(found)

    # The owner of a directory above decides which file system answers, and when. A thread that waits for FUSE or NFS ends
    # with this process. A child process could not hand the descriptor over without more code.
    thread = threading.Thread(target=find, daemon=True)
    thread.start()
    thread.join(timeout)
    if not found:
        is_late.set()
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    if isinstance(found[0], OSError):
        raise found[0]
    return _held(found[0])


def listeners(timeout: float) -> list[Listener]:
    """Return the stream sockets that listen at a file, of this network namespace. Raises OSError."""
    until = time.monotonic() + timeout
    question = _QUESTION.pack(socket.AF_UNIX, 0, 0, _LISTENING, 0, _SHOW_VFS, 0, 0)
    header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST_DUMP, 1, 0)
    found: list[Listener] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
        kernel.settimeout(timeout)
        kernel.sendto(header + question, (0, 0))
        is_whole = False
        while not is_whole:
            if time.monotonic() > until:
                raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            some, is_whole = parse(kernel.recv(1 << 16))
            found += some
    return found


def peer(path: str, timeout: float) -> int:
    """Return the ID of the process that called listen(2) at a socket file, by one connection without a byte.

    0 is a process that has ended, or that this one cannot see. Raises OSError.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as client:
        # A connection waits for room in the listener's queue; a Python timeout would fail at once instead.
        seconds = struct.pack("@ll", int(timeout), int(timeout % 1 * 1e6) or 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
        try:
            client.connect(path)
        except BlockingIOError as error:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from error
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[0])


def parse(answer: bytes) -> tuple[list[Listener], bool]:
    """Return the listeners in a part of the kernel's answer, and True for the last part. Pure.

    Raises OSError with the kernel's reason, and for an answer of another form.
    """
    found: list[Listener] = []
    while len(answer) >= _HEADER.size:
        length, kind, *_rest = _HEADER.unpack_from(answer)
        if not _HEADER.size <= length <= len(answer):
            break
        body, answer = answer[_HEADER.size : length], answer[-(-length // 4) * 4 :]
        if kind == _DONE:
            return found, True
        if kind == _ERROR:
            number = -struct.unpack_from("=i", body)[0] if len(body) >= 4 else errno.EPROTO
            raise OSError(number, os.strerror(number))
        if kind == _BY_FAMILY:
            found += _listener(body)
    if answer:
        raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
    return found, False


def _listener(body: bytes) -> list[Listener]:
    if len(body) < _ANSWER.size:
        return []
    number, attributes = _ANSWER.unpack_from(body)[4], body[_ANSWER.size :]
    while len(attributes) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(attributes)
        if length < _ATTRIBUTE.size:
            break
        if kind == _VFS and length >= _ATTRIBUTE.size + _FILE.size <= len(attributes):
            inode, device = _FILE.unpack_from(attributes, _ATTRIBUTE.size)
            # The kernel's own form of a device's number: MKDEV() of kdev_t.h.
            return [Listener(number, f"{device >> 20}:{device & 0xFFFFF}", inode)]
        attributes = attributes[-(-length // 4) * 4 :]
    return []


def _held(descriptor: int) -> HeldSocket:
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISSOCK(status.st_mode):
            raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as handle:
            mount = _MOUNT.search(handle.read())
        if mount is None:
            raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
        with _LOCK:
            if len(_HELD) >= _MOST:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            # As long as it is open, no other file gets its number.
            held = _HELD.setdefault((status.st_dev, status.st_ino), descriptor)
    except OSError:
        os.close(descriptor)
        raise
    if held != descriptor:
        os.close(descriptor)
    return HeldSocket(f"/proc/{os.getpid()}/fd/{held}", status.st_ino, mount[1])


def _close(found: list[int | OSError]) -> None:
    for descriptor in found:
        if isinstance(descriptor, int):
            os.close(descriptor)
