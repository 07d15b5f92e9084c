# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Layout files: which disks a machine has, and what lies on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from lab.errors import LabError

BUSES = ("sata", "scsi", "nvme", "virtio")
RELEASE_KERNEL = "release_kernel"
BOOT_LOADER = "boot_loader"
#: What a layout can need beside its buses, and what it means.
NEEDS = {
    RELEASE_KERNEL: "the kernel version of its Debian release, in place of the newest",
    "tracing": "tracefs, and what reads the block layer by it",
    "suspend": "sleep to memory, and a way to wake it",
    "smp": "more than one processor",
    "serial_port": "a second serial port, with its control lines",
    "exact_hardware": "QEMU's own devices, their counters and their commands",
    BOOT_LOADER: "boots by the boot loader that its script installs on the first disk",
}
FILE_SYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs")
ROOT_SERIAL = "LABROOT"
SERIAL = r"[A-Za-z0-9]{1,20}"
#: Names below /dev/disk/by-id, the same in all releases.
LINKS = {
    "sata": "ata-QEMU_HARDDISK_",
    "scsi": "scsi-0QEMU_QEMU_HARDDISK_",
    "nvme": "nvme-QEMU_NVMe_Ctrl_",
    "virtio": "virtio-",
}
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
SMALLEST_XFS = 300 * 2**20  # mkfs.xfs of xfsprogs 6 refuses less


@dataclass(frozen=True)
class Disk:
    """One disk. Without `fstype` it stays raw; without `mount` it is made but not mounted.

    The guest is told the serial of no disk that is `unnamed`: by that only the lab knows it.
    """

    bus: str
    serial: str
    size: int = 512 * 2**20
    fua: bool = False
    wwn: str | None = None
    unnamed: bool = False
    partition: bool = False
    fstype: str | None = None
    mount: str | None = None
    options: str = "defaults"

    @property
    def link(self) -> str:
        """The stable name in the guest."""
        has_wwn = self.bus == "scsi" and self.wwn
        return f"/dev/disk/by-id/{f'wwn-{self.wwn}' if has_wwn else LINKS[self.bus] + self.serial}"


@dataclass(frozen=True)
class Layout:
    """A machine's memory in MiB, its disks in order, packages beyond the image's own.

    `playbook` is the text of a playbook for what a disk has no keys for, `script` that of a shell script, run after it.
    `needs` has names from NEEDS. `release_packages` are those that only one Debian release has, or that have its version in
    their name. A machine that is not `frozen` is always booted: what its script has changed holds from the next boot on.
    """

    disks: tuple[Disk, ...] = ()
    memory: int = 768
    packages: tuple[str, ...] = ()
    append: str | None = None
    script: str = ""
    playbook: str = ""
    needs: tuple[str, ...] = ()
    release_packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    frozen: bool = True

    def on(self, release: str) -> Layout:
        """Return the layout of a machine of that release; LabError if it has packages of other releases only."""
        if not self.release_packages:
            return self
        if release not in self.release_packages:
            known = sorted(self.release_packages)
            raise LabError(f"the layout names no packages of {release}; release_packages has {known}")
        return replace(self, packages=self.packages + self.release_packages[release], release_packages={})

    @property
    def buses(self) -> set[str]:
        """What the disks hang on."""
        return {disk.bus for disk in self.disks}


def load(path: Path) -> Layout:
    """Read a layout file; LabError says what is wrong in it."""
    try:
        text = path.read_text()
    except OSError as error:
        raise LabError(f"cannot read the layout {path}: {error.strerror}") from error
    try:
        return parse(text, path.parent)
    except LabError as error:
        raise LabError(f"{path}: {error}") from error


def parse(text: str, directory: Path = Path()) -> Layout:
    """Return the layout in a YAML text from `directory`; LabError says what is wrong in it."""
    try:
        raw = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise LabError(f"not YAML: {error}") from error
    _known_keys(raw, Layout, "the layout")
    for key in ("disks", "packages", "needs"):
        if not isinstance(raw.get(key, []), list):
            raise LabError(f"{key} is {raw[key]!r}; it must be a list")
    disks = tuple(_disk(item, number) for number, item in enumerate(raw.get("disks", []), 1))
    _unique("serial", (disk.serial for disk in disks))
    _unique("mount", (disk.mount for disk in disks if disk.mount))
    memory = raw.get("memory", Layout.memory)
    if not isinstance(memory, int) or memory < 256:
        raise LabError(f"memory is {memory!r}; give MiB, at least 256")
    if unknown := sorted(set(raw.get("needs", [])) - set(NEEDS)):
        raise LabError(f"needs has unknown words {unknown}; known are {sorted(NEEDS)}")
    script = _texts(raw, "script", directory)
    playbook = _texts(raw, "playbook", directory / "playbooks")
    packages, needs = tuple(raw.get("packages", [])), tuple(raw.get("needs", []))
    of_release = _release_packages(raw.get("release_packages", {}))
    frozen = raw.get("frozen", Layout.frozen)
    if not isinstance(frozen, bool):
        raise LabError(f"frozen is {frozen!r}; give true or false")
    return Layout(disks, memory, packages, raw.get("append"), script, playbook, needs, of_release, frozen)


