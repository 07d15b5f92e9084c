# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Layout files: what they may say, and what is said when they are wrong."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from lab.cli import DEFAULT_LAYOUT
from lab.errors import LabError
from lab.layout import Disk, Layout, load, parse, size_in_bytes


def test_all_that_a_disk_may_have() -> None:
    """Every key ends in its field."""
    text = """
    memory: 1024
    packages: [postgresql]
    append: quiet
    disks:
      - {bus: sata, serial: S1, size: 256M, wwn: "0x5000000000000001"}
      - {bus: scsi, serial: S2, fua: true, partition: true, fstype: ext4, mount: /a, options: ro}
      - {bus: virtio, serial: V1, unnamed: true}
    """
    assert parse(text) == Layout(
        disks=(
            Disk("sata", "S1", 256 * 2**20, wwn="0x5000000000000001"),
            Disk("scsi", "S2", fua=True, partition=True, fstype="ext4", mount="/a", options="ro"),
            Disk("virtio", "V1", unnamed=True),
        ),
        memory=1024,
        packages=("postgresql",),
        append="quiet",
    )


def test_packages_of_one_release_join_the_others_on_that_release() -> None:
    """A release that is not named has no such machine: it would lack what the layout is about."""
    layout = parse("{packages: [a], release_packages: {bookworm: [b3, c], trixie: [b4]}}")
    assert layout.on("bookworm") == Layout(packages=("a", "b3", "c"))
    assert layout.on("trixie") == Layout(packages=("a", "b4"))
    with pytest.raises(
        LabError, match=r"no packages of bullseye; release_packages has \['bookworm', 'trixie'\]"
    ):
        layout.on("bullseye")
    assert Layout(packages=("a",)).on("bullseye") == Layout(packages=("a",))


def test_defaults() -> None:
    """A disk needs a bus and a serial only; an empty layout is a machine with a root disk."""
    assert parse("disks: [{bus: nvme, serial: N1}]").disks == (Disk("nvme", "N1", 512 * 2**20),)
    assert parse("") == Layout()


def test_the_default_layout_is_right() -> None:
    """It is used by `make demo`: five volumes, all mounted."""
    mounts = [disk.mount for disk in load(DEFAULT_LAYOUT).disks]
    assert mounts == ["/srv/pgdata", "/srv/fbdata", "/srv/mssql", "/srv/maria", "/srv/faircom"]


@pytest.mark.parametrize(
    ("disks", "message"),
    [
        ("{bus: sata}", r"disk 1 lacks \['serial'\]"),
        ("{bus: ide, serial: A}", r"disk 1 \(A\): unknown bus 'ide'"),
        ("{bus: sata, serial: A, sise: 1G}", r"disk 1 has unknown keys \['sise'\]"),
        ("{bus: sata, serial: A, size: big}", r"disk 1 \(A\): size is 'big'"),
        ("{bus: scsi, serial: A, unnamed: true}", "only virtio disks can be unnamed"),
        ("{bus: virtio, serial: A, unnamed: true, fstype: ext4}", "for the layout's script to make"),
        ("{bus: sata, serial: a b}", "1 to 20 letters and digits"),
        ("{bus: sata, serial: LABROOT}", "belongs to the root disk"),
        ("{bus: sata, serial: A, fua: true}", "scsi only"),
        ("{bus: nvme, serial: A, wwn: '0x5000000000000001'}", "only sata and scsi"),
        ("{bus: sata, serial: A, wwn: '5'}", "16 hex digits"),
        ("{bus: sata, serial: A, fstype: ntfs}", "unknown fstype 'ntfs'"),
        ("{bus: sata, serial: A, mount: /a}", "a mount needs a fstype"),
        ("{bus: sata, serial: A, fstype: ext4, mount: a}", "absolute path"),
        ("{bus: sata, serial: A, fstype: xfs, size: 299M}", "300M or more"),
        ("{bus: sata, serial: A}, {bus: scsi, serial: A}", "serial is given twice: A"),
        (
            "{bus: sata, serial: A, fstype: ext4, mount: /a},{bus: sata, serial: B, fstype: ext4, mount: /a}",
            "mount is given twice: /a",
        ),
        ("A", "disk 1 is 'A'; it must be a mapping"),
    ],
)
def test_what_is_wrong_is_said(disks: str, message: str) -> None:
    """Which disk, and what about it."""
    with pytest.raises(LabError, match=message):
        parse(f"disks: [{disks}]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("disk: []", r"unknown keys \['disk'\]"),
        ("memory: lots", "memory is 'lots'"),
        ("packages: postgresql", "packages is 'postgresql'"),
        ("release_packages: [a]", r"release_packages is \['a'\]"),
        ("frozen: maybe", "frozen is 'maybe'; give true or false"),
        ("release_packages: {trixie: a}", "release_packages is {'trixie': 'a'}"),
        ("disks: 5", "disks is 5"),
        ("[", "not YAML"),
        ("- a", "must be a mapping"),
    ],
)
def test_what_is_wrong_with_the_whole(text: str, message: str) -> None:
    """Keys of the layout itself."""
    with pytest.raises(LabError, match=message):
        parse(text)


