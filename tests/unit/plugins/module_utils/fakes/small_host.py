# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small database host whose kernel and disks behave: what a test changes shows everywhere.

sda: SATA, ext4 on a partition; sdb: SATA, xfs on a partition; vdb: virtio, ext4 on the whole
disk; vda: virtio, the root file system on a partition. `BigHost` has more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    Result,
    TrialRefused,
    Unobservable,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    cache_rules,
    caches,
    ext4,
    scheduler_rules,
)

from .fake_devices import (
    MAKES,
    PORTS,
    ROOT_MOUNT,
    FakeDisk,
    FakeLayer,
    FakeMount,
    bcache,
    dm,
    loop,
    md,
)
from .fake_host import FakeHost
from .fake_udev import play

__all__ = [
    "BOOT_ID",
    "BigHost",
    "FakeDisk",
    "FakeLayer",
    "FakeMount",
    "Multipath",
    "SmallHost",
    "Traced",
    "bcache",
    "dm",
    "loop",
    "md",
]

BOOT_ID = "11111111-2222-3333-4444-555555555555"
#: Words that the remount model takes for the file system; others are refused.
KNOWN = ("rw", "sync", "async", "noatime", "relatime", "strictatime")
UNITS = "/etc/systemd/system"
#: Commands that change nothing that this model has.
_HARMLESS = (
    "mkdir",
    "rm",
    "rmdir",
    "truncate",
)
_SDPARM_VALUES = ("sdparm", "--quiet", "--readonly", "--get", "WCE", "-H")
_LOSETUP = ("losetup", "--list", "--noheadings", "--output", "NAME,BACK-MAJ:MIN")
_SDPARM = ("sdparm", "--quiet", "--readonly", "--get", "WCE=1", "-H")


