# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts that only some processes see: services and containers have namespaces of their own."""

from __future__ import annotations

from typing import NamedTuple

from .. import bounds
from ..host import Host, Unobservable
from .mountinfo import Mount, parse_mountinfo, visible


class Namespace(NamedTuple):
    """A mount namespace that is not this process's: one process in it, and what that one sees."""

    pid: int
    command: str
    mounts: list[Mount]


def others(host: Host) -> list[Namespace]:
    """Return the other mount namespaces of the host, the one of the lowest process id first.

    A process that ends meanwhile is passed over, and so is a namespace with too many mounts; where this process's
    own namespace cannot be told, no other can. Raises Unobservable where /proc cannot be listed.
    """
    try:
        seen = {_namespace(host, "self")}
    except Unobservable:
        return []
    found = []
    left, letters = bounds.MOUNTS, bounds.MOUNT_TABLES
    for pid in sorted(int(name) for name in host.names("/proc") if name.isdigit()):
        try:
            namespace = _namespace(host, str(pid))
            if namespace in seen:
                continue
            text = host.read(f"/proc/{pid}/mountinfo")
            # What lies in one that is passed over is a file system that nobody knows, to whoever asks for it.
            if text.count("\n") > left or len(text) > letters:
                continue
            left, letters = left - text.count("\n"), letters - len(text)
            mounts = visible(parse_mountinfo(text))
            command = host.read(f"/proc/{pid}/comm").strip()
        except (Unobservable, ValueError):
            continue
        seen.add(namespace)
        if mounts:
            found.append(Namespace(pid, command, mounts))
    return found


def _namespace(host: Host, pid: str) -> str:
    return host.link(f"/proc/{pid}/ns/mnt")
