# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a small host: disks, layers over them, mounted file systems; what each says of itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from uuid import UUID

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    Result,
    Unobservable,
)

#: Transport -> where its disks hang, the name of the SCSI host's driver, and what udev calls the bus.
PORTS = {
    "sata": ("ata1/host0/target0:0:0/0:0:0:0/block", "ahci", "ata"),
    "scsi": ("0000:01:00.0/host2/port-2:0/end_device-2:0/target2:0:0/2:0:0:0/block", "mpt3sas", "scsi"),
    "nvme": ("0000:02:00.0/nvme/nvme0", "", ""),
    "virtio": ("virtio1/block", "", ""),
}
MAKES = {
    "sata": ("ATA", "WDC WD4003FZEX"),
    "scsi": ("SEAGATE", "ST1200MM0099"),
    "nvme": ("", "KIOXIA KCM61VUL3T20"),
}


@dataclass
class FakeDisk:
    """A disk: `cache` is the device's own, `cache_mode` the kernel's, `dirty` what a cut would lose.

    `power_on` is the cache's state after a power cycle or a reset; a SCSI disk that `saves` keeps there what
    it was last set to. `refuses` makes each command
    that switches it an error, `obeys` False makes it succeed and do nothing. `forced`: a cache mode that somebody
    wrote to its queue, which kernel 6.12 keeps until the same file undoes it, or a boot. `attention` is what a
    SCSI disk has to say before it answers, once. `fua` is what the kernel shows while the cache
    mode is write back. `multipath` is "1" for what multipathd has claimed; `shown` is what udev knows of what is written to the
    disk, and of its place.
    """

    name: str
    transport: str
    serial: str
    cache: str = "enabled"
    cache_mode: str = "write back"
    pinned: bool = False
    forced: bool = False
    obeys: bool = True
    refuses: bool = False
    counts: bool = True
    dirty: bool = False
    flushes: int = 100
    rotational: str = "0"
    logical: str = "512"
    physical: str = "4096"
    fua: str = "0"
    scheduler: str = "[none] mq-deadline"
    readahead: str = "128"
    wwn: str = ""
    power_on: str = "enabled"
    saves: bool = False
    caching_page: bool = True
    attention: str = ""
    model: str = ""
    vendor: str = ""
    driver: str = ""
    port: str = ""
    multipath: str = ""
    shown: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id that the facts give it."""
        kind = "nvme" if self.transport == "nvme" else "wwn"
        return f"{kind}:{self.wwn}" if self.wwn else f"serial:{self.serial}"

    @property
    def sysfs(self) -> str:
        """Where it is in /sys/devices."""
        port = self.port or PORTS.get(self.transport, ("other", "", ""))[0]
        return f"/sys/devices/pci0000:00/{port}/{self.name}"

    @property
    def properties(self) -> dict[str, str]:
        """What udev knows of it."""
        bus = PORTS.get(self.transport, ("", "", ""))[2]
        wwn = "ID_WWN" if self.transport == "nvme" else "ID_WWN_WITH_EXTENSION"
        found = {
            "ID_BUS": bus,
            wwn: self.wwn,
            "ID_SERIAL": self.serial,
            "DM_MULTIPATH_DEVICE_PATH": self.multipath,
            "DEVPATH": self.sysfs.removeprefix("/sys"),
            **self.shown,
        }
        return {name: value for name, value in found.items() if value}

    def follow(self) -> None:
        """Let the kernel look at the device, as it does after its own commands and at a rescan."""
        if self.forced:
            return
        if self.pinned:
            self.cache_mode = "write back"
        elif self.transport == "nvme":
            # By the controller's identity: the feature is not looked at.
            self.cache_mode = "write through" if self.cache == "none" else "write back"
        else:
            self.cache_mode = "write back" if self.cache == "enabled" else "write through"

    def start(self) -> None:
        """Come back with the power: clean, because it was shut down."""
        self.cache = self.cache if self.cache == "none" else self.power_on
        self.pinned = self.forced = self.dirty = False
        self.attention = ""
        self.scheduler, self.readahead = "[none] mq-deadline", "128"
        self.follow()

    def switch(self, state: str) -> None:
        """Do what the device does with a command for its cache. Raises ChangeFailed."""
        if self.refuses:
            raise ChangeFailed(f"{self.name}: Invalid argument")
        if self.obeys and self.cache != "none":
            self.cache = state

    def set_cache_type(self, value: str) -> None:
        """Do what a write to the driver's cache_type does, on kernel 7.2 to the readahead too. Raises ChangeFailed."""
        self.readahead = "128"
        if value == "temporary write back":
            assert self.transport != "virtio", value
            self.pinned = True
        else:
            assert self.transport in ("scsi", "virtio"), value
            self.pinned = False
            self.switch({"write back": "enabled", "write through": "disabled"}[value])
            if self.saves:
                self.power_on = self.cache
        self.follow()

    def unforce(self, value: str) -> None:
        """Do what a write to queue/write_cache does. Raises ChangeFailed."""
        assert value == "write back", "write through there is never ours to write"
        self.readahead = "128"
        if self.refuses:
            raise ChangeFailed(f"/sys/block/{self.name}/queue/write_cache: Invalid argument")
        if self.obeys:
            self.forced = False
            self.follow()

    def set_scheduler(self, value: str) -> None:
        """Do what a write to queue/scheduler does. Raises ChangeFailed."""
        value = {"deadline": "mq-deadline"}.get(value, value)
        names = [word.strip("[]") for word in self.scheduler.split()]
        if value not in names or self.refuses:
            raise ChangeFailed(f"/sys/block/{self.name}/queue/scheduler: Invalid argument")
        if self.obeys:
            self.scheduler = " ".join(f"[{name}]" if name == value else name for name in names)

    def hdparm(self) -> str:
        """What `hdparm -W` says."""
        shown = {"enabled": "1 (on)", "disabled": "0 (off)", "none": "not supported"}[self.cache]
        return f"\n/dev/{self.name}:\n write-caching =  {shown}\n"

    def sdparm(self) -> Result:
        """What `sdparm --quiet --get WCE=1 -H` says."""
        if self.attention:
            said, self.attention = self.attention, ""
            return Result(6, "", said)
        if not self.caching_page:
            return Result(5, "", "mode sense(10): Illegal request\n")
        return Result(0, "0x01 \n" if self.cache == "enabled" else "0x00 \n", "")

    def sdparm_values(self) -> Result:
        """What `sdparm --quiet --get WCE -H` says: current, changeable, default, saved."""
        said = self.sdparm()
        if said.rc != 0:
            return said
        powers_on = "0x01" if self.power_on == "enabled" else "0x00"
        rest = f"0x01 {powers_on}" if self.saves else f"{powers_on} -   "
        return Result(0, f"{said.stdout.strip()} 0x01 {rest} \n", "")

    def nvme_identity(self) -> str:
        """What `nvme id-ctrl` says."""
        return json.dumps({"mn": self.model, "sn": self.serial, "vwc": 0 if self.cache == "none" else 7})

    def nvme_feature(self) -> str:
        """What `nvme get-feature` says."""
        if self.cache == "none":
            raise Unobservable("nvme: Invalid Field in Command")
        value = 1 if self.cache == "enabled" else 0
        return f"get-feature:0x06 (Volatile Write Cache), Current value:0x{value:08x}\n"


