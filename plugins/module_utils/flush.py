# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flushes that are counted, because a flush that was only asked for proves nothing."""

from __future__ import annotations

from collections.abc import Iterable

from .host import ChangeFailed, Host, Unobservable

#: One file for each disk that is owed a flush. A run that is killed between making a disk
#: flushable and flushing it leaves commits in the cache and settings that look right: this stays
#: behind and says so. It goes with the boot, like the cache's content.
OWED = "/run/durable-dbhost/flush-owed"


def owe(host: Host, name: str) -> None:
    """Note, before a disk is made to flush again, that its cache may hold acknowledged commits."""
    host.write_file(f"{OWED}/{name}", b"")


def is_owed(host: Host, name: str) -> bool:
    """Tell whether a run that did not come to its end left a flush owed."""
    return host.exists(f"{OWED}/{name}")


def flush_mount(host: Host, target: str, disks: Iterable[str]) -> None:
    """Bring what a file system holds back onto the medium of each disk below it.

    Turning barriers on flushes nothing by itself: not at the remount, and not later when idle.
    Raises ChangeFailed when a disk's flush counter did not rise.
    """
    host.change(["sync", "--file-system", target])
    for name in disks:
        flush_disk(host, name)


def flush_disk(host: Host, name: str) -> None:
    """Flush one disk's cache and see its flush counter rise.

    A disk of which the kernel believes, rightly, that it caches nothing takes no flush and needs
    none. Raises ChangeFailed.
    """
    if not takes_flushes(host, name):
        return
    before = flushes(host, name)
    # fsync(2) of the block device itself: flushes even when no file system has anything to write.
    host.change(["sync", f"/dev/{name}"])
    after = flushes(host, name)
    if after <= before:
        raise ChangeFailed(
            f"{name}: seen {after} flushes before and after a sync; wanted one more;"
            " the disk's cache may still hold commits: look at the kernel log for this disk"
        )
    settle(host, name)


def settle(host: Host, name: str) -> None:
    """Take the note away that a disk is owed a flush."""
    if is_owed(host, name):
        host.remove_file(f"{OWED}/{name}")


def takes_flushes(host: Host, name: str) -> bool:
    """Tell whether the kernel believes that a disk caches, and so passes flushes on to it."""
    seen = _read(host, f"/sys/block/{name}/queue/write_cache").strip()
    if seen not in ("write back", "write through"):
        raise ChangeFailed(f"{name}: queue/write_cache: seen {seen!r}, wanted write back or write through")
    return seen == "write back"


def flushes(host: Host, name: str) -> int:
    """Return how many flushes the kernel has sent to a disk (field 16 of its stat file)."""
    fields = _read(host, f"/sys/block/{name}/stat").split()
    if len(fields) < 16:
        raise ChangeFailed(f"{name}: its stat file counts no flushes; wanted kernel 5.5 or later")
    return int(fields[15])


def _read(host: Host, path: str) -> str:
    try:
        return host.read(path)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
