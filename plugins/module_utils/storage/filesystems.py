# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The barriers of each file system, and the devices that it writes to."""

from __future__ import annotations

from ..facts.classes import WriteHoleFacts
from ..host import kernel_version
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN, Because, Observation, caused, unknown
from ..host.seam import Host, Unobservable
from . import ext4, mount_settings, nfs, zfs
from .blockstack import Blocks

#: ext2, ext3 and ext4 are all the ext4 driver's in kernels of today.
EXT = ("ext2", "ext3", "ext4")
#: File systems without a block device of their own that can still hold a database.
DEVICELESS = (*nfs.TYPES, "cifs", "smb3", "overlay", "zfs", "ceph", "9p", "virtiofs", "glusterfs")
#: fs/jfs issues no flush and no FUA write, for its journal as little as for an fsync (source; counted on 6.1).
JFS = "jfs"
#: Types without a rule that have a cause of their own.
_NO_RULE = ("cifs", "overlay", "raw")
#: The kernel cuts the name of a thread short.
_LONGEST_COMMAND = 15
_BESIDE = ("logdev", "rtdev")


class FileSystems:
    """Asks the file systems of one host."""

    def __init__(self, host: Host, blocks: Blocks) -> None:
        self.host = host
        self.blocks = blocks

    def superblock(self, mount: Mount) -> tuple[ext4.Superblock | None, str | None]:
        """Return what an ext superblock says, or why it could not be read; neither for others."""
        if mount.fstype not in EXT:
            return None, None
        try:
            # By number: the name in the mount table may be a link that is gone. A container may have
            # no such link.
            node = f"/dev/block/{mount.device}"
            if not self.host.exists("/dev/block"):
                node = f"/dev/{self.blocks.name_of(mount.device)}"
            result = self.host.run([*ext4.SHOW, node])
            if result.rc != 0:
                raise Unobservable(f"exit {result.rc}: {' '.join(result.stderr.split())}")
            return ext4.parse_superblock(result.stdout), None
        except (Unobservable, ValueError) as error:
            return None, f"superblock: {error}"

    def running(self, mount: Mount) -> dict[str, Observation]:
        """Return `barrier` and `data_mode` as they are in force."""
        if mount.fstype in EXT:
            return self._ext(mount)
        if nfs.is_nfs(mount.fstype):
            return nfs.running(mount)
        if mount.fstype == "xfs":
            return {"barrier": self._xfs_barrier(mount), "data_mode": NO_DATA_MODE}
        if mount.fstype == "btrfs":
            reported = mount_settings.fold(mount.super_options)
            barrier = mount_settings.observed(reported, "barrier", "on", "/proc/self/mountinfo")
            return {"barrier": barrier, "data_mode": NO_DATA_MODE}
        if mount.fstype == "jfs":
            return {
                "barrier": caused("off", "file system", JFS),
                "data_mode": NO_DATA_MODE,
            }
        if mount.fstype == "zfs":
            return {"barrier": zfs.barrier(self.host, mount.source), "data_mode": NO_DATA_MODE}
        if mount.fstype == "overlay" and "volatile" in mount.super_options:
            barrier = caused("off", "/proc/self/mountinfo", "overlay_volatile")
            return {"barrier": barrier, "data_mode": _no_rule(mount)}
        return {"barrier": _no_rule(mount), "data_mode": _no_rule(mount)}

    def devices(
        self, mount: Mount, superblock: ext4.Superblock | None, why: str | None = None
    ) -> tuple[list[str], list[str], list[Because]]:
        """Return the numbers of all devices that a file system writes to, the names of those other than
        its main one (journal, log, real-time), and the causes for what is unknown of them.

        `why` says why there is no superblock, where one is wanted."""
        if mount.fstype == "btrfs":
            try:
                return self._btrfs_members(mount), [], []
            except Unobservable as error:
                return [], [], [_members_unread(mount, error)]
        if mount.fstype == "zfs":
            return self._zfs_leaves(mount)
        numbers, beside = [mount.device], []
        causes: list[Because] = []
        for option in mount.super_options:
            name, _equals, path = option.partition("=")
            if name in _BESIDE:
                beside.append(path)
                number = self.blocks.number_of(path)
                if number:
                    numbers.append(number)
                else:
                    causes.append(_no_member(mount, path))
        if superblock and superblock.journal == "external":
            try:
                journal = self._journal(mount)
                beside.append(f"/dev/{journal}")
                numbers.append(self.host.read(f"/sys/class/block/{journal}/dev").strip())
            except Unobservable as error:
                causes.append(Because("journal_unread", {"target": mount.target, "error": str(error)}))
        elif superblock is None and mount.fstype in EXT:
            causes.append(Because("superblock_unread", {"target": mount.target, "error": why or ""}))
        return numbers, beside, causes

    def write_hole(self, mount: Mount) -> list[WriteHoleFacts]:
        """Return the parts of a file system's own RAID that have the write hole."""
        if mount.fstype != "btrfs":
            return []
        filesystem = self._btrfs(mount)
        kinds = [
            (chunk, level)
            for chunk in ("data", "metadata", "system")
            for level in ("raid5", "raid6")
            if filesystem and self.host.exists(f"{filesystem}/allocation/{chunk}/{level}")
        ]
        return [{"maker": "file_system", "name": chunk, "level": level} for chunk, level in kinds]

    def _journal(self, mount: Mount) -> str:
        """Return the kernel name of the device that an external journal is on: only the name of the
        thread that writes it shows it. Raises Unobservable."""
        name = self.blocks.name_of(mount.device)
        thread = self.host.read(f"/sys/fs/ext4/{name}/journal_task").strip()
        command = self.host.read(f"/proc/{thread}/comm").strip()
        journal = command[len("jbd2/") :]
        if len(command) < _LONGEST_COMMAND:
            return journal
        names = [name for name in self.host.names("/proc/fs/jbd2") if name.startswith(journal)]
        names = [name for name in names if self.host.exists(f"/sys/class/block/{name}")]
        if len(names) != 1:
            raise Unobservable(f"{command}, cut short, may be any of {', '.join(names) or 'none'}")
        return names[0]

    def _ext(self, mount: Mount) -> dict[str, Observation]:
        source = f"/proc/fs/ext4/{self.blocks.name_of(mount.device)}/options"
        try:
            found = ext4.parse_running(self.host.read(source))
        except Unobservable as error:
            return {"barrier": unknown(source, str(error)), "data_mode": unknown(source, str(error))}
        if "barrier" in found:
            # Without a journal the kernel prints no data= at all, but it prints the barrier.
            found = {"data_mode": "none", **found}
        return {name: _of(found, name, source) for name in ("barrier", "data_mode")}

    def _xfs_barrier(self, mount: Mount) -> Observation:
        reported = mount_settings.fold(mount.super_options)
        if "barrier" in reported:
            return mount_settings.observed(reported, "barrier", "", "/proc/self/mountinfo")
        release = self.host.read("/proc/sys/kernel/osrelease").strip()
        if kernel_version.version(release) >= (4, 19):
            return Observation("on", f"kernel {release}")
        return Observation("on", "/proc/self/mountinfo")

    def _zfs_leaves(self, mount: Mount) -> tuple[list[str], list[str], list[Because]]:
        try:
            paths, logs = zfs.leaves(self.host, mount.source)
        except Unobservable as error:
            return [], [], [_members_unread(mount, error)]
        numbers = {path: self.blocks.number_of(path) for path in paths}
        missing = [_no_member(mount, path) for path in numbers if not numbers[path]]
        return [number for number in numbers.values() if number], logs, missing

    def _btrfs_members(self, mount: Mount) -> list[str]:
        """Return the numbers of all devices of a btrfs. Raises Unobservable."""
        filesystem = self._btrfs(mount)
        if filesystem is None:
            raise Unobservable("/sys/fs/btrfs does not name them")
        names = self.host.names(f"{filesystem}/devices")
        return [self.host.read(f"/sys/class/block/{name}/dev").strip() for name in names]

    def _btrfs(self, mount: Mount) -> str | None:
        """Return the directory of a mounted btrfs below /sys/fs: the one that has its source."""
        name = self.host.resolve(mount.source).rpartition("/")[2]
        try:
            candidates = [f"/sys/fs/btrfs/{entry}" for entry in self.host.names("/sys/fs/btrfs")]
        except Unobservable:
            return None
        return next((path for path in candidates if self.host.exists(f"{path}/devices/{name}")), None)


#: The data mode of a file system that has no such option.
NO_DATA_MODE = Observation("none", "file system")


def _members_unread(mount: Mount, error: Unobservable) -> Because:
    return Because("members_unread", {"device": mount.source, "error": str(error)})


def _no_member(mount: Mount, path: str) -> Because:
    return Because("no_member", {"target": mount.target, "path": path})


def _no_rule(mount: Mount) -> Observation:
    if mount.fstype in _NO_RULE:
        return caused(UNKNOWN, "file system", mount.fstype)
    return caused(UNKNOWN, "file system", "no_rule", fstype=mount.fstype)


def _of(found: dict[str, str], name: str, source: str) -> Observation:
    if name in found:
        return mount_settings.observed(found, name, "", source)
    return caused(UNKNOWN, source, "not_in_file", setting=name)
