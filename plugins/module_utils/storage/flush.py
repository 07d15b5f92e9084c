# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flushes that the kernel counted, because a requested flush alone proves nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from ..host import our_paths
from ..host.mountinfo import Mount
from ..host.seam import ChangeFailed, Host, Unobservable
from . import disk_kinds, flush_trace

#: One file for each disk that is owed a flush. A run that is killed between making a disk
#: flushable and flushing it leaves commits in the cache and settings that look right: this stays
#: behind and says so. It goes with the boot, like the cache's content.
OWED = our_paths.PENDING_FLUSHES
#: Where SCSI, SATA and NVMe disks have a name that stays if the kernel's changes. To read these sends the disk nothing.
_WWIDS = ("device/wwid", "wwid")
#: Where a disk's stat file has them, counted from 0.
_FLUSHES = 15


def owe(host: Host, name: str) -> None:
    """Note, before a disk is made to flush again, that its cache may hold acknowledged commits."""
    host.write_file(f"{OWED}/{name}", _wwid(host, name).encode("utf-8", "surrogateescape"))


def is_owed(host: Host, name: str) -> bool:
    """Return whether a run that was interrupted left a flush pending."""
    return bool(_notes(host, name))


def flush_mount(host: Host, mount: Mount, disks: Iterable[str]) -> None:
    """Bring what a file system holds back onto the medium of each disk below it.

    Turning barriers on sends no flush: neither at the remount nor later when idle.
    Raises ChangeFailed when a disk's flush counter did not rise.
    """
    host.sync_mount(mount)
    for name in disks:
        flush_disk(host, name)


def flush_disk(host: Host, name: str) -> None:
    """Flush one disk's cache and see its flush counter rise.

    A disk whose kernel cache mode is rightly write through takes no flush and needs
    none, unless one is pending: what was written while its cache was on. Raises ChangeFailed.
    """
    if not takes_flushes(host, name):
        if is_owed(host, name):
            raise ChangeFailed(
                f"{name}: a flush is pending: observed the kernel cache mode write through, with which none is sent,"
                " expected write back. Fix: run harden_db"
            )
        return
    with counted(host, name) as count:
        # fsync(2) of the block device itself: flushes even when no file system has anything to write.
        host.change(["sync", f"/dev/{name}"])
        if count() < 1:
            raise ChangeFailed(
                f"{name}: observed no flush counted during a sync; expected one;"
                " the disk's cache may still hold commits: check the kernel log for this disk"
            )
    _settle(host, name)


@contextlib.contextmanager
def counted(host: Host, name: str) -> Iterator[Callable[[], int]]:
    """Count the flushes of a disk; the yielded function returns their number since. Raises ChangeFailed.

    By the kernel's counter, or where it has none by a trace.
    """
    paths = queues(host, name)
    if all(len(_stat(host, path)) > _FLUSHES for path in paths):
        before = flushes(host, name)
        yield lambda: flushes(host, name) - before
    else:
        with flush_trace.traced(host, paths, f"{name}: {_without(host)}") as count:
            yield count


def _settle(host: Host, name: str) -> None:
    """Remove the note of a pending flush. Its only reason is a flush that was counted."""
    for note in _notes(host, name):
        host.remove_file(f"{OWED}/{note}")


def _notes(host: Host, name: str) -> list[str]:
    """Return the notes about a disk: that of its kernel name, if no other disk had it, and that of a name which it had before.

    A disk whose link was lost can come back with another kernel name, and with what its cache held.
    """
    try:
        names = host.names(OWED) if host.exists(OWED) else []
    except Unobservable:
        names = [name]
    wwid = _wwid(host, name) if names else ""
    return [note for note in names if _is_about(host, note, name, wwid)]


def _is_about(host: Host, note: str, name: str, wwid: str) -> bool:
    """Return whether a note is about the disk that has a kernel name and a WWID, '' for none, now."""
    try:
        noted = host.read(f"{OWED}/{note}")
    except Unobservable:
        noted = ""
    if note == name:
        return not noted or not wwid or noted == wwid
    # Two disks with one WWID each have a note by their kernel names.
    return bool(wwid) and noted == wwid and _wwid(host, note) != wwid


def _wwid(host: Host, name: str) -> str:
    for attribute in _WWIDS:
        try:
            found = host.read(f"/sys/block/{name}/{attribute}").strip()
        except Unobservable:
            continue
        if found:
            return found
    return ""


def queues(host: Host, name: str) -> list[str]:
    """Return the kernel names of the queues that a flush of a disk goes through: its own, and with NVMe's
    native multipath those of the hidden devices behind it."""
    if not name.startswith("nvme"):
        return [name]
    try:
        return [name, *disk_kinds.nvme_paths(host.names("/sys/block")).get(name, [])]
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def takes_flushes(host: Host, name: str) -> bool:
    """Return whether the kernel cache mode of a disk is write back, so that it is sent flushes, by each path."""
    return not unflushed(host, name)


def unflushed(host: Host, name: str) -> list[str]:
    """Return those of the queues of a disk that the kernel drops flushes to."""
    return [queue for queue in queues(host, name) if not _is_flushed(host, queue)]


def flushes(host: Host, name: str) -> int:
    """Return how many flushes the kernel has sent to a disk: field 16 of its stat file, from Linux 5.5.

    Of a disk with several paths: on all of them, because the kernel counts them there. Raises ChangeFailed.
    """
    return sum(_count(host, queue) for queue in queues(host, name))


def _is_flushed(host: Host, name: str) -> bool:
    observed = _read(host, f"/sys/block/{name}/queue/write_cache").strip()
    if observed not in ("write back", "write through"):
        raise ChangeFailed(
            f"{name}: queue/write_cache: observed {observed!r}, expected write back or write through"
        )
    return observed == "write back"


def _count(host: Host, name: str) -> int:
    fields = _stat(host, name)
    if len(fields) <= _FLUSHES:
        raise ChangeFailed(f"{name}: {_without(host)}")
    return int(fields[_FLUSHES])


def _stat(host: Host, name: str) -> list[str]:
    return _read(host, f"/sys/block/{name}/stat").split()


def _without(host: Host) -> str:
    release = _read(host, "/proc/sys/kernel/osrelease").strip()
    return f"kernel {release} counts no flushes of disks, as Linux 5.5 and later do"


def _read(host: Host, path: str) -> str:
    try:
        return host.read(path)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
