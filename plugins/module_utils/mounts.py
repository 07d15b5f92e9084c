# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is mounted now, what the next boot will mount, and on which disks it lies."""

from __future__ import annotations

import re
from typing import Any

from . import blockstack, ext4, fstab, mountwords
from .host import Host, Unobservable
from .mountinfo import Mount, parse_mountinfo, visible
from .observation import UNKNOWN, Observation, observe, unknown

#: File systems without a block device of their own that can still hold a database.
_DEVICELESS = {"nfs", "nfs4", "cifs", "overlay", "zfs", "ceph", "9p", "virtiofs", "glusterfs"}
#: Tag of an fstab line -> where udev keeps the links.
_BY_TAG = {"UUID": "by-uuid", "LABEL": "by-label", "PARTUUID": "by-partuuid", "PARTLABEL": "by-partlabel"}
_EXT = {"ext3", "ext4"}
#: Where units override what systemd makes of fstab (systemd.unit(5)).
_UNIT_DIRECTORIES = ("/etc/systemd/system.control", "/etc/systemd/system", "/run/systemd/system")
_UNIT_OPTIONS = re.compile(r"^\s*Options\s*=", re.M)
_ROOTFLAGS = re.compile(r"(?:^|\s)rootflags=(\S+)")


class Mounts:
    """Reads the mounted file systems of one host, one entry for each superblock."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._nodev = self._read_nodev()
        self.fstab, self.fstab_error = self._read_fstab()

    def superblocks(self) -> list[list[Mount]]:
        """Return the mounts that could hold data, grouped by superblock, in mount order.

        Raises Unobservable or ValueError when the mount table itself cannot be read.
        """
        groups: dict[str, list[Mount]] = {}
        for mount in visible(parse_mountinfo(self.host.read("/proc/self/mountinfo"))):
            if mount.fstype not in self._nodev or mount.fstype in _DEVICELESS:
                groups.setdefault(mount.device, []).append(mount)
        return [sorted(group, key=_stands_for_all) for group in groups.values()]

    def elsewhere(self) -> dict[str, str]:
        """Return {mount point: type} of the file systems that hold no data, or hold it in memory."""
        mounts = visible(parse_mountinfo(self.host.read("/proc/self/mountinfo")))
        passed = (m for m in mounts if m.fstype in self._nodev and m.fstype not in _DEVICELESS)
        return {mount.target: mount.fstype for mount in passed}

    def collect(self, group: list[Mount]) -> dict[str, Any]:
        """Return the facts of one superblock. Nothing here raises."""
        first = group[0]
        superblock, superblock_reason = self._superblock(first)
        stack = blockstack.walk(self.host, first.device)
        if stack.reason is None:
            stack = stack._replace(reason=_second_device(first, superblock))
        running = self._running(first)
        entry = self.entry(group)
        persisted = self._persisted(group, entry, superblock, superblock_reason)
        seen = {**running, **{f"persisted.{name}": value for name, value in persisted.items()}}
        seen["disks"] = Observation(
            " ".join(stack.disks) if stack.reason is None else UNKNOWN, "/sys/dev/block", stack.reason
        )
        return {
            "target": first.target,
            "targets": [mount.target for mount in group],
            "source": first.source,
            "device": first.device,
            "fstype": first.fstype,
            "barrier": running["barrier"].value,
            "data_mode": running["data_mode"].value,
            "atime": running["atime"].value,
            "options_running": [*first.options, *first.super_options],
            "options_fstab": list(entry.options) if entry else None,
            "persisted": {name: value.value for name, value in persisted.items()},
            "stack": stack.as_list(),
            "disks": list(stack.disks) if stack.reason is None else UNKNOWN,
            "external_log": _external_log(first, superblock),
            "evidence": {name: value.as_dict() for name, value in seen.items()},
        }

    def entry(self, group: list[Mount]) -> fstab.Entry | None:
        """Return the fstab entry that mounts a superblock at the first of its targets.

        A bind mount's line mounts no superblock, and a line may be about another device.
        """
        for mount in group:
            found = fstab.find(self.fstab, mount.target)
            if len(found) == 1 and self._names(found[0], mount):
                return found[0]
        return None

    def _names(self, entry: fstab.Entry, mount: Mount) -> bool:
        """Tell whether an fstab line is about the device that is mounted."""
        tag, equals, value = entry.spec.partition("=")
        link = f"/dev/disk/{_BY_TAG[tag]}/{value}" if equals and tag in _BY_TAG else entry.spec
        kernel_name = self.host.resolve(f"/sys/dev/block/{mount.device}").rpartition("/")[2]
        same_type = entry.fstype in ("auto", mount.fstype) or {entry.fstype, mount.fstype} <= _EXT
        return same_type and self.host.resolve(link) == f"/dev/{kernel_name}"

    def _read_nodev(self) -> set[str]:
        text = self.host.read("/proc/filesystems")
        fields = (line.split() for line in text.splitlines())
        return {words[1] for words in fields if len(words) == 2 and words[0] == "nodev"}

    def _read_fstab(self) -> tuple[list[fstab.Entry], str | None]:
        if not self.host.exists("/etc/fstab"):
            return [], None
        try:
            return fstab.parse(self.host.read("/etc/fstab")), None
        except (Unobservable, fstab.MalformedFstab) as error:
            return [], str(error)

    def _superblock(self, mount: Mount) -> tuple[ext4.Superblock | None, str | None]:
        if mount.fstype not in ("ext3", "ext4"):
            return None, None
        try:
            # By number: the name in the mount table may be a link that is gone.
            result = self.host.run(["dumpe2fs", "-h", f"/dev/block/{mount.device}"])
            if result.rc != 0:
                raise Unobservable(f"exit {result.rc}: {result.stderr.strip()}")
            return ext4.parse_superblock(result.stdout), None
        except (Unobservable, ValueError) as error:
            return None, f"dumpe2fs: {error}"

    def _running(self, mount: Mount) -> dict[str, Observation]:
        atime = observe("/proc/self/mountinfo", lambda: _atime(mount.options))
        if mount.fstype in ("ext3", "ext4"):
            name = self.host.resolve(f"/sys/dev/block/{mount.device}").rpartition("/")[2]
            source = f"/proc/fs/ext4/{name}/options"
            try:
                found = ext4.parse_running(self.host.read(source))
            except Unobservable as error:
                return {
                    "barrier": unknown(source, str(error)),
                    "data_mode": unknown(source, str(error)),
                    "atime": atime,
                }
            return {
                "barrier": _of(found, "barrier", source),
                # Without a journal the kernel prints no data= at all, but it prints the barrier.
                "data_mode": _of(
                    {"data_mode": "none", **found} if "barrier" in found else found, "data_mode", source
                ),
                "atime": atime,
            }
        if mount.fstype == "xfs":
            return {"barrier": self._xfs_barrier(mount), "data_mode": _NO_DATA_MODE, "atime": atime}
        reason = f"no rule for {mount.fstype} in this release"
        return {
            "barrier": unknown("file system", reason),
            "data_mode": unknown("file system", reason),
            "atime": atime,
        }

    def _xfs_barrier(self, mount: Mount) -> Observation:
        said = mountwords.fold(mount.super_options).get("barrier")
        if said:
            return Observation(said, "/proc/self/mountinfo")
        release = self.host.read("/proc/sys/kernel/osrelease").strip()
        numbers = re.match(r"(\d+)\.(\d+)", release)
        if numbers and (int(numbers.group(1)), int(numbers.group(2))) >= (4, 19):
            return Observation("on", f"kernel {release}: XFS flushes always since 4.19")
        return Observation("on", "/proc/self/mountinfo names no nobarrier")

    def _persisted(
        self,
        group: list[Mount],
        entry: fstab.Entry | None,
        superblock: ext4.Superblock | None,
        reason: str | None,
    ) -> dict[str, Observation]:
        mount = group[0]
        names = ("barrier", "data_mode", "atime")
        if self.fstab_error:
            return {name: unknown("/etc/fstab", self.fstab_error) for name in names}
        for target in (each.target for each in group):
            try:
                unit = self._unit(target)
            except Unobservable as error:
                return {name: unknown("systemd units", str(error)) for name in names}
            if unit:
                why = f"{unit} decides its options: this release does not read mount units"
                return {name: unknown(unit, why) for name in names}
            rows = [str(entry.row + 1) for entry in fstab.find(self.fstab, target)]
            if len(rows) > 1:
                why = f"lines {' and '.join(rows)} both mount {target}: leave one"
                return {name: unknown("/etc/fstab", why) for name in names}
        if entry is None:
            why = "no fstab line mounts this device there at the next boot"
            return {name: Observation("unset", "/etc/fstab", why) for name in names}
        try:
            options = (*self._rootflags(mount.target), *entry.options)
        except Unobservable as error:
            return {name: unknown("/proc/cmdline", str(error)) for name in names}
        source = f"/etc/fstab line {entry.row + 1}"
        said = mountwords.fold(options)
        atime = Observation(said.get("atime", "relatime"), source)
        if mount.fstype == "xfs":
            return {"barrier": _xfs_persisted(said, source), "data_mode": _NO_DATA_MODE, "atime": atime}
        if superblock is None:
            why = reason or f"no rule for {mount.fstype} in this release"
            barrier = Observation(said["barrier"], source) if "barrier" in said else unknown(source, why)
            return {"barrier": barrier, "data_mode": unknown(source, why), "atime": atime}
        found = ext4.persisted(superblock, options)
        source += ", superblock defaults"
        return {
            "barrier": _of(found, "barrier", source),
            "data_mode": Observation(found.get("data_mode", "none"), source),
            "atime": atime,
        }

    def _unit(self, target: str) -> str | None:
        """Return the unit, or the drop-in, that overrides fstab's options for a target."""
        for directory in _UNIT_DIRECTORIES:
            path = f"{directory}/{unit_name(target)}"
            if self.host.exists(path):
                return path
            for name in self.host.names(f"{path}.d") if self.host.exists(f"{path}.d") else ():
                if name.endswith(".conf") and _UNIT_OPTIONS.search(self.host.read(f"{path}.d/{name}")):
                    return f"{path}.d/{name}"
        return None

    def _rootflags(self, target: str) -> tuple[str, ...]:
        if target != "/":
            return ()
        found = _ROOTFLAGS.findall(self.host.read("/proc/cmdline"))
        return tuple(found[-1].split(",")) if found else ()


