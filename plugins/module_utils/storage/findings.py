# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of findings about disks, layers and mounts. Data: the policy decides which of them a host has."""

from __future__ import annotations

from ..host import our_paths
from ..rows import FIX_READ_ERROR, MOVE, RUN, Kind

BARRIER_OFF = Kind(
    "risk.barrier_off",
    "at_risk",
    "commits since the last flush on {disk} can be lost: {mount} is mounted without barriers",
    "remove nobarrier and barrier=0 from the options of {mount}, then unmount and mount it with its databases down, or"
    " reboot",
)
#: Of file systems without an option for barriers.
NO_BARRIERS = {
    "jfs": Kind(
        "risk.barrier_off.jfs",
        "at_risk",
        "commits since the last flush on {disk} can be lost: JFS, which is mounted at {mount}, sends no flush",
        "move the data to ext4 or XFS: no option of JFS changes this",
    ),
    "zfs": Kind(
        "risk.barrier_off.zfs",
        "at_risk",
        "commits since the last flush on {disk} can be lost: ZFS sends no flush for {mount}",
        "set sync=standard for the dataset of {mount} (zfs set), and 0 for the module's parameters zfs_nocacheflush and"
        " zil_nocacheflush",
    ),
}
FLUSH_PENDING = Kind(
    "risk.flush_pending",
    "at_risk",
    "commits since the last flush on {disk} can be lost: a run ended before it flushed that disk",
    RUN,
)
RAID_CACHE = Kind("risk.raid_cache", "at_risk", "commits on {disk} can be lost: {cause}", "{cure}")
WRITE_THROUGH = Kind(
    "risk.write_through",
    "at_risk",
    "commits since the last flush on {disk} can be lost: its kernel cache mode is write through, so the kernel never flushes it",
    RUN,
)
FLUSH_BLOCKED = Kind(
    "risk.flush_blocked",
    "at_risk",
    "commits since the last flush on {disk} can be lost: {layer} drops flushes",
    "reboot",
)
#: Of a layer that the initramfs makes: a reboot makes it over the same cache that is off.
FLUSH_BLOCKED_EARLY = Kind(
    "risk.flush_blocked.initramfs",
    "at_risk",
    FLUSH_BLOCKED.says,
    f"add {our_paths.CACHE_RULES} and the programs that it runs to the initramfs, then reboot",
)
DRBD = Kind(
    "risk.drbd",
    "at_risk",
    "commits since the last flush on {disk} can be lost: {layer} (DRBD) is set to {setting}",
    "remove disk-flushes no and md-flushes no from the resource and from common in /etc/drbd.d and run drbdadm adjust"
    " RESOURCE, or run harden_db with durable_profile: strict",
)
#: Without those options a write ordering comes of what lies below: no option changes it.
DRBD_ORDERING = Kind(
    "risk.drbd.write_ordering", "at_risk", DRBD.says, "run harden_db with durable_profile: strict"
)
_ADD_JOURNAL = "--readonly, --manage --add-journal UNUSED-DEVICE and --readwrite"
PARTIAL_PARITY_LOG = Kind(
    "risk.partial_parity_log",
    "at_risk",
    "commits can be acknowledged before {disk} has flushed them: {layer} has a partial parity log",
    # Without the last command the array stays read-only.
    "with /dev/{layer} unused run mdadm on it with --grow --consistency-policy=resync,"
    f" {_ADD_JOURNAL}, or set durable_profile: strict",
)
DATA_IN_MEMORY = Kind(
    "risk.data_in_memory",
    "at_risk",
    "all commits of {engine} are lost at a power cut or a reboot: {place}, which is in memory",
    "move the data to a file system on a disk",
)

