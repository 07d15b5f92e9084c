# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plugging disks in: what QEMU is told, with a QEMU that only writes it down."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab import machine as lab_machine
from lab.cli import main
from lab.errors import LabError
from lab.hardware import Hardware
from lab.image import Image
from lab.layout import Disk, Layout
from lab.machine import Machine
from lab.paths import Lab
from lab.qemu import disks
from lab.qemu.kind import Qemu
from lab.record import Record

LAYOUT = Layout(
    (
        Disk("sata", "SATA1"),
        Disk("scsi", "SCSI1", wwn="0x5000000000000001"),
        Disk("scsi", "SCSI2", wwn="0x5000000000000002"),
        Disk("virtio", "VIRT1"),
    )
)


class Bench(Machine):
    """A machine that runs, whose guest sees at once what QEMU has."""

    def __init__(self, lab: Lab) -> None:
        """Make its directory and record; all disks are in."""
        super().__init__("one", lab)
        self.files.disks.mkdir(parents=True)
        Record(Hardware(Image(Path("/i"), "u"), LAYOUT, "qemu", "tcg"), 2222, "").write(self.files)
        self.seen = {disk.serial: disk.serial for disk in LAYOUT.disks}
        self.drives = {serial: f"{self.files.disks}/{serial}.qcow2" for serial in ("LABROOT", *self.seen)}
        self.told: list[str] = []

    @property
    def running(self) -> bool:
        """Always."""
        return True

    def qmp(self, command: str, **arguments: Any) -> Any:
        """Answer what is plugged in; forget what is taken out."""
        if command == "query-block":
            return [
                {"device": f"drive-{serial}", "inserted": {"file": file, "cache": {"writeback": True}}}
                for serial, file in self.drives.items()
            ]
        if command == "qom-list":
            return [{"name": f"disk-{serial}"} for serial in self.seen]
        assert command == "device_del"
        del self.seen[arguments["id"].removeprefix("disk-")]
        return {}

    def hmp(self, line: str) -> None:
        """Write it down; a device that is added is seen by the serial that it shows."""
        self.told.append(line)
        if line.startswith("drive_del"):
            name = line.removeprefix("drive_del ")
            if self.drives.pop(name.removeprefix("drive-"), None) is None:
                raise LabError(f"QEMU refuses {line!r}: Error: Device {name!r} not found")
        if line.startswith("device_add"):
            words = dict(word.split("=") for word in line.split(",")[1:])
            self.seen[words["id"].removeprefix("disk-")] = words["serial"]

    def run(self, argv: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        """Answer lsblk with the serials."""
        self.told.append(" ".join(argv[:1]))
        return subprocess.CompletedProcess(argv, 0, "\n".join(self.seen.values()))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a machine without QEMU; images are made of nothing."""
    monkeypatch.setattr(disks, "_qemu_img", lambda *words: Path(words[-2]).touch())
    monkeypatch.setattr(disks, "ask", lambda bench, command, **words: bench.qmp(command, **words))
    monkeypatch.setattr(disks, "monitor", lambda bench, line: bench.hmp(line))
    return Bench(Lab(tmp_path))


def test_a_disk_comes_back_to_its_place(machine: Bench) -> None:
    """With its own file, serial and WWN; that QEMU deleted its drive meanwhile is as it should be."""
    machine.unplug("SCSI2")
    del machine.drives["SCSI2"]
    machine.told.clear()
    machine.plug("SCSI2")
    assert machine.told == [
        "drive_del drive-SCSI2",
        f"drive_add 0 if=none,id=drive-SCSI2,file={machine.files.disks}/SCSI2.qcow2,"
        "format=qcow2,cache=writeback,discard=unmap",
        "device_add scsi-hd,bus=scsi.0,scsi-id=1,id=disk-SCSI2,drive=drive-SCSI2,serial=SCSI2,"
        "write-cache=on,wwn=0x5000000000000002",
        "lsblk",
    ]


def test_a_drive_that_qemu_kept_is_given_up_first(machine: Bench) -> None:
    """QEMU deletes the drive with the device, but not that of an NVMe disk."""
    machine.unplug("VIRT1")
    machine.told.clear()
    machine.plug("VIRT1")
    assert machine.told[0] == "drive_del drive-VIRT1"
    assert "VIRT1" not in machine.drives


def test_a_drive_whose_name_is_still_taken_is_tried_again(
    machine: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU frees the name only when the last request is done, after the drive has left its list."""
    machine.unplug("SCSI2")
    del machine.drives["SCSI2"]
    machine.told.clear()
    busy = iter([True, True])

    def hmp(line: str) -> None:
        if line.startswith("drive_add") and next(busy, False):
            raise LabError(f"QEMU refuses {line!r}: Error: Duplicate ID 'drive-SCSI2' for drive")
        Bench.hmp(machine, line)

    monkeypatch.setattr(machine, "hmp", hmp)
    machine.plug("SCSI2")
    assert [line.split()[0] for line in machine.told] == ["drive_del"] * 3 + [
        "drive_add",
        "device_add",
        "lsblk",
    ]
    assert machine.seen["SCSI2"] == "SCSI2"


@pytest.mark.parametrize("refused", ["drive_del", "drive_add"])
def test_another_refusal_of_a_drive_is_an_error(
    machine: Bench, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """And nothing is waited for."""
    machine.unplug("SCSI2")

    def hmp(line: str) -> None:
        if line.startswith(refused):
            raise LabError(f"QEMU refuses {line!r}: Could not open")
        Bench.hmp(machine, line)

    monkeypatch.setattr(machine, "hmp", hmp)
    with pytest.raises(LabError, match="Could not open"):
        machine.plug("SCSI2")


def test_a_replaced_disk_is_empty_and_another(machine: Bench) -> None:
    """Another file, another serial, no WWN; and it is unplugged as the disk that it stands for."""
    machine.unplug("SCSI2")
    machine.told.clear()
    machine.plug("SCSI2", "NEW1")
    assert (machine.files.disks / "NEW1.qcow2").exists()
    assert f"id=drive-SCSI2,file={machine.files.disks}/NEW1.qcow2," in machine.told[1]
    assert machine.told[2].endswith("scsi-id=1,id=disk-SCSI2,drive=drive-SCSI2,serial=NEW1,write-cache=on")
    machine.unplug("SCSI2")
    machine.plug("SCSI2")
    assert machine.seen["SCSI2"] == "SCSI2"


def test_sata_is_found_by_a_scan(machine: Bench) -> None:
    """QEMU is not asked: the disk never left it."""
    machine.plug("SATA1")
    assert machine.told == ["sh", "lsblk"]


@pytest.mark.parametrize(
    ("serial", "replacement", "message"),
    [
        ("NONE1", None, "one has no disk with serial NONE1"),
        ("VIRT1", None, "VIRT1 is plugged in"),
        ("SATA1", "NEW1", "QEMU cannot exchange SATA disks"),
        ("SCSI1", "SCSI2", "one has a disk with serial SCSI2"),
        ("SCSI1", "SCSI1", "one has a disk with serial SCSI1"),
        ("SCSI1", "LABROOT", "one has a disk with serial LABROOT"),
        ("SCSI1", "a,b", "1 to 20 letters and digits"),
    ],
)
def test_what_cannot_be_plugged_in(
    machine: Bench, serial: str, replacement: str | None, message: str
) -> None:
    """QEMU is told nothing."""
    machine.seen.pop("SCSI1")
    with pytest.raises(LabError, match=message):
        machine.plug(serial, replacement)
    assert machine.told == []


def test_a_guest_that_sees_nothing_is_not_waited_for_forever(
    machine: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names machine and disk."""
    machine.unplug("VIRT1")
    monkeypatch.setattr(lab_machine, "PLUG_LIMIT", 0.0)
    monkeypatch.setattr(machine, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, ""))
    with pytest.raises(LabError, match="one: the guest does not see VIRT1"):
        machine.plug("VIRT1")


def test_what_could_not_be_loaded_is_not_saved(machine: Bench) -> None:
    """`load` starts QEMU with the layout's disks, each of which has to hold the snapshot."""
    disks.must_be_own(machine)
    machine.drives["SCSI2"] = f"{machine.files.disks}/NEW1.qcow2"
    with pytest.raises(LabError, match="one has unplugged or replaced disks"):
        Qemu().save(machine, "after")
    machine.drives["SCSI2"] = f"{machine.files.disks}/SCSI2.qcow2"
    machine.drives["LABROOT"] = f"{machine.files.disks}/COPY.qcow2"
    disks.must_be_own(machine)
    machine.drives["LABROOT"] = "nbd+unix:///disk?socket=/s"
    with pytest.raises(LabError, match="one has unplugged or replaced disks"):
        disks.must_be_own(machine)
    machine.drives["LABROOT"] = f"{machine.files.disks}/LABROOT.qcow2"
    del machine.drives["SCSI2"]
    with pytest.raises(LabError, match="one has unplugged or replaced disks"):
        disks.must_be_own(machine)


def test_the_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    """`plug NAME SERIAL [--as SERIAL]`."""
    asked: list[tuple[str, str, str | None]] = []
    monkeypatch.setattr(
        Machine, "plug", lambda self, serial, other=None: asked.append((self.name, serial, other))
    )
    monkeypatch.setattr("lab.doctor.missing", dict)
    assert main(["plug", "one", "VIRT1"]) == 0
    assert main(["plug", "one", "VIRT1", "--as", "NEW1"]) == 0
    assert asked == [("one", "VIRT1", None), ("one", "VIRT1", "NEW1")]
