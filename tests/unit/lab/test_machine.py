# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be known of machines without starting one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lab import paths, process
from lab.errors import LabError, PortTakenError
from lab.hardware import Hardware
from lab.image import Image
from lab.layout import Disk, Layout
from lab.machine import Machine, all_machines
from lab.paths import Lab, MachineFiles
from lab.qemu import process as qemu
from lab.record import Record
from lab.ssh import Connection

#: The first thread ends, by exit(2), and another goes on, as QEMU's do when it is killed.
HALF_ENDED = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("begun", flush=True)
ctypes.CDLL(None).syscall(60, 0)
"""


@pytest.fixture
def files(tmp_path: Path) -> MachineFiles:
    """Return the files of a machine in a directory of its own."""
    found = MachineFiles(Lab(tmp_path).machines / "one")
    found.directory.mkdir(parents=True)
    return found


def test_a_record_is_read_as_it_was_written(files: MachineFiles) -> None:
    """Another process boots the same machine from it."""
    layout = Layout(
        (Disk("scsi", "A", fua=True),), 512, ("nut",), "quiet", "true\n", "- hosts: all\n", ("smp",)
    )
    record = Record(Hardware(Image(Path("/i"), "u"), layout, "qemu", "tcg"), 2222, "0123")
    record.write(files)
    assert Record.read(files) == record


def test_no_record_is_said() -> None:
    """With what makes one."""
    with pytest.raises(LabError, match="no machine two; `up` makes one"):
        Record.read(MachineFiles(Path("/nowhere/two")))


@pytest.mark.parametrize("name", ["", "../x", "a b", "a/b"])
def test_names_that_could_leave_the_lab_are_refused(name: str, tmp_path: Path) -> None:
    """A name becomes a directory that `down` deletes."""
    with pytest.raises(LabError, match="a machine's name"):
        Machine(name, Lab(tmp_path))


def test_a_process_of_another_program_is_never_ours(files: MachineFiles) -> None:
    """A process id is used again some day: here it is this test's."""
    files.pid.write_text(str(os.getpid()))
    assert qemu.running(files) is None


def test_a_process_has_ended_once_it_holds_nothing_more() -> None:
    """The command line is no sign of life: a process that dies loses it before its files and ports."""
    with subprocess.Popen(["sleep", "60"]) as child:
        assert not process.wait_ended(child.pid, 0.1)
        child.kill()
        assert process.wait_ended(child.pid, 10.0), "a zombie has let go of all"
    assert process.wait_ended(child.pid, 0.1)
    assert process.wait_ended(None, 0.1)


def test_a_process_has_ended_only_with_its_last_thread() -> None:
    child = subprocess.Popen([sys.executable, "-c", HALF_ENDED], stdout=subprocess.PIPE)
    try:
        assert child.stdout and child.stdout.readline() == b"begun\n"
        state = Path(f"/proc/{child.pid}/stat")
        deadline = time.monotonic() + 30
        while state.read_text().rpartition(")")[2].split()[0] != "Z" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not process.wait_ended(child.pid, 0.2)
    finally:
        child.kill()
    assert process.wait_ended(child.pid, 30.0)
    child.wait()


