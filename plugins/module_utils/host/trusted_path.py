# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who can change a path. A program is run, as any user, only if root alone can change it."""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Collection, Iterable
from typing import NamedTuple

from .process_context import is_there
from .seam import Host, Unobservable

ROOT = frozenset({0})
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
#: Directories of programs, and what lies beside them and holds their libraries (MySQL has lib/private).
_BIN = ("bin", "sbin", "libexec")
_LIBRARIES = ("lib", "lib64", "lib/private", "lib/plugin", "lib/mysql/private")
_SYSTEM = ("", "/", "/usr", "/usr/local")


class Status(NamedTuple):
    """The owner's number and the whole mode (st_mode) of a file, links not followed."""

    owner: int
    mode: int


def statuses(host: Host, paths: Collection[str]) -> dict[str, Status]:
    """Return owner and mode of each path, links not followed. Raises Unobservable, also for a disk that
    does not answer in time."""
    result = host.run(["stat", "--format=%u %f", "--", *paths])
    lines = [line.split() for line in result.stdout.splitlines()]
    if result.rc != 0 or len(lines) != len(paths) or any(len(line) != 2 for line in lines):
        why = " ".join(result.stderr.split()) or f"exit {result.rc}"
        raise Unobservable(f"who may change {', '.join(paths)} cannot be read: {why}")
    try:
        return {path: Status(int(uid), int(mode, 16)) for path, (uid, mode) in zip(paths, lines)}
    except ValueError as error:
        raise Unobservable(f"who may change {', '.join(paths)} cannot be read: {error}") from error


def weakness(host: Host, path: str, owners: Collection[int] = ROOT, sticky: bool = False) -> str:
    """Return what lets others than `owners` change what a path leads to, '' if nothing does.

    Every directory and link on the way counts. Where access lists are, the group's bits are their
    mask. `sticky`: a directory on the way with that bit may be writable, because others cannot replace what an
    owner has in it. Raises Unobservable.
    """
    *way, last = host.way(path).items()
    for part, status in (*way, last):
        is_sticky = sticky and part != last[0] and stat.S_ISDIR(status.mode) and status.mode & stat.S_ISVTX
        why = _others(part, status.user, status.mode & ~_OTHERS if is_sticky else status.mode, owners)
        if why:
            return why
    return ""


def _others(path: str, user: int, mode: int, owners: Collection[int]) -> str:
    if user not in owners:
        return f"{path} belongs to user {user}"
    if mode & _OTHERS and not stat.S_ISLNK(mode):
        return f"{path} has mode {stat.S_IMODE(mode):04o}"
    return ""


def expect_program(host: Host, path: str) -> None:
    """Raise Unobservable for a program that others than root can change, or the libraries next to it.

    It runs neither as root nor as another user then, also not as the one who owns it: a server's code would
    leave the server's own confinement.
    """
    if not path.startswith("/"):
        raise Unobservable(f"program {path!r}: expected an absolute path")
    why = weakness(host, path) or _weak_library(host, path)
    if why:
        raise Unobservable(
            f"program {path} may be changed by others than root ({why}), so it is not run. Fix: chown that to root"
            " and chmod it go-w"
        )


def choose(host: Host, paths: Iterable[str]) -> str:
    """Return the first of these programs that exists, if it meets `expect_program`. Raises Unobservable."""
    wanted = list(paths)
    path = next((path for path in wanted if is_there(host, path)), "")
    if not path:
        raise Unobservable(f"none of {', '.join(wanted)} exists. Fix: install the package that has it")
    expect_program(host, path)
    return path


def _weak_library(host: Host, path: str) -> str:
    """Return what lets others than root change a library next to a program, '' if nothing does.

    The dynamic linker finds them by $ORIGIN. The system's own directories hold its packages' files.
    """
    there = list(host.way(path))[-1]
    prefix = posixpath.dirname(posixpath.dirname(there))
    if prefix in _SYSTEM or posixpath.basename(posixpath.dirname(there)) not in _BIN:
        return ""
    weak = (weak_entry(host, f"{prefix}/{name}") for name in _LIBRARIES)
    return next(filter(None, weak), "")


def weak_entry(host: Host, directory: str) -> str:
    """Return what lets others than root change a directory, or what is in it (not below), '' if nothing does.

    Nothing does if there is no such directory, and root alone can make it. Raises Unobservable.
    """
    names = host.list_names(directory)
    if names is None:
        return weak_future(host, directory)
    why = weakness(host, directory)
    entries = statuses(host, [posixpath.join(directory, name) for name in names]) if names and not why else {}
    found = (_others(path, status.owner, status.mode, ROOT) for path, status in entries.items())
    return why or next(filter(None, found), "")


def weak_future(host: Host, path: str, owners: Collection[int] = ROOT, sticky: bool = False) -> str:
    """Return what lets others than `owners` change or make what a path leads to, '' if nothing does.

    `sticky`: as in `weakness`. Raises Unobservable.
    """
    if not path.startswith("/"):
        raise Unobservable(f"{path!r}: expected an absolute path")
    while path != "/" and not is_there(host, path):
        path = posixpath.dirname(path)
    return weakness(host, path, owners, sticky)