FLUSH_NOT_SHOWN = Kind(
    "requirement.device_obeys",
    "unverified",
    "this host cannot verify that the disk keeps acknowledged writes at a power cut",
    "{where}, then attest {claims}",
)
TOOL_MISSING = Kind(
    "requirement.device_obeys.tool_missing",
    "unverified",
    FLUSH_NOT_SHOWN.says,
    "install {tool} on this host, or attest {claims}",
)
NOT_KEPT = Kind(
    "requirement.device_obeys.memory",
    "unverified",
    FLUSH_NOT_SHOWN.says,
    "move the data to a persistent disk",
)
VOLUME_LOSES = Kind(
    "requirement.raid_volume",
    "unverified",
    "{cause}",
    "{cure}, or attest power_loss_protection for {id}",
)
#: No attestation counts: the controller reports that it loses acknowledged writes now, or the volume has no id.
VOLUME_EXPOSED = Kind("requirement.raid_volume.exposed", "unverified", "{cause}", "{cure}")
OVERRIDE = Kind(
    "requirement.override_attested",
    "blocked",
    "overrides make this host less safe than its profile",
    "remove the override from durable_overrides or durable_mount_profiles, or attest {claims}",
)
DISK_LASTS = Kind(
    "requirement.disk_lasts", "blocked", "data on {disk} {when}", "move the data to a persistent disk"
)
_HOLE = "a crash between the writes of data and of parity can cost older data when a disk fails later"
WRITE_HOLE = {
    "md": Kind(
        "requirement.no_write_hole.md",
        "blocked",
        _HOLE,
        "stop all use of /dev/{name_of}, run mdadm on it with --grow --bitmap=none,"
        f" {_ADD_JOURNAL}, or move the data to RAID 1 or 10",
    ),
    "dm": Kind(
        "requirement.no_write_hole.dm",
        "blocked",
        _HOLE,
        "move the data to a mirror (LVM: --type raid1 or raid10), or to an md array with a journal (mdadm --add-journal)",
    ),
    "file_system": Kind(
        "requirement.no_write_hole.btrfs",
        "blocked",
        _HOLE,
        "convert it to a mirror: btrfs balance start -dconvert=raid1 -mconvert=raid1 {argument}",
    ),
}
SNAPSHOT_IN_MEMORY = Kind(
    "requirement.layer_lasts",
    "blocked",
    "the snapshot keeps its changes in memory: they are lost at a power cut",
    "move the data of {mount} to a volume that is not such a snapshot",
)
TAGS_APART = Kind(
    "requirement.tags_whole",
    "blocked",
    "without journal and bitmap a crash between the writes of a block and of its tag makes the block unreadable",
    "remove --integrity-no-journal from what opens {layer}, or mode=direct from its line in /etc/integritytab, then close and"
    " open it with its databases down",
)
NO_COPY = Kind(
    "requirement.replica_awaited",
    "blocked",
    "DRBD acknowledges a write before a peer has it: when a peer takes over, acknowledged commits are lost",
    "set protocol C in the net section in /etc/drbd.d on each node, then run drbdadm adjust RESOURCE there",
)
NO_COPY_LATER = Kind(
    "requirement.replica_awaited.later",
    "blocked",
    "by its configuration DRBD will acknowledge a write before a peer has it, from the next boot or drbdadm adjust on",
    NO_COPY.fix,
)
DRBD_UNFLUSHED = Kind(
    "requirement.flush_awaited.drbd", "blocked", "DRBD is configured not to flush", DRBD.fix
)
DRBD_ORDERING_UNFLUSHED = Kind(
    "requirement.flush_awaited.drbd.write_ordering", "blocked", DRBD_UNFLUSHED.says, DRBD_ORDERING.fix
)
EARLY_ACKNOWLEDGED = Kind(
    "requirement.flush_awaited.parity_log",
    "blocked",
    "the kernel acknowledges a flush of an array with a partial parity log before its disks have done it",
    PARTIAL_PARITY_LOG.fix,
)
NEIGHBOUR = Kind(
    "requirement.neighbours_flush",
    "blocked",
    "{mount} has no barriers, and its disk would have a volatile cache",
    "list {mount} in durable_mounts, or remove nobarrier and barrier=0 from its options, then unmount and mount it, or reboot",
)
#: Of file systems without an option for barriers.
NEIGHBOURS = {
    "jfs": Kind(
        "requirement.neighbours_flush.jfs",
        "blocked",
        "{mount} is on JFS, which sends no flush, and its disk would have a volatile cache",
        "move the data of {mount} to ext4 or XFS, or to another disk",
    ),
    "zfs": Kind(
        "requirement.neighbours_flush.zfs",
        "blocked",
        "ZFS sends no flush for {mount}, and its disk would have a volatile cache",
        NO_BARRIERS["zfs"].fix,
    ),
}
NEIGHBOUR_UNKNOWN = Kind(
    "requirement.neighbours_flush.unknown",
    "blocked",
    "{mount} may have no barriers, and its disk would have a volatile cache",
    "list {mount} in durable_mounts",
)
BARRIERS_STAY_OFF = Kind(
    "requirement.barriers_on",
    "blocked",
    "barriers are off, so no flush reaches the disk, and a run cannot enable them here",
    "{cure}",
)
NOT_LISTED = Kind(
    "requirement.only_database_paths",
    "blocked",
    "{mount} is not listed, and may hold more than databases",
    "list {mount} in durable_mounts if it holds databases only",
)
HOLDS_SYSTEM = Kind(
    "requirement.only_database_paths.system",
    "blocked",
    "{mount} holds more than databases: without barriers it may not boot",
    "move the data to a separate file system and list that in durable_mounts",
)
ON_BTRFS = Kind(
    "requirement.only_database_paths.btrfs",
    "blocked",
    "btrfs without barriers is corrupt after a crash",
    "move the data of {mount} to ext4, or set durable_profile: flush",
)
ONE_PROMISE = Kind(
    "requirement.one_promise",
    "blocked",
    "{engine} is assessed by the strictest profile of its mounts, and files on {mount} may be lost",
    "set a profile for {mount} in durable_mount_profiles that guarantees durability, or move those files",
)

