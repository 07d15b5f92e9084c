# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's program as a process of its own: the same bytes each time, and what is left when it is killed.

Not beside the guard's other tests: it is built of modules as Python or a module's payload loads them, not as ansible-test does.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import program as programs
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import program, unit

pytestmark = pytest.mark.every_core_alike

PG = "/srv/pgdata"
UUID = "0b6e4d1a-55f3-4c1e-9a52-3f4c0a8e7d10"
#: A machine of files, in the program's own process: its kernel is a directory, which outlives a kill. Only
#: where things lie, what there is to see and how commands act is made up.
MACHINE = """
import os, sys, time
program, root, command = sys.argv[1:4]
sys.path.insert(0, program)
from durable_dbhost.host import our_paths as paths
from durable_dbhost.host import seam as hosts
from durable_dbhost.ups.guard import health, ipc, main, service

class Machine(hosts.Host):
    def read(self, path):
        if path.startswith(("/proc/uptime", "/proc/sys/kernel/random/boot_id", f"/proc/{os.getpid()}/")):
            return super().read(path)
        return super().read(root + path)
    def names(self, path):
        return super().names(root + path)
    def exists(self, path):
        return super().exists(root + path)
    def resolve(self, path):
        found = os.path.realpath(root + path)
        return found[len(root):] if found.startswith(root) else found
    def run(self, argv, timeout=10.0):
        assert argv[0] == "od", argv
        superblock = bytearray(1024)
        superblock[0x38:0x3A], superblock[0x5C], superblock[0x68:0x78] = b"\\x53\\xef", 4, bytes.fromhex("UUID")
        return hosts.Result(0, superblock.hex(" "), "")
    def sync_mount(self, mount, timeout=300.0):
        self.change(["sync", "--file-system", mount.target], timeout)
    def set_mount_options(self, mount, options, timeout=300.0):
        with open(root + "/log", "a") as log:
            log.write(f"options {mount.target} {','.join(options)}\\n")
        word = "nobarrier" if "barrier=0" in options else "barrier"
        super().write_file(root + "/proc/fs/ext4/sda1/options", f"rw\\n{word}\\ndata=ordered\\n".encode())
    def change(self, argv, timeout=300.0, environment=None):
        with open(root + "/log", "a") as log:
            log.write(" ".join(argv) + "\\n")
        if argv[-1] == "/dev/sda":
            path = root + "/sys/devices/pci0/sda/stat"
            fields = super().read(path).split()
            fields[15] = str(int(fields[15]) + 1)
            super().write_file(path, " ".join(fields).encode())
        if argv[0] == "sync" and os.path.exists(root + "/slow"):
            time.sleep(60)
    def write_file(self, path, content, mode=0o644, owner=0):
        super().write_file(root + path, content, mode, owner)
    def remove_file(self, path, owner=0):
        super().remove_file(root + path, owner)

class Eyes(health.Eyes):
    def see(self, is_watched):
        began = self.clock.steady()
        found = health.lease.read(self.host)
        upsmon = {os.getpid(): service.state.identity(self.host, os.getpid())[1]}
        return health.Snapshot(began, found, (), None if is_watched else upsmon)

os.makedirs(root + "/run/durable-dbhost/guard", exist_ok=True)
main.RUNTIME = root + "/run/durable-dbhost/guard"
service.POLL = 0.05
service.Fifo = lambda: ipc.Fifo(root + paths.FIFO)
service.Eyes = Eyes
main.Host = Machine
os._exit(main.main([command]))
""".replace("UUID", UUID.replace("-", ""))


