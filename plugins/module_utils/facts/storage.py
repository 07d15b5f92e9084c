# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts `durable_storage`: names, types, checks and documentation of each field. Data.

`tools/facts_docs.py` writes RETURN of the module from it; policy/assess/facts_schema.py checks a host's response with it.
"""

# Annotations are evaluated: no `from __future__ import annotations`, no `X | Y` (Python 3.9).

from typing import Annotated, Any, Optional, TypedDict, Union

from ..host.observation import UNKNOWN, Evidence
from . import value_causes
from .boot_causes import FAULT_OF
from .schema import (
    DEVICE,
    EVIDENCED,
    MAPPING,
    NAME,
    NAMES,
    ON_OFF_UNKNOWN,
    PATH,
    PATHS,
    TEXT,
    TEXTS,
    WORD,
    YES_NO,
    YES_NO_UNKNOWN,
    Leaf,
    Sample,
    When,
    each,
    one_of,
    or_none,
    or_unknown,
    pattern,
    values,
)

#: Whose machine it is, by its firmware; `none`: a machine without a hypervisor, and of no cloud.
PLATFORMS = (
    *("aws", "azure", "google", "oracle_cloud", "alibaba", "digitalocean", "hetzner", "scaleway", "vultr"),
    *("akamai", "openstack", "hyperv", "vmware", "proxmox", "ovirt", "nutanix", "virtualbox", "xen", "qemu"),
    *("none", UNKNOWN),
)
#: What a root is made of: storage/root_image.py.
ROOT_IMAGES = ("ostree", "transactional", "read_only", "none")
#: A boot stops; it comes up with / read-only, and without some of its mounts; it does one of both; it leaves out a mount that it
#: needs; it mounts an empty directory, which systemd makes where a bind mount has none; it hides what is at a mount point
#: now; or it does not need this one. systemd leaves out the whole of local-fs.target, to which the remount of / belongs, where
#: a unit cannot be loaded that it requires;
#: where that unit is required by one of its mounts, it may leave out the mount's device in its place, and then the mount fails.
#: Of units that wait for each other it leaves out one that it chooses.
EFFECTS = ("required", "read_only", "undecided", "without", "empty", "hides", "optional")
#: storage/disk_kinds.py recognises them.
KINDS = ("physical", "raid_volume", "san", "network", "virtual", "ephemeral", "memory", UNKNOWN)
#: Tools of RAID controllers.
_TOOLS = ("arcconf", "ssacli", "ssacli_arcconf", "storcli", "storcli2", "sas_ircu")
#: Where the cache of a disk is switched; storage/disk_kinds.py has the phrase for each.
PLACES = (
    *(
        "",
        "host",
        "array",
        "provider",
        "azure",
        "vmware",
        "qemu",
        "hyperv",
        "virtualbox",
        "xen",
        "hypervisor",
    ),
    *("nbd", "ceph", "nfs", "layer", "bridge", "controller", "nowhere"),
    *_TOOLS,
    *(f"host_{tool}" for tool in _TOOLS),
)
#: The interfaces by which storage/caches.py reads and sets a cache.
CONTROLS = ("sata", "scsi", "nvme", "virtio", "none")
#: How a RAID controller writes; `write_back` only while the battery is good.
WRITE_POLICIES = ("write_back", "always_write_back", "write_through", UNKNOWN)
#: The battery or capacitor behind the controller's cache; `charging` also while it learns.
BACKUPS = ("good", "charging", "failed", "missing", UNKNOWN)
#: The caches of the disks behind the controller, which no battery of it covers.
DRIVE_CACHES = ("enabled", "disabled", UNKNOWN)
#: storage/nfs.py reads them from the mount options.
RECOVERIES = ("hard", "soft", "softerr")
#: The modes of ext3 and ext4; `none`: no such mode, or no journal.
ATIMES = ("noatime", "relatime", "strictatime", "atime")
DATA_MODES = ("ordered", "journal", "writeback", "none", UNKNOWN)
#: Types of layers; storage/blockstack.py recognises them.
LAYERS = (
    *("disk", "partition", "md", "lvm", "crypt", "multipath", "dm", "drbd", "bcache", "loop"),
    UNKNOWN,
)
_BYTES = pattern(r"[1-9][0-9]{1,7}", "a number of bytes", UNKNOWN)
_DISK_ID = pattern(
    r"(wwn|nvme|serial|ptuuid|member|fsuuid|path|nfs):.+",
    "wwn:, nvme:, serial:, ptuuid:, member:, fsuuid:, path: or nfs: and a name, or null",
    None,
)


#: A cause of facts/value_causes.py, with its values.
_CAUSE = Leaf(value_causes.is_cause, "a cause of facts/value_causes.py with its values")


class CauseFacts(TypedDict):
    """A cause, and its values."""

    cause: Annotated[str, "One keyword, as V(members_unread)."]
    parameters: Annotated[
        dict[str, Any],
        "Its values by name. C(error) is the text of an error as it was read, C(why) a list of causes.",
    ]


class BootFaultFacts(TypedDict):
    """What keeps the next boot from mounting lines of C(/etc/fstab), or from mounting them for writing."""

    source: Annotated[str, NAME, "Which line."]
    target: Annotated[str, NAME, "The mount point."]
    fstype: Annotated[str, NAME, "The file system's type as the line names it."]
    boot: Annotated[
        str,
        one_of(*EFFECTS),
        "How it affects the boot. V(required) where it stops, V(read_only) where it leaves C(/) "
        "so, V(undecided) where it does one of both, V(without) where it leaves a mount out that it "
        "needs, V(empty) where systemd makes an empty directory for a bind mount that has none, "
        "V(hides) where it mounts over what is there now, else "
        "V(optional).",
    ]
    cause: Annotated[
        str,
        Leaf(lambda value: isinstance(value, str) and value in FAULT_OF, "a cause of facts/boot_causes.py"),
        "Why, one keyword, as V(unknown_option). The finding in docs/findings.md is C(boot.) and this keyword.",
    ]
    state: Annotated[str, one_of("refused", UNKNOWN), "V(refused), or V(unknown) if the host cannot show it."]
    parameters: Annotated[
        dict[str, Union[str, list[str]]],
        MAPPING,
        "The values that the finding names, each a text or a list of texts, as C(unit) and C(waiting).",
    ]
    options: Annotated[
        list[str], NAMES, "The options of the line that are wrong, without what may be a password."
    ]


class TunedFacts(TypedDict):
    """TuneD, which may set I/O schedulers and readahead itself."""

    profile: Annotated[
        Optional[str],
        or_none(TEXT),
        "Its active profile, null where it neither runs nor will at the next boot, or V(unknown).",
    ]
    sets: Annotated[
        dict[str, str],
        MAPPING,
        "What that profile, and those that it includes, set of C(elevator) and C(readahead).",
    ]
    cause: Annotated[Optional[CauseFacts], or_none(_CAUSE), "Why the profile could not be read, or null."]


class _WriteCacheOfSome(TypedDict, total=False):
    kernel_persisted: Annotated[
        str,
        one_of("write through", UNKNOWN),
        When("if another component lowers it, or may lower it"),
        "The kernel cache mode at the next boot, V(write through) or V(unknown).",
    ]
    power_on: Annotated[
        str,
        When("for a SCSI disk below a device-mapper device of C(/) or C(/usr)"),
        "In which state it comes out of a reset or a boot, because the disk has saved it, or else by "
        "default. V(enabled), V(disabled) or V(unknown).",
    ]


class WriteCacheFacts(_WriteCacheOfSome):
    """The write cache, and the kernel cache mode."""

    device: Annotated[
        str,
        EVIDENCED,
        one_of("enabled", "disabled", "none", UNKNOWN),
        "The device's own word. V(enabled), V(disabled), V(none) (it has no volatile cache) or V(unknown).",
    ]
    kernel: Annotated[
        str,
        EVIDENCED,
        one_of("write back", "write through", UNKNOWN),
        "The kernel cache mode. The kernel flushes at V(write back), not at V(write through); or V(unknown).",
    ]
    persisted: Annotated[
        str,
        EVIDENCED,
        one_of("enabled", "disabled", "none", "unset", UNKNOWN),
        "What the last component sets at the next boot, our udev rule or another one. V(enabled), "
        "V(disabled), V(none), V(unset) if nothing sets it, or V(unknown).",
    ]
    volatile: Annotated[
        str,
        EVIDENCED,
        one_of("volatile", "non_volatile", UNKNOWN),
        "Whether a power cut empties it. V(non_volatile) or V(unknown); of a RAID volume whose controller"
        " answered also V(volatile).",
    ]


class RaidFacts(TypedDict):
    """Of a RAID volume what the tool of its controller says; null for other disks.

    The tool, or why none could be asked, is in RV(ansible_facts.durable_storage.disks[].evidence).
    """

    volume: Annotated[
        Optional[str],
        or_none(NAME),
        "The tool's name of the volume, or null if the disk may be another one.",
        Sample("/c0/v1"),
    ]
    write_policy: Annotated[
        str,
        one_of(*WRITE_POLICIES),
        "V(write_back) while the battery or capacitor is good, V(always_write_back) in any case, "
        "V(write_through), or V(unknown).",
    ]
    backup: Annotated[
        str,
        one_of(*BACKUPS),
        "The battery or capacitor behind the controller's cache. V(good), V(charging) (or learning), "
        "V(failed), V(missing) or V(unknown).",
    ]
    drive_caches: Annotated[
        str,
        one_of(*DRIVE_CACHES),
        "The caches of the disks behind the controller. V(enabled), V(disabled) or V(unknown).",
    ]


class SchedulerFacts(TypedDict):
    """The I/O scheduler."""

    running: Annotated[str, EVIDENCED, TEXT, "The one in force, or V(unknown)."]
    available: Annotated[list[str], TEXTS, "Those that the kernel has loaded."]
    persisted: Annotated[
        str,
        EVIDENCED,
        TEXT,
        "What the last component sets at the next boot; V(unset) if nothing sets it; or V(unknown).",
    ]


class SectorFacts(TypedDict):
    """The sizes of its sectors in bytes, as text."""

    logical: Annotated[str, EVIDENCED, _BYTES, "The smallest write, or V(unknown)."]
    physical: Annotated[
        str,
        EVIDENCED,
        _BYTES,
        "The largest write that a power cut does not tear, as the disk reports it, or V(unknown).",
    ]


class DiskReadahead(TypedDict):
    """The readahead in KiB, as text."""

    running: Annotated[str, "The one in force, or V(unknown)."]
    persisted: Annotated[
        str, "What the last component sets at the next boot; V(unset) if nothing sets it; or V(unknown)."
    ]


class DiskFacts(TypedDict):
    """One entry for each whole disk, and for each NFS export that is mounted."""

    name: Annotated[str, NAME, "The kernel's name, which can change at each boot."]
    id: Annotated[
        Optional[str],
        EVIDENCED,
        _DISK_ID,
        "The name that stays (C(wwn:), C(nvme:) or C(serial:); C(nfs:) of an NFS export), or null; "
        "without one nothing can be persisted. RV(ansible_facts.durable_storage.disks[].evidence) has the"
        " reason.",
        "For a disk without such a name a substitute (C(ptuuid:), C(member:), C(fsuuid:) or C(path:)). "
        "Its evidence then has the way in which it can come to mean another disk.",
    ]
    kind: Annotated[
        str,
        EVIDENCED,
        one_of(*KINDS),
        "V(physical), V(raid_volume), V(san), V(network), V(virtual), V(ephemeral), V(memory) or V(unknown).",
        "Only V(physical) is trusted when it speaks of its cache, and it is given on evidence alone.",
    ]
    transport: Annotated[
        str,
        TEXT,
        "V(sata), V(sat), V(scsi), V(sas), V(nvme), V(virtio), V(xen), V(usb), V(firewire), V(mmc), "
        "V(nfs) or V(unknown).",
        "V(sat) is a SATA disk behind a controller that translates SCSI for it, as SAS controllers do.",
    ]
    control: Annotated[
        str,
        one_of(*CONTROLS),
        "The interface by which its cache is read and set; V(sata), V(scsi), V(nvme), V(virtio), or V(none).",
    ]
    switchable: Annotated[str, YES_NO, "Whether its cache can be switched from this host. V(yes) or V(no)."]
    place: Annotated[
        str,
        one_of(*PLACES),
        "Where its cache is switched, as a keyword; empty if unknown.",
        Sample("array"),
    ]
    multipath: Annotated[
        str,
        YES_NO,
        "V(yes) for a path of a multipath device, whose RV(ansible_facts.durable_storage.disks[].id) is "
        "that of its other paths too; no rule goes by it. Else V(no).",
    ]
    flush_blocked_by: Annotated[
        list[str],
        NAMES,
        "The device-mapper devices above it, mounted or not, that drop flushes, or of which that is "
        "unknown. Its cache is not turned on below them before the next boot.",
    ]
    model: Annotated[Optional[str], "The model, or null."]
    serial: Annotated[Optional[str], "The serial number, or null."]
    rotational: Annotated[str, YES_NO_UNKNOWN, "V(yes), V(no) or V(unknown)."]
    flush: Annotated[
        str, one_of("done", "owed"), "V(owed) if a run ended before it flushed this disk, else V(done)."
    ]
    write_cache: WriteCacheFacts
    raid: Annotated[
        Optional[RaidFacts],
        or_none(MAPPING),
        "Of a RAID volume what the tool of its controller says; null for other disks. The tool, or why "
        "none could be asked, is in RV(ansible_facts.durable_storage.disks[].evidence).",
    ]
    fua: Annotated[
        str,
        one_of("supported", "unsupported", UNKNOWN),
        "Whether the kernel sends the disk FUA writes. V(supported), V(unsupported) or V(unknown).",
    ]
    fua_efficient: Annotated[str, "Whether a log write needs no separate flush. V(yes), V(no) or V(unknown)."]
    sector: SectorFacts
    scheduler: SchedulerFacts
    readahead: DiskReadahead
    evidence: Annotated[
        dict[str, Evidence],
        "For each value its C(value), C(source) and C(reason). The reason is null or the text of the error with which a value "
        "could not be read, as it was read.",
        "C(cause) is a keyword for why a value is unknown, or for what made it, and C(parameters) the values of that cause.",
        "For a value at the next boot also C(by), the component that sets it last, and C(precedence), V(theirs) if no rule of "
        "ours can take precedence over that component.",
        "Keys are the fields' names, with a dot where they lie deeper (C(write_cache.device)).",
    ]


class ViewFacts(TypedDict):
    """Other mount namespaces in which it is mounted with another atime option."""

    pid: Annotated[int, "One process that sees it so."]
    command: Annotated[str, "That process's name."]
    target: Annotated[str, "Its mount point there."]
    atime: Annotated[str, "The atime option there."]


class Readahead(TypedDict, total=False):
    """The carrier's readahead in KiB, as text; empty without a carrier."""

    running: Annotated[str, When("with a carrier"), "The one in force, or V(unknown)."]
    persisted: Annotated[
        str,
        When("with a carrier"),
        "What the last component sets at the next boot; V(unset) if nothing sets it; or V(unknown).",
    ]


