# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts in the mount namespaces of services and containers."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from . import bounds
from .mountinfo import Mount, parse_mountinfo, visible
from .processes import user_of
from .seam import Host, TooLong, Unobservable

#: Lines of a table between two checks of the time.
_OFTEN = 1000


class Namespace(NamedTuple):
    """A mount namespace that is not this process's: one process in it, and what that one sees."""

    pid: int
    command: str
    mounts: list[Mount]


def others(host: Host, kind: Callable[[Mount], Hashable] = lambda mount: mount) -> Iterator[Namespace]:
    """Yield the other mount namespaces of the host, the one of the lowest process id first.

    Any user can make a namespace with very many mounts: of one with more than MOUNTS only the first of each `kind` is
    read, None for a mount that does not count; hidden mounts count there as well. A process that ends meanwhile is passed
    over. Yields nothing if this process's own namespace is unknown. Raises Unobservable if /proc cannot be listed, and for
    more than can be read: the rest may have a file system that must count.
    """
    try:
        known = {_namespace(host, "self")}
    except Unobservable:
        return
    end = time.monotonic() + bounds.PATIENCE
    for pid in sorted(int(name) for name in host.names("/proc") if name.isdigit()):
        try:
            namespace = _namespace(host, str(pid))
            if namespace in known:
                continue
            command = host.read(f"/proc/{pid}/comm").strip()
            mounts = _mounts(host, pid, command, kind, end)
        except _TooMuch as error:
            raise Unobservable(str(error)) from None
        except (Unobservable, ValueError):
            continue
        known.add(namespace)
        if mounts:
            yield Namespace(pid, command, mounts)


class _TooMuch(Exception):
    """There is more than can be read, and whose it is."""


def _mounts(host: Host, pid: int, command: str, kind: Callable[[Mount], Hashable], end: float) -> list[Mount]:
    """Return the mounts that a process sees and that count. Raises _TooMuch, Unobservable, ValueError."""
    path = f"/proc/{pid}/mountinfo"
    lines: Iterable[str]
    try:
        lines = (text := host.read(path)).split("\n")
        if text.count("\n") <= bounds.MOUNTS and time.monotonic() <= end:
            return visible(parse_mountinfo(text))
    except TooLong:
        lines = host.lines(path)
    # Not known here: which of them are hidden. That takes all of them at once.
    found: dict[Hashable, Mount] = {}
    for number, line in enumerate(filter(None, lines)):
        if number % _OFTEN == 0 and time.monotonic() > end:
            who = _who(host, pid, command)
            raise _TooMuch(
                f"reading the mounts of very many namespaces took too long: that of {who} was not read; end it, then run again"
            )
        (mount,) = parse_mountinfo(line)
        if (one := kind(mount)) is not None:
            found.setdefault(one, mount)
        if len(found) > bounds.MOUNTS:
            raise _TooMuch(
                f"{_who(host, pid, command)} sees more than {bounds.MOUNTS} mounts that may hold data: end it, then run again"
            )
    return list(found.values())


def _who(host: Host, pid: int, command: str) -> str:
    try:
        user = user_of(host, pid)
    except Unobservable:
        user = "unknown"
    return f"process {pid} ({command}) of user {user}"


def _namespace(host: Host, pid: str) -> str:
    return host.link(f"/proc/{pid}/ns/mnt")
