# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes since a process started on the path to a file: the file, directories, links, mounts, the clock.

A file that is older than the process is what the process read, only if it is still the same file. Renaming a directory
sets its ctime on ext4, XFS, Btrfs and tmpfs, so each component is compared, and systemd reports when mounts came.
Three things are not found, because no part of the kernel records them: two steps of the clock that cancel each other
out, a mount that hid the file at the start and is gone with its unit, and a write through a shared mapping of the file
whose page was already dirty at the start. The kernel writes dirty pages back after about 35 seconds.
"""

from __future__ import annotations

import calendar
import posixpath
import re
import stat
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..host.mountinfo import Mount, parse_mountinfo
from ..host.process_context import carrier, cgroup_of, translate, unit_of
from ..host.processes import TICKS, Process, booted_by_clock, output, user_of
from ..host.seam import Host, Status, Unobservable
from ..storage.mount_units import unit_name

_START_FIELD = 19
#: Directories of the Filesystem Hierarchy Standard in which packages add and remove names all the time. Only root can
#: exchange them, and then exchanges the system. Everything below them is compared.
_SYSTEM = frozenset(
    "/ /etc /etc/opt /home /opt /run /srv /usr /usr/local /usr/local/etc /var /var/lib /var/opt".split()
)
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
#: File systems whose ctime the kernel of this host sets. A server of FUSE, NFS, CIFS or 9p can report any.
_LOCAL = frozenset(
    "bcachefs btrfs devtmpfs erofs ext2 ext3 ext4 f2fs overlay ramfs squashfs tmpfs xfs zfs".split()
)
#: They set no ctime when a file is written through a shared mapping.
_IN_MEMORY = frozenset({"devtmpfs", "ramfs", "tmpfs"})
_PROPERTIES = (
    "Id",
    "ActiveState",
    "ActiveEnterTimestampMonotonic",
    "InactiveEnterTimestampMonotonic",
    "InactiveExitTimestamp",
    "InactiveExitTimestampMonotonic",
)
_MANAGER = ("UserspaceTimestamp", "UserspaceTimestampMonotonic")
#: The words of systemd are those of this zone.
_SHOW = ("env", "TZ=UTC", "systemctl", "show")
_WALL = re.compile(r"[A-Z][a-z]{2} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC", re.ASCII)
_MICROSECONDS = re.compile(r"\d{1,18}", re.ASCII)
#: Seconds by which a clock that was never set seems to have been: systemd prints whole ones.
_HALF, _TOLERANCE = 0.5, 1.5


class Start(NamedTuple):
    """When a process started: `ticks` since the boot (proc_pid_stat(5)), `at` in seconds since the epoch by the clock of
    now, and `boot`: when that clock was at the boot."""

    pid: int
    ticks: str
    at: float
    boot: float

    @property
    def up(self) -> float:
        """Seconds since the boot."""
        return int(self.ticks) / TICKS


class _Clock(NamedTuple):
    """What two clocks showed at one moment: seconds since the epoch, and since the boot."""

    wall: float
    up: float


def start_of(host: Host, process: Process) -> Start:
    """Return when a process started, as good as :func:`booted_by_clock`. Raises Unobservable.

    It is in the clock of now: :func:`change` compares that clock with the one at the start.
    """
    source = f"/proc/{process.pid}/stat"
    try:
        ticks = host.read(source).rpartition(")")[2].split()[_START_FIELD]
        # Too early at most: no file that was exchanged after the start is older.
        boot = booted_by_clock(host)
        return Start(process.pid, ticks, boot + int(ticks) / TICKS, boot)
    except (IndexError, ValueError) as error:
        raise Unobservable(f"{source}: when it began is unknown: {error}") from error


def change(host: Host, path: str, start: Start, root: str = "") -> str:
    """Return what may have changed since a process started, so that it read another file at a path; '' for nothing.

    A restart of the process helps against each of these. Raises Unobservable if no evidence is available.
    """
    passed, end = _way(host, path, root)
    late = next((part for part in passed if _is_late(host, part, end, passed, start)), None)
    if late is not None:
        what = "was changed" if late == path else f"may not be the same file: {late} was changed"
        return f"{path} {what} after the process started"
    theirs = _mounts(host, str(start.pid))
    _expect_ctime(path, end, passed, theirs)
    _expect_same_view(host, path, end, passed, start, root)
    unit = unit_of(cgroup_of(host.read(f"/proc/{start.pid}/cgroup"))) or ""
    mounts = {part: unit_name(part) for part in passed if part != "/"}
    shown = _shown(host, filter(None, (unit, *mounts.values())))
    moved = _mounted(host, path, start, theirs, mounts, shown)
    return moved or _set_clock(host, start, shown.get(unit, {}))


def _way(host: Host, path: str, root: str) -> tuple[dict[str, Status], str]:
    """Return what is passed on the way to a file, and where it ends: of a missing file, its directory. Raises
    Unobservable."""
    where = host.locate(path, root)
    if where.status is not None:
        return host.way(path, root), where.path
    directory = host.locate(posixpath.dirname(path), root)
    if directory.status is None:
        raise Unobservable(f"{path}: neither it nor its directory is there")
    return host.way(posixpath.dirname(path), root), directory.path


def _is_late(host: Host, part: str, end: str, passed: Mapping[str, Status], start: Start) -> bool:
    """Return whether a component changed after the start, so that it may be another one since.

    Owner and mode count: the process may have been unable to read it. Raises Unobservable.
    """
    status = passed[part]
    if status.changed < start.at:
        return False
    if part == end or not stat.S_ISDIR(status.mode):
        return True
    if part in _SYSTEM and status.user == 0 and not status.mode & _OTHERS:
        return False
    # A server adds names to its own directory. The directory is the same one if the one above is unchanged, and names
    # are all that changed if its content did last.
    above = passed.get(posixpath.dirname(part))
    is_own = status.user == int(user_of(host, start.pid))
    return not (is_own and status.modified == status.changed and above and above.changed < start.at)


def _expect_ctime(path: str, end: str, passed: Mapping[str, Status], mounts: list[Mount]) -> None:
    """Raise Unobservable unless each change of what is passed on the way sets its ctime."""
    for part, status in passed.items():
        mount = carrier(part, mounts)
        kind = mount.fstype if mount else "of a type that is unknown"
        if kind not in _LOCAL:
            raise Unobservable(
                f"{path}: when {part} was changed is unknown: observed file system {kind}, expected one whose ctime the"
                " kernel of this host sets. Fix: move it to a local disk"
            )
        if part == end and kind in _IN_MEMORY and stat.S_ISREG(status.mode) and _is_of_others(status):
            raise Unobservable(
                f"{path}: when it was changed is unknown: {kind} does not record writes through a mapping, and other users"
                " than root may write it. Fix: move it to a disk"
            )


def _is_of_others(status: Status) -> bool:
    return status.user != 0 or bool(status.mode & _OTHERS)


def _expect_same_view(
    host: Host, path: str, end: str, passed: Mapping[str, Status], start: Start, root: str
) -> None:
    """Raise Unobservable if a process in another mount namespace has another file there."""
    own = f"/proc/{start.pid}"
    if root or host.link(f"{own}/ns/mnt") == host.link("/proc/self/ns/mnt"):
        return
    status, ours = host.locate(end, f"{own}/root").status, passed[end]
    if status is None or (status.device, status.inode) != (ours.device, ours.inode):
        raise Unobservable(f"{path}: the process has another file there, in its own mount namespace")


def _shown(host: Host, units: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return what systemd reports of units, by name. Raises Unobservable."""
    names = list(units)
    if not names:
        return {}
    text = output(host, [*_SHOW, f"--property={','.join(_PROPERTIES)}", "--", *names])
    blocks = (_fields(block) for block in text.split("\n\n"))
    return {fields["Id"]: fields for fields in blocks if "Id" in fields}


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.split("\n"))
    return {name: value for name, equals, value in pairs if equals}


