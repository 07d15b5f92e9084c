# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of findings about disks, layers and mounts. Data: the policy decides which of them a host has."""

from __future__ import annotations

from ..rows import MEND, Kind
from .boot_faults import FAULTS

BARRIER_OFF = Kind(
    "risk.barrier_off",
    "at_risk",
    "commits since the last flush on {disk} can vanish: {mount} is mounted without barriers",
    "take the option that puts them off away, and mount it anew",
)
FLUSH_PENDING = Kind(
    "risk.flush_pending",
    "at_risk",
    "commits since the last flush on {disk} can vanish: a run ended before it flushed that disk",
    "run harden-db",
)
RAID_CACHE = Kind("risk.raid_cache", "at_risk", "commits on {disk} can vanish: {cause}", "{cure}")
WRITE_THROUGH = Kind(
    "risk.write_through",
    "at_risk",
    "commits since the last flush on {disk} can vanish: its kernel cache mode is write through, so the kernel never flushes it",
    "run harden-db",
)
FLUSH_BLOCKED = Kind(
    "risk.flush_blocked",
    "at_risk",
    "commits since the last flush on {disk} can vanish: {layer} passes no flush on",
    "reboot, so that it is made anew",
)
DRBD = Kind(
    "risk.drbd",
    "at_risk",
    "commits since the last flush on {disk} can vanish: {layer} (DRBD) is set to {setting}",
    "take disk-flushes no and md-flushes no out of the disk section of the resource, and drbdadm adjust it; or turn the"
    " caches off (profile strict)",
)
PARTIAL_PARITY_LOG = Kind(
    "risk.partial_parity_log",
    "at_risk",
    "commits can be acknowledged before {disk} has flushed them: {layer} has a partial parity log",
    "turn the caches of its disks off (profile strict), or use a journal instead (mdadm --grow --consistency-policy=resync,"
    " then mdadm --add-journal)",
)
DATA_IN_MEMORY = Kind(
    "risk.data_in_memory",
    "at_risk",
    "all commits of {engine} vanish at a power cut or a reboot: {place}, which is in memory",
    "move the data to a file system on a disk",
)

FLUSH_NOT_SHOWN = Kind(
    "requirement.device_obeys",
    "unverified",
    "nothing on this host shows that it keeps what it was told to keep",
    "{where}, then attest {claims}",
)
VOLUME_LOSES = Kind(
    "requirement.raid_volume",
    "unverified",
    "{cause}",
    "{cure}; or, where that is known otherwise, attest power_loss_protection for {id}",
)
OVERRIDE = Kind(
    "requirement.override_attested",
    "blocked",
    "overrides make this host weaker than its profile promises",
    "take the override out, or attest {claims}",
)
DISK_LASTS = Kind(
    "requirement.disk_lasts", "blocked", "what lies on {disk} {when}", "move the data to a disk that stays"
)
_HOLE = "a crash between the writes of data and of parity can cost older data when a disk fails later"
WRITE_HOLE = {
    "md": Kind(
        "requirement.no_write_hole.md",
        "blocked",
        _HOLE,
        "add a journal (mdadm --add-journal), over disks without a cache a partial parity log (RAID 5: mdadm --grow"
        " --consistency-policy=ppl), or mirror instead",
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
        "convert it to a mirror: btrfs balance start -dconvert=raid1 -mconvert=raid1 {mount}",
    ),
}
SNAPSHOT_IN_MEMORY = Kind(
    "requirement.layer_lasts",
    "blocked",
    "a snapshot that keeps its exceptions in memory: what was written to it goes with the power",
    "make the snapshot with a persistent store, or move the data",
)
TAGS_APART = Kind(
    "requirement.tags_whole",
    "blocked",
    "without journal and bitmap a crash between the writes of a block and of its tag makes the block unreadable",
    "open it with a journal, or a bitmap (integritysetup open --integrity-bitmap-mode)",
)
NO_COPY = Kind(
    "requirement.replica_awaited",
    "blocked",
    "DRBD acknowledges a write before a peer has it: when a peer takes over, acknowledged commits are lost",
    "set protocol C in the net section of the resource, on each node, and drbdadm adjust it",
)
NO_COPY_LATER = Kind(
    "requirement.replica_awaited.later",
    "blocked",
    "by its configuration DRBD will acknowledge a write before a peer has it, from the next boot or drbdadm adjust on",
    "set protocol C in the net section of the resource, on each node",
)
DRBD_UNFLUSHED = Kind(
    "requirement.flush_awaited.drbd", "blocked", "DRBD is set not to flush what it writes", DRBD.fix
)
EARLY_ACKNOWLEDGED = Kind(
    "requirement.flush_awaited.parity_log",
    "blocked",
    "the kernel acknowledges a flush of such an array before its disks have done it",
    "turn those caches off (profile strict), use a journal instead (mdadm --grow --consistency-policy=resync, then mdadm"
    " --add-journal), or mirror",
)
NEIGHBOUR = Kind(
    "requirement.neighbours_flush",
    "blocked",
    "{mount} {seen} barriers, and would lie over a cache",
    "turn its barriers on, or list it in durable_mounts",
)
BARRIERS_STAY_OFF = Kind(
    "requirement.barriers_on",
    "blocked",
    "without barriers a flush is not passed on, and no run turns them on here",
    "{cure}",
)
ONLY_DATABASES = Kind(
    "requirement.only_database_paths",
    "blocked",
    "{cause}",
    "move the data to a file system of its own and list that in durable_mounts",
)
ONE_PROMISE = Kind(
    "requirement.one_promise",
    "blocked",
    "{engine} is judged by the strictest profile of its mounts, and {mount} may lose its files",
    "move those files, or give the mount a profile that keeps them",
)

