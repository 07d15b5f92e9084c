# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing of a machine is left after any end of it: no process, mount, network device or name space.

pytest tests/lab
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import watch
from lab.kinds import KINDS
from lab.layout import Disk, Layout
from lab.machine import Machine, image_for
from lab.paths import Lab
from proof import loop

ROOT = Path(__file__).parents[2]
LAYOUT = Layout((Disk("virtio", "VIRT0001", 16 << 20), Disk("scsi", "SCSI0001", 16 << 20)), memory=256)
SPACES = ("mnt", "net", "pid")
LIMIT = 30.0
#: Brings the machine up, says so, and waits; what it brought up belongs to it.
OWNER = """
import sys
from lab import watch
from lab.machine import Machine
watch.own()
Machine(sys.argv[1]).start()
print("up", flush=True)
input()
"""
#: Processes that a machine of each kind has, at the least, once it is started.
LEAST = {"uml": 4, "qemu": 1}


@dataclass
class Traces:
    """What a machine has of this host: processes, by the name spaces that they are in, and its first process."""

    machine: Machine
    first: int
    spaces: set[str]

    @classmethod
    def of(cls, machine: Machine) -> Traces:
        """Read them while it lives."""
        first = int(machine.files.pid.read_text())
        inside = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        own = {os.readlink(f"/proc/self/ns/{space}") for space in SPACES}
        found = {os.readlink(f"/proc/{pid}/ns/{space}") for pid in inside for space in SPACES}
        return cls(machine, first, found - own)

    def left(self) -> list[str]:
        """Return what is left of them."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                spaces = {os.readlink(process / "ns" / space) for space in SPACES}
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            watches = b"lab.watch" in words and str(self.first).encode() in words
            of_machine = any(str(self.machine.files.directory).encode() in word for word in words)
            if spaces & self.spaces or watches or of_machine:
                found.append(f"{process.name}: {b' '.join(words).decode(errors='replace')[:200]}")
        return found


@pytest.fixture(scope="module", autouse=True)
def _own_mounts() -> None:
    """What others mount on this host meanwhile, another stage say, is not seen here; what a machine leaves is."""
    if os.geteuid() == 0:
        loop.own_mounts()


def around() -> tuple[list[str], list[str]]:
    """Return the mounts and network devices that this host has."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return sorted(mounts), sorted(os.listdir("/sys/class/net"))


@pytest.fixture(scope="module", params=KINDS)
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Return a machine of each kind, with empty disks, that does not run."""
    lab, kind = Lab.default(), KINDS[request.param]
    if refusal := kind.refusal(lab, LAYOUT, "bookworm"):
        pytest.skip(f"{kind.name}: {refusal}")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(watch.OWNER, raising=False)
        found = Machine(f"ends-{kind.name}", lab)
        found.down()
        found.create(kind.hardware(lab, image_for(lab, kind, LAYOUT, "bookworm"), LAYOUT))
        yield found
        found.down()


def start(machine: Machine) -> Traces:
    """Start it, without waiting for its guest, and return what can be seen of it."""
    machine.start()
    deadline = time.monotonic() + LIMIT
    while True:
        traces = Traces.of(machine)
        if len(traces.left()) >= LEAST[machine.record().hardware.kind]:
            return traces
        assert time.monotonic() < deadline, traces.left()
        time.sleep(0.1)


def nothing_is_left(before: tuple[list[str], list[str]], traces: Traces) -> None:
    """Assert it, within the time that a kernel takes to clean up."""
    deadline = time.monotonic() + LIMIT
    while left := traces.left():
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    # A process that ends leaves its name spaces before it closes its last file (do_exit in kernel/exit.c), so the lock that
    # tells whether the machine runs may be held for a moment more.
    while traces.machine.running:
        assert time.monotonic() < deadline, "no process is left, but the machine is told to run"
        time.sleep(0.01)
    assert around() == before


@pytest.mark.parametrize(
    "end",
    [Machine.down, Machine.cut, lambda machine: os.kill(Traces.of(machine).first, signal.SIGKILL)],
    ids=["down", "cut", "its first process is killed"],
)
def test_nothing_is_left_of_a_machine(machine: Machine, end: Callable[[Machine], None]) -> None:
    """While it boots, as later: what it has of this host it has from its start."""
    record = machine.record()
    before = around()
    traces = start(machine)
    end(machine)
    nothing_is_left(before, traces)
    if not machine.files.directory.exists():  # `down` deletes its files
        machine.create(record.hardware)


@pytest.mark.parametrize("machine", ["uml"], indirect=True)
def test_nothing_is_left_of_a_machine_that_powers_itself_off(machine: Machine) -> None:
    """An emulated one does so each time that a layout with NVMe disks is prepared."""
    before = around()
    machine.boot()
    traces = Traces.of(machine)
    machine.power_off()
    nothing_is_left(before, traces)


def test_nothing_is_left_when_the_run_that_it_belongs_to_is_killed(machine: Machine) -> None:
    """As an operator's kill -9 or the OOM killer does it: nobody is left to clean up."""
    before = around()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, machine.name], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert owner.stdout
    assert owner.stdout.readline() == b"up\n"
    traces = Traces.of(machine)
    assert machine.running
    owner.kill()
    owner.wait()
    nothing_is_left(before, traces)