class SmallHost(FakeHost):
    """The machine. Change its parts freely: files and commands are made when they are read.

    `trial_refuses` is an option that the throw-away image of a mount trial does not take, and
    `image_defaults` is what its superblock sets;
    `initramfs` names the layers that an initramfs makes, before any rule of ours; `loops` is {loop device: device
    number of the file system that holds its file}.
    """

    def __init__(self) -> None:
        super().__init__()
        self.disks: dict[str, FakeDisk] = {}
        self.layers: dict[str, FakeLayer] = {}
        self.mounts: dict[str, FakeMount] = {}
        self.trial_refuses = "bogus"
        self.initramfs: tuple[str, ...] = ()
        self.loops: dict[str, str] = {}
        self.image_defaults: list[str] = []
        self.files.update(
            {
                "/etc/fstab": "# /etc/fstab: static file system information.\n",
                "/proc/cmdline": "root=UUID=root ro quiet\n",
                "/proc/filesystems": "nodev\tproc\nnodev\ttmpfs\n\text3\n\text4\n\txfs\nnodev\toverlay\n",
                "/proc/self/mountinfo": self._mountinfo,
                "/proc/sys/kernel/osrelease": "6.1.0-26-amd64\n",
                "/proc/sys/kernel/random/boot_id": f"{BOOT_ID}\n",
                "/run/systemd/system/marker": "",
                **{paths[0]: "" for paths in (*caches.PROGRAMS.values(), ("/bin/udevadm",))},
                **dict.fromkeys(("/sbin/blockdev", "/bin/mount", "/bin/umount"), ""),
            }
        )
        self.links["/proc/self/ns/mnt"] = "mnt:[4026531841]"
        self.commands[("systemd-detect-virt",)] = "none\n"
        self.commands[("udevadm", "info", "--export-db")] = self._udev_database
        self.commands[("dmsetup", "table")] = self._tables
        self.commands[_LOSETUP] = lambda: "".join(f"/dev/{n}   {at} \n" for n, at in self.loops.items())
        for number, disk in (
            ("8:0", FakeDisk("sda", "sata", "QEMU_HARDDISK_SATA0001")),
            ("8:16", FakeDisk("sdb", "sata", "QEMU_HARDDISK_SATA0002")),
            ("254:0", FakeDisk("vda", "virtio", "LABROOT")),
            ("254:16", FakeDisk("vdb", "virtio", "VIRT0001")),
        ):
            self.add_disk(disk, number)
        for mount, line in (
            (FakeMount("/", "ext4", "254:1", "/dev/vda1", "vda"), "UUID=root / ext4 errors=remount-ro 0 1\n"),
            (
                FakeMount("/srv/pgdata", "ext4", "8:1", "/dev/sda1", "sda"),
                "UUID=pg\t/srv/pgdata\text4\tdefaults\t0 2\n",
            ),
            (
                FakeMount("/srv/mssql", "xfs", "8:17", "/dev/sdb1", "sdb"),
                "UUID=ms /srv/mssql xfs defaults 0 2 \n",
            ),
            (
                FakeMount("/srv/maria", "ext4", "254:16", "/dev/vdb", "vdb"),
                "UUID=ma /srv/maria ext4 defaults,nofail\n",
            ),
        ):
            self.add_mount(mount, line)
        self.after_mutation = self._age

    def __repr__(self) -> str:
        """Show what differs between hosts, for the reader of a failed property."""
        disks = [f"{d.name} cache {d.cache}, cache mode {d.cache_mode}" for d in self.disks.values()]
        mounts = [
            f"{m.target} barrier {m.barrier}, data {m.data}, {m.atime}, superblock {m.sb_options}, boot"
            f" {','.join(self.boot_options(m.target))}"
            for m in self.mounts.values()
        ]
        return "\n  ".join([type(self).__name__, *disks, *mounts, self.text(cache_rules.RULES_PATH)])

    def disk(self, name: str) -> FakeDisk:
        """Return a disk by kernel name."""
        return self.disks[name]

    def add_disk(self, disk: FakeDisk, number: str = "") -> None:
        """Plug a disk in."""
        self.disks[disk.name] = disk
        name, base = disk.name, disk.sysfs
        self._publish(name, base, number)
        queue = {
            "write_cache": lambda: disk.cache_mode,
            "fua": lambda: disk.fua if disk.cache_mode == "write back" else "0",
            "rotational": lambda: disk.rotational,
            "logical_block_size": lambda: disk.logical,
            "physical_block_size": lambda: disk.physical,
            "scheduler": lambda: disk.scheduler,
            "read_ahead_kb": lambda: disk.readahead,
        }
        for attribute, say in queue.items():
            self.files[f"{base}/queue/{attribute}"] = lambda say=say: f"{say()}\n"
        self.files[f"{base}/stat"] = lambda: f"{' '.join(['7'] * 15)} {disk.flushes:>8} 9\n"
        vendor, model = MAKES.get(disk.transport, ("", ""))
        self.files[f"{base}/device/vendor"] = lambda: f"{disk.vendor or vendor:<8}\n"
        self.files[f"{base}/device/model"] = lambda: f"{disk.model or model:<16}\n"
        node = f"/dev/{name}"
        if disk.transport == "virtio":
            self.files[f"{base}/cache_type"] = lambda: f"{_cache_type(disk)}\n"
        elif disk.transport == "nvme":
            self.commands[("nvme", "id-ctrl", node, "--output-format=json")] = disk.nvme_identity
            self.commands[("nvme", "get-feature", node, "--feature-id=6")] = disk.nvme_feature
        else:
            self.files[f"{base}/device/scsi_disk/0:0:0:0/cache_type"] = lambda: f"{disk.cache_mode}\n"
            for part in (part for part in base.split("/") if part.startswith("host")):
                driver = disk.driver or PORTS.get(disk.transport, ("", "", ""))[1]
                self.files[f"/sys/class/scsi_host/{part}/proc_name"] = f"{driver}\n"
            if disk.transport == "scsi":
                self.commands[(*_SDPARM, node)] = disk.sdparm
                self.commands[(*_SDPARM_VALUES, node)] = disk.sdparm_values
            else:
                self.commands[("hdparm", "-W", node)] = disk.hdparm

    def add_layer(self, layer: FakeLayer) -> None:
        """Assemble a device over others; those are disks, layers, or partitions of disks."""
        self.layers[layer.name] = layer
        base = layer.sysfs
        self._publish(layer.name, base, layer.number)
        for path in layer.attributes():
            self.files[f"{base}/{path}"] = lambda path=path: f"{layer.attributes()[path]}\n"
        self.files[f"{base}/queue/read_ahead_kb"] = lambda: f"{layer.readahead}\n"
        self.files[f"{base}/queue/write_cache"] = lambda: f"{layer.cache_mode}\n"
        for below in layer.below:
            path = self.links.get(f"/sys/class/block/{below}", "/nowhere")
            self.links.update({f"{base}/slaves/{below}": path, f"{path}/holders/{layer.name}": base})
        if layer.mapped:
            self.links[f"/dev/mapper/{layer.mapped}"] = f"/dev/{layer.name}"

    def add_partition(self, disk: str, name: str, number: str) -> None:
        """Cut a partition out of a disk or layer."""
        path = f"{self.links[f'/sys/class/block/{disk}']}/{name}"
        self.links.update({f"/sys/dev/block/{number}": path, f"/sys/class/block/{name}": path})
        self.links[f"/dev/block/{number}"] = f"/dev/{name}"
        self.files.update({f"{path}/partition": "1\n", f"{path}/dev": f"{number}\n"})
        self.block_devices.add(f"/dev/{name}")

    def unplug(self, name: str) -> None:
        """Take a disk away, as a pulled cable does."""
        del self.disks[name]
        for place in ("block", "class/block"):
            del self.links[f"/sys/{place}/{name}"]
        for argv in [argv for argv in self.commands if f"/dev/{name}" in argv]:
            del self.commands[argv]

    def add_mount(self, mount: FakeMount, line: str = "") -> None:
        """Mount a file system; `line` is what fstab says of it."""
        self.mounts[mount.target] = mount
        device = mount.source.rpartition("/")[2]
        if mount.source.startswith("/dev/mapper/") or mount.fstype == "btrfs":
            device = mount.disk
        elif device != mount.disk:
            self.add_partition(mount.disk, device, mount.device)
        if mount.fstype.startswith("ext"):
            self.files[f"/proc/fs/ext4/{device}/options"] = mount.ext_options
            self.commands[(*ext4.SHOW, f"/dev/block/{mount.device}")] = mount.superblock
            thread = 400 + len(self.mounts)
            self.files[f"/sys/fs/ext4/{device}/journal_task"] = f"{thread}\n"
            self.files[f"/proc/{thread}/comm"] = lambda: (
                f"jbd2/{mount.journal_on or f'{device}-8'}"[:15] + "\n"
            )
        if line:
            assert isinstance(self.files["/etc/fstab"], str)
            self.files["/etc/fstab"] += line
            tag = line.split()[0]
            if tag.startswith("UUID="):
                self.links[f"/dev/disk/by-uuid/{tag[5:]}"] = f"/dev/{device}"

    def add_process(self, pid: int, namespace: str, command: str, mountinfo: str) -> None:
        """Start a process; with a namespace of its own it sees other mounts."""
        self.links[f"/proc/{pid}/ns/mnt"] = f"mnt:[{namespace}]"
        self.files.update({f"/proc/{pid}/comm": f"{command}\n", f"/proc/{pid}/mountinfo": mountinfo})

    def leaves(self, mount: FakeMount) -> list[FakeDisk]:
        """Return the disks that a file system writes to."""
        return [disk for disk, _heard in self._ways_down(mount)]

    def reboot(self) -> None:
        """Come back as fstab, mount units, superblocks and our udev rules say."""
        for path in [name for name in self.files if name.startswith("/run/durable-dbhost/")]:
            del self.files[path]
        self._start()
        for mount in self.mounts.values():
            mount.barrier, mount.data, mount.atime = "on", "ordered", "relatime"
            for word in ("async", *mount.sb_options, *self.boot_options(mount.target)):
                mount.apply(word)
        self._age()

    def reset(self, name: str, heard: bool = True) -> None:
        """Reset a disk: its cache is as at power-on, and the kernel looks at it only if a rule does."""
        disk = self.disks[name]
        disk.cache = disk.cache if disk.cache == "none" else disk.power_on
        self._age()
        if heard:
            self.event("change", name)

    def event(self, action: str, name: str) -> None:
        """Let udev apply our rules to a disk or layer."""
        device = self.disks.get(name) or self.layers[name]
        event = {"KERNEL": name, "ACTION": action, "SUBSYSTEM": "block", "DEVTYPE": "disk"}
        event.update(device.properties)
        ours = (cache_rules.RULES_PATH, scheduler_rules.RULES_PATH)
        for path in sorted(
            (*ours, cache_rules.FORMER_PATH, scheduler_rules.FORMER_PATH), key=os.path.basename
        ):
            play(self.text(path), event, self._run_of_udev, lambda p, v: self._write_of_udev(name, p, v))

    def boot_options(self, target: str) -> list[str]:
        """Return what mounts a target at boot, read more simply than the collection does."""
        rows = [line.split() for line in self.text("/etc/fstab").split("\n")]
        found = [row[3] for row in rows if len(row) > 3 and row[1] == target and row[0][0] != "#"]
        options = found[-1].split(",") if found else []
        unit = f"{UNITS}/{target.strip('/').replace('/', '-')}.mount"
        drop_ins = sorted(f"{unit}.d/{name}" for name in self.files.children(f"{unit}.d"))
        for path in (unit, *drop_ins):
            for line in self.text(path).split("\n"):
                if line.startswith("Options="):
                    options = line[8:].split(",")
        return options

    def ways_to_lose(self) -> set[str]:
        """Return every way in which this host, as it is, loses or hurts commits; empty is safe."""
        found = {f"{disk.name}: unflushed commits" for disk in self.disks.values() if disk.dirty}
        for mount in self.mounts.values():
            found |= self._exposed("now", mount)
        parts = [*self.disks.values(), *self.layers.values()]
        kept = [dict(vars(part)) for part in parts]
        self._start()
        for mount in self.mounts.values():
            boot = replace(mount, barrier="on", data="ordered")
            for word in (*mount.sb_options, *self.boot_options(mount.target)):
                boot.apply(word)
            if mount.fstype == "xfs" and boot.barrier == "off":
                found.add(f"{mount.target} boot: does not mount")
            else:
                found |= self._exposed("boot", boot)
            if mount.fstype.startswith("ext") and boot.data == "writeback":
                found.add(f"{mount.target} boot: writeback")
        for part, state in zip(parts, kept):
            vars(part).update(state)
        return found

    def on_change(self, argv: list[str]) -> None:
        commands = {
            "hdparm": self._hdparm,
            "nvme": self._nvme,
            "sync": self._sync,
            "systemctl": self._systemctl,
            "tune2fs": self._tune,
        }
        if argv[0] in commands:
            commands[argv[0]](argv)
        elif argv[0].startswith("mkfs"):
            self.image_defaults = []
        elif argv[0] not in _HARMLESS:
            raise ChangeFailed(f"{argv[0]}: No such file or directory")

    def on_attribute(self, path: str, value: str) -> None:
        name, attribute = path.split("/")[3], path.rpartition("/")[2]
        if name in self.layers and attribute == "read_ahead_kb":
            self.layers[name].readahead = value
        elif name not in self.disks or not self.exists(path):
            raise ChangeFailed(f"{path}: writing {value!r}: No such file or directory")
        elif attribute == "cache_type":
            self.disks[name].set_cache_type(value)
        elif attribute == "scheduler":
            self.disks[name].set_scheduler(value)
        elif attribute == "write_cache":
            self.disks[name].unforce(value)
        else:
            assert attribute == "read_ahead_kb", "nothing else is ours to write"
            self.disks[name].readahead = value

    def text(self, path: str) -> str:
        """Return a file's content, '' where there is none."""
        return self.read(path) if self.exists(path) else ""

    def _publish(self, name: str, base: str, number: str) -> None:
        for place in ("block", "class/block"):
            self.links[f"/sys/{place}/{name}"] = base
        self.block_devices.add(f"/dev/{name}")
        if number:
            self.links.update({f"/sys/dev/block/{number}": base, f"/dev/block/{number}": f"/dev/{name}"})
            self.files[f"{base}/dev"] = f"{number}\n"

    def _whole(self, name: str) -> str:
        path = self.links.get(f"/sys/class/block/{name}", "")
        return path.split("/")[-2] if f"{path}/partition" in self.files else name

    def _start(self) -> None:
        for disk in self.disks.values():
            disk.start()
        for layer in self.layers.values():
            layer.made, layer.readahead = layer.name in self.initramfs, "128"
            if layer.made:
                self._assemble(layer)
        for disk in self.disks.values():
            self.event("add", disk.name)
        for layer in self.layers.values():
            if not layer.made:
                self._assemble(layer)
            self.event("add", layer.name)

    def _assemble(self, layer: FakeLayer) -> None:
        below = [self.layers.get(name) or self.disks[self._whole(name)] for name in layer.below]
        takes = layer.kind in ("md", "loop", "bcache", "drbd") or layer.tables[0].startswith(_TAKING)
        flushed = takes or any(part.cache_mode == "write back" for part in below)
        layer.cache_mode, layer.made = "write back" if flushed else "write through", True

    def _ways_down(self, mount: FakeMount) -> list[tuple[FakeDisk, bool]]:
        """Return the disks below a file system, each with whether all layers above pass flushes on."""
        waiting, found = [(name, True) for name in (mount.disk, *mount.beside)], []
        while waiting:
            name, heard = waiting.pop(0)
            name = name if name in self.layers else self._whole(name)
            if name in self.layers:
                layer = self.layers[name]
                waiting += [(below, heard and layer.cache_mode == "write back") for below in layer.below]
            elif name in self.disks:
                found.append((self.disks[name], heard))
        return found

    def _exposed(self, when: str, mount: FakeMount) -> set[str]:
        """A cache that nothing flushes; also one that is off now, and comes on at the next reset."""
        found = set()
        for disk, heard in self._ways_down(mount):
            if mount.barrier == "off":
                found.add(f"{mount.target} {when}: no barriers")
            if disk.cache != "enabled":
                continue
            if mount.barrier == "off":
                found.add(f"{mount.target} {when}: no barriers over {disk.name}'s cache")
            if disk.cache_mode == "write through" or not heard:
                found.add(f"{mount.target} {when}: nothing flushes {disk.name}'s cache")
        return found

    def _run_of_udev(self, line: str) -> str | None:
        command, *arguments = line.split()
        argv = [command.rpartition("/")[2], *arguments]
        try:
            if argv[0] == "lsblk":
                return self._lsblk(argv)
            if tuple(argv) in self.commands:
                result = self.run(argv)
                return result.stdout if result.rc == 0 else None
            self.on_change(argv)
        except (ChangeFailed, Unobservable):
            return None
        return ""

    def _write_of_udev(self, name: str, pattern: str, value: str) -> None:
        paths = [f"/sys/block/{name}"]
        for part in pattern.split("/"):
            inside = {path: self.names(path) if self.exists(path) else [] for path in paths}
            paths = [
                f"{path}/{entry}" for path in inside for entry in inside[path] if fnmatchcase(entry, part)
            ]
        for path in paths:
            try:
                self.on_attribute(path, value)
            except ChangeFailed:
                pass

    def _lsblk(self, argv: list[str]) -> str:
        """Name a disk and all that lies over it."""
        _lsblk, *options, device = argv
        assert options == ["--noheadings", "--raw", "--output", "KNAME"], argv
        found = [self._of_path(device).name]
        wholes = {name: self._whole(name) for name in self.names("/sys/class/block")}
        for name in found:
            found += [part for part, whole in wholes.items() if whole == name != part]
            found += [layer.name for layer in self.layers.values() if layer.made and name in layer.below]
        return "".join(f"{name}\n" for name in found)

    def _hdparm(self, argv: list[str]) -> None:
        disk = self._of_path(argv[-1])
        disk.switch({"-W0": "disabled", "-W1": "enabled"}[argv[-2]])
        disk.follow()

    def _sync(self, argv: list[str]) -> None:
        if argv[1] == "--file-system":
            return
        disk = self._of_path(argv[-1])
        if disk.cache_mode == "write back" and disk.counts:
            disk.flushes, disk.dirty = disk.flushes + 1, False

    def _systemctl(self, argv: list[str]) -> None:
        if argv[1] in ("daemon-reload", "reset-failed"):
            return
        _systemctl, quiet, verb, unit = [word for word in argv if word != "--no-reload"]
        assert quiet == "--quiet", argv
        wanted = [line for line in self.text(f"{UNITS}/{unit}").split("\n") if line.startswith("WantedBy=")]
        if not wanted:
            raise ChangeFailed(f"Failed to {verb} unit: Unit file {unit} does not exist.")
        for target in wanted[0][9:].split():
            link = f"{UNITS}/{target}.wants/{unit}"
            if verb == "enable":
                self.links[link] = f"{UNITS}/{unit}"
            else:
                assert verb == "disable", argv
                self.links.pop(link, None)

    def _tune(self, argv: list[str]) -> None:
        _tune2fs, _o, word, device = argv
        if device.endswith("/image"):
            names = {"journal_data": "data=journal", "nobarrier": "nobarrier"}
            self.image_defaults.append(names.get(word, f"data={word.rpartition('_')[2]}"))
            return
        (mount,) = [m for m in self.mounts.values() if device == f"/dev/block/{m.device}"]
        others = tuple(option for option in mount.sb_options if not option.startswith("data="))
        modes = {"journal_data": "data=journal", "journal_data_writeback": "data=writeback"}
        mount.sb_options = (*others, modes.get(word, "data=ordered")) if word[0] != "^" else others

    def _nvme(self, argv: list[str]) -> None:
        _nvme, verb, device, *options = argv
        assert verb == "set-feature", argv
        assert "--feature-id=6" in options, argv
        if "--namespace-id=0xffffffff" not in options:
            raise ChangeFailed("NVMe status: Feature Not Namespace Specific(0x10f)")
        (value,) = [option for option in options if option.startswith("--value=")]
        self._of_path(device).switch({"--value=0": "disabled", "--value=1": "enabled"}[value])

    def on_options(self, target: str, options: Sequence[str]) -> None:
        mount = self.mounts[target]
        for word in options:
            barrier = word.startswith("barrier=") if mount.fstype != "btrfs" else word in _BTRFS
            if word not in KNOWN and not (mount.has_barriers and barrier):
                raise ChangeFailed(f"{target}: {word}: Invalid argument")
            if word == "rw":
                mount.sb_flag = "rw"
                mount.flags = tuple("rw" if flag == "ro" else flag for flag in mount.flags)
            mount.apply(word)

    def on_trial(self, image: str, fstype: str, steps: Sequence[Sequence[str]]) -> None:
        """Mount the scratch image, or replay a boot of the root on it."""
        options = [option for step in steps for option in step]
        wrong = [
            o for o in options if o == self.trial_refuses or (fstype == "xfs" and o.startswith(_NOT_XFS))
        ]
        modes = [o for o in (*self.image_defaults, *options) if o.startswith("data=")]
        together = {"data=ordered": ("journal_async_commit",), "data=journal": ("delalloc", "dioread_nolock")}
        wrong += [o for o in options if o in together.get((modes or ["data=ordered"])[-1], ())]
        assert image.endswith("/image")
        if wrong:
            raise TrialRefused(f"{fstype}: Unknown parameter '{wrong[0]}'")

    def _of_path(self, path: str) -> FakeDisk:
        name = path.rpartition("/")[2]
        if name not in self.disks:
            raise ChangeFailed(f"{path}: No such file or directory")
        return self.disks[name]

    def _age(self) -> None:
        """Databases commit all the time: what is not flushed piles up."""
        for mount in self.mounts.values():
            for disk, heard in self._ways_down(mount):
                flushed = heard and mount.barrier == "on" and disk.cache_mode == "write back"
                if disk.cache == "enabled" and not flushed:
                    disk.dirty = True

    def _mountinfo(self) -> str:
        lines = [
            f"22 {ROOT_MOUNT} 0:21 / /proc rw,relatime - proc proc rw\n",
            f"23 {ROOT_MOUNT} 0:24 / /tmp rw - tmpfs tmpfs rw\n",
        ]
        numbers: dict[str, int] = {}
        for number, mount in enumerate(self.mounts.values(), ROOT_MOUNT):
            # It lies in the one that was mounted around it before.
            around = [target for target in numbers if mount.target.startswith(f"{target.rstrip('/')}/")]
            lines.append(mount.line(number, numbers[max(around, key=len)] if around else 1))
            numbers[mount.target] = number
        return "".join(lines)

    def _udev_database(self) -> str:
        records = []
        for device in (*self.disks.values(), *self.layers.values()):
            properties = "".join(f"E: {name}={value}\n" for name, value in device.properties.items())
            records.append(
                f"P: /devices/pci/block/{device.name}\nM: {device.name}\nE: SUBSYSTEM=block\n"
                f"E: DEVNAME=/dev/{device.name}\nE: DEVTYPE=disk\n{properties}"
            )
        records += [
            f"P: /devices/pci/block/{name}\nM: {name}\nE: SUBSYSTEM=block\n"
            f"E: DEVNAME=/dev/{name}\nE: DEVTYPE=partition\n"
            for name in self.names("/sys/class/block")
            if self._whole(name) != name
        ]
        return "\n".join(records)

    def _tables(self) -> Result:
        lines = [
            f"{layer.mapped}: {index * 2048} 2048 {table}\n"
            for layer in self.layers.values()
            for index, table in enumerate(layer.tables)
        ]
        return Result(0, "".join(lines) or "No devices found\n", "")


