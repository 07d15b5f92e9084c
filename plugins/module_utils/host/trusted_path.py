# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may change a path: a program is run as root, or trusted with a password, only where root alone may.

In a directory of somebody else's it runs as that user.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable
from typing import NamedTuple

from .process_context import look
from .seam import Host, Unobservable

ROOT = frozenset({0})
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


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
        raise Unobservable(f"who may change {', '.join(paths)} cannot be told: {why}")
    try:
        return {path: Status(int(uid), int(mode, 16)) for path, (uid, mode) in zip(paths, lines)}
    except ValueError as error:
        raise Unobservable(f"who may change {', '.join(paths)} cannot be told: {error}") from error


def weakness(host: Host, path: str, owners: Collection[int] = ROOT) -> str:
    """Return what lets others than `owners` change what a path leads to, '' where nothing does.

    Every directory and link on the way counts. Where access lists are, the group's bits are their
    mask. Raises Unobservable.
    """
    for part, status in host.way(path).items():
        if status.user not in owners:
            return f"{part} belongs to user {status.user}"
        if status.mode & _OTHERS and not stat.S_ISLNK(status.mode):
            return f"{part} has mode {stat.S_IMODE(status.mode):04o}"
    return ""


def expect_program(host: Host, path: str, user: int = 0) -> None:
    """Raise Unobservable for a program that others than root, and the user as whom it runs, may change.

    As root it is not run then, nor as somebody whom another would so make do what he likes.
    """
    if not path.startswith("/"):
        raise Unobservable(f"program {path!r}: wanted an absolute path")
    why = weakness(host, path, {0, user})
    if why:
        others = (
            "others than root" if user == 0 else f"others than root and user {user}, as whom it would run"
        )
        raise Unobservable(f"program {path} may be changed by {others} ({why}), so it is not run")


def choose(host: Host, paths: Iterable[str], name: str, user: int = 0) -> str:
    """Return the first of these programs that is there, held against `expect_program`; else `name`, which is
    looked for where the system has its own. Raises Unobservable."""
    path = next((path for path in paths if look(host, path)), "")
    if path:
        expect_program(host, path, user)
    return path or name


def as_user(host: Host, uid: int) -> list[str]:
    """Return what to put before a command so that it runs as a user, with that user's groups.

    Raises Unobservable for one without a name.
    """
    result = host.run(["getent", "passwd", str(uid)])
    fields = result.stdout.rstrip("\n").split(":")
    if result.rc != 0 or len(fields) < 4 or not fields[3].isdigit():
        raise Unobservable(f"user {uid} has no name: getent passwd finds none")
    return ["setpriv", f"--reuid={uid}", f"--regid={fields[3]}", "--init-groups", "--"]