class _MountPersistedOfSome(TypedDict, total=False):
    recovery: Annotated[
        str,
        EVIDENCED,
        one_of(*RECOVERIES, "unset", UNKNOWN),
        When("for NFS"),
        "V(hard), V(soft), V(softerr), V(unset) or V(unknown).",
    ]
    sync: Annotated[
        str,
        EVIDENCED,
        one_of("sync", "async", UNKNOWN),
        When("if another component than the mount may set it"),
        "V(sync), V(async) or V(unknown).",
    ]


class MountPersisted(_MountPersistedOfSome):
    """The next mount, from superblock defaults and C(options_boot).

    V(unset) if nothing mounts it, V(refused) if the kernel would refuse it.
    """

    barrier: Annotated[
        str,
        EVIDENCED,
        one_of("on", "off", "refused", "unset", UNKNOWN),
        "V(on), V(off), V(unset), V(refused) or V(unknown).",
    ]
    data_mode: Annotated[
        str,
        EVIDENCED,
        one_of(*DATA_MODES, "refused", "unset"),
        "V(ordered), V(journal), V(writeback), V(none), V(unset), V(refused) or V(unknown).",
    ]
    atime: Annotated[
        str,
        EVIDENCED,
        one_of(*ATIMES, "unset", UNKNOWN),
        "V(noatime), V(relatime), V(strictatime), V(atime), V(unset) or V(unknown).",
    ]