STACK = Kind("unknown.stack", "unknown", "{mount}: {cause}", MEND)
NO_DISKS = Kind("unknown.disks", "unknown", "{mount}: nothing is known of {what}", MEND)
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
    "{seen}: one that is not, and takes over, has not all commits",
    "see drbdadm status",
)
PATHS_LIMITED = Kind(
    "note.paths_limited",
    "note",
    "{layer}: when no path has come back within its no_path_retry, writes end in errors, and the servers on it have to stop",
)
SUBSTITUTE_NAME = Kind("note.substitute_name", "note", "{disk} goes by {id}: {risk}", "{cure}")
WRITERS = Kind(
    "note.writers",
    "note",
    "{mount}: {processes} writes there ({example}), and is no database engine that is understood: nothing is known of how it"
    " commits",
)
SHARED_DISK = Kind(
    "note.shared_disk", "note", "{disk} is held to {profile}, for {mounts}: it is shared with {others}"
)
LOSS_AS_ASKED = Kind("note.loss_as_asked", "note", "{mount}: {what}")
TEMPORARY = Kind("note.temporary", "note", "{mount}: {what}")
MEASURED = Kind("note.measured", "note", "{setting} is {what}")

#: Layer -> the settings of its rows: the finding of one that is not as wanted is setting.LAYER.SETTING.
SETTINGS = {
    "mount_options": ("barrier", "data_mode", "atime", "recovery", *FAULTS),
    "write_cache": ("write_cache", "kernel_cache_mode", "flush", "layer_cache_mode", "no_path_retry"),
    "io_scheduler": ("scheduler", "readahead"),
}
KINDS = (
    *(
        FLUSH_NOT_SHOWN,
        VOLUME_LOSES,
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
        EARLY_ACKNOWLEDGED,
        NEIGHBOUR,
        BARRIERS_STAY_OFF,
        ONLY_DATABASES,
        ONE_PROMISE,
    ),
    *(
        BARRIER_OFF,
        FLUSH_PENDING,
        RAID_CACHE,
        WRITE_THROUGH,
        FLUSH_BLOCKED,
        DRBD,
        PARTIAL_PARITY_LOG,
        DATA_IN_MEMORY,
    ),
    *(STACK, NO_DISKS, PATH_NOT_MOUNTED),
    *(
        READ_ONLY,
        REPLICA_BEHIND,
        PATHS_LIMITED,
        SUBSTITUTE_NAME,
        WRITERS,
        SHARED_DISK,
        LOSS_AS_ASKED,
        TEMPORARY,
    ),
    MEASURED,
)
