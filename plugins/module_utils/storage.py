# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The storage facts of one host: disks, mounted file systems, and what ties them together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .disks import Disks
from .host import Host, Unobservable
from .mounts import Mounts

#: Kernel names that are layers or scratch devices and never the leaf below a managed mount.
_NOT_DISKS = ("loop", "dm-", "md", "sr", "fd", "zd")


def collect(host: Host, now: str, paths: Iterable[str] = ()) -> dict[str, Any]:
    """Return `durable_storage`; `now` is the host's UTC time in ISO 8601.

    `paths` are databases' paths; where they really lie, links followed, comes back as `resolved`.

    Raises Unobservable only when the kernel's own tables (/proc, /sys/block) are not there: then
    nothing can be said about this machine.
    """
    disks, mounts = Disks(host), Mounts(host)
    names = [name for name in host.names("/sys/block") if not name.startswith(_NOT_DISKS)]
    return {
        "boot_id": host.read("/proc/sys/kernel/random/boot_id").strip(),
        "time": now,
        "kernel": host.read("/proc/sys/kernel/osrelease").strip(),
        "virtualization": disks.virtualization.value,
        "disks": [disks.collect(name) for name in names],
        "mounts": [mounts.collect(group) for group in _superblocks(mounts)],
        "elsewhere": mounts.elsewhere(),
        "resolved": {path: host.resolve(path) if host.exists(path) else None for path in paths},
        "fstab_error": mounts.fstab_error,
    }


def _superblocks(mounts: Mounts) -> Any:
    try:
        return mounts.superblocks()
    except ValueError as error:
        raise Unobservable(f"/proc/self/mountinfo: {error}") from error