STACK = Kind("unknown.stack", "unknown", "{mount}: {cause}", FIX_READ_ERROR)
STACK_VOUCHED = Kind(
    "unknown.stack.no_rule",
    "unknown",
    STACK.says,
    "move the data, or, if you know that each flush passes through it, attest layer_passes_flushes for {ids}",
)
NEXT_ROOT = Kind(
    "unknown.next_root",
    "unknown",
    "the next boot starts another deployment or snapshot than the root that runs, and its files decide what persists",
    "reboot, or discard that deployment or snapshot, then run again",
)
NEXT_ROOT_UNKNOWN = Kind(
    "unknown.next_root.unread",
    "unknown",
    "the deployment or snapshot that the next boot starts is unknown",
    "make btrfs subvolume get-default / work as root, or the boot loader's entries readable, then run again",
)
STACK_UNRULED = Kind("unknown.stack.not_supported", "unknown", STACK.says, MOVE)
STACK_DRBD = Kind(
    "unknown.stack.drbd",
    "unknown",
    STACK.says,
    "run drbdadm connect for its resource, and wait until drbdadm status shows UpToDate for this node",
)
STACK_TABLE = Kind(
    "unknown.stack.table", "unknown", STACK.says, 'make "dmsetup table" work as root, then run again'
)
STACK_LOOP = Kind(
    "unknown.stack.loop",
    "unknown",
    STACK.says,
    'make "losetup --list" work as root and keep the file system that holds its file mounted, then run again',
)
STACK_PATHS = Kind(
    "unknown.stack.paths", "unknown", STACK.says, "restore its paths (multipath -ll), then run again"
)
NO_DISKS = Kind(
    "unknown.disks",
    "unknown",
    "{mount}: no facts about {what}",
    'make "udevadm info --export-db" work as root (package udev): it must list {what}',
)
PATH_NOT_MOUNTED = Kind("unknown.path", "unknown", "{variable}: observed {path}: {cause}", "{cure}")

