# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files behind a machine's disks, and taking disks from a running guest and back."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.layout import ROOT_SERIAL, SERIAL, Disk, Layout
from lab.qemu import Hardware, device, disk_file, disk_id, drive, drive_id

if TYPE_CHECKING:
    from lab.machine import Machine

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
    _qemu_img("create", "-f", "qcow2", "-F", "qcow2", "-b", str(hardware.image.root), str(root))
    for disk in hardware.layout.disks:
        target = str(disk_file(disk.serial, directory))
        _qemu_img("create", "-f", "qcow2", target, str(disk.size))


def copy(source: Path, target: Path) -> None:
    """Copy all disks: snapshots live inside a qcow2 file, not in what lies under it."""
    argv = ["cp", "-r", "--reflink=auto", "--sparse=auto", str(source), str(target)]
    subprocess.run(argv, check=True)


def must_be_own(machine: Machine) -> None:
    """LabError unless QEMU has the layout's disks: a snapshot starts with those, and no others."""
    layout = machine.record().hardware.layout
    own = {str(disk_file(serial, machine.files.disks)) for serial in (ROOT_SERIAL, *serials(layout))}
    there = {block["inserted"]["file"] for block in machine.qmp("query-block")}
    if own != there:
        raise LabError(f"{machine.name} has unplugged or replaced disks: plug in its own first")


def caches_off(machine: Machine) -> list[str]:
    """Return the serials of disks whose write cache is off in the device now."""
    layout = machine.record().hardware.layout
    by_drive = {drive_id(serial): serial for serial in (ROOT_SERIAL, *serials(layout))}
    return [
        by_drive[block["device"]]
        for block in machine.qmp("query-block")
        if not block["inserted"]["cache"]["writeback"]
    ]


def serials(layout: Layout) -> list[str]:
    """Return the serials of a layout's disks; the root disk is not among them."""
    return [disk.serial for disk in layout.disks]


def unplug(machine: Machine, serial: str) -> None:
    """Take a disk away: hot unplug, or for SATA (QEMU cannot) the kernel's own delete."""
    if _disk(machine, serial).bus == "sata":
        script = 'd=$(readlink -f /dev/disk/by-id/ata-*_"$1"); echo 1 > "/sys/block/${d##*/}/device/delete"'
        machine.run(["sh", "-c", script, "unplug", serial])
        return
    machine.qmp("device_del", id=disk_id(serial))
    _wait(
        lambda: not _present(machine, disk_id(serial)),
        f"{machine.name}: the guest does not let go of {serial}",
    )


def plug(machine: Machine, serial: str, replacement: str | None = None) -> None:
    """Bring a disk back that was unplugged, or an empty one with another serial in its place."""
    disk = _disk(machine, serial)
    if disk.bus == "sata":
        if replacement:
            raise LabError("QEMU cannot exchange SATA disks; take scsi, nvme or virtio")
        machine.run(["sh", "-c", RESCAN_SATA])
    else:
        _add(machine, disk, replacement)
    _wait(
        lambda: (replacement or serial) in _seen(machine),
        f"{machine.name}: the guest does not see {replacement or serial}",
    )


def _add(machine: Machine, disk: Disk, replacement: str | None) -> None:
    """Give QEMU the drive, then the device; each may be there no longer, or not yet gone."""
    if _present(machine, disk_id(disk.serial)):
        raise LabError(f"{machine.name}: {disk.serial} is plugged in")
    file = disk_file(replacement or disk.serial, machine.files.disks)
    if replacement:
        _check_replacement(machine, replacement)
        _qemu_img("create", "-f", "qcow2", str(file), str(disk.size))
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
    machine.hmp(f"device_add {words}")


def _drive_added(machine: Machine, serial: str, file: Path) -> bool:
    """Give QEMU the drive; False while it still has the old one, which may outlive its device."""
    try:
        machine.hmp(f"drive_del {drive_id(serial)}")
    except LabError as error:
        # QEMU deletes most drives with their device, at a moment of its own: asking first would be too early or too late.
        if "not found" not in str(error):
            raise
    try:
        machine.hmp(f"drive_add 0 {drive(serial, file)}")
    except LabError as error:
        # Its name stays taken for a moment after it has left the list.
        if "Duplicate ID" in str(error):
            return False
        raise
    return True


def _check_replacement(machine: Machine, serial: str) -> None:
    if not re.fullmatch(SERIAL, serial):
        raise LabError("a serial is 1 to 20 letters and digits")
    if serial in (ROOT_SERIAL, *serials(machine.record().hardware.layout)):
        raise LabError(f"{machine.name} has a disk with serial {serial}")


def _disk(machine: Machine, serial: str) -> Disk:
    for disk in machine.record().hardware.layout.disks:
        if disk.serial == serial:
            return disk
    raise LabError(f"{machine.name} has no disk with serial {serial}")


def _seen(machine: Machine) -> list[str]:
    """Return the serials that the guest knows; udev has them last of all."""
    argv = ["lsblk", "--nodeps", "--noheadings", "--raw", "--output", "SERIAL"]
    return machine.run(argv).stdout.split()


def _wait(arrived: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + PLUG_LIMIT
    while not arrived():
        if time.monotonic() > deadline:
            raise LabError(otherwise)
        time.sleep(0.1)


def _present(machine: Machine, device: str) -> bool:
    found = machine.qmp("qom-list", path="/machine/peripheral")
    return any(item["name"] == device for item in found)


def _qemu_img(*arguments: str) -> None:
    done = subprocess.run(["qemu-img", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"qemu-img {arguments[0]}: {done.stderr.strip()}")