@dataclass
class FakeLayer:
    """A device-mapper or md device over others.

    `kind` is dm, md or another (loop, bcache, ...); `tables` are the device-mapper's segments;
    `files` what its directory in sysfs holds besides. `cache_mode` is the kernel's, as it was
    when the layer was made; it passes flushes on only if that is "write back". `made` tells
    whether it is there yet: at boot the disks come first.
    """

    name: str
    kind: str
    below: tuple[str, ...]
    number: str
    mapped: str = ""
    uuid: str = ""
    tables: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    readahead: str = "128"
    cache_mode: str = "write back"
    made: bool = True

    @property
    def id(self) -> str:
        """The id that the facts give it."""
        return f"{self.kind}:{self.uuid}"

    @property
    def sysfs(self) -> str:
        """Where it is in /sys/devices."""
        return f"/sys/devices/virtual/block/{self.name}"

    @property
    def properties(self) -> dict[str, str]:
        """What udev knows of it."""
        key = {"dm": "DM_UUID", "md": "MD_UUID"}.get(self.kind)
        named = {key: self.uuid} if key and self.uuid else {}
        return {"DEVPATH": self.sysfs.removeprefix("/sys"), **named}

    def attributes(self) -> dict[str, str]:
        """What its directory in sysfs holds."""
        own = {"dm": {"dm/name": self.mapped, "dm/uuid": self.uuid}}.get(self.kind, {})
        return {**own, **self.files}