def _mounted(
    host: Host,
    path: str,
    start: Start,
    theirs: list[Mount],
    units: Mapping[str, str],
    shown: Mapping[str, Mapping[str, str]],
) -> str:
    """Return which mount on the way came or went after the start, '' for none. Raises Unobservable."""
    is_ours = host.link(f"/proc/{start.pid}/ns/mnt") == host.link("/proc/self/ns/mnt")
    ours = theirs if is_ours else _mounts(host, "self")
    known = {(mount.device, mount.root, mount.target) for mount in ours}
    for part, unit in units.items():
        there = [mount for mount in theirs if mount.target == part]
        fields = shown.get(unit, {})
        if _seconds(fields, "InactiveEnterTimestampMonotonic") > start.up:
            return f"{path} may not be the same file: {part} was unmounted after the process started"
        for mount in there:
            is_known = (mount.device, mount.root, mount.target) in known
            if not is_known and translate(part, theirs, ours) == part:
                continue  # systemd's sandbox shows a directory at its own place.
            if not is_known or len(there) > 1 or fields.get("ActiveState") != "active":
                raise Unobservable(f"{path}: when {part} was mounted is unknown: systemd has no record of it")
            if _seconds(fields, "ActiveEnterTimestampMonotonic") > start.up:
                return f"{path} may not be the same file: {part} was mounted after the process started"
    return ""


def _mounts(host: Host, process: str) -> list[Mount]:
    source = f"/proc/{process}/mountinfo"
    try:
        return parse_mountinfo(host.read(source))
    except ValueError as error:
        raise Unobservable(f"{source}: {error}") from error


def _set_clock(host: Host, start: Start, unit: Mapping[str, str]) -> str:
    """Return that the clock was set after the start, '' if it was not. Raises Unobservable."""
    then = _clock(unit, "InactiveExitTimestamp", "InactiveExitTimestampMonotonic")
    if then is None or then.up > start.up + _HALF:
        then = _clock(_fields(output(host, [*_SHOW, f"--property={','.join(_MANAGER)}"])), *_MANAGER)
    if then is None:
        raise Unobservable(
            "whether the clock was set since the process started is unknown: systemd does not report it"
        )
    moved = start.boot - (then.wall - then.up) - _HALF
    if abs(moved) <= _TOLERANCE:
        return ""
    return f"the clock was set by about {moved:.0f} s after the process started, or the host was suspended"


def _clock(fields: Mapping[str, str], wall: str, up: str) -> _Clock | None:
    """Return two clocks of one moment, None if systemd does not report them."""
    wall_time, seconds = _WALL.fullmatch(fields.get(wall, "")), _seconds(fields, up)
    if not wall_time or not seconds:
        return None
    return _Clock(calendar.timegm(time.strptime(wall_time[1], "%Y-%m-%d %H:%M:%S")), seconds)


def _seconds(fields: Mapping[str, str], name: str) -> float:
    """Return a time since the boot, 0 for what was so before systemd or never."""
    text = fields.get(name, "")
    return int(text) / 1e6 if _MICROSECONDS.fullmatch(text) else 0.0
