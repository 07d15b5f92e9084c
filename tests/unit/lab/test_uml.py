# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines of User Mode Linux: what the kernel and the disk server are told, and which processes are theirs."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab.errors import LabError, PortTakenError
from lab.hardware import BootDisk, Hardware
from lab.image import Image
from lab.layout import Disk, Layout
from lab.machine import Machine
from lab.paths import Lab, MachineFiles
from lab.process import free_port
from lab.uml import disks, kind, process, program
from lab.vhost.config import disk_config

FILES = MachineFiles(Path("/lab/machines/one"))
LAYOUT = Layout(
    (
        Disk("scsi", "S1", fua=True, wwn="0x5000000000000001"),
        Disk("virtio", "V1"),
        Disk("scsi", "S2"),
    )
)


def hardware(layout: Layout = LAYOUT) -> Hardware:
    """Return the hardware of a layout."""
    return Hardware(Image(Path("/lab/images/bookworm-0"), "0000-1111"), layout, "uml")


@pytest.fixture
def files(tmp_path: Path) -> MachineFiles:
    """Return the files of a machine in a directory of its own."""
    found = MachineFiles(tmp_path / "one")
    found.directory.mkdir()
    return found


def test_the_disk_server_understands_what_it_is_told() -> None:
    """Its own reader is asked. The root lies over the image; each SCSI disk has its target."""
    told = disks.configuration(hardware(), FILES, ())
    read = [disk_config(disk) for disk in told["disks"]]
    assert [disk.serial for disk in read] == ["LABROOT", "S1", "V1", "S2"]
    assert read[0].store["base"] == "/lab/images/bookworm-0/root.raw"
    assert [disk.target for disk in read] == [None, 0, None, 1]
    assert (read[1].fua, read[1].wwn, read[3].fua, read[3].wwn) == (True, 0x5000000000000001, False, None)
    assert read[2].store == {"type": "file", "path": "/lab/machines/one/disks/V1.raw"}


def test_of_an_unnamed_disk_the_guest_is_told_no_serial() -> None:
    layout = Layout(disks=(Disk("virtio", "V1", unnamed=True), Disk("virtio", "V2")))
    read = [disk_config(disk) for disk in disks.configuration(hardware(layout), FILES, ())["disks"]]
    assert {disk.serial: disk.unnamed for disk in read} == {"LABROOT": False, "V1": True, "V2": False}


def test_disks_of_one_boot_bring_a_store_of_their_own() -> None:
    """One takes the place of the layout's, one is new."""
    store = {"type": "python", "factory": "proof.vhost_store:disk", "arguments": {"directory": "/d"}}
    other, new = BootDisk("scsi", "S1", store=store), BootDisk("virtio", "N1", store=store)
    told = disks.configuration(hardware(), FILES, (other, new))["disks"]
    assert [disk["serial"] for disk in told] == ["LABROOT", "S1", "V1", "S2", "N1"]
    assert told[1]["store"] == told[4]["store"] == store
    assert told[1]["target"] == 0


def test_one_boot_can_have_another_root() -> None:
    """In place of the image's, and first of all disks as that is."""
    store = {"type": "file", "path": "/other-root.raw"}
    told = disks.configuration(hardware(), FILES, (BootDisk("virtio", "LABROOT", store=store),))["disks"]
    assert [disk["serial"] for disk in told] == ["LABROOT", "S1", "V1", "S2"]
    assert told[0]["store"] == store
    assert told[0]["socket"] == disks.configuration(hardware(), FILES, ())["disks"][0]["socket"]


def test_a_root_can_be_a_disk_that_was_made_later(files: MachineFiles) -> None:
    """What was copied from it is what is on it."""
    files.disks.mkdir()
    machine = kind.Uml()
    machine.make_disk(files, "NEW1", 1 << 20)
    root = BootDisk("virtio", "LABROOT", content="NEW1")
    told = disks.configuration(hardware(), files, (root,))["disks"]
    assert [disk["serial"] for disk in told] == ["LABROOT", "S1", "V1", "S2"]
    assert told[0]["store"] == {"type": "file", "path": f"{files.disks}/NEW1.raw"}
    with Path(told[0]["store"]["path"]).open("r+b") as file:
        file.write(b"root")
    machine.copy_disk(files, "NEW1", files.directory / "copy")
    assert (files.directory / "copy").read_bytes() == b"root".ljust(1 << 20, b"\0")
    with pytest.raises(LabError, match=r"NEW2 is not copied: .*No such file"):
        machine.copy_disk(files, "NEW2", files.directory / "copy")


