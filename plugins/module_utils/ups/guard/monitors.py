# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of the UPS's monitor, and immediate notice of the end of any of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from ...host.processes import TICKS
from ...host.seam import Host, Unobservable
from .state import identity

#: upsmon is two processes, one of which has given up its rights.
_NAMES = ("upsmon", "apcupsd")
_GROUP = re.compile(r"^Gid:\s+\d+\s+(\d+)", re.MULTILINE | re.ASCII)
#: pidfd_open(2), where Python and kernel have it: Python 3.9, Linux 5.3.
_OPEN: Callable[[int], int] | None = getattr(os, "pidfd_open", None)


def find(host: Host, main: int, queried_at: float) -> dict[int, int]:
    """Return {process: when it began} of the monitor's processes.

    `main` is the main process of its service by systemd's word, 0 for none, and `queried_at` the seconds since the
    boot when systemd was queried: a number that was given out since is another program's. Of that service is who is
    in that process's control group: systemd alone puts a process there, while any process may take a name, and make
    groups of any name below its own. Its children would not do: upsmon's main process may be the child of the
    one that keeps root's rights. Raises Unobservable without /proc.
    """
    service = _member(host, main)
    if service is None or service.began >= round(queried_at * TICKS):
        return {}
    found = {}
    for pid in map(int, filter(str.isdigit, host.names("/proc"))):
        if _text(host, f"/proc/{pid}/comm").strip() not in _NAMES:
            continue
        member = _member(host, pid)
        if member is not None and member.group == service.group:
            found[pid] = member.began
    return found


def group(host: Host, processes: dict[int, int]) -> int:
    """Return the group that the monitor's notifications run as, 0 if that is root's.

    A process that has ended meanwhile has no say.
    """
    groups = []
    for pid, began in processes.items():
        match = _GROUP.search(_text(host, f"/proc/{pid}/status"))
        if match and _runs(host, pid, began):
            groups.append(int(match.group(1)))
    return max(groups, default=0)


class Watch:
    """Waits for the end of processes. `descriptors` become readable with it, where the kernel can tell."""

    def __init__(self, host: Host, processes: dict[int, int]) -> None:
        self.host = host
        self.processes = processes
        self.descriptors = [fd for fd in map(_open, processes) if fd is not None]

    def ended(self) -> list[int]:
        """Return the processes that have ended, or whose number is another program's by now."""
        return [pid for pid, began in self.processes.items() if not _runs(self.host, pid, began)]

    def close(self) -> None:
        """Wait no more."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []


class _Member(NamedTuple):
    """A process's control groups, as /proc has them, and when it began."""

    group: str
    began: int


def _member(host: Host, pid: int) -> _Member | None:
    """Return the groups of a process, None for one that is not there, or ends meanwhile."""
    try:
        began = identity(host, pid)[1]
        found = _Member(host.read(f"/proc/{pid}/cgroup"), began)
    except Unobservable:
        return None
    return found if _runs(host, pid, began) else None


def _runs(host: Host, pid: int, began: int) -> bool:
    try:
        return identity(host, pid)[1] == began
    except Unobservable:
        return False


def _open(pid: int) -> int | None:
    try:
        return None if _OPEN is None else _OPEN(pid)
    except OSError:
        return None


def _text(host: Host, path: str) -> str:
    try:
        return host.read(path)
    except Unobservable:
        return ""