def md(name: str, level: str, below: tuple[str, ...], number: str, **more: str) -> FakeLayer:
    """Return an md array; `more` are other files of its md directory."""
    words = {"level": level, "consistency_policy": "resync", "sync_action": "idle", "degraded": "0", **more}
    files = {f"md/{name}": word for name, word in words.items()}
    return FakeLayer(name, "md", below, number, uuid=f"{name}:11:22:33", files=files)


def dm(name: str, maker: str, below: tuple[str, ...], number: str, *tables: str) -> FakeLayer:
    """Return a device-mapper device; `tables` are its segments, without the offsets."""
    return FakeLayer(name, "dm", below, number, f"{maker.lower()}-{name}", f"{maker}-{name}-uuid", tables)


def loop(name: str, number: str, file: str = "/srv/images/db.img", dio: str = "0") -> FakeLayer:
    """Return a loop device; on which file system its file lies the host's `loops` say."""
    return FakeLayer(name, "loop", (), number, files={"loop/backing_file": file, "loop/dio": dio})


def bcache(
    name: str, below: tuple[str, ...], number: str, mode: str = "writeback", state: str = "dirty"
) -> FakeLayer:
    """Return a bcache device over its backing device and its cache."""
    modes = ("writethrough", "writeback", "writearound", "none")
    words = " ".join(f"[{word}]" if word == mode else word for word in modes)
    return FakeLayer(name, "bcache", below, number, files={"bcache/cache_mode": words, "bcache/state": state})


#: The id of the root's mount.
ROOT_MOUNT = 30


@dataclass
class FakeMount:
    """A mounted file system, and what its superblock makes it do by default.

    `disk` is the disk or layer that it lies on, `beside` are further ones that it writes to, and
    `journal_on` is the one of them that holds an external journal;
    `super_options` stand in the mount table behind the flags.
    """

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
    dir_index: bool = True
    journal_on: str = ""
    beside: tuple[str, ...] = ()
    super_options: tuple[str, ...] = ()
    uuid: str = "0b6e4d1a-55f3-4c1e-9a52-3f4c0a8e7d10"

    @property
    def has_barriers(self) -> bool:
        """Tell whether they can be switched off."""
        return self.fstype.startswith("ext") or self.fstype == "btrfs"

    def apply(self, word: str) -> None:
        """Do what a mount option does."""
        if word in ("barrier=1", "barrier"):
            self.barrier = "on"
        elif word in ("barrier=0", "nobarrier"):
            self.barrier = "off"
        elif word.startswith("data="):
            self.data = word[5:]
        elif word in ("noatime", "relatime", "strictatime"):
            self.atime = word
        elif word in ("sync", "async"):
            others = tuple(option for option in self.super_options if option != "sync")
            self.super_options = (*others, *(["sync"] if word == "sync" else []))

    def line(self, number: int, parent: int = ROOT_MOUNT) -> str:
        """Return its line of the mount table; `parent` is the number of the mount that it lies in."""
        atime = [] if self.atime == "strictatime" else [self.atime]
        shown = ["nobarrier"] if self.has_barriers and self.barrier == "off" else []
        options = ",".join((*self.flags, *atime))
        super_options = ",".join((self.sb_flag, *shown, *self.super_options))
        return (
            f"{number} {parent} {self.device} / {self.target} {options} shared:1"
            f" - {self.fstype} {self.source} {super_options}\n"
        )

    def ext_options(self) -> str:
        """What /proc/fs/ext4/DEVICE/options says."""
        words = [self.sb_flag, "delalloc", "barrier" if self.barrier == "on" else "nobarrier"]
        if self.journal:
            words.append(f"data={self.data}")
        return "".join(f"{word}\n" for word in words)

    def superblock(self) -> str:
        """What od shows of its superblock."""
        bits = {"nobarrier": 0x100, "data=journal": 0x20, "data=ordered": 0x40, "data=writeback": 0x60}
        fields = {
            0x38: b"\x53\xef",
            0x5C: ((0x20 if self.dir_index else 0) | (0x4 if self.journal else 0)).to_bytes(4, "little"),
            0x68: UUID(self.uuid or "0" * 32).bytes,
            # As of the day it was made: no current number.
            0xE4: (0x0700 if self.journal_on else 0).to_bytes(4, "little"),
            0x100: sum(bits[word] for word in self.sb_options).to_bytes(4, "little"),
        }
        raw = bytearray(1024)
        for place, content in fields.items():
            raw[place : place + len(content)] = content
        return "".join(" " + raw[at : at + 16].hex(" ") + "\n" for at in range(0, len(raw), 16))