class LayerFacts(TypedDict):
    """The layers below, top first, down to the disks."""

    name: Annotated[str, NAME, "The kernel's name."]
    type: Annotated[
        str,
        one_of(*LAYERS),
        "V(partition), V(lvm), V(crypt), V(multipath), V(dm), V(md), V(drbd), V(bcache), V(loop), "
        "V(disk), or V(unknown).",
    ]
    detail: Annotated[
        str,
        TEXT,
        "Its subtype, as V(linear), V(raid1), V(writeback), or the name of a layer that is not "
        "understood. Of a loop device the type of the file system that holds its file.",
    ]
    state: Annotated[
        str,
        TEXT,
        "Of an md array its consistency policy, what it is doing and how many members it lacks. Of a "
        "cache its mode, of a writecache its medium (V(ssd) or V(pmem)), of a snapshot whether its "
        "exceptions are V(persistent) or V(transient), of integrity V(journal), V(bitmap) or V(no "
        "journal).",
        "Of a multipath device what it does without a path, now and by multipathd's C(no_path_retry).",
        "Of a DRBD device its protocol, how it orders writes, flushes that are off, and peers that are up"
        " to date.",
        Sample("resync, degraded by 1"),
    ]
    below: Annotated[list[str], NAMES, "Kernel names of the devices below it."]
    label: Annotated[str, TEXT, "The name that it was given, where it has one."]
    cache_mode: Annotated[
        str,
        one_of("", "write back", "write through", UNKNOWN),
        "The kernel cache mode of this layer; empty for partitions and disks. A device-mapper device "
        "keeps the cache mode with which it was made. V(write back), or V(write through), which drops flushes; or V(unknown).",
    ]
    cause: Annotated[
        Optional[CauseFacts],
        or_none(_CAUSE),
        "Why it is unknown whether it passes flushes, or null if it is known.",
    ]
    id: Annotated[
        str,
        TEXT,
        "Of a device-mapper device the name that stays, C(dm:) and its uuid, or C(dm-name:) and its name;"
        " else empty.",
    ]
    held_on: Annotated[
        str,
        pattern(r"\d+:\d+", "a device number, or nothing", ""),
        "Of a loop device the device number of the file system that holds its file; else empty.",
    ]