def test_the_kernel_finds_the_root_disk_first() -> None:
    """Disks by the paths that it sees: its sockets are below /run."""
    words = kind.arguments(hardware(), disks.configuration(hardware(), FILES, ()))
    devices = [word for word in words if word.startswith("virtio_uml.device=")]
    assert devices == [
        "virtio_uml.device=/run/disk-LABROOT:2",
        "virtio_uml.device=/run/disk-V1:2",
        "virtio_uml.device=/run/scsi:8",
    ]
    assert {"mem=768M", "root=UUID=0000-1111", "ro", "quiet"} <= set(words)
    chosen = hardware(Layout(append="rootflags=barrier=0"))
    assert "rootflags=barrier=0" in kind.arguments(chosen, disks.configuration(chosen, FILES, ()))


def test_a_machine_runs_as_long_as_any_process_holds_its_lock(files: MachineFiles) -> None:
    """Process ids are used again; a lock goes with the last one that holds it."""
    assert not process.running(files)
    lock = os.open(process.lock_file(files), os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen(["sleep", "60"], pass_fds=(lock,)) as child:
        os.close(lock)
        assert process.running(files)
        assert not process.wait_ended(files, 0.1)
        child.kill()
        assert process.wait_ended(files, 10.0)


def test_a_process_of_another_program_is_never_killed(files: MachineFiles) -> None:
    """The id in the file is another's by now: the command line does not name this machine's configuration."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        files.pid.write_text(str(child.pid))
        process.kill(files)
        assert child.poll() is None
        child.kill()


def test_a_port_that_is_taken_is_told_apart(files: MachineFiles) -> None:
    """The machine then takes another; nothing has been started."""
    with pytest.raises(PortTakenError, match="is taken"):
        port = free_port()
        with process._listener(port):
            process.start(files, port, {})
    assert not files.pid.exists()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="wants two processors")
def test_a_machine_runs_on_the_processor_that_the_fewest_are_bound_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, *_ = sorted(os.sched_getaffinity(0))
    with subprocess.Popen(["sleep", "60"]) as machine:
        monkeypatch.setattr(process, "_is_kernel", lambda entry: entry.name == str(machine.pid))
        os.sched_setaffinity(machine.pid, {first})
        assert process._processor() == second
        os.sched_setaffinity(machine.pid, {second})
        assert process._processor() == first
        machine.kill()


@pytest.mark.parametrize("verb", ["unplug", "plug"])
def test_only_scsi_disks_come_and_go(verb: str, tmp_path: Path) -> None:
    """The kernel learns of virtio disks when it boots."""
    machine, more = Machine("one", Lab(tmp_path)), [None] if verb == "plug" else []
    with pytest.raises(
        LabError, match="V1 is a virtio disk: this kind of machine can exchange SCSI disks only"
    ):
        getattr(kind.Uml(), verb)(machine, LAYOUT.disks[1], *more)


def test_a_program_is_kept_by_versions_and_first_file_system(tmp_path: Path) -> None:
    """A changed init makes another one; what is being fetched is no program yet."""
    lab = Lab(tmp_path)
    (lab.uml / "sid/.fetching").mkdir(parents=True)
    (lab.uml / "sid/user-mode-linux_7.2um1+init_00000000").mkdir()
    (lab.uml / f"trixie/user-mode-linux_6.12um1+{program._init_version()}").mkdir(parents=True)
    assert program._found(lab, "sid") is None
    kept = lab.uml / f"sid/user-mode-linux_7.2um1+{program._init_version()}"
    kept.mkdir()
    assert program.ensure(lab, "sid").version == kept.name


def test_a_machine_runs_the_newest_kernel_unless_that_of_its_release_is_asked() -> None:
    assert kind._distribution(LAYOUT, "bookworm") == "sid"
    assert kind._distribution(replace(LAYOUT, needs=("release_kernel",)), "bookworm") == "bookworm"
    assert hardware().image.release == "bookworm"


def test_the_init_is_a_shell_script() -> None:
    """As far as a shell can tell."""
    assert subprocess.run(["sh", "-n", str(program.INIT)], check=False).returncode == 0


def test_what_was_never_saved_cannot_be_brought_back(files: MachineFiles) -> None:
    """The disks stay."""
    files.disks.mkdir()
    with pytest.raises(LabError, match="one has nothing saved as before"):
        kind._bring_back(files, "before")
    assert files.disks.is_dir()
