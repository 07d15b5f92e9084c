# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's machines: every bus, each release's own kernel, memory that can be kept."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from lab import process
from lab.errors import LabError
from lab.guest import Guest
from lab.hardware import BootDisk, Hardware
from lab.image import Image
from lab.layout import BOOT_LOADER, Disk, Layout
from lab.paths import Lab, MachineFiles
from lab.qemu import accel, argv, disks, qmp
from lab.qemu import process as qemu


class Qemu:
    """The kind `qemu`; lab.kinds.Kind says what each method promises."""

    name = "qemu"
    has_kernel = False

    def hardware(self, lab: Lab, image: Image, layout: Layout) -> Hardware:
        """Return it, with the accelerator that works here."""
        return Hardware(image, layout, self.name, accel.choose(lab))

    def identity(self, lab: Lab, hardware: Hardware) -> list[Any]:
        """QEMU's version and command line: a snapshot only fits what it was taken from."""
        return [accel.qemu_version(), argv.argv(hardware, MachineFiles(Path("/")), 0)]

    def freezes(self, layout: Layout) -> bool:
        """Its NVMe device cannot be migrated, and so not be kept; and a layout may want a boot."""
        return layout.frozen and "nvme" not in layout.buses and BOOT_LOADER not in layout.needs

    def can_have(self, layout: Layout) -> bool:
        """Everything."""
        return True

    def refusal(self, lab: Lab, layout: Layout, release: str) -> str:
        """It runs everywhere."""
        return ""

    def make_disks(self, hardware: Hardware, directory: Path) -> None:
        """As qcow2 files."""
        disks.make(hardware, directory)

    def start(self, guest: Guest, disks: tuple[BootDisk, ...] = (), tag: str = "") -> None:
        """Start QEMU in the background."""
        record = guest.record()
        extra = ["-loadvm", tag, *argv.with_caches_off(_caches_off(guest.files, tag))] if tag else []
        command = argv.argv(
            record.hardware, guest.files, record.port, disks, *extra, is_installed=bool(record.prepared)
        )
        qemu.start(command, guest.files.log)

    def running(self, files: MachineFiles) -> bool:
        """By its process."""
        return qemu.running(files) is not None

    def must_run(self, files: MachineFiles) -> None:
        """It said so when it was started; later ends are ends."""
        if not self.running(files):
            raise LabError(f"QEMU has ended: {qemu.complaint(files.log)}")

    def stop(self, files: MachineFiles, limit: float) -> None:
        """QEMU writes out all of its disks."""
        pid = qemu.running(files)
        if pid is None:
            return
        with suppress(LabError):  # QEMU may hang up before it answers
            qmp.execute(files.qmp, "quit", {})
        if not process.wait_ended(pid, limit):
            qemu.kill(files)

    def kill(self, files: MachineFiles) -> None:
        """SIGKILL."""
        qemu.kill(files)

    def wait_ended(self, files: MachineFiles, limit: float) -> bool:
        """Until its last thread has ended."""
        return process.wait_ended(qemu.running(files), limit)

    def save(self, guest: Guest, tag: str) -> None:
        """Freeze memory and disks."""
        if not self.freezes(guest.record().hardware.layout):
            raise LabError(
                f"{guest.name}: QEMU keeps no memory of NVMe disks, nor of a layout with frozen: false"
            )
        disks.must_be_own(guest)
        guest.files.caches_off(tag).write_text(json.dumps(disks.caches_off(guest)))
        disks.monitor(guest, f"savevm {tag}")

    def unplug(self, guest: Guest, disk: Disk) -> None:
        """By the machine protocol; SATA by the guest's kernel."""
        disks.unplug(guest, disk)

    def plug(self, guest: Guest, disk: Disk, replacement: str | None) -> None:
        """Bring it back where it was."""
        disks.plug(guest, disk, replacement)

    def plug_in(self, guest: Guest, disk: BootDisk) -> None:
        """On the SCSI controller."""
        disks.plug_in(guest, disk)

    def make_disk(self, files: MachineFiles, serial: str, size: int) -> None:
        """As a qcow2 file."""
        disks.make_file(files.disks, serial, size)

    def copy_disk(self, files: MachineFiles, serial: str, target: Path) -> None:
        """By qemu-img."""
        disks.copy(files.disks, serial, target)

    def turn_cache_on(self, files: MachineFiles, serial: str) -> None:
        """Only a new QEMU has another cache."""
        raise LabError(f"QEMU cannot turn the cache of {serial} on while it runs")

    def set_fault(self, files: MachineFiles, serial: str, operation: str, effect: str) -> None:
        """Its disks are its own."""
        raise LabError(f"QEMU's disk {serial} has no faults: only machines of User Mode Linux have")


def _caches_off(files: MachineFiles, tag: str) -> list[str]:
    off = files.caches_off(tag)
    return list(json.loads(off.read_text())) if off.exists() else []