def size_in_bytes(value: object) -> int:
    """Return the bytes of `512M`, `1G`, or a plain number of bytes."""
    match = re.fullmatch(r"(\d+)([KMG]?)", str(value))
    if not match or not int(match[1]):
        raise LabError(f"size is {value!r}; write it as 512M or 1G")
    return int(match[1]) * UNITS.get(match[2], 1)


def _release_packages(raw: object) -> dict[str, tuple[str, ...]]:
    """Return {release: packages}."""
    if not isinstance(raw, Mapping) or not all(isinstance(names, list) for names in raw.values()):
        raise LabError(f"release_packages is {raw!r}; give a list of packages for each release")
    return {release: tuple(names) for release, names in raw.items()}


def _texts(raw: Mapping[str, Any], key: str, directory: Path) -> str:
    """Return the text of the file that a key of the layout names, or of several in their order: some begin alike."""
    named = raw.get(key, [])
    names = named if isinstance(named, list) else [named]
    return "".join(_text(name, key, directory) for name in names)


def _text(name: object, key: str, directory: Path) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w.-]*", name):
        raise LabError(f"{key} is {name!r}; give the name of a file in {directory}")
    try:
        return (directory / name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise LabError(f"cannot read the {key} {name}: {reason}") from error


def _known_keys(raw: object, shape: type[Disk] | type[Layout], where: str) -> None:
    if not isinstance(raw, Mapping):
        raise LabError(f"{where} is {raw!r}; it must be a mapping")
    known = {item.name for item in fields(shape)}
    unknown = sorted(set(raw) - known)
    if unknown:
        raise LabError(f"{where} has unknown keys {unknown}; known are {sorted(known)}")


def _disk(raw: Any, number: int) -> Disk:
    where = f"disk {number}"
    _known_keys(raw, Disk, where)
    missing = {"bus", "serial"} - set(raw)
    if missing:
        raise LabError(f"{where} lacks {sorted(missing)}")
    where = f"disk {number} ({raw['serial']})"
    try:
        size = size_in_bytes(raw["size"]) if "size" in raw else Disk.size
        disk = Disk(**{**raw, "size": size})
        _check(disk)
    except LabError as error:
        raise LabError(f"{where}: {error}") from None
    return disk


def _check(disk: Disk) -> None:
    """Raise LabError for what no machine can have."""
    for wrong, message in (
        (disk.bus not in BUSES, f"unknown bus {disk.bus!r}; known are {list(BUSES)}"),
        (
            not re.fullmatch(SERIAL, str(disk.serial)),
            "a serial is 1 to 20 letters and digits",
        ),
        (disk.serial == ROOT_SERIAL, f"the serial {ROOT_SERIAL} belongs to the root disk"),
        (disk.fua and disk.bus != "scsi", "fua can be chosen for scsi only"),
        (
            disk.wwn is not None and not re.fullmatch(r"0x[0-9a-fA-F]{16}", str(disk.wwn)),
            "a wwn is 0x and 16 hex digits, in quotes",
        ),
        (
            disk.wwn is not None and disk.bus not in ("sata", "scsi"),
            "only sata and scsi have a wwn",
        ),
        (
            disk.fstype is not None and disk.fstype not in FILE_SYSTEMS,
            f"unknown fstype {disk.fstype!r}; known are {list(FILE_SYSTEMS)}",
        ),
        (disk.unnamed and disk.bus != "virtio", "only virtio disks can be unnamed"),
        (
            disk.unnamed and (disk.partition or disk.fstype is not None),
            "what lies on an unnamed disk is for the layout's script to make",
        ),
        (disk.mount is not None and disk.fstype is None, "a mount needs a fstype"),
        (
            disk.mount is not None and not re.fullmatch(r"/[^\s]+", str(disk.mount)),
            "a mount is an absolute path without blanks",
        ),
        (disk.fstype == "xfs" and disk.size < SMALLEST_XFS, "xfs needs a size of 300M or more"),
    ):
        if wrong:
            raise LabError(message)


def _unique(what: str, values: Iterable[str]) -> None:
    twice = sorted(value for value, count in Counter(values).items() if count > 1)
    if twice:
        raise LabError(f"the same {what} is given twice: {', '.join(twice)}")
