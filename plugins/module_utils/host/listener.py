# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that listens at a unix socket: a password is offered to no other."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from .mountinfo import Mount
from .process_context import cgroup_of
from .seam import Host, Unobservable
from .unix_sockets import INODE

#: It listens for a service with socket activation. Its sockets count where root alone can exchange them.
_SYSTEMD = 1


def proven(host: Host, path: str, pid: int, cgroup: str, mounts: Mapping[str, Mount]) -> str:
    """Return a path that leads to the socket at `path` as long as this process runs, whatever happens to that name.

    `path` is without links; `cgroup` is the control group that the process must be in, `mounts` are those that the
    process sees. Raises Unobservable unless the process listens at that socket.
    """
    held = host.hold_socket(path)
    mount = mounts.get(held.mount)
    if mount is None:
        raise Unobservable(f"{path} is on a mount that process {pid} does not have")
    # A path can lead to another file at each step, so only the file that is held open counts.
    ours = {
        f"socket:[{listener.number}]"
        for listener in host.listeners()
        if (listener.device, listener.inode) == (mount.device, held.inode & INODE)
    }
    if not ours & _descriptors(host, pid):
        raise Unobservable(f"process {pid} does not listen at {path}")
    # The number may be another process's by now.
    there = cgroup_of(host.read(f"/proc/{pid}/cgroup"))
    if there != cgroup:
        raise Unobservable(f"process {pid} is in control group {there}, and not in {cgroup}")
    # The kernel lists the lower half of an inode's number, and Btrfs has equal numbers in each subvolume. So two sockets
    # can look alike. A connection reaches one of them.
    other = host.socket_listener(held.path)
    # systemd listens for a service with socket activation, and no other user makes it listen.
    if other not in (pid, _SYSTEMD):
        raise Unobservable(f"process {other or 'that is unknown'} listens at {path}, and not process {pid}")
    return held.path


def _descriptors(host: Host, pid: int) -> set[str]:
    found = set()
    for name in host.names(f"/proc/{pid}/fd"):
        with contextlib.suppress(Unobservable):  # It is closed by now.
            found.add(host.link(f"/proc/{pid}/fd/{name}"))
    return found