class Machine:
    """The directory that stands for a machine, and the guard that runs on it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "machine"
        self.program = root / "guard.pyz"
        self.program.write_bytes(program.build())
        lease = {
            "schema": 1,
            "mounts": [{"target": PG, "uuid": UUID}],
            "issued": "2020-01-01",
            "expires": "9999-12-31",
            "quiet": 0,
            "needed": {"durability": 1, "clean_stop": 1},
            "test_ups": False,
            "units": [],
        }
        for path, text in {
            "etc/durable-dbhost/guard.json": json.dumps(lease),
            "proc/self/mountinfo": f"25 1 8:1 / {PG} rw,relatime shared:1 - ext4 /dev/sda1 rw\n",
            "proc/fs/ext4/sda1/options": "rw\nbarrier\ndata=ordered\n",
            "sys/devices/pci0/sda/device/model": "",
            "sys/devices/pci0/sda/sda1/partition": "1\n",
            "sys/devices/pci0/sda/queue/write_cache": "write back\n",
            "sys/devices/pci0/sda/stat": " ".join(["7"] * 17),
            "dev/block/8:1": "",
        }.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        for link, target in (
            ("sys/block/sda", "devices/pci0/sda"),
            ("sys/class/block/sda", "devices/pci0/sda"),
            ("sys/class/block/sda1", "devices/pci0/sda/sda1"),
            ("sys/dev/block/8:1", "devices/pci0/sda/sda1"),
        ):
            (self.root / link).parent.mkdir(parents=True, exist_ok=True)
            (self.root / link).symlink_to(self.root / "sys" / target)
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, command: str = "run") -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-I", "-c", MACHINE, str(self.program), str(self.root), command]
        # It makes its standard error non-blocking, for all who share it: not this process's own.
        with (self.root / "said").open("ab") as said:
            found = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=said)
        self.running.append(found)
        return found

    def wait(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not until():
            assert time.monotonic() < deadline, (self.state(), self.log(), (self.root / "said").read_text())
            time.sleep(0.01)

    def is_loose(self) -> bool:
        return "nobarrier" in (self.root / "proc/fs/ext4/sda1/options").read_text()

    def state(self) -> str:
        path = self.root / "run/durable-dbhost/guard/state.json"
        return str(json.loads(path.read_text())["state"]) if path.exists() else "none"

    def log(self) -> list[str]:
        path = self.root / "log"
        return path.read_text().splitlines() if path.exists() else []


TIGHTENED = [
    f"options {PG} barrier=1",
    "sync /dev/sda",
    f"sync --file-system {PG}",
    "sync /dev/sda",
]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    yield found
    for process in found.running:
        process.kill()
        process.wait()


def test_the_same_modules_make_the_same_bytes() -> None:
    first = program.build()
    programs.build.cache_clear()
    again = program.build()
    assert first == again
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        names = archive.namelist()
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names == sorted(names)
    assert {"__main__.py", "durable_dbhost/ups/collect.py", "durable_dbhost/storage/remount.py"} <= set(names)
    # What needs Ansible, or changes more than the guard has to, is not in it.
    assert not [name for name in names if "/enforce/" in name or "/policy/" in name]


def test_it_needs_nothing_but_itself(tmp_path: Path) -> None:
    path = tmp_path / "guard.pyz"
    path.write_bytes(program.build())
    for words, code in ((["state"], 0), (["nonsense"], 2), ([], 2)):
        # As its unit runs it: without packages that were added to the interpreter.
        argv = [sys.executable, *unit.OPTIONS.split(), path, *words]
        done = subprocess.run(argv, capture_output=True, check=False, cwd="/")
        assert done.returncode == code, done.stderr
        if words == ["state"]:
            assert set(json.loads(done.stdout)) == {"state", "reason", "since", "quiet", "lease", "mounts"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_tightens_first(machine: Machine, number: signal.Signals) -> None:
    guard = machine.start()
    machine.wait(machine.is_loose)
    before = len(machine.log())
    guard.send_signal(number)
    assert guard.wait(30) == 0
    assert machine.log()[before:] == TIGHTENED
    assert machine.state() == "stopped"
    # What systemd runs afterwards finds nothing to do.
    assert machine.start("tighten").wait(30) == 0
    assert machine.log()[before:] == TIGHTENED


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_what_runs_after_a_kill_tightens(machine: Machine, number: signal.Signals) -> None:
    guard = machine.start()
    machine.wait(lambda: machine.is_loose() and machine.state() == "loose")
    guard.send_signal(number)
    assert guard.wait(30) == -number
    assert machine.is_loose()
    before = len(machine.log())
    assert machine.start("tighten").wait(30) == 0
    assert machine.log()[before:] == TIGHTENED
    assert machine.state() == "stopped"
    # And a guard that is started again begins tight.
    machine.start()
    machine.wait(machine.is_loose)


def test_a_word_is_acted_on_within_a_moment(machine: Machine) -> None:
    machine.start()
    machine.wait(lambda: machine.is_loose() and machine.state() == "loose")
    lease = machine.root / "etc/durable-dbhost/guard.json"
    # So that it stays tight, and the moment can be seen.
    lease.write_text(lease.read_text().replace('"quiet": 0', '"quiet": 3600'))
    machine.wait(lambda: not machine.is_loose())
    lease.write_text(lease.read_text().replace('"quiet": 3600', '"quiet": 0'))
    machine.wait(machine.is_loose)
    fifo = os.open(machine.root / "run/durable-dbhost/guard/notify", os.O_WRONLY | os.O_NONBLOCK)
    before = len(machine.log())
    began = time.monotonic()
    os.write(fifo, b"ONBATT\n")
    machine.wait(lambda: len(machine.log()) > before)
    assert time.monotonic() - began < 2.0
    os.close(fifo)
    machine.wait(lambda: machine.log()[before : before + 4] == TIGHTENED)


def test_there_is_only_one(machine: Machine) -> None:
    machine.start()
    machine.wait(machine.is_loose)
    assert machine.start().wait(30) == 1
    assert machine.is_loose()


def test_what_dies_between_the_remount_and_the_flush_is_not_called_tight(machine: Machine) -> None:
    guard = machine.start()
    machine.wait(lambda: machine.is_loose() and machine.state() == "loose")
    (machine.root / "slow").write_text("")
    guard.terminate()
    machine.wait(lambda: not machine.is_loose() and machine.state() == "failed")
    guard.kill()
    guard.wait()
    assert not machine.is_loose()
    assert machine.state() == "failed"
    (machine.root / "slow").unlink()
    before = len(machine.log())
    assert machine.start("tighten").wait(30) == 0
    assert machine.log()[before:] == TIGHTENED[1:]
    assert machine.state() == "stopped"


def test_a_journal_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / "guard.pyz").write_bytes(program.build())
    script = (
        f"import sys; sys.path.insert(0, '{tmp_path}/guard.pyz')\n"
        "from durable_dbhost.ups.guard.ipc import never_wait, say\n"
        "never_wait()\n"
        "for _ in range(5000): say('a line' * 20, 4)\n"
    )
    reader, writer = os.pipe()
    done = subprocess.run([sys.executable, "-c", script], stderr=writer, timeout=60, check=False)
    os.close(writer)
    said = os.read(reader, 1000)
    os.close(reader)
    assert done.returncode == 0
    assert said.startswith(b"<4>a line")
