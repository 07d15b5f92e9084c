# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files behind a machine's disks, and taking disks away from a running guest."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.layout import ROOT_SERIAL
from lab.qemu import Hardware, disk_file, disk_id, drive_id

if TYPE_CHECKING:
    from lab.machine import Machine

UNPLUG_LIMIT = 60.0


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


def caches_off(machine: Machine) -> list[str]:
    """Return the serials of disks whose write cache is off in the device now."""
    layout = machine.record().hardware.layout
    serials = {drive_id(serial): serial for serial in (ROOT_SERIAL, *(d.serial for d in layout.disks))}
    return [
        serials[block["device"]]
        for block in machine.qmp("query-block")
        if not block["inserted"]["cache"]["writeback"]
    ]


def unplug(machine: Machine, serial: str) -> None:
    """Take a disk away: hot unplug, or for SATA (QEMU cannot) the kernel's own delete."""
    found = [d for d in machine.record().hardware.layout.disks if d.serial == serial]
    if not found:
        raise LabError(f"{machine.name} has no disk with serial {serial}")
    if found[0].bus == "sata":
        script = 'd=$(readlink -f /dev/disk/by-id/ata-*_"$1"); echo 1 > "/sys/block/${d##*/}/device/delete"'
        machine.run(["sh", "-c", script, "unplug", serial])
        return
    machine.qmp("device_del", id=disk_id(serial))
    deadline = time.monotonic() + UNPLUG_LIMIT
    while _present(machine, disk_id(serial)):
        if time.monotonic() > deadline:
            raise LabError(f"{machine.name}: the guest does not let go of {serial}")
        time.sleep(0.1)


def _present(machine: Machine, device: str) -> bool:
    found = machine.qmp("qom-list", path="/machine/peripheral")
    return any(item["name"] == device for item in found)


def _qemu_img(*arguments: str) -> None:
    done = subprocess.run(["qemu-img", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"qemu-img {arguments[0]}: {done.stderr.strip()}")