def test_a_file_that_is_not_there() -> None:
    """Its name is in the message."""
    with pytest.raises(LabError, match=r"nowhere\.yml: No such file"):
        load(DEFAULT_LAYOUT.with_name("nowhere.yml"))


def test_a_script_is_read_from_beside_the_layout(tmp_path: Path) -> None:
    """Its text belongs to the layout: another text is another machine. So does that of a playbook."""
    (tmp_path / "one.sh").write_text("true\n")
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/two.yml").write_text("- hosts: all\n")
    (tmp_path / "one.yml").write_text("{script: one.sh, playbook: two.yml}\n")
    assert load(tmp_path / "one.yml") == Layout(script="true\n", playbook="- hosts: all\n")


def test_several_scripts_are_one_in_their_order(tmp_path: Path) -> None:
    """Two layouts that have something in common say it once."""
    (tmp_path / "a.sh").write_text("a\n")
    (tmp_path / "b.sh").write_text("b\n")
    assert parse("script: [b.sh, a.sh]", tmp_path) == Layout(script="b\na\n")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("5", "script is 5; give the name of a file in /"),
        ("", "script is None"),
        ("../one.sh", r"script is '\.\./one\.sh'"),
        ("/etc/passwd", "script is '/etc/passwd'"),
        ("[one.yml, ../one.sh]", r"script is '\.\./one\.sh'"),
        ("nowhere.sh", r"cannot read the script nowhere\.sh: No such file"),
        (".", "script is '.'"),
        ("binary", "cannot read the script binary: it is not text"),
    ],
)
def test_a_script_that_cannot_be_read(script: str, message: str, tmp_path: Path) -> None:
    """The layout's name is in the message too."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "one.yml").write_text(f"script: {script}\n")
    with pytest.raises(LabError, match=f"one.yml: {message}"):
        load(tmp_path / "one.yml")


@pytest.mark.parametrize("path", sorted(DEFAULT_LAYOUT.parent.glob("*.yml")), ids=lambda path: path.name)
def test_our_layouts_are_right(path: Path) -> None:
    """Their scripts and playbooks too, as far as a shell and a parser can tell, and each serial in them is a disk's."""
    layout = load(path)
    assert not layout.playbook or [play["hosts"] for play in yaml.safe_load(layout.playbook)] == ["all"]
    done = subprocess.run(["sh", "-n"], input=layout.script, text=True, check=False)
    assert done.returncode == 0
    named = set(re.findall(r"\b(?:SATA|SCSI|NVME|VIRT)\d{4}\b", layout.script + layout.playbook))
    assert named <= {disk.serial for disk in layout.disks}


@pytest.mark.parametrize(("text", "size"), [("1K", 1024), ("3M", 3145728), ("2G", 2**31), (512, 512)])
def test_sizes(text: object, size: int) -> None:
    """Powers of 1024."""
    assert size_in_bytes(text) == size


def test_needs_are_words_that_are_known() -> None:
    """A word that no kind of machine knows would be a need that nothing meets."""
    assert parse("needs: [tracing, smp]").needs == ("tracing", "smp")
    with pytest.raises(
        LabError, match=r"unknown words \['warp'\]; known are \['boot_loader', 'exact_hardware', "
    ):
        parse("needs: [warp]")