def test_a_command_that_does_not_end_names_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = tmp_path / "ssh"
    stand_in.write_text("#!/bin/sh\nexec sleep 60\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    files = MachineFiles(tmp_path)
    with pytest.raises(LabError, match=f"'true' did not end within 0 s; its console: {files.console}"):
        Connection("db1", files).run(["true"], timeout=0.2)


def test_what_qemu_says_in_the_background_is_told(tmp_path: Path) -> None:
    """A shell stands in for QEMU. The words in the log decide whether another port is tried."""
    log = tmp_path / "qemu.log"
    log.write_text("of an earlier start")
    with pytest.raises(PortTakenError) as told:
        qemu.start(["sh", "-c", f"echo early >&2; echo {qemu.PORT_TAKEN!r} > {log}; exit 1"], log)
    assert str(told.value) == f"QEMU does not start: early\n{qemu.PORT_TAKEN}"


def test_long_directories_get_short_sockets(tmp_path: Path) -> None:
    """A unix socket's path ends after 107 bytes, and ssh wants 17 of them."""
    near = MachineFiles(Path("/lab/machines/one"))
    assert near.sockets == near.directory
    far = MachineFiles(tmp_path / ("x" * 100) / "one")
    assert far.sockets != far.directory
    assert len(str(far.control)) + 17 < 108


def test_ansible_and_ssh_share_one_connection(files: MachineFiles, tmp_path: Path) -> None:
    """Else Ansible's own would hang after a snapshot is loaded."""
    Connection("one", files).configure(Lab(tmp_path), 2222)
    host = json.loads(files.inventory.read_text())["all"]["hosts"]["one"]
    assert host["ansible_host"] == "127.0.0.1"
    assert host["ansible_port"] == 2222
    assert f"ControlPath={files.control}" in host["ansible_ssh_args"]
    assert f'ControlPath "{files.control}"' in files.ssh_config.read_text()


def test_disks_are_not_touched_while_the_machine_runs(
    files: MachineFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a disk of the layout made again, nor what is not off turned on."""
    layout = Layout((Disk("virtio", "A"),))
    Record(Hardware(Image(Path("/i"), "u"), layout, "uml"), 2222, "").write(files)
    machine = Machine("one", Lab(tmp_path))
    for serial in ("A", "LABROOT"):
        with pytest.raises(LabError, match=f"one has a disk with serial {serial}"):
            machine.make_disk(serial, 4096)
    with pytest.raises(LabError, match="one does not run"):
        machine.turn_cache_on("A")
    monkeypatch.setattr(Machine, "running", True)
    for touch in (
        lambda: machine.make_disk("B", 4096),
        lambda: machine.copy_disk("A", tmp_path / "copy"),
    ):
        with pytest.raises(LabError, match="one runs; its disks can be touched when it is off"):
            touch()


def test_a_cache_comes_on_with_a_new_qemu_where_memory_is_kept(
    files: MachineFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a snapshot that does not know which caches were off; elsewhere the disk server does it."""
    told: list[Any] = []
    layout = Layout((Disk("virtio", "A"),))
    monkeypatch.setattr(Machine, "running", True)
    monkeypatch.setattr("lab.uml.disks.ask", lambda _files, *words, **more: told.append((words, more)))
    monkeypatch.setattr(Machine, "save", lambda self, tag: self.files.caches_off(tag).write_text('["A"]'))
    monkeypatch.setattr(
        Machine, "load", lambda self, tag: told.append((tag, self.files.caches_off(tag).exists()))
    )
    for kind in ("uml", "qemu"):
        Record(Hardware(Image(Path("/i"), "u"), layout, kind), 2222, "").write(files)
        Machine("one", Lab(tmp_path)).turn_cache_on("A")
    assert told == [(("set_cache",), {"serial": "A", "on": True}), ("migrated", False)]


def test_only_our_own_disk_server_has_faults(
    files: MachineFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    layout = Layout((Disk("virtio", "A"),))
    monkeypatch.setattr(Machine, "running", True)
    monkeypatch.setattr("lab.uml.disks.ask", lambda _files, *words, **more: asked.append((words, more)))
    Record(Hardware(Image(Path("/i"), "u"), layout, "uml"), 2222, "").write(files)
    Machine("one", Lab(tmp_path)).set_fault("A", "flush", "lie")
    assert asked == [(("fault",), {"serial": "A", "operation": "flush", "effect": "lie"})]
    Record(Hardware(Image(Path("/i"), "u"), layout, "qemu"), 2222, "").write(files)
    with pytest.raises(LabError, match="QEMU's disk A has no faults"):
        Machine("one", Lab(tmp_path)).set_fault("A", "flush", "lie")


def test_two_checkouts_have_machines_of_one_name(
    files: MachineFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sees, and ends, its own; images and prepared disks are shared."""
    lab = Lab(tmp_path)
    ours = Machine("one", lab)
    monkeypatch.setattr(paths, "CHECKOUT", Path("/another/checkout"))
    theirs = Machine("one", lab)
    assert theirs.files.directory != ours.files.directory == files.directory
    assert theirs.files.sockets != ours.files.sockets
    assert all_machines(lab) == []
    theirs.files.directory.mkdir(parents=True)
    theirs.down()
    assert files.directory.is_dir() and not theirs.files.directory.exists()


def test_all_machines_are_found_from_their_directories(files: MachineFiles, tmp_path: Path) -> None:
    """`down --all` needs no memory of who started what."""
    assert [machine.name for machine in all_machines(Lab(tmp_path))] == [files.directory.name]
    assert all_machines(Lab(tmp_path / "empty")) == []
