# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files behind a machine's disks, and taking disks from a running guest and back."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.guest import Guest
from lab.hardware import BootDisk, Hardware
from lab.layout import ROOT_SERIAL, Disk, Layout
from lab.qemu import qmp
from lab.qemu.argv import device, disk_file, disk_id, drive, drive_id, served_drive

PLUG_LIMIT = 60.0
# Not the ports without a disk: the kernel takes seconds to give each up.
RESCAN_SATA = """
for host in /sys/class/scsi_host/*; do
    if grep -qs Gbps "$host"/device/../link*/ata_link/*/sata_spd; then echo - - - > "$host/scan"; fi
done
udevadm settle
"""


def make(hardware: Hardware, directory: Path) -> None:
    """Make empty disks, and a root disk that lies over the image."""
    directory.mkdir()
    root = disk_file(ROOT_SERIAL, directory)
    _qemu_img("create", "-f", "qcow2", "-F", "raw", "-b", str(hardware.image.root), str(root))
    for disk in hardware.layout.disks:
        make_file(directory, disk.serial, disk.size)


def make_file(directory: Path, serial: str, size: int) -> None:
    """Make one empty disk."""
    _qemu_img("create", "-f", "qcow2", str(disk_file(serial, directory)), str(size))


def copy(directory: Path, serial: str, target: Path) -> None:
    """Copy what is on a disk to a raw file."""
    _qemu_img("convert", "-O", "raw", str(disk_file(serial, directory)), str(target))


def must_be_own(machine: Guest) -> None:
    """LabError unless QEMU has the layout's disks, and a root of the machine's: a snapshot starts with those, and no others."""
    layout, directory = machine.record().hardware.layout, machine.files.disks
    there = {block["device"]: block["inserted"]["file"] for block in ask(machine, "query-block")}
    own = {drive_id(serial): str(disk_file(serial, directory)) for serial in serials(layout)}
    root = there.get(drive_id(ROOT_SERIAL), "")
    if there != {**own, drive_id(ROOT_SERIAL): root} or Path(root).parent != directory:
        raise LabError(f"{machine.name} has unplugged or replaced disks: plug in its own first")


def caches_off(machine: Guest) -> list[str]:
    """Return the serials of disks whose write cache is off in the device now."""
    layout = machine.record().hardware.layout
    by_drive = {drive_id(serial): serial for serial in (ROOT_SERIAL, *serials(layout))}
    return [
        by_drive[block["device"]]
        for block in ask(machine, "query-block")
        if not block["inserted"]["cache"]["writeback"]
    ]


def serials(layout: Layout) -> list[str]:
    """Return the serials of a layout's disks; the root disk is not among them."""
    return [disk.serial for disk in layout.disks]


def ask(machine: Guest, command: str, **arguments: Any) -> Any:
    """Send a command of QEMU's machine protocol and return its result."""
    return qmp.execute(machine.files.qmp, command, arguments)


def monitor(machine: Guest, line: str) -> None:
    """Run a human monitor command; one that works is silent or says OK. LabError: what it said."""
    said = str(ask(machine, "human-monitor-command", **{"command-line": line})).strip()
    if said not in ("", "OK"):
        raise LabError(f"QEMU refuses {line!r}: {said}")


def unplug(machine: Guest, disk: Disk) -> None:
    """Take a disk away: hot unplug, or for SATA (QEMU cannot) the kernel's own delete."""
    serial = disk.serial
    if disk.bus == "sata":
        script = 'd=$(readlink -f /dev/disk/by-id/ata-*_"$1"); echo 1 > "/sys/block/${d##*/}/device/delete"'
        machine.run(["sh", "-c", script, "unplug", serial])
        return
    ask(machine, "device_del", id=disk_id(serial))
    _wait(
        lambda: not _present(machine, disk_id(serial)),
        f"{machine.name}: the guest does not let go of {serial}",
    )


def plug(machine: Guest, disk: Disk, replacement: str | None = None) -> None:
    """Bring a disk back that was unplugged, or an empty one with another serial in its place."""
    if disk.bus == "sata":
        if replacement:
            raise LabError("QEMU cannot exchange SATA disks; take scsi, nvme or virtio")
        machine.run(["sh", "-c", RESCAN_SATA])
    else:
        _add(machine, disk, replacement)


def plug_in(machine: Guest, disk: BootDisk) -> None:
    """Give the guest one more disk, that is served elsewhere, on its SCSI controller."""
    monitor(machine, f"drive_add 0 {served_drive(disk)}")
    fua = ",dpofua=on" if disk.fua else ""
    own = f"drive={drive_id(disk.serial)},serial={disk.serial},write-cache=on{fua}"
    monitor(machine, f"device_add scsi-hd,bus=scsi.0,{own}")


def _add(machine: Guest, disk: Disk, replacement: str | None) -> None:
    """Give QEMU the drive, then the device; each may be there no longer, or not yet gone."""
    if _present(machine, disk_id(disk.serial)):
        raise LabError(f"{machine.name}: {disk.serial} is plugged in")
    file = disk_file(replacement or disk.serial, machine.files.disks)
    if replacement:
        make_file(machine.files.disks, replacement, disk.size)
    _wait(
        lambda: _drive_added(machine, disk.serial, file),
        f"{machine.name}: QEMU does not let go of the drive of {disk.serial}",
    )
    # another disk has another WWN: the simplest is to have none
    wanted = tuple(
        replace(each, wwn=None) if replacement and each == disk else each
        for each in machine.record().hardware.layout.disks
    )
    words = device(wanted, disk.serial)
    if replacement:
        words = words.replace(f"serial={disk.serial}", f"serial={replacement}")
    monitor(machine, f"device_add {words}")


def _drive_added(machine: Guest, serial: str, file: Path) -> bool:
    """Give QEMU the drive; False while it still has the old one, which may outlive its device."""
    try:
        monitor(machine, f"drive_del {drive_id(serial)}")
    except LabError as error:
        # QEMU deletes most drives with their device, at a moment of its own: asking first would be too early or too late.
        if "not found" not in str(error):
            raise
    try:
        monitor(machine, f"drive_add 0 {drive(serial, file)}")
    except LabError as error:
        # Its name stays taken for a moment after it has left the list.
        if "Duplicate ID" in str(error):
            return False
        raise
    return True


def _wait(arrived: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PLUG_LIMIT
    while not arrived():
        if time.monotonic() > deadline:
            raise LabError(otherwise)
        time.sleep(0.1)


def _present(machine: Guest, device: str) -> bool:
    found = ask(machine, "qom-list", path="/machine/peripheral")
    return any(item["name"] == device for item in found)


def _qemu_img(*arguments: str) -> None:
    done = subprocess.run(["qemu-img", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"qemu-img {arguments[0]}: {done.stderr.strip()}")
