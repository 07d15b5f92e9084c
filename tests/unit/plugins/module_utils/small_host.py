# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small database host whose kernel and disks behave: what a test changes shows everywhere.

sda: SATA, ext4 on a partition; sdb: SATA, xfs on a partition; vdb: virtio, ext4 on the whole
disk; vda: virtio, the root file system on a partition.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.durable.dbhost.plugins.module_utils import udev
from ansible_collections.durable.dbhost.plugins.module_utils.host import ChangeFailed

from .fake_host import FakeHost

BOOT_ID = "11111111-2222-3333-4444-555555555555"
FLAGS = ("ro", "rw", "nosuid", "nodev", "noexec")
#: Words that the remount model takes for the file system; others are refused.
KNOWN = (*FLAGS, "bind", "sync", "lazytime", "noatime", "relatime", "strictatime", "remount", "nodiratime")


@dataclass
class FakeDisk:
    """A disk: `cache` is the device's own, `belief` the kernel's, `dirty` what a cut would lose."""

    name: str
    transport: str
    serial: str
    cache: str = "enabled"
    belief: str = "write back"
    pinned: bool = False
    forced: bool = False
    obeys: bool = True
    counts: bool = True
    dirty: bool = False
    flushes: int = 100
    rotational: str = "0"
    fua: str = "0"
    scheduler: str = "[none] mq-deadline"

    @property
    def id(self) -> str:
        """The id that the facts give it."""
        return f"serial:{self.serial}"


@dataclass
class FakeMount:
    """A mounted file system, and what its superblock makes it do by default."""

    target: str
    fstype: str
    device: str
    source: str
    disk: str
    flags: tuple[str, ...] = ("rw",)
    atime: str = "relatime"
    barrier: str = "on"
    data: str = "ordered"
    sb_flag: str = "rw"
    sb_options: tuple[str, ...] = ()
    journal: bool = True