class WriteHoleFacts(TypedDict):
    """Layers below it, or parts of it, that are RAID 4, 5 or 6 without a journal."""

    maker: Annotated[
        str,
        one_of("md", "dm", "file_system"),
        "What writes the parity. V(md), V(dm) (device-mapper, as LVM uses it) or V(file_system).",
    ]
    name: Annotated[
        str,
        NAME,
        "The kernel's name of the layer, or of a file system the chunks - V(data), V(metadata) or V(system).",
    ]
    level: Annotated[str, NAME, "The level of the RAID, for example V(raid5)."]


class _MountOfNfs(TypedDict, total=False):
    recovery: Annotated[
        str,
        EVIDENCED,
        one_of(*RECOVERIES, UNKNOWN),
        When("for NFS"),
        "What an NFS client does when the server does not answer. V(hard), V(soft), V(softerr) or "
        "V(unknown). See also C(persisted.recovery), which may be V(unset).",
    ]


class _MountOfExt(_MountOfNfs, total=False):
    dir_index: Annotated[
        str,
        YES_NO,
        When("for ext2, ext3 and ext4 if the superblock could be read"),
        "Whether directories have an index. V(yes) or V(no).",
    ]


class MountFacts(_MountOfExt):
    """One entry for each superblock that can hold data. Network file systems and overlays count, those in memory do not."""

    target: Annotated[str, PATH, "Its first mount point; of file system V(raw) the device."]
    targets: Annotated[
        list[str], PATHS, "Everywhere it is mounted; empty when it is hidden in another namespace."
    ]
    boots: Annotated[
        dict[str, str],
        values(
            one_of("required", "automount", "optional", UNKNOWN),
            "a mapping to required, automount, optional or unknown",
        ),
        "For each mount point at which something mounts it at boot, whether the boot needs it. "
        "V(required), V(automount), V(optional) or V(unknown).",
    ]
    hidden_in: Annotated[
        Optional[str],
        or_none(NAME),
        "The process that sees it, when it is mounted in another mount namespace only; else null.",
    ]
    views: list[ViewFacts]
    source: Annotated[str, "The device, as the kernel names it."]
    device: Annotated[str, DEVICE, "The superblock's number, C(major:minor)."]
    carrier: Annotated[
        Optional[str],
        or_none(NAME),
        "Kernel name of the whole device right below it, whose readahead counts. Null for file systems "
        "without one.",
    ]
    carrier_id: Annotated[
        Optional[str], or_none(TEXT), "The carrier's name that stays (a disk's, C(dm:) or C(md:)), or null."
    ]
    readahead: Annotated[
        Readahead, MAPPING, "The carrier's readahead in KiB, as text; empty without a carrier."
    ]
    fstype: Annotated[
        str, NAME, "The file system's type; V(raw) for a block device that a database path names."
    ]
    barrier: Annotated[
        str, EVIDENCED, ON_OFF_UNKNOWN, "Whether a commit flushes the disks. V(on), V(off) or V(unknown)."
    ]
    data_mode: Annotated[
        str,
        EVIDENCED,
        one_of(*DATA_MODES),
        "V(ordered), V(journal), V(writeback), V(none) (no such mode, or no journal) or V(unknown).",
    ]
    atime: Annotated[
        str,
        EVIDENCED,
        one_of(*ATIMES, UNKNOWN),
        "The running atime option. V(noatime), V(relatime), V(strictatime), V(atime) or V(unknown).",
    ]
    sync: Annotated[str, "Whether it is mounted with C(sync). V(yes) or V(no)."]
    options_running: Annotated[
        list[str],
        TEXTS,
        "Options of the mount and of its superblock. Here and below, an option that may hold a password, "
        "or a path of one, has the value V(hidden). Empty for one that systemd mounts at the first "
        "access, until then.",
    ]
    options_fstab: Annotated[
        Optional[list[str]], or_none(TEXTS), "Options of its line in C(/etc/fstab), or null."
    ]
    options_boot: Annotated[
        Optional[list[str]],
        or_none(TEXTS),
        "Options of the next boot, from fstab or the systemd mount unit or drop-in that overrides it, "
        "those of C(rootflags=) first. Null when nothing mounts it, or that is unknown.",
    ]
    persisted: MountPersisted
    stack: list[LayerFacts]
    disks: Annotated[
        Union[str, list[str]],
        EVIDENCED,
        or_unknown(NAMES),
        "The kernel names of the disks at the bottom, or V(unknown) when a layer is not understood.",
    ]
    disks_seen: Annotated[
        list[str], NAMES, "The disks that were found, also below a layer that is not understood."
    ]
    devices_missing: Annotated[
        list[CauseFacts],
        each(_CAUSE, "a list of causes with their values"),
        "Why not all devices that it writes to are known.",
    ]
    external_log: Annotated[
        Optional[str], "Further devices that it writes to (journal, log, real-time), or null."
    ]
    write_hole: list[WriteHoleFacts]
    fua_path: Annotated[
        str,
        EVIDENCED,
        YES_NO_UNKNOWN,
        "Whether a direct log write (C(O_DIRECT) with C(O_DSYNC), over blocks written before) reaches the"
        " medium as one FUA write. V(yes), V(no) or V(unknown).",
    ]
    evidence: Annotated[
        dict[str, Evidence],
        "For each value its C(value), C(source) and C(reason). The reason is null or the text of the error with which a value "
        "could not be read, as it was read.",
        "C(cause) is a keyword for why a value is unknown, or for what made it, and C(parameters) the values of that cause.",
        "For a value at the next boot also C(by), the component that sets it last, and C(precedence), V(theirs) if no rule of "
        "ours can take precedence over that component.",
        "Keys are the fields' names, with a dot where they lie deeper (C(persisted.barrier)).",
    ]