class BigHost(SmallHost):
    """Adds what a server has: SAS and NVMe disks, an md mirror under LVM, dm-crypt, a journal elsewhere.

    sdc, sdd: SAS, md0 over both, ext4 on a volume of LVM over it; nvme0n1: xfs on dm-crypt on its
    partition; sde: SAS, ext4 with its journal on another partition of nvme0n1; sdf: SAS, btrfs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files["/proc/filesystems"] += "\tbtrfs\n"
        self.files["/etc/crypttab"] = "crypt-dm-1 /dev/nvme0n1p1 none luks\n"
        for number, name, wwn in (
            ("8:32", "sdc", "0x5000c500a1b2c3d4"),
            ("8:48", "sdd", "0x5000c500a1b2c3d5"),
            ("8:64", "sde", "0x5000c500a1b2c3d6"),
            ("8:80", "sdf", "0x5000c500a1b2c3d7"),
        ):
            self.add_disk(FakeDisk(name, "scsi", f"35{name}", wwn=wwn, rotational="1", fua="1"), number)
        self.add_disk(FakeDisk("nvme0n1", "nvme", "KIOXIA_X1", wwn="eui.0025385", fua="1"), "259:0")
        self.add_partition("sdc", "sdc1", "8:33")
        self.add_partition("sdd", "sdd1", "8:49")
        self.add_partition("nvme0n1", "nvme0n1p1", "259:1")
        self.add_partition("nvme0n1", "nvme0n1p2", "259:2")
        self.add_layer(md("md0", "raid1", ("sdc1", "sdd1"), "9:0"))
        self.add_layer(dm("dm-0", "LVM", ("md0",), "253:0", "linear 9:0 2048"))
        self.add_layer(
            dm("dm-1", "CRYPT", ("nvme0n1p1",), "253:1", "crypt aes-xts-plain64 :64:logon:x 0 259:1 32768")
        )
        for mount, line in (
            (
                FakeMount("/srv/faircom", "ext4", "253:0", "/dev/mapper/lvm-dm-0", "dm-0"),
                "/dev/mapper/lvm-dm-0 /srv/faircom ext4 defaults 0 2\n",
            ),
            (
                FakeMount("/srv/firebird", "xfs", "253:1", "/dev/mapper/crypt-dm-1", "dm-1"),
                "UUID=fb /srv/firebird xfs defaults 0 2\n",
            ),
            (
                FakeMount(
                    "/srv/mysql",
                    "ext4",
                    "8:65",
                    "/dev/sde1",
                    "sde",
                    journal_on="nvme0n1p2",
                    beside=("nvme0n1p2",),
                ),
                "UUID=my /srv/mysql ext4 defaults 0 2\n",
            ),
            (
                FakeMount("/srv/btrfs", "btrfs", "0:51", "/dev/sdf", "sdf"),
                "UUID=bt /srv/btrfs btrfs defaults 0 0\n",
            ),
        ):
            self.add_mount(mount, line)
        self.links["/sys/fs/btrfs/b0b0/devices/sdf"] = self.links["/sys/block/sdf"]


class Multipath(BigHost):
    """nvme0n1 is the head of two paths, which are hidden and of which `flushed` takes the flushes."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed = "nvme0c1n1"
        self.paths = {"nvme0c0n1": 3, "nvme0c1n1": 5}
        self.kernel = dict.fromkeys(self.paths, "write back")
        for path in self.paths:
            base = f"/sys/devices/pci0000:00/0000:02:00.0/nvme/nvme0/{path}"
            self.links[f"/sys/block/{path}"] = base
            self.files[f"{base}/stat"] = lambda path=path: f"{' '.join(['7'] * 15)} {self.paths[path]} 9\n"
            self.files[f"{base}/queue/write_cache"] = lambda path=path: f"{self.kernel[path]}\n"

    def on_attribute(self, path: str, value: str) -> None:
        name = path.split("/")[3]
        if name in self.paths:
            assert (path.rpartition("/")[2], value) == ("write_cache", "write back")
            self.kernel[name] = value
        else:
            super().on_attribute(path, value)

    def on_change(self, argv: list[str]) -> None:
        if argv == ["sync", "/dev/nvme0n1"] and self.disk("nvme0n1").counts:
            self.paths[self.flushed] += 1
        elif argv != ["sync", "/dev/nvme0n1"]:
            super().on_change(argv)


