# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks of a machine: their files, the configuration of their server, and its commands."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.hardware import BootDisk, Hardware, content_of, disks_of_boot
from lab.layout import ROOT_SERIAL, Disk
from lab.paths import MachineFiles

BUSES = {"virtio", "scsi"}
#: Device numbers of the virtio specification.
VIRTIO_BLK, VIRTIO_SCSI = 2, 8
CONTROL_LIMIT = 60.0
COPY_BLOCK = 1 << 20


def make(hardware: Hardware, directory: Path) -> None:
    """Make empty disks: sparse files. The root's server makes its own two beside them."""
    directory.mkdir()
    for disk in hardware.layout.disks:
        make_file(directory, disk.serial, disk.size)


def make_file(directory: Path, serial: str, size: int) -> None:
    """Make one empty disk."""
    with disk_file(directory, serial).open("wb") as file:
        file.truncate(size)


def copy(directory: Path, serial: str, target: Path) -> None:
    """Copy what is on a disk to a raw file, with its holes."""
    command = ["cp", "--reflink=auto", "--sparse=auto", str(disk_file(directory, serial)), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{serial} is not copied: {done.stderr.strip()}")


def disk_file(directory: Path, serial: str) -> Path:
    """Return the file behind a disk."""
    return directory / f"{serial}.raw"


def configuration(hardware: Hardware, files: MachineFiles, others: tuple[BootDisk, ...]) -> dict[str, Any]:
    """Return the configuration of the disk server (lab/vhost): the root, then the disks of this boot.

    The root lies over the image, unless this boot has another in its place: a virtio disk with the serial ROOT_SERIAL, with
    a file system of the same UUID.
    """
    overlay = {
        "type": "overlay",
        "base": str(hardware.image.root),
        "top": str(files.disks / f"{ROOT_SERIAL}.top"),
        "map": str(files.disks / f"{ROOT_SERIAL}.map"),
    }
    others_by_serial = {disk.serial: disk for disk in others}
    root = others_by_serial.pop(ROOT_SERIAL, BootDisk("virtio", ROOT_SERIAL, store=overlay))
    wanted = disks_of_boot(hardware.layout, tuple(others_by_serial.values()))
    targets = {disk.serial: number for number, disk in enumerate(d for d in wanted if d.bus == "scsi")}
    return {
        "control": str(control(files)),
        "scsi": str(files.sockets / "scsi"),
        "disks": [
            words(root, files, None),
            *(words(disk, files, targets.get(disk.serial)) for disk in wanted),
        ],
    }


def words(disk: Disk, files: MachineFiles, target: int | None, serial: str = "") -> dict[str, Any]:
    """Return what the server is told of one disk, by another serial if it is given."""
    content = serial or content_of(disk)
    serial = serial or disk.serial
    store = {"type": "file", "path": str(disk_file(files.disks, content))}
    if isinstance(disk, BootDisk) and disk.store is not None:
        store = dict(disk.store)
    found = {"serial": serial, "bus": disk.bus, "store": store}
    if disk.bus == "virtio":
        return {**found, "socket": str(_socket(files, serial)), **({"unnamed": True} if disk.unnamed else {})}
    wwn = {"wwn": disk.wwn} if disk.wwn and serial == disk.serial else {}
    place = {} if target is None else {"target": target}
    return {**found, "fua": disk.fua, **wwn, **place}


def kernel_arguments(configuration: dict[str, Any]) -> list[str]:
    """Return what lets the kernel find the disks, by the paths that it sees: the root disk comes first."""
    sockets = [disk["socket"] for disk in configuration["disks"] if disk["bus"] == "virtio"]
    devices = [(path, VIRTIO_BLK) for path in sockets] + [(configuration["scsi"], VIRTIO_SCSI)]
    return [f"virtio_uml.device=/run/{os.path.basename(path)}:{number}" for path, number in devices]


def ask(files: MachineFiles, command: str, **arguments: Any) -> Any:
    """Send the disk server one command and return its answer. LabError: it refuses, or does not answer."""
    line = json.dumps({"command": command, **arguments})
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(CONTROL_LIMIT)
            connection.connect(str(control(files)))
            connection.sendall(line.encode() + b"\n")
            with connection.makefile() as stream:
                answer = json.loads(stream.readline() or '{"error": "it hung up"}')
    except OSError as error:
        raise LabError(f"the disk server does not answer {command}: {error}") from error
    if "error" in answer:
        raise LabError(f"the disk server refuses {line}: {answer['error']}")
    return answer["return"]


def control(files: MachineFiles) -> Path:
    """Return the control socket of the disk server."""
    return files.sockets / "disk-server"


def _socket(files: MachineFiles, serial: str) -> Path:
    return files.sockets / f"disk-{serial}"