class StorageFacts(TypedDict):
    """Disks and mounted file systems. Texts, never booleans, if a value can be unknown."""

    boot_id: Annotated[str, "The kernel's id of this boot."]
    time: Annotated[
        str,
        TEXT,
        "When the facts were taken, by the host's clock, in UTC and ISO 8601.",
        Sample("2026-01-31T12:00:00Z"),
    ]
    kernel: Annotated[str, pattern(r"\d+\.\d+.*", "a release of the kernel"), "The kernel's release."]
    virtualization: Annotated[str, WORD, "What systemd-detect-virt says; V(none) on bare metal."]
    platform: Annotated[
        str,
        one_of(*PLATFORMS),
        "Whose machine it is, by its firmware (C(/sys/class/dmi/id)), else by systemd-detect-virt.",
        "V(aws), V(azure), V(google), V(oracle_cloud), V(alibaba), V(digitalocean), V(hetzner), "
        "V(scaleway), V(vultr), V(akamai), V(openstack), V(hyperv), V(vmware), V(proxmox), V(ovirt), "
        "V(nutanix), V(virtualbox), V(xen), V(qemu), V(none) (a separate machine) or V(unknown).",
    ]
    root_image: Annotated[
        str,
        one_of(*ROOT_IMAGES),
        "What the root is made of. V(ostree) is a deployment of ostree, also in image mode. V(transactional) is a snapshot of "
        "transactional-update. V(read_only) is any other host with a read-only C(/usr). V(none) is not one of these.",
    ]
    next_root: Annotated[
        str,
        one_of("same", "other", UNKNOWN),
        "Whether the next boot starts the deployment or snapshot that runs, V(same) or V(other). "
        "V(unknown) if that cannot be read.",
    ]
    fstab_error: Annotated[Optional[str], or_none(NAME), "What is wrong with C(/etc/fstab), or null."]
    boot_faults: list[BootFaultFacts]
    resolved: Annotated[
        dict[str, Optional[str]],
        MAPPING,
        "For each database path where it really lies, or null when it is not there or unknown.",
    ]
    unresolved: Annotated[
        dict[str, str], MAPPING, "For each database path that could not be read, the reason."
    ]
    links: Annotated[
        dict[str, list[str]],
        values(NAMES, "a mapping to lists of paths"),
        "For each database path with links directly in it that lead to directories, where those really "
        "lie. What is there counts as below the path.",
    ]
    leased: Annotated[
        str,
        YES_NO,
        "Whether a lease of the guard is on the host, V(yes) or V(no). With one its power facts are "
        "needed whatever its profile is.",
    ]
    other_mounts: Annotated[
        dict[str, str],
        MAPPING,
        "Mount points of file systems that hold no data or hold it in memory, with their type.",
    ]
    covered: Annotated[
        dict[str, str],
        MAPPING,
        "For each file system that no path leads to, because another was mounted over its mount point or "
        "over a directory above it, its mount point and that of the other one.",
    ]
    tuned: TunedFacts
    disks: list[DiskFacts]
    mounts: list[MountFacts]
