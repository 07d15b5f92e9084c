# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only ways from our actions to people: the terminal, files on the controller, and refusals."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from ..module_utils.host.printable import Lines, line, lines

#: What others may do with a file: those of the group read it.
REPORT = 0o640
#: For its owner alone.
PRIVATE = 0o600
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def show(rows: Iterable[str]) -> None:
    """Show lines on the terminal, with an empty one before and after them."""
    Display().display(f"\n{lines(rows)}")


def laid_out(text: str) -> Lines:
    """Return a text of several lines that came from a host: its lines are kept, all else in it is printable."""
    return lines(text.split("\n")[: -1 if text.endswith("\n") else None])


def refused(why: object) -> AnsibleActionFail:
    """Return the error that ends an action."""
    return AnsibleActionFail(line(str(why)))


def keep(directory: str, name: str, text: str, mode: int = REPORT) -> str:
    """Write a file whole, or leave the one that was there; return its path. A missing directory is made.

    Its temporary name cannot be foreseen, and no link stands for the file or its directory but one of root's or
    of this user's own. Raises OSError.
    """
    place = _open(directory)
    try:
        temporary = f".{secrets.token_hex(16)}"
        descriptor = os.open(temporary, _NEW, PRIVATE, dir_fd=place)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(text.encode("utf-8", "backslashreplace"))
                os.fchmod(descriptor, mode)
            os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            os.unlink(temporary, dir_fd=place)
            raise
    finally:
        os.close(place)
    return os.path.join(directory, name)


def remove(directory: str, name: str) -> None:
    """Take a file away, where it and its directory are there. Raises OSError."""
    try:
        place = _open(directory, make=False)
    except FileNotFoundError:
        return
    try:
        os.unlink(name, dir_fd=place)
    except FileNotFoundError:
        pass
    finally:
        os.close(place)


def _open(path: str, make: bool = True) -> int:
    """Return a descriptor of a directory, reached step by step: nobody can put another in its place on the way."""
    place = os.open("/", _DIRECTORY)
    for name in os.path.abspath(path).split("/"):
        if name:
            try:
                following = _step(place, name, make)
            finally:
                os.close(place)
            place = following
    return place


def _step(place: int, name: str, make: bool) -> int:
    """Return a descriptor of a directory in another one. Raises OSError."""
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
    except FileNotFoundError:
        if not make:
            raise
        os.mkdir(name, 0o750, dir_fd=place)
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
    except OSError:
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):
            raise
    if found.st_uid not in (0, os.geteuid()):
        raise OSError(errno.ELOOP, f"{name} is somebody else's link")
    followed = os.open(name, _DIRECTORY, dir_fd=place)
    after = os.stat(name, dir_fd=place, follow_symlinks=False)
    if (found.st_ino, found.st_ctime_ns) != (after.st_ino, after.st_ctime_ns):
        os.close(followed)
        raise OSError(errno.EAGAIN, f"{name} was changed meanwhile")
    return followed
