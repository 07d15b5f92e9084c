# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine and its verbs."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from lab import accel, disks, image, prepared, process, qemu, qmp, ssh
from lab.errors import LabError
from lab.layout import Layout
from lab.locks import locked
from lab.paths import Lab, MachineFiles
from lab.progress import say
from lab.recipe import Recipe
from lab.record import Record

BOOT_LIMIT = 300.0  # a busy host needs a third of it
REBOOT_LIMIT = 600.0  # the guest stops first, and its connections with it
STOP_LIMIT = 60.0  # QEMU writes out all of its disks
_BOOT_ID = ["cat", "/proc/sys/kernel/random/boot_id"]


class Machine:
    """One virtual machine of the lab, up or not. Objects hold no state: it is all on disk."""

    def __init__(self, name: str, lab: Lab | None = None) -> None:
        """Name a machine of `lab` (default: the user's lab)."""
        if not name or not name.replace("-", "").replace("_", "").isalnum():
            raise LabError(f"a machine's name is letters, digits, - and _, not {name!r}")
        self.name = name
        self.lab = lab or Lab.default()
        self.files = MachineFiles(self.lab.machines / name)
        self._connection = ssh.Connection(name, self.files)

    @property
    def inventory(self) -> Path:
        """An Ansible inventory that holds this machine."""
        return self.files.inventory

    @property
    def ssh_config(self) -> Path:
        """A configuration for `ssh -F` that knows this machine by its name."""
        return self.files.ssh_config

    @property
    def running(self) -> bool:
        """Whether its QEMU is alive."""
        return process.running(self.files) is not None

    # Life

    def up(self, layout: Layout, release: str = "bookworm") -> None:
        """Make the machine and return when ssh works; a running one of the same kind is kept."""
        recipe = Recipe(release, ssh.public_key(self.lab), layout.packages)
        hardware = qemu.Hardware(image.ensure(self.lab, recipe), layout, accel.choose(self.lab))
        with locked(self.lab, f"machine-{self.name}"):
            if self.running:
                self._must_be(prepared.key(hardware))
                self._connection.wait(BOOT_LIMIT)
                return
            self.down()
            scratch = Machine(f"prepare-{prepared.key(hardware)}", self.lab)
            source = prepared.ensure(self.lab, hardware, scratch)
            self.create(hardware, source)
            if layout.snapshots:
                self.load(prepared.READY)
            else:
                self.boot()

    def create(self, hardware: qemu.Hardware, source: Path | None = None) -> None:
        """Make the machine's files: disks copied from `source`, or empty; it is not started."""
        self.files.directory.mkdir(parents=True)
        self.files.sockets.mkdir(mode=0o700, exist_ok=True)
        if source is None:
            disks.make(hardware, self.files.disks)
        else:
            disks.copy(source, self.files.disks)
        name = "" if source is None else source.name
        Record(hardware, process.free_port(), name).write(self.files)

    def down(self) -> None:
        """End the machine and delete all its files."""
        self.stop()
        if self.files.sockets != self.files.directory:
            shutil.rmtree(self.files.sockets, ignore_errors=True)
        shutil.rmtree(self.files.directory, ignore_errors=True)

    def boot(self, *extra: str) -> None:
        """Boot from the disks and return when ssh works and start-up has settled.

        `extra` are arguments for QEMU, of this boot alone: disks, say, that no snapshot can hold.
        """
        self._start(*extra)
        self.run(["systemctl", "is-system-running", "--wait"], check=False, timeout=BOOT_LIMIT)

    def stop(self) -> None:
        """End QEMU in order: what reached the disks is kept. The guest is not asked."""
        self._connection.close()
        pid = process.running(self.files)
        if pid is not None:
            with suppress(LabError):  # QEMU may hang up before it answers
                self.qmp("quit")
            if not process.wait_ended(pid, STOP_LIMIT):
                process.kill(self.files)

    def power_off(self) -> None:
        """Shut the guest down in order, and return when QEMU has ended."""
        pid = process.running(self.files)
        self.run(["systemctl", "poweroff"], check=False)
        self._connection.close()
        if not process.wait_ended(pid, BOOT_LIMIT):
            raise LabError(f"{self.name} does not power off; its console: {self.files.console}")

    def reset(self) -> None:
        """Power cycle without shutdown; disks keep all they were sent, also unflushed."""
        self._must_run()
        self.stop()
        self.boot()

    def reboot(self) -> None:
        """Let the guest reboot itself, in order, and return when it is up again; QEMU goes on."""
        self._must_run()
        before = self.run(_BOOT_ID).stdout
        self.run(["systemctl", "--no-block", "reboot"], check=False)
        deadline = time.monotonic() + REBOOT_LIMIT
        while self._boot_id() in (None, before):
            # What was connected to the boot before would hang.
            self._connection.close()
            if time.monotonic() > deadline:
                raise LabError(f"{self.name} does not come back; its console: {self.files.console}")
            time.sleep(2.0)
        self.run(["systemctl", "is-system-running", "--wait"], check=False, timeout=BOOT_LIMIT)

    def cut(self) -> None:
        """SIGKILL QEMU; the disks' files stay as they are. `boot` brings the machine back."""
        self._must_run()
        process.kill(self.files)
        self._connection.close()

    def sleep_and_wake(self) -> None:
        """Suspend the guest to memory (S3) by its own systemd, and wake it; return when it is awake."""
        self._must_run()
        before = self._sleeps()
        self.run(["systemctl", "--no-block", "suspend"])
        self._connection.close()
        deadline = time.monotonic() + BOOT_LIMIT
        # Some sleeps end by themselves at once, so it is the guest that says that it has slept.
        while self._sleeps() in (None, before):
            if time.monotonic() > deadline:
                raise LabError(f"{self.name} does not sleep and wake; its console: {self.files.console}")
            if self.qmp("query-status")["status"] == "suspended":
                self.hmp("system_wakeup")
        self.run(["sh", "-c", "while systemctl --quiet is-active sleep.target; do sleep 1; done"])
        self._set_clock()

    def _sleeps(self) -> int | None:
        """Return how often the guest has slept since it booted, None while it does not answer."""
        with suppress(LabError, ValueError):
            return int(self.run(["cat", "/sys/power/suspend_stats/success"], timeout=5.0).stdout)
        return None

    def _boot_id(self) -> str | None:
        """Return the name of this boot, None while the guest does not answer."""
        with suppress(LabError):
            return self.run(_BOOT_ID, timeout=30.0).stdout
        return None

    # Snapshots

    def save(self, tag: str) -> None:
        """Freeze memory and disks under the name `tag`; the machine goes on."""
        self._must_have_snapshots()
        disks.must_be_own(self)
        self._connection.close()
        self.files.caches_off(tag).write_text(json.dumps(disks.caches_off(self)))
        self.hmp(f"savevm {tag}")
        self._set_clock()

    def load(self, tag: str) -> None:
        """Go back to what `save` froze, with the present time. A cut machine can be loaded too."""
        self._must_have_snapshots()
        off = self.files.caches_off(tag)
        serials = json.loads(off.read_text()) if off.exists() else []
        self.stop()
        self._start("-loadvm", tag, *qemu.with_caches_off(serials))
        self._set_clock()

    # Use

    def run(
        self,
        argv: list[str],
        *,
        check: bool = True,
        input: str | None = None,
        timeout: float | None = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run `argv` as root in the machine.

        LabError if it does not end in time, and, with its output, if it fails and `check`.
        """
        return self._connection.run(argv, check=check, input=input, timeout=timeout)

    def put(self, local: Path, remote: str) -> None:
        """Copy one file, with its mode, to an absolute path in the machine."""
        self._connection.put(local, remote)

    def qmp(self, command: str, **arguments: Any) -> Any:
        """Send a command of QEMU's machine protocol and return its result."""
        return qmp.execute(self.files.qmp, command, arguments)

    def hmp(self, line: str) -> None:
        """Run a human monitor command; one that works is silent or says OK. LabError: what it said."""
        said = str(self.qmp("human-monitor-command", **{"command-line": line})).strip()
        if said not in ("", "OK"):
            raise LabError(f"QEMU refuses {line!r}: {said}")

    def unplug(self, serial: str) -> None:
        """Take a disk away from the running guest; the next boot or load has it again."""
        self._must_run()
        disks.unplug(self, serial)

    def plug(self, serial: str, replacement: str | None = None) -> None:
        """Bring an unplugged disk back, or an empty one with another serial in its place.

        The next boot or load has the layout's own disk again.
        """
        self._must_run()
        disks.plug(self, serial, replacement)

    def record(self) -> Record:
        """Return what the machine was made from."""
        return Record.read(self.files)

    # Internals

    def _start(self, *extra: str) -> None:
        """Start QEMU and wait for ssh; the port changes if another process took it meanwhile."""
        record = self.record()
        if self.running:
            raise LabError(f"{self.name} runs already")
        self._connection.close()
        try:
            process.start(qemu.argv(record.hardware, self.files, record.port, *extra), self.files.qemu_log)
        except LabError as error:
            if process.PORT_TAKEN not in str(error):
                raise
            record = Record(record.hardware, process.free_port(), record.prepared)
            record.write(self.files)
            process.start(qemu.argv(record.hardware, self.files, record.port, *extra), self.files.qemu_log)
        self._connection.configure(self.lab, record.port)
        self._connection.wait(BOOT_LIMIT)

    def _set_clock(self) -> None:
        """A guest that slept in a snapshot believes that no time has passed."""
        self.run(["date", "--utc", "--set", f"@{time.time():.6f}"])

    def _must_run(self) -> None:
        self.record()
        if not self.running:
            raise LabError(f"{self.name} does not run; `boot` starts it")

    def _must_have_snapshots(self) -> None:
        if not self.record().hardware.layout.snapshots:
            raise LabError(f"{self.name} has NVMe disks: QEMU cannot snapshot those")

    def _must_be(self, wanted: str) -> None:
        if self.record().prepared != wanted:
            raise LabError(f"{self.name} runs with another layout or release; `down` it first")
        say(f"{self.name} is up already")


def all_machines(lab: Lab) -> list[Machine]:
    """Return every machine of a lab, up or not, in order of name."""
    if not lab.machines.is_dir():
        return []
    return [Machine(path.name, lab) for path in sorted(lab.machines.iterdir()) if path.is_dir()]
