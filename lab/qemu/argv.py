# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's command line, as a pure function of what the machine is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.errors import LabError
from lab.hardware import BootDisk, Hardware, content_of, disks_of_boot
from lab.layout import BOOT_LOADER, ROOT_SERIAL, Disk
from lab.paths import MachineFiles
from lab.qemu.accel import CPU

APPEND = "console=ttyS0 quiet net.ifnames=0 mitigations=off"
SATA_PORTS = 6
CACHE = "cache=writeback,discard=unmap"


def argv(
    hardware: Hardware,
    files: MachineFiles,
    port: int,
    others: tuple[BootDisk, ...] = (),
    *extra: str,
    is_installed: bool = False,
) -> list[str]:
    """Return the command that starts the machine in the background, ssh on 127.0.0.1:`port`.

    `others` are disks of this boot, also one in place of the root; `extra` are further arguments.
    `is_installed`: the layout's script has run, so its boot loader starts the machine if the layout needs one.
    """
    left = {disk.serial: disk for disk in others}
    root = left.pop(ROOT_SERIAL, BootDisk("virtio", ROOT_SERIAL))
    # A second emulated processor costs more than it brings: the two wait for each other's locks.
    boots_itself = is_installed and BOOT_LOADER in hardware.layout.needs
    processors = "2" if "smp" in hardware.layout.needs else "1"
    serial_port = ["-serial", "null"] if "serial_port" in hardware.layout.needs else []
    return [
        "qemu-system-x86_64",
        *("-accel", _accelerator(hardware.accel), "-cpu", CPU[hardware.accel]),
        *("-machine", "q35", "-smp", processors, "-m", str(hardware.layout.memory)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-daemonize"),
        *("-pidfile", str(files.pid), "-D", str(files.log)),
        *("-qmp", f"unix:{escape(files.qmp)},server=on,wait=off"),
        *("-chardev", f"file,id=console,path={escape(files.console)},append=on"),
        *("-serial", "chardev:console"),
        *serial_port,
        *("-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{port}-:22"),
        *("-device", "virtio-net-pci,netdev=net,romfile="),
        *("-device", "virtio-rng-pci"),
        *([] if boots_itself else kernel(hardware)),
        *("-drive", _drive_of(root, files.disks)),
        *(
            "-device",
            f"virtio-blk-pci,id={disk_id(ROOT_SERIAL)},drive={drive_id(ROOT_SERIAL)},"
            f"serial={ROOT_SERIAL},write-cache=on",
        ),
        *disks(disks_of_boot(hardware.layout, tuple(left.values())), files.disks),
        *(with_boot_from(hardware.layout.disks[0].serial) if boots_itself else []),
        *extra,
    ]


def kernel(hardware: Hardware) -> list[str]:
    """Return the arguments that start the image's kernel, without a boot loader."""
    return [
        *("-kernel", str(_kernel(hardware)), "-initrd", str(hardware.image.initrd)),
        *("-append", kernel_arguments(hardware)),
    ]


def _kernel(hardware: Hardware) -> Path:
    """Return the kernel to start: unpacked, except a machine that sleeps.

    Its entry is that for PVH, and a machine that was started by it is reset when it wakes (QEMU 7.2).
    """
    sleeps = "suspend" in hardware.layout.needs
    return hardware.image.packed_kernel if sleeps else hardware.image.kernel


def kernel_arguments(hardware: Hardware) -> str:
    """Return the kernel command line; a layout's `append` replaces the lab's own choice."""
    chosen = APPEND if hardware.layout.append is None else hardware.layout.append
    return f"root=UUID={hardware.image.root_uuid} ro {chosen}"


def disks(wanted: tuple[Disk, ...], directory: Path) -> list[str]:
    """Return the arguments for controllers and disks."""
    return [
        argument
        for disk, place in _places(wanted)
        for argument in ("-drive", _drive_of(disk, directory), *place)
    ]


def device(wanted: tuple[Disk, ...], serial: str) -> str:
    """Return what follows `-device`, or `device_add`, for one of these disks."""
    return next(place[-1] for disk, place in _places(wanted) if disk.serial == serial)


def _places(wanted: tuple[Disk, ...]) -> Iterator[tuple[Disk, list[str]]]:
    """Yield each disk with the arguments for its device, led by those for what it hangs on."""
    for bus, place in (("sata", _sata), ("scsi", _scsi), ("nvme", _pcie), ("virtio", _pcie)):
        members = [disk for disk in wanted if disk.bus == bus]
        for index, disk in enumerate(members):
            yield disk, place(disk, index)


def with_caches_off(serials: Iterable[str]) -> list[str]:
    """Return arguments, to follow all others, that start these disks with their cache off.

    A snapshot does not hold this state of SCSI and virtio disks: the device would come back with
    its cache on under a kernel whose cache mode for it is write through.
    """
    return [word for serial in serials for word in ("-set", f"device.{disk_id(serial)}.write-cache=off")]


def with_boot_from(serial: str) -> list[str]:
    """Return arguments, to follow those of the disks, with which the firmware starts the boot loader of a disk."""
    return ["-set", f"device.{disk_id(serial)}.bootindex=0"]


def disk_id(serial: str) -> str:
    """Return the name of a disk's device in QEMU."""
    return f"disk-{serial}"


def drive_id(serial: str) -> str:
    """Return the name of what lies behind that device."""
    return f"drive-{serial}"


def disk_file(serial: str, directory: Path) -> Path:
    """Return the file behind a disk."""
    return directory / f"{serial}.qcow2"


def drive(serial: str, path: Path) -> str:
    """Return what follows `-drive`: write-back caching, flushes passed on.

    That is what a disk with a volatile cache looks like.
    """
    return f"if=none,id={drive_id(serial)},file={escape(path)},format=qcow2,{CACHE}"


def served_drive(disk: BootDisk) -> str:
    """Return what follows `-drive` for a disk that an NBD server has: write-back, so flush and FUA are passed on."""
    if not disk.nbd:
        raise LabError(f"{disk.serial} is served elsewhere, but by no NBD server")
    return f"if=none,id={drive_id(disk.serial)},file={disk.nbd},format=raw,{CACHE}"


def escape(path: Path) -> str:
    """Return a path as QEMU's option syntax wants it: commas doubled."""
    return str(path).replace(",", ",,")


def _accelerator(accel: str) -> str:
    return "tcg,thread=multi" if accel == "tcg" else accel


def _drive_of(disk: Disk, directory: Path) -> str:
    if isinstance(disk, BootDisk) and (disk.nbd or disk.store):
        return served_drive(disk)
    deaf = ",cache.no-flush=on" if isinstance(disk, BootDisk) and disk.ignores_flush else ""
    return drive(disk.serial, disk_file(content_of(disk), directory)) + deaf


def _common(disk: Disk) -> str:
    model = f",model={disk.model}" if isinstance(disk, BootDisk) and disk.model else ""
    serial = "" if disk.unnamed else f",serial={disk.serial}"
    return f"id={disk_id(disk.serial)},drive={drive_id(disk.serial)}{serial}{model}"


def _wwn(disk: Disk) -> str:
    return f",wwn={disk.wwn}" if disk.wwn else ""


def _sata(disk: Disk, index: int) -> list[str]:
    """q35 brings one controller, `ide`; more are added as they are needed."""
    controller, port = divmod(index, SATA_PORTS)
    name = f"ahci{controller}" if controller else "ide"
    added = ["-device", f"ich9-ahci,id={name}"] if controller and port == 0 else []
    return [
        *added,
        "-device",
        f"ide-hd,bus={name}.{port},{_common(disk)},write-cache=on{_wwn(disk)}",
    ]


def _scsi(disk: Disk, index: int) -> list[str]:
    """One virtio-scsi controller, a target for each disk."""
    added = [] if index else ["-device", "virtio-scsi-pci,id=scsi"]
    fua = ",dpofua=on" if disk.fua else ""
    place = f"bus=scsi.0,scsi-id={index}"
    return [*added, "-device", f"scsi-hd,{place},{_common(disk)},write-cache=on{fua}{_wwn(disk)}"]


def _pcie(disk: Disk, index: int) -> list[str]:
    """A root port for each: what hangs on the root bus itself cannot be unplugged."""
    port = f"port-{disk.serial}"
    # chassis numbers must differ; virtio ones follow the NVMe ones far behind
    chassis = index + (1 if disk.bus == "nvme" else 101)
    model = "nvme" if disk.bus == "nvme" else "virtio-blk-pci"
    cache = "" if disk.bus == "nvme" else ",write-cache=on"
    return [
        *("-device", f"pcie-root-port,id={port},chassis={chassis}"),
        *("-device", f"{model},bus={port},{_common(disk)}{cache}"),
    ]