class Traced(SmallHost):
    """Its kernel is older than 5.5: it counts no flushes in a disk's stat file, and can trace them.

    `tracefs` is where that is mounted, '' nowhere; `error` is how a disk answers a flush; `beside` is what the
    trace has besides. Events are as block_rq_complete of Linux 4.18 prints them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files["/proc/sys/kernel/osrelease"] = "4.18.0-553.el8_10.x86_64\n"
        self.files[f"/proc/{os.getpid()}/comm"] = "python3\n"
        for disk in self.disks.values():
            self.files[f"{disk.sysfs}/stat"] = " ".join(["7"] * 15) + "\n"
        self.error = 0
        self.beside = ""
        self.filters: list[str] = []
        self.mount_tracefs("/sys/kernel/debug/tracing")

    def mount_tracefs(self, place: str) -> None:
        """Mount it there, and nowhere else."""
        for path in [path for path in self.files if "/tracing/" in path]:
            del self.files[path]
        self.tracefs = place
        if place:
            self.files[f"{place}/instances/somebodys/trace"] = ""

    def traces(self) -> list[str]:
        """Return the names of the traces of ours that are there."""
        found = self.files.children(f"{self.tracefs}/instances") - {"somebodys"}
        return sorted(found)

    def on_attribute(self, path: str, value: str) -> None:
        if not path.startswith(f"{self.tracefs}/instances/durable-dbhost-"):
            super().on_attribute(path, value)
            return
        assert self.exists(path), path
        if path.endswith("/filter"):
            self.filters.append(value)
        else:
            assert path.endswith("events/block/block_rq_complete/enable")
            assert self.filters
        self.files[path] = value

    def on_change(self, argv: list[str]) -> None:
        before = {name: disk.flushes for name, disk in self.disks.items()}
        super().on_change(argv)
        if argv[0] == "mkdir" and argv[-1].startswith(f"{self.tracefs}/"):
            event = f"{argv[-1]}/events/block/block_rq_complete"
            self.files.update(
                {f"{event}/filter": "none", f"{event}/enable": "0", f"{argv[-1]}/trace": "# tracer: nop\n"}
            )
        elif argv[0] == "rmdir" and argv[-1].startswith(f"{self.tracefs}/"):
            for path in [path for path in self.files if path.startswith(f"{argv[-1]}/")]:
                del self.files[path]
        for name, count in before.items():
            for _flush in range(self.disks[name].flushes - count):
                self._trace(self.read(f"/sys/block/{name}/dev").strip())

    def _trace(self, number: str) -> None:
        major, minor = map(int, number.split(":"))
        line = f"    kworker/0:1H-171   [000] d.h. 1.5: block_rq_complete: {major},{minor} FF () 0 + 0 [{self.error}]\n"
        for name in self.traces():
            event = f"{self.tracefs}/instances/{name}/events/block/block_rq_complete"
            wanted = f"dev == {major << 20 | minor}" in str(self.files[f"{event}/filter"])
            if self.files[f"{event}/enable"] == "1" and wanted:
                self.files[f"{self.tracefs}/instances/{name}/trace"] += self.beside + line


#: Targets of device-mapper that take each flush themselves.
_TAKING = ("thin", "cache ", "writecache ", "integrity ")
_BTRFS = ("barrier", "nobarrier")
_NOT_XFS = ("barrier", "nobarrier", "data=")


def _cache_type(disk: FakeDisk) -> str:
    return "write back" if disk.cache == "enabled" else "write through"
