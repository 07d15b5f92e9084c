# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user who chose a path: a file is opened with that user's rights.

A process names the paths in its arguments, environment, working directory and open files, and those that its
configuration and its answers name. If root started a server, the owner of its configuration names the paths in it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

from .foreign import ACCOUNT, UNKNOWN_USER, Identity
from .processes import Process, expect_same
from .seam import Host, Status, Unobservable

__all__ = ["UNKNOWN_USER", "by_others", "by_process", "followed", "of_instance", "of_process", "one", "owned"]

_Act = TypeVar("_Act", bound=Callable[..., Any])

#: Users and groups of a process, the real ones first: proc_pid_status(5).
_USERS = re.compile(r"^Uid:((?:\s+\d{1,10}){4})$", re.M | re.ASCII)
_GROUPS = re.compile(r"^Gid:((?:\s+\d{1,10}){4})$", re.M | re.ASCII)
_MORE_GROUPS = re.compile(r"^Groups:((?:\s+\d{1,10})*)\s*$", re.M | re.ASCII)


@contextlib.contextmanager
def one(host: Host, user: Identity | None) -> Iterator[None]:
    """Open the paths of a block with the rights of the user who named them, None for root."""
    before = host.named_by, host.follows_owners
    host.named_by, host.follows_owners = user, True
    try:
        yield
    finally:
        host.named_by, host.follows_owners = before


def by_others(act: _Act) -> _Act:
    """Have users who are unknown name the paths that a function opens; its first argument is the host."""

    @functools.wraps(act)
    def acting(host: Host, *given: Any, **more: Any) -> Any:
        with one(host, UNKNOWN_USER):
            return act(host, *given, **more)

    return cast(_Act, acting)


def of_process(host: Host, pid: int) -> Identity | None:
    """Return the user as whom a process acts, None for root. Raises Unobservable.

    A process that has any other user next to root, as a program with the set-user-ID bit has, acts as that one. Its
    group is the real one: a program with the set-group-ID bit changes the others.
    """
    source = f"/proc/{pid}/status"
    text = host.read(source)
    users, groups, more = (pattern.search(text) for pattern in (_USERS, _GROUPS, _MORE_GROUPS))
    if not users or not groups or not more:
        raise Unobservable(f"{source}: does not show its user and groups")
    real, acting, *others = map(int, users[1].split())
    user = next((user for user in (acting, real, *others) if user), 0)
    if not user:
        return None
    group = next((group for group in map(int, groups[1].split()) if group), 0)
    return Identity(user, group, tuple(map(int, more[1].split())))


@contextlib.contextmanager
def by_process(host: Host, process: Process) -> Iterator[Identity | None]:
    """Open the paths of a block with the rights of the user of a process, and yield that user, None for root.

    Raises Unobservable if it is another process, program or user than when the processes were listed, before the block
    or at its end. Any user can run a program called as a server, and then one with the set-user-ID bit whose users are
    all root, with arguments of that user's choice.
    """
    user = _expect_named(host, process)
    # Later reads know the process by its ID alone.
    host.mains = {**host.mains, process.pid: process}
    with one(host, user):
        yield user
    if _expect_named(host, process) != user:
        raise Unobservable(
            f"/proc/{process.pid}/status: its user changed while its arguments were read; run again"
        )


def _expect_named(host: Host, process: Process) -> Identity | None:
    # The program is compared after the user is read, so the user is that of this program.
    user = of_process(host, process.pid)
    expect_same(host, process)
    return user


@contextlib.contextmanager
def of_instance(host: Host, pids: Sequence[int]) -> Iterator[None]:
    """Open the paths of a block as those of a server with these processes, the main one first; of a stopped server
    root's unit names them. Raises Unobservable, also if the process is another one than when it was listed."""
    main = host.mains.get(pids[0]) if pids else None
    if main:
        with by_process(host, main):
            yield
        return
    user = of_process(host, pids[0]) if pids else None
    # Without a listed process to compare with, nothing proves that root named a path.
    with one(host, UNKNOWN_USER if pids and user is None else user):
        yield


def followed(host: Host, file: Status) -> None:
    """Have the owner of a configuration name the paths that are opened from now on, if root named that file.

    This holds until the block of :func:`one` ends; outside of such a block it has no effect. If a process named the
    file, the rights of its user stay: it reads no more than that.
    """
    if host.follows_owners and host.named_by is None:
        owned(host, file)


def owned(host: Host, file: Status) -> None:
    """Have the owner of a file name the paths that are opened from now on; root's file leaves that as it is."""
    if file.user:
        host.named_by = Identity(file.user, ACCOUNT, ())
