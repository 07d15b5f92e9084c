# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts that only some processes see: services and containers have namespaces of their own."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from . import bounds
from .mountinfo import Mount, parse_mountinfo, visible
from .seam import Host, Unobservable


class Namespace(NamedTuple):
    """A mount namespace that is not this process's: one process in it, and what that one sees."""

    pid: int
    command: str
    mounts: list[Mount]


def others(host: Host) -> Iterator[Namespace]:
    """Yield the other mount namespaces of the host, the one of the lowest process id first.

    A process that ends meanwhile is passed over; where this process's own namespace cannot be
    told, no other can. Raises Unobservable where /proc cannot be listed, and where there is more in them than
    can be looked at: what is in the rest may be a file system that has to count.
    """
    try:
        seen = {_namespace(host, "self")}
    except Unobservable:
        return
    end = time.monotonic() + bounds.PATIENCE
    for pid in sorted(int(name) for name in host.names("/proc") if name.isdigit()):
        try:
            namespace = _namespace(host, str(pid))
            if namespace in seen:
                continue
            text = host.read(f"/proc/{pid}/mountinfo")
            command = host.read(f"/proc/{pid}/comm").strip()
            _expect_few(host, pid, command, text, end)
            mounts = visible(parse_mountinfo(text))
        except _TooMuch as error:
            raise Unobservable(str(error)) from None
        except (Unobservable, ValueError):
            continue
        seen.add(namespace)
        if mounts:
            yield Namespace(pid, command, mounts)


class _TooMuch(Exception):
    """There is more than can be looked at, and whose it is."""


def _expect_few(host: Host, pid: int, command: str, text: str, end: float) -> None:
    """Raise _TooMuch for a namespace with very many mounts, or when looking at all of them has taken too long."""
    count = text.count("\n")
    if count <= bounds.MOUNTS and time.monotonic() <= end:
        return
    user = re.search(r"^Uid:\s+\d+\s+(\d+)", host.read(f"/proc/{pid}/status"), re.M)
    who = f"process {pid} ({command}) of user {user[1] if user else 'unknown'}"
    what = f"of very many namespaces with mounts that of {who} was not looked at"
    if count > bounds.MOUNTS:
        what = f"{who} sees {count} mounts; wanted at most {bounds.MOUNTS}"
    raise _TooMuch(f"{what}: end it, then run again")


def _namespace(host: Host, pid: str) -> str:
    return host.link(f"/proc/{pid}/ns/mnt")
