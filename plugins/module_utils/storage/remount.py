# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Barriers of a mounted file system, changed by a remount that changes nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from ..host.mountinfo import Mount
from ..host.seam import CHANGE_TIMEOUT, ChangeFailed, Host
from . import mount_settings
from .disks import Disks

#: Superblock flags that a remount sets anew: what is not named again is taken away.
_KEPT_FLAGS = ("ro", "sync", "dirsync", "lazytime", "mand")


def set_barrier(
    host: Host, mount: Mount, value: str, atime: str | None = None, timeout: float = CHANGE_TIMEOUT
) -> None:
    """Set the barriers of a file system `on` or `off`, through one of its mounts; `atime` None leaves it.

    It flushes nothing. Raises ChangeFailed.
    """
    expect_whole(mount)
    flags = mount_settings.drop(mount.options, ["atime"])
    kept = [flag for flag in _KEPT_FLAGS if flag in mount.super_options and flag not in flags]
    if "ro" in kept:
        flags = tuple(flag for flag in flags if flag != "rw")
    barrier = mount_settings.spell("barrier", value, mount.fstype)
    words = ["remount", *flags, *kept, atime or atime_of(mount), barrier]
    _mount(host, mount, words, timeout)


def expect_whole(mount: Mount) -> None:
    """Require a mount that the file system can be remounted through. Raises ChangeFailed."""
    if mount.read_only_by_itself:
        raise ChangeFailed(
            f"{mount.target}: mounted read-only over a writable file system; a remount would make all of it"
            " read-only: mount it writable somewhere, then run again"
        )


def set_atime(host: Host, mount: Mount, atime: str) -> None:
    """Set the atime of one mount. Raises ChangeFailed."""
    # A bind remount changes this mount alone and leaves the file system's own options be.
    flags = mount_settings.drop(mount.options, ["atime"])
    _mount(host, mount, ["remount", "bind", *flags, atime], CHANGE_TIMEOUT)


def atime_of(mount: Mount) -> str:
    """Return the atime of a mount; the kernel prints no word for strictatime."""
    return mount_settings.fold(mount.options).get("atime", "strictatime")


def expect_nothing_cached(host: Host, target: str, names: Iterable[str]) -> None:
    """Require of disks that take no flush that they need none, by their own word. Raises ChangeFailed."""
    asked = list(names)
    if not asked:
        return
    reader = Disks(host)
    for name in asked:
        seen = reader.collect(name)["write_cache"]["device"]
        if seen not in ("disabled", "none"):
            raise ChangeFailed(
                f"{target}: barriers are on again, but the kernel cache mode of {name} is write through, so"
                f" it gets no flush, while its cache is {seen}: raise the cache mode (write_cache, state keep)"
            )


def _mount(host: Host, mount: Mount, words: Iterable[str], timeout: float) -> None:
    # Without --options-source=disable, mount(8) adds what fstab says and drops what it does not:
    # a read-only, nodev mount would come back writable. So every flag in force is named again.
    argv = ["mount", "-o", ",".join(words), "--options-source=disable", mount.source, mount.target]
    host.change(argv, timeout)