class SmallHost(FakeHost):
    """The machine. Change its parts freely: files and commands are made when they are read.

    `trial_refuses` is an option that the throw-away image of a mount trial does not take.
    """

    def __init__(self) -> None:
        super().__init__()
        self.disks: dict[str, FakeDisk] = {}
        self.mounts: dict[str, FakeMount] = {}
        self.trial_refuses = "bogus"
        for disk in (
            FakeDisk("sda", "sata", "QEMU_HARDDISK_SATA0001"),
            FakeDisk("sdb", "sata", "QEMU_HARDDISK_SATA0002"),
            FakeDisk("vda", "virtio", "LABROOT"),
            FakeDisk("vdb", "virtio", "VIRT0001"),
        ):
            self.add_disk(disk)
        for mount in (
            FakeMount("/", "ext4", "254:1", "/dev/vda1", "vda"),
            FakeMount("/srv/pgdata", "ext4", "8:1", "/dev/sda1", "sda"),
            FakeMount("/srv/mssql", "xfs", "8:17", "/dev/sdb1", "sdb"),
            FakeMount("/srv/maria", "ext4", "254:16", "/dev/vdb", "vdb"),
        ):
            self.add_mount(mount)
        for uuid, name in {"root": "vda1", "pg": "sda1", "ms": "sdb1", "ma": "vdb"}.items():
            self.links[f"/dev/disk/by-uuid/{uuid}"] = f"/dev/{name}"
        self.files.update(
            {
                "/etc/fstab": (
                    "# /etc/fstab: static file system information.\n"
                    "UUID=root / ext4 errors=remount-ro 0 1\n"
                    "UUID=pg\t/srv/pgdata\text4\tdefaults\t0 2\n"
                    "UUID=ms /srv/mssql xfs defaults 0 2 \n"
                    "UUID=ma /srv/maria ext4 defaults,nofail\n"
                ),
                "/proc/cmdline": "root=/dev/vda1 ro quiet\n",
                "/proc/filesystems": "nodev\tproc\nnodev\ttmpfs\n\text3\n\text4\n\txfs\nnodev\toverlay\n",
                "/proc/self/mountinfo": self._mountinfo,
                "/proc/sys/kernel/osrelease": "6.1.0-26-amd64\n",
                "/proc/sys/kernel/random/boot_id": f"{BOOT_ID}\n",
                "/run/systemd/system/marker": "",
            }
        )
        self.commands[("systemd-detect-virt",)] = "none\n"
        self.commands[("udevadm", "info", "--export-db")] = self._udev_database
        self.after_mutation = self._age

    def __repr__(self) -> str:
        """Show what differs between hosts, for the reader of a failed property."""
        disks = [f"{d.name} cache {d.cache}, belief {d.belief}" for d in self.disks.values()]
        mounts = [
            f"{m.target} barrier {m.barrier}, data {m.data}, {m.atime}, superblock {m.sb_options}, fstab"
            f" {','.join(self.fstab_options(m.target))}"
            for m in self.mounts.values()
        ]
        return "\n  ".join(["SmallHost", *disks, *mounts, self._text(udev.RULES_PATH)])

    def disk(self, name: str) -> FakeDisk:
        """Return a disk by kernel name."""
        return self.disks[name]

    def add_disk(self, disk: FakeDisk) -> None:
        """Plug a disk in."""
        self.disks[disk.name] = disk
        name, base = disk.name, _sysfs(disk)
        self.links[f"/sys/block/{name}"] = base
        queue = {
            "write_cache": lambda: disk.belief,
            "fua": lambda: disk.fua,
            "rotational": lambda: disk.rotational,
            "scheduler": lambda: disk.scheduler,
        }
        for attribute, say in queue.items():
            self.files[f"{base}/queue/{attribute}"] = lambda say=say: f"{say()}\n"
        self.files[f"{base}/stat"] = lambda: f"{' '.join(['7'] * 15)} {disk.flushes:>8} 9\n"
        self.files[f"{base}/device/model"] = "QEMU HARDDISK\n"
        if disk.transport == "virtio":
            self.files[f"{base}/cache_type"] = lambda: f"{_cache_type(disk)}\n"
        else:
            self.files[f"{base}/device/scsi_disk/0:0:0:0/cache_type"] = lambda: f"{disk.belief}\n"
            self.commands[("hdparm", "-W", f"/dev/{name}")] = lambda: _hdparm(disk)

    def unplug(self, name: str) -> None:
        """Take a disk away, as a pulled cable does."""
        del self.disks[name]
        del self.links[f"/sys/block/{name}"]
        self.commands.pop(("hdparm", "-W", f"/dev/{name}"), None)

    def add_mount(self, mount: FakeMount) -> None:
        """Mount a file system."""
        self.mounts[mount.target] = mount
        partition = mount.source.rpartition("/")[2]
        where = self.links[f"/sys/block/{mount.disk}"]
        if partition != mount.disk:
            where += f"/{partition}"
            self.files[f"{where}/partition"] = "1\n"
        self.links[f"/sys/dev/block/{mount.device}"] = where
        if mount.fstype.startswith("ext"):
            self.files[f"/proc/fs/ext4/{partition}/options"] = lambda: _ext4_options(mount)
            dump = ("dumpe2fs", "-h", f"/dev/block/{mount.device}")
            self.commands[dump] = lambda: _dumpe2fs(mount)

    def reboot(self) -> None:
        """Come back as fstab, superblocks and our udev rule say; clean, because shut down."""
        for path in [name for name in self.files if name.startswith("/run/durable-dbhost/")]:
            del self.files[path]
        rules = {rule.id: rule.state for rule in udev.parse_rules(self._text(udev.RULES_PATH))}
        for disk in self.disks.values():
            disk.cache, disk.forced, disk.dirty = rules.get(disk.id, "enabled"), False, False
            disk.pinned = disk.transport == "sata" and disk.id in rules
            disk.belief = "write back" if disk.pinned else _cache_type(disk)
        for mount in self.mounts.values():
            mount.barrier, mount.data, mount.atime = "on", "ordered", "relatime"
            for word in (*mount.sb_options, *self.fstab_options(mount.target)):
                self._apply_word(mount, word)
        self._age()

    def fstab_options(self, target: str) -> list[str]:
        """Return the options of a target's line, read more simply than the collection does."""
        rows = [line.split() for line in self._text("/etc/fstab").split("\n")]
        found = [row[3] for row in rows if len(row) > 3 and row[1] == target and row[0][0] != "#"]
        return found[-1].split(",") if found else []

    def ways_to_lose(self) -> set[str]:
        """Return every way in which this host, as it is, loses or hurts commits; empty is safe."""
        found = {f"{disk.name}: unflushed commits" for disk in self.disks.values() if disk.dirty}
        rules = {rule.id: rule.state for rule in udev.parse_rules(self._text(udev.RULES_PATH))}
        for mount in self.mounts.values():
            disk = self.disks[mount.disk]
            found |= _exposed("now", mount.target, disk.cache, mount.barrier, disk.belief)
            if mount.fstype.startswith("ext"):
                boot = FakeMount(mount.target, mount.fstype, "", "", "", barrier="on", data="ordered")
                for word in (*mount.sb_options, *self.fstab_options(mount.target)):
                    self._apply_word(boot, word)
                cache = rules.get(disk.id, "enabled")
                found |= _exposed("boot", mount.target, cache, boot.barrier, "write back")
                found |= {f"{mount.target} boot: {boot.data}"} if boot.data == "writeback" else set()
            elif any(word in ("nobarrier", "barrier=0") for word in self.fstab_options(mount.target)):
                found.add(f"{mount.target} boot: does not mount")
        return found

    def on_change(self, argv: list[str]) -> None:
        command, last = argv[0], argv[-1]
        if command == "hdparm":
            self._hdparm_sets(self._of_path(last), argv[-2])
        elif command == "sync" and argv[1] != "--file-system":
            disk = self._of_path(last)
            if disk.belief == "write back" and disk.counts:
                disk.flushes, disk.dirty = disk.flushes + 1, False
        elif command == "mount":
            self._remount(argv)
        elif command == "unshare":
            self._try(argv)
        elif command not in ("sync", "mkdir", "mkfs.ext3", "mkfs.ext4", "mkfs.xfs", "rm", "systemctl"):
            raise ChangeFailed(f"{command}: No such file or directory")

    def on_attribute(self, path: str, value: str) -> None:
        disk = self.disks.get(path.split("/")[3])
        if disk is None or not path.endswith("/cache_type"):
            raise ChangeFailed(f"{path}: writing {value!r}: No such file or directory")
        if disk.transport == "sata":
            assert value == "temporary write back", value
            disk.pinned = True
        elif disk.obeys:
            disk.cache = "enabled" if value == "write back" else "disabled"
        if not disk.forced:
            disk.belief = "write back" if disk.pinned else _cache_type(disk)

    def _hdparm_sets(self, disk: FakeDisk, word: str) -> None:
        if disk.obeys:
            disk.cache = {"-W0": "disabled", "-W1": "enabled"}[word]
        if not disk.pinned and not disk.forced:
            disk.belief = _cache_type(disk)

    def _remount(self, argv: list[str]) -> None:
        _mount, _o, options, source, device, target = argv
        assert source == "--options-source=disable", "mount(8) would read fstab"
        mount = self.mounts[target]
        assert device == mount.source
        words = options.split(",")
        for word in words:
            if word not in KNOWN and not (mount.fstype != "xfs" and word.startswith("barrier=")):
                raise ChangeFailed(f"mount: {target}: mount point not mounted or bad option.")
        mount.flags = tuple(word for word in words if word in FLAGS and word not in ("ro", "rw"))
        own = "ro" if "ro" in words else "rw"
        mount.flags = (own, *mount.flags)
        if "bind" not in words:
            # A remount without "bind" sets the superblock's flag too.
            mount.sb_flag = own
        for word in words:
            self._apply_word(mount, word)

    def _apply_word(self, mount: FakeMount, word: str) -> None:
        if word in ("barrier=1", "barrier"):
            mount.barrier = "on"
        elif word in ("barrier=0", "nobarrier"):
            mount.barrier = "off"
        elif word.startswith("data="):
            mount.data = word[5:]
        elif word in ("noatime", "relatime", "strictatime"):
            mount.atime = word

    def _try(self, argv: list[str]) -> None:
        options = argv[argv.index("-o") + 1].split(",")
        xfs = argv[argv.index("-t") + 1] == "xfs"
        wrong = [
            o for o in options if o == self.trial_refuses or (xfs and o.startswith(("barrier", "data=")))
        ]
        if wrong:
            raise ChangeFailed(f"mount: wrong fs type, bad option {wrong[0]}")

    def _of_path(self, path: str) -> FakeDisk:
        name = path.rpartition("/")[2]
        if name not in self.disks:
            raise ChangeFailed(f"{path}: No such file or directory")
        return self.disks[name]

    def _age(self) -> None:
        """Databases commit all the time: what is not flushed piles up."""
        for mount in self.mounts.values():
            disk = self.disks.get(mount.disk)
            if disk and _exposed("now", "", disk.cache, mount.barrier, disk.belief) and _cached(disk):
                disk.dirty = True

    def _text(self, path: str) -> str:
        return self.read(path) if self.exists(path) else ""

    def _mountinfo(self) -> str:
        lines = ["22 1 0:21 / /proc rw,relatime - proc proc rw", "23 1 0:24 / /tmp rw - tmpfs tmpfs rw"]
        for number, mount in enumerate(self.mounts.values(), 30):
            atime = [] if mount.atime == "strictatime" else [mount.atime]
            shown = ["nobarrier"] if mount.fstype != "xfs" and mount.barrier == "off" else []
            lines.append(
                f"{number} 1 {mount.device} / {mount.target} {','.join((*mount.flags, *atime))} shared:1"
                f" - {mount.fstype} {mount.source} {','.join((mount.sb_flag, *shown))}"
            )
        return "".join(f"{line}\n" for line in lines)

    def _udev_database(self) -> str:
        records = []
        for disk in self.disks.values():
            bus = "E: ID_BUS=ata\n" if disk.transport == "sata" else ""
            records.append(
                f"P: /devices/pci/block/{disk.name}\nM: {disk.name}\nE: SUBSYSTEM=block\n"
                f"E: DEVNAME=/dev/{disk.name}\nE: DEVTYPE=disk\n{bus}E: ID_SERIAL={disk.serial}\n"
            )
        return "\n".join(records)


