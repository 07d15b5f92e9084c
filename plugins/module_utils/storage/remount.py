# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Barriers of a mounted file system, and caches below it that take no flush."""

from __future__ import annotations

from collections.abc import Iterable

from ..host.mountinfo import Mount
from ..host.seam import CHANGE_TIMEOUT, ChangeFailed, Host
from . import mount_settings
from .disks import Disks


def set_barrier(host: Host, mount: Mount, value: str, timeout: float = CHANGE_TIMEOUT) -> None:
    """Set the barriers of a file system `on` or `off`, through one of its mounts. Flushes nothing.

    Raises ChangeFailed.
    """
    host.set_mount_options(mount, [mount_settings.spell("barrier", value, mount.fstype)], timeout)


def expect_nothing_cached(host: Host, target: str, names: Iterable[str]) -> None:
    """Require of disks that take no flush that they need none, by their own word. Raises ChangeFailed."""
    requested = list(names)
    if not requested:
        return
    reader = Disks(host)
    for name in requested:
        observed = reader.collect(name)["write_cache"]["device"]
        if observed not in ("disabled", "none"):
            raise ChangeFailed(
                f"{target}: barriers are on again, but the kernel cache mode of {name} is write through, so"
                f" it gets no flush, while its cache is {observed}: raise the cache mode (write_cache, state keep)"
            )
