# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user who names a path: a file is opened with the rights of that user, and root's paths with root's.

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
from .seam import Host, Status, Unobservable

__all__ = ["UNKNOWN_USER", "by_others", "followed", "of_instance", "of_process", "one", "owned"]

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

    A process that has any other user next to root, as a program with the set-user-ID bit has, acts as that one.
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
    return Identity(user, int(groups[1].split()[1]), tuple(map(int, more[1].split())))


def of_instance(host: Host, pids: Sequence[int]) -> contextlib.AbstractContextManager[None]:
    """Open the paths of a block as those of a server with these processes, the main one first; of a stopped server
    root's unit names them. Raises Unobservable."""
    return one(host, of_process(host, pids[0]) if pids else None)


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