def _stands_for_all(mount: Mount) -> tuple[bool, bool]:
    """Sort first what a remount may go through: no read-only view of it, and all of it."""
    return mount.read_only_by_itself, mount.root != "/"


def unit_name(target: str) -> str:
    """Return the name of the systemd mount unit of a mount point (systemd.unit(5), escaping)."""
    path = "/".join(part for part in target.split("/") if part)
    if not path:
        return "-.mount"
    escaped = "".join(
        "-" if char == "/" else char if _plain(index, char) else _escaped(char)
        for index, char in enumerate(path)
    )
    return f"{escaped}.mount"


def _plain(index: int, char: str) -> bool:
    return (char.isascii() and char.isalnum()) or char in ":_" or (char == "." and index > 0)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


_NO_DATA_MODE = Observation("none", "file system", "XFS has no data= modes")


def _of(found: dict[str, str], name: str, source: str) -> Observation:
    if name in found:
        return Observation(found[name], source)
    return unknown(source, f"the file names no {name}")


def _atime(options: tuple[str, ...]) -> str:
    """The kernel prints no word for strictatime."""
    return mountwords.fold(options).get("atime", "strictatime")


def _xfs_persisted(said: dict[str, str], source: str) -> Observation:
    if "barrier" in said or "data_mode" in said:
        why = "XFS refuses barrier and data= options since kernel 4.19: the next boot would fail"
        return Observation("refused", source, why)
    return Observation("on", source)


def _external_log(mount: Mount, superblock: ext4.Superblock | None) -> str | None:
    for option in mount.super_options:
        if option.startswith(("logdev=", "rtdev=")):
            return option.partition("=")[2]
    return "external journal" if superblock and superblock.journal == "external" else None


def _second_device(mount: Mount, superblock: ext4.Superblock | None) -> str | None:
    external = _external_log(mount, superblock)
    if external:
        return f"{mount.target} also writes to {external}: this release does not follow it"
    return None
