# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's command line: what the guest will see."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import prepared
from lab.hardware import BootDisk, Hardware
from lab.image import Image
from lab.layout import Disk, Layout
from lab.paths import Lab, MachineFiles
from lab.qemu import accel
from lab.qemu import argv as qemu

LAB = Lab(Path("/lab"))
FILES = MachineFiles(Path("/lab/machines/one"))
IMAGE = Image(Path("/lab/images/bookworm-0"), "0000-1111")


def devices(*disks: Disk) -> list[str]:
    """Return the -device arguments for disks."""
    argv = qemu.disks(disks, FILES.disks)
    return [value for option, value in zip(argv[::2], argv[1::2], strict=True) if option == "-device"]


def hardware(layout: Layout, accelerator: str = "tcg") -> Hardware:
    """Return the hardware of a layout."""
    return Hardware(IMAGE, layout, "qemu", accelerator)


def test_write_caches_start_enabled_and_flushes_reach_the_host() -> None:
    """What the collection is tested against: volatile caches that are on."""
    argv = qemu.argv(hardware(Layout((Disk("sata", "A"), Disk("virtio", "B")))), FILES, 2222)
    drives = [value for value in argv if value.startswith("if=none")]
    assert len(drives) == 3
    assert all("cache=writeback" in drive for drive in drives)
    models = [v for v in argv if v.startswith(("ide-hd", "virtio-blk-pci", "scsi-hd"))]
    assert len(models) == 3
    assert all("write-cache=on" in model for model in models)


def test_a_kernel_is_unpacked_but_for_a_machine_that_sleeps() -> None:
    """Which would not wake."""

    def kernel(layout: Layout) -> str:
        argv = qemu.argv(hardware(layout), FILES, 2222)
        return argv[argv.index("-kernel") + 1]

    assert kernel(Layout()) == "/lab/images/bookworm-0/vmlinux"
    assert kernel(Layout(needs=("suspend",))) == "/lab/images/bookworm-0/vmlinuz"


def test_a_boot_loader_starts_the_machine_once_the_layouts_script_has_installed_it() -> None:
    disks = (Disk("virtio", "BOOT1"), Disk("virtio", "V2"))
    wanted = hardware(Layout(disks, needs=("boot_loader",)))
    argv = qemu.argv(wanted, FILES, 2222, (), "extra", is_installed=True)
    assert argv[-3:] == ["-set", "device.disk-BOOT1.bootindex=0", "extra"]
    assert not {"-kernel", "-initrd", "-append"} & set(argv)
    for other in (
        qemu.argv(wanted, FILES, 2222),
        qemu.argv(hardware(Layout(disks)), FILES, 2222, is_installed=True),
    ):
        assert "-kernel" in other
        assert "-set" not in other


def test_of_an_unnamed_disk_the_guest_is_told_no_serial() -> None:
    found = devices(Disk("virtio", "V1", unnamed=True), Disk("virtio", "V2"))
    models = [value for value in found if value.startswith("virtio-blk-pci")]
    assert ["serial=" in model for model in models] == [False, True]
    assert "id=disk-V1" in models[0]


def test_sata_uses_six_ports_then_another_controller() -> None:
    """q35 has one AHCI controller of its own."""
    found = devices(*(Disk("sata", f"S{number}") for number in range(8)))
    assert found[0].startswith("ide-hd,bus=ide.0,id=disk-S0,drive=drive-S0,serial=S0")
    assert found[5].startswith("ide-hd,bus=ide.5,")
    assert found[6] == "ich9-ahci,id=ahci1"
    assert found[7].startswith("ide-hd,bus=ahci1.0,")
    assert found[8].startswith("ide-hd,bus=ahci1.1,")


