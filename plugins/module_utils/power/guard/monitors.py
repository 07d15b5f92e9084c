# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of the UPS's monitor: which there are, and to hear at once of the death of any."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ...host import Host, Unobservable
from .state import identity

#: upsmon is two processes, one of which has given up its rights.
_NAMES = ("upsmon", "apcupsd")
_GROUP = re.compile(r"^Gid:\s+\d+\s+(\d+)", re.MULTILINE | re.ASCII)
#: pidfd_open(2), where Python and kernel have it: Python 3.9, Linux 5.3.
_OPEN: Callable[[int], int] | None = getattr(os, "pidfd_open", None)


def find(host: Host) -> dict[int, int]:
    """Return {process: when it began} of the monitor's processes. Raises Unobservable without /proc.

    Anybody can give a process of his such a name, but not put it among the system's services.
    """
    found = {}
    for name in filter(str.isdigit, host.names("/proc")):
        if _text(host, f"/proc/{name}/comm").strip() not in _NAMES:
            continue
        if "/system.slice/" not in _text(host, f"/proc/{name}/cgroup"):
            continue
        try:
            found[int(name)] = identity(host, int(name))[1]
        except Unobservable:
            continue  # It has just ended.
    return found


def group(host: Host, processes: dict[int, int]) -> int:
    """Return the group that the monitor's notifications run as, 0 where that is root's."""
    groups = [_GROUP.search(_text(host, f"/proc/{pid}/status")) for pid in processes]
    return max((int(match.group(1)) for match in groups if match), default=0)


class Watch:
    """Waits for the end of processes. `descriptors` become readable with it, where the kernel can tell."""

    def __init__(self, host: Host, processes: dict[int, int]) -> None:
        self.host = host
        self.processes = processes
        self.descriptors = [fd for fd in map(_open, processes) if fd is not None]

    def ended(self) -> list[int]:
        """Return the processes that have ended, or whose number is somebody else's by now."""
        return [pid for pid, began in self.processes.items() if not self._runs(pid, began)]

    def close(self) -> None:
        """Wait no more."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []

    def _runs(self, pid: int, began: int) -> bool:
        try:
            return identity(self.host, pid)[1] == began
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
