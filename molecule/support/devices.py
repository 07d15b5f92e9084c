# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of a lab machine: their names, their caches behind the kernel's back, and their flushes counted."""

from __future__ import annotations

import json
from collections.abc import Iterable

from lab.machine import Machine
from support import truth

#: Writes and syncs 20 times on a file, and tells how often each disk was flushed meanwhile.
_WRITER = r"""
import json, os, sys, time
path, disks = sys.argv[1], sys.argv[2:]
def flushes(disk):
    return int(open("/sys/block/%s/stat" % disk).read().split()[15])
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
os.write(fd, b"0" * 81920)
os.fsync(fd)
def settled():
    # A partial parity log flushes its disks after it has acknowledged.
    seen = None
    while seen != (seen := {disk: flushes(disk) for disk in disks}):
        time.sleep(1)
    return seen
before = settled()
for number in range(20):
    os.pwrite(fd, b"x" * 4096, number * 4096)
    os.fdatasync(fd)
after = settled()
print(json.dumps({disk: after[disk] - before[disk] for disk in disks}))
"""


def sh(machine: Machine, script: str) -> str:
    """Run a script that has to succeed; return its output."""
    return machine.run(["sh", "-euc", script]).stdout


def names(machine: Machine) -> dict[str, str]:
    """Return {serial: kernel name} as they are now."""
    return {serial: disk["name"] for serial, disk in truth.read(machine)["disks"].items()}


def id_of(machine: Machine, serial: str) -> str:
    """Return the id of a disk in reports, by what udev knows of it."""
    name = names(machine)[serial]
    known = sh(machine, f"udevadm info --query=property --name={name}").splitlines()
    properties = dict(line.partition("=")[::2] for line in known)
    if wwn := properties.get("ID_WWN_WITH_EXTENSION"):
        return f"wwn:{wwn}"
    if name.startswith("nvme") and "ID_WWN" in properties:
        return f"nvme:{properties['ID_WWN']}"
    return f"serial:{properties['ID_SERIAL']}"


def flushes_of_20_syncs(machine: Machine, target: str, serials: Iterable[str]) -> dict[str, int]:
    """Return {serial: flushes} of these disks for 20 synchronous writes on a mount."""
    known = names(machine)
    found = {serial: known[serial] for serial in serials}
    counted = flushes_by_name(machine, target, found.values())
    return {serial: counted[name] for serial, name in found.items()}


def flushes_by_name(machine: Machine, target: str, devices: Iterable[str]) -> dict[str, int]:
    """Return {kernel name: flushes} of these block devices for 20 synchronous writes on a mount."""
    argv = ["python3", "-", f"{target}/counted", *devices]
    return dict(json.loads(machine.run(argv, input=_WRITER).stdout))


def generic_device(machine: Machine, serial: str) -> str:
    """Return the name by which commands go to a SCSI disk without a word to udev, whose rule would answer."""
    return sh(machine, f"ls /sys/block/{names(machine)[serial]}/device/scsi_generic").strip()


def switch_scsi_cache(machine: Machine, serial: str, *, on: bool) -> None:
    """Switch a SCSI disk's cache behind the back of kernel and udev."""
    sh(machine, f"sdparm -q --set WCE={int(on)} /dev/{generic_device(machine, serial)}")


def after_reset(machine: Machine, serial: str, target: str) -> dict[str, dict[str, str]]:
    """Reset a SCSI disk, its cache back on as a real one's; return what it is before udev hears of it, and after.

    `{before: {cache, cache_mode, flushes of 20 syncs}, after: {cache, cache_mode}}`
    """
    generic, name = generic_device(machine, serial), names(machine)[serial]
    # QEMU's disk keeps its setting over a reset, so what a real one does is done by hand, and udev
    # waits, so that the moment in between can be looked at.
    sh(machine, "udevadm control --stop-exec-queue")
    try:
        switch_scsi_cache(machine, serial, on=True)
        noticed = f"dd if=/dev/{name} of=/dev/null bs=4k count=1 iflag=direct 2>&1"
        sh(machine, f"sg_reset -d /dev/{generic}; {noticed}")
        before = _state(machine, serial)
        before["flushes"] = str(flushes_of_20_syncs(machine, target, [serial])[serial])
    finally:
        sh(machine, "udevadm control --start-exec-queue; udevadm settle")
    return {"before": before, "after": _state(machine, serial)}


def _state(machine: Machine, serial: str) -> dict[str, str]:
    disk = truth.read(machine)["disks"][serial]
    return {"cache": disk["cache"], "cache_mode": disk["cache_mode"]}