def test_scsi_disks_share_a_controller() -> None:
    """One target each; FUA and WWN where they are asked for."""
    found = devices(Disk("scsi", "A", fua=True), Disk("scsi", "B", wwn="0x5000000000000001"))
    assert found[0] == "virtio-scsi-pci,id=scsi"
    assert found[1].startswith("scsi-hd,bus=scsi.0,scsi-id=0,")
    assert found[1].endswith(",dpofua=on")
    assert found[2].startswith("scsi-hd,bus=scsi.0,scsi-id=1,")
    assert found[2].endswith(",wwn=0x5000000000000001")


def test_pcie_disks_can_be_unplugged() -> None:
    """Each has a root port, and no two ports share a chassis number."""
    disks = [Disk(bus, f"{bus}{number}") for bus in ("virtio", "nvme") for number in range(3)]
    ports = [value for value in devices(*disks) if value.startswith("pcie-root-port")]
    assert len({port.split("chassis=")[1] for port in ports}) == 6


def test_a_disk_is_plugged_in_where_it_was() -> None:
    """The same words as on the command line: the port, or the place on the controller."""
    disks = (Disk("scsi", "A"), Disk("virtio", "B"), Disk("scsi", "C", fua=True))
    for disk in disks:
        assert qemu.device(disks, disk.serial) in devices(*disks)
    assert qemu.device(disks, "C").startswith("scsi-hd,bus=scsi.0,scsi-id=1,id=disk-C,")


def test_a_layout_can_choose_kernel_arguments() -> None:
    """The root stays ours."""
    usual = qemu.kernel_arguments(hardware(Layout()))
    assert usual == f"root=UUID=0000-1111 ro {qemu.APPEND}"
    chosen = qemu.kernel_arguments(hardware(Layout(append="rootflags=barrier=0")))
    assert chosen == "root=UUID=0000-1111 ro rootflags=barrier=0"


def test_a_machine_has_more_than_one_processor_only_where_that_is_needed() -> None:
    """A second one that is emulated is work for each boot."""
    for needs, number in (((), "1"), (("smp",), "2")):
        argv = qemu.argv(hardware(Layout(needs=needs)), FILES, 2222)
        assert argv[argv.index("-smp") + 1] == number


def test_commas_in_paths_are_doubled() -> None:
    """A comma would end the option."""
    drive = qemu.disks((Disk("sata", "A"),), Path("/a,b"))[1]
    assert "file=/a,,b/A.qcow2," in drive


def test_disks_of_one_boot_take_the_place_of_the_layouts() -> None:
    """One that is served elsewhere has an address; one that lies says what model it is."""
    own = hardware(Layout((Disk("sata", "A"), Disk("scsi", "B"))))
    liar = BootDisk("sata", "A", model="ST1000", ignores_flush=True)
    served = BootDisk("scsi", "C", fua=True, nbd="nbd+unix:///disk?socket=/s")
    argv = qemu.argv(own, FILES, 2222, (liar, served))
    drives = [value for value in argv if value.startswith("if=none")]
    assert [drive.endswith(",cache.no-flush=on") for drive in drives] == [False, True, False, False]
    assert "id=drive-C,file=nbd+unix:///disk?socket=/s,format=raw,cache=writeback" in drives[3]
    assert [value for value in argv if value.startswith("ide-hd") and ",model=ST1000" in value]
    assert [value for value in argv if "scsi-id=1,id=disk-C," in value and ",dpofua=on" in value]


def test_one_boot_can_have_another_root() -> None:
    """In place of the image's, and first of all disks as that is."""
    other = BootDisk("virtio", "LABROOT", nbd="nbd+unix:///disk?socket=/s")
    argv = qemu.argv(hardware(Layout((Disk("scsi", "B"),))), FILES, 2222, (other,))
    drives = [value for value in argv if value.startswith("if=none")]
    assert [drive.split(",")[1] for drive in drives] == ["id=drive-LABROOT", "id=drive-B"]
    assert "file=nbd+unix:///disk?socket=/s,format=raw" in drives[0]
    assert len([value for value in argv if "drive=drive-LABROOT" in value]) == 1
    argv = qemu.argv(hardware(Layout()), FILES, 2222, (BootDisk("virtio", "LABROOT", content="NEW1"),))
    assert any(f"id=drive-LABROOT,file={FILES.disks}/NEW1.qcow2,format=qcow2" in value for value in argv)