READ_ONLY = Kind(
    "note.read_only",
    "note",
    "{mount} is read-only, and the next boot mounts it for writing: no commit is possible there",
    "if the kernel log (dmesg) has an error of it, unmount it and check it with fsck, else remount it with rw",
)
REPLICA_BEHIND = Kind(
    "note.replica_behind",
    "note",
    "{seen}: a peer that is not up to date lacks commits if it takes over",
    "see drbdadm status",
)
PATHS_LIMITED = Kind(
    "note.paths_limited",
    "note",
    "{layer}: when no path has come back within its no_path_retry, writes end in errors, and the servers on it have to stop",
)
DIR_INDEX = Kind(
    "note.dir_index",
    "note",
    "{mount}: its file system has no dir_index: a name in a large directory is searched entry by entry",
    "run {enable}, then unmount it with its databases down and run {rebuild}",
)
SUBSTITUTE_NAME = Kind("note.substitute_name", "note", "{disk} is identified by {id}: {risk}", "{cure}")
WRITERS = Kind(
    "note.writers",
    "note",
    "{mount}: {processes} writes there ({example}) and is not a supported database engine: it is unknown how it"
    " commits",
)
SHARED_DISK = Kind(
    "note.shared_disk",
    "note",
    "{disk} is assessed by {profile} because of {mounts}, and shared with {others}",
)
LOSS_AS_ASKED = Kind("note.loss_as_asked", "note", "{mount}: {what}")
TEMPORARY = Kind("note.temporary", "note", "{mount}: {what}")
MEASURED = Kind("note.measured", "note", "{setting} is {what}")

#: Layer -> the settings of its rows: the finding of one that is not as wanted is setting.LAYER.SETTING.
SETTINGS = {
    "mount_options": ("barrier", "data_mode", "atime", "sync", "recovery"),
    "write_cache": ("write_cache", "kernel_cache_mode", "flush", "layer_cache_mode", "no_path_retry"),
    "io_scheduler": ("scheduler", "readahead"),
}
KINDS = (
    *(
        NEXT_ROOT,
        NEXT_ROOT_UNKNOWN,
        FLUSH_NOT_SHOWN,
        TOOL_MISSING,
        NOT_KEPT,
        VOLUME_LOSES,
        VOLUME_EXPOSED,
        OVERRIDE,
        DISK_LASTS,
        *WRITE_HOLE.values(),
        SNAPSHOT_IN_MEMORY,
        TAGS_APART,
    ),
    *(
        NO_COPY,
        NO_COPY_LATER,
        DRBD_UNFLUSHED,
        DRBD_ORDERING_UNFLUSHED,
        EARLY_ACKNOWLEDGED,
        NEIGHBOUR,
        *NEIGHBOURS.values(),
        NEIGHBOUR_UNKNOWN,
        BARRIERS_STAY_OFF,
        NOT_LISTED,
        HOLDS_SYSTEM,
        ON_BTRFS,
        ONE_PROMISE,
    ),
    *(
        BARRIER_OFF,
        *NO_BARRIERS.values(),
        FLUSH_PENDING,
        RAID_CACHE,
        WRITE_THROUGH,
        FLUSH_BLOCKED,
        FLUSH_BLOCKED_EARLY,
        DRBD,
        DRBD_ORDERING,
        PARTIAL_PARITY_LOG,
        DATA_IN_MEMORY,
    ),
    *(
        STACK,
        STACK_VOUCHED,
        STACK_UNRULED,
        STACK_DRBD,
        STACK_TABLE,
        STACK_LOOP,
        STACK_PATHS,
        NO_DISKS,
        PATH_NOT_MOUNTED,
    ),
    *(
        READ_ONLY,
        REPLICA_BEHIND,
        PATHS_LIMITED,
        SUBSTITUTE_NAME,
        DIR_INDEX,
        WRITERS,
        SHARED_DISK,
        LOSS_AS_ASKED,
        TEMPORARY,
    ),
    MEASURED,
)
