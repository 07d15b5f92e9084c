# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a measurement writes in a database's mount, and removes at its end.

The directory may belong to a user who is not trusted: files are made again under a name that no user can
predict, never through a link, and reached by descriptor only. One that a killed run left behind is
known by its name, and that no process holds its lock; the next run removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Callable

from ..host import child_process
from ..host.mount_api import change
from ..host.mountinfo import Mount
from .limits import MIB, Refused, expect_space

PREFIX = ".durable-scratch-"
#: In a scratch directory, which is root's: what a scratch server reads at its start, its user's directory, its output.
INIT, INNER, OUTPUT = "durable-init.sql", "durable-data", "durable-output"
_DIRECTORY_MODE = 0o711
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Seconds in which the kernel closes the files of a killed process.
_RELEASE = 20.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def directory(mount: Mount) -> Iterator[int]:
    """Open the directory on which a mount lies. Raises Refused if another mount, or none, is there by now."""
    try:
        with change.opened(mount) as (held, _now):
            descriptor = os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        why = (
            "" if error.errno == errno.ESTALE else ". Fix: name a directory on which a file system is mounted"
        )
        raise Refused(f"{mount.target}: {error.strerror}{why}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def files(target: str, place: int, sizes: Sequence[int]) -> Iterator[list[int]]:
    """Make scratch files in an open directory, each written in full and durable; remove them at the end.

    Yields a descriptor of each: `reopen` gives others. Raises Refused without the space, OSError.
    """
    sweep(place)
    expect_space(target, os.fstatvfs(place), sum(sizes))
    names = [PREFIX + secrets.token_hex(8) for _size in sizes]
    descriptors: list[int] = []
    with _removed_if_killed(place, names):
        yield from _files(place, names, sizes, descriptors)


@contextmanager
def _removed_if_killed(place: int, names: Sequence[str]) -> Iterator[None]:
    """Let a child remove files if this process is killed, which closes its end of a pipe."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            child_process.isolate(reader, place)
            # One byte is the normal end.
            if not os.read(reader, 1):
                _sweep_unlocked(place, names)
        finally:
            os._exit(0)
    os.close(reader)
    try:
        yield
    finally:
        os.write(writer, b"0")
        os.close(writer)
        os.waitpid(child, 0)


def _sweep_unlocked(place: int, names: Sequence[str]) -> None:
    """Remove files of a killed process once the kernel has released their locks. Raises OSError."""
    deadline = time.monotonic() + _RELEASE
    while set(names) & set(os.listdir(place)) and time.monotonic() < deadline:
        for name in names:
            _swept(place, name)
        time.sleep(0.05)
    os.fsync(place)


def _files(
    place: int, names: Sequence[str], sizes: Sequence[int], descriptors: list[int]
) -> Iterator[list[int]]:
    created = []
    try:
        for name, size in zip(names, sizes):
            descriptor = create(place, name)
            created.append(name)
            descriptors.append(descriptor)
            fill(descriptor, size)
        os.fsync(place)
        yield descriptors
    finally:
        for name in created:
            remove(place, name)
        for descriptor in descriptors:
            os.close(descriptor)
        # As long as the removal is not durable, a power cut brings the file back.
        os.fsync(place)


def create(place: int, name: str) -> int:
    """Make a file that was not there, for its owner alone, and hold its lock. Raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=place)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def open_own(place: int, name: str) -> int:
    """Return a descriptor, for reading, of a file as `create` makes it: this user's own, and no other may write it.

    Raises Refused for another file, FileNotFoundError, OSError.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=place)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _replaced(name, "a link") from error
        raise
    status = os.fstat(descriptor)
    why = ""
    if not stat.S_ISREG(status.st_mode):
        why = "not a regular file"
    elif status.st_uid != os.geteuid():
        why = f"owner {status.st_uid}"
    elif status.st_nlink != 1:
        why = f"{status.st_nlink} names"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        why = f"mode {stat.S_IMODE(status.st_mode):o}"
    if why:
        os.close(descriptor)
        raise _replaced(name, why)
    return descriptor


def _replaced(name: str, why: str) -> Refused:
    return Refused(
        f"{name}: it has been replaced ({why}). Only a regular file of user {os.geteuid()} with one name, which no other"
        " user may write, is evidence. Fix: start a new run"
    )


def reopen(descriptor: int, flags: int) -> int:
    """Open a file again with other flags, the same file whatever its name says now. Raises OSError."""
    return os.open(f"/proc/self/fd/{descriptor}", flags | os.O_CLOEXEC)


def fill(descriptor: int, size: int) -> None:
    """Write a file in full: only what was written before is overwritten in place. Raises OSError."""
    piece = secrets.token_bytes(min(size, MIB))
    while size > 0:
        size -= os.write(descriptor, piece[:size])
    os.fsync(descriptor)


def remove(place: int, name: str) -> None:
    """Remove a file; one that is gone already is no error. Raises OSError."""
    try:
        os.unlink(name, dir_fd=place)
    except FileNotFoundError:
        pass


def create_directory(place: int) -> tuple[str, int]:
    """Create a directory that only this user can change, and hold its lock. Return its name and a descriptor.

    Raises Refused if another directory is at its name already, OSError.
    """
    name = PREFIX + secrets.token_hex(8)
    before = os.umask(0)
    try:
        os.mkdir(name, _DIRECTORY_MODE, dir_fd=place)
    finally:
        os.umask(before)
    descriptor = os.open(name, _LISTED, dir_fd=place)
    if not _is_scratch_directory(descriptor) or os.listdir(descriptor):
        os.close(descriptor)
        raise _replaced(name, "another directory")
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return name, descriptor


def remove_directory(place: int, name: str, descriptor: int) -> None:
    """Remove a scratch directory with all that is in it. Raises OSError."""
    if INNER in os.listdir(descriptor):
        # Only root can replace INNER, and below it rmtree follows no link.
        shutil.rmtree(f"/proc/self/fd/{descriptor}/{INNER}")
    for file in (OUTPUT, INIT):
        remove(descriptor, file)
    if os.path.samestat(os.stat(name, dir_fd=place, follow_symlinks=False), os.fstat(descriptor)):
        os.rmdir(name, dir_fd=place)


def sweep(place: int) -> list[str]:
    """Remove what killed runs have left behind, and return the names."""
    return [name for name in os.listdir(place) if name.startswith(PREFIX) and _swept(place, name)]


def _swept(place: int, name: str) -> bool:
    """Remove a file or directory that is this user's own and that no run holds. Return whether it was one."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        is_file = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not is_file and not _is_scratch_directory(descriptor):
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        if is_file:
            remove(place, name)
        else:
            remove_directory(place, name, descriptor)
        return True
    finally:
        os.close(descriptor)


def _is_scratch_directory(descriptor: int) -> bool:
    """Return whether a directory is one that `create_directory` made, with nothing in it that is not ours.

    The owner of the directory above can give the name to another directory, also to one of root.
    """
    status = os.fstat(descriptor)
    if (
        not stat.S_ISDIR(status.st_mode)
        or status.st_uid != os.geteuid()
        or status.st_mode & 0o777 != _DIRECTORY_MODE
    ):
        return False
    names = set(os.listdir(descriptor))
    return not names or (INIT in names and names <= {INIT, INNER, OUTPUT})


class Ended(BaseException):
    """A signal ended the run: what was started is restored on the way out."""


@contextmanager
def signals_end() -> Iterator[None]:
    """Turn signals that end a process into an exception, so that `finally` clauses run."""

    def end(number: int, _frame: FrameType | None) -> None:
        # A second one must not stop the restore that the first has started.
        for later in _SIGNALS:
            signal.signal(later, signal.SIG_IGN)
        raise Ended(f"ended by signal {number}")

    before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
    for number in _SIGNALS:
        before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def signals_ignored() -> Iterator[None]:
    """Ignore the signals that end a process, for a clean-up that must be complete."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