def test_a_second_serial_port_is_had_where_it_is_needed() -> None:
    """Its wires are what a simple UPS speaks through."""
    assert qemu.argv(hardware(Layout(needs=("serial_port",))), FILES, 2222).count("-serial") == 2
    assert qemu.argv(hardware(Layout()), FILES, 2222).count("-serial") == 1


def test_caches_that_were_off_start_off() -> None:
    """QEMU's `-set` reaches a device by its id."""
    argv = qemu.disks((Disk("scsi", "A"),), FILES.disks)
    assert any(",id=disk-A," in value for value in argv)
    assert qemu.with_caches_off(["A"]) == ["-set", "device.disk-A.write-cache=off"]


@pytest.mark.parametrize(
    "other",
    [
        hardware(Layout((Disk("sata", "A", size=1),))),
        hardware(Layout((Disk("sata", "A", fstype="ext4"),))),
        hardware(Layout((Disk("sata", "A", fstype="xfs"),))),
        hardware(Layout((Disk("scsi", "A"),))),
        hardware(Layout((Disk("sata", "A"),), memory=512)),
        hardware(Layout((Disk("sata", "A"),), append="debug")),
        hardware(Layout((Disk("sata", "A"),), script="true")),
        hardware(Layout((Disk("sata", "A"),), frozen=False)),
        hardware(Layout((Disk("sata", "A"),)), accelerator="kvm"),
        Hardware(
            Image(Path("/lab/images/trixie-0"), "0000-1111"), Layout((Disk("sata", "A"),)), "qemu", "tcg"
        ),
    ],
)
def test_other_hardware_is_another_prepared_machine(other: Hardware, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot only fits what it was taken from."""
    monkeypatch.setattr(accel, "qemu_version", lambda: "QEMU 7.2")
    same = hardware(Layout((Disk("sata", "A"),)))
    assert prepared.key(LAB, same) == prepared.key(LAB, hardware(Layout((Disk("sata", "A"),))))
    assert prepared.key(LAB, same) != prepared.key(LAB, other)


def test_another_qemu_is_another_prepared_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its devices may be saved differently."""
    monkeypatch.setattr(accel, "qemu_version", lambda: "QEMU 7.2")
    before = prepared.key(LAB, hardware(Layout()))
    monkeypatch.setattr(accel, "qemu_version", lambda: "QEMU 10.0")
    assert prepared.key(LAB, hardware(Layout())) != before


def test_the_playbook_gets_the_disks_that_change() -> None:
    """A raw disk is left alone, and each name is one that all releases have."""
    disks = (
        Disk("sata", "A", partition=True, fstype="ext4", mount="/a", options="noatime"),
        Disk("sata", "B", partition=True),
        Disk("sata", "C"),
        Disk("scsi", "D", fstype="xfs", wwn="0x5000000000000001"),
        Disk("virtio", "E", fstype="ext4"),
    )
    found = prepared.variables(disks)["disks"]
    by_id = "/dev/disk/by-id"
    assert [(disk["volume"], disk["partition"], disk["fstype"], disk["mount"]) for disk in found] == [
        (f"{by_id}/ata-QEMU_HARDDISK_A-part1", True, "ext4", "/a"),
        (f"{by_id}/ata-QEMU_HARDDISK_B-part1", True, None, None),
        (f"{by_id}/wwn-0x5000000000000001", False, "xfs", None),
        (f"{by_id}/virtio-E", False, "ext4", None),
    ]
    assert found[0]["link"] == f"{by_id}/ata-QEMU_HARDDISK_A"
    assert len({disk["uuid"] for disk in found}) == len(found)