def _cached(disk: FakeDisk) -> bool:
    return disk.cache == "enabled"


def _cache_type(disk: FakeDisk) -> str:
    return "write back" if disk.cache == "enabled" else "write through"


def _sysfs(disk: FakeDisk) -> str:
    port = "ata1/host0/target0:0:0/0:0:0:0" if disk.transport == "sata" else "virtio1"
    return f"/sys/devices/pci0000:00/{port}/block/{disk.name}"


def _exposed(when: str, target: str, cache: str, barrier: str, belief: str) -> set[str]:
    """A cache that nothing flushes; also one that is off now, and comes on at the next reset."""
    found = set()
    if barrier == "off":
        found.add(f"{target} {when}: cache {cache} without barriers")
    if belief == "write through" and cache == "enabled":
        found.add(f"{target} {when}: the kernel does not flush the cache")
    return found


def _hdparm(disk: FakeDisk) -> str:
    shown = {"enabled": "1 (on)", "disabled": "0 (off)", "none": "not supported"}[disk.cache]
    return f"\n/dev/{disk.name}:\n write-caching =  {shown}\n"


def _ext4_options(mount: FakeMount) -> str:
    words = [mount.sb_flag, "delalloc", "barrier" if mount.barrier == "on" else "nobarrier"]
    if mount.journal:
        words.append(f"data={mount.data}")
    return "".join(f"{word}\n" for word in words)


def _dumpe2fs(mount: FakeMount) -> str:
    names = {
        "nobarrier": "nobarrier",
        "data=journal": "journal_data",
        "data=writeback": "journal_data_writeback",
    }
    defaults = " ".join(["user_xattr", *(names[word] for word in mount.sb_options)])
    journal = "has_journal " if mount.journal else ""
    return f"Filesystem features:      {journal}ext_attr extent\nDefault mount options:    {defaults}\n"
