# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine and its verbs."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lab import image, prepared, process, ssh, watch
from lab.errors import LabError, PortTakenError
from lab.hardware import BootDisk, Hardware
from lab.image import Image
from lab.kinds import KINDS, Kind, pick
from lab.layout import ROOT_SERIAL, SERIAL, Disk, Layout
from lab.locks import locked
from lab.paths import Lab, MachineFiles
from lab.progress import say
from lab.qemu import disks as qemu
from lab.qemu import qmp
from lab.recipe import Recipe
from lab.record import Record

BOOT_LIMIT = 600.0  # emulated, on a busy host; on a quiet one some take 30
REBOOT_LIMIT = 600.0  # the guest stops first, and its connections with it
STOP_LIMIT = 60.0  # QEMU writes out all of its disks
PLUG_LIMIT = 60.0
_MIGRATED = "migrated"
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
        """Whether it is alive."""
        return any(kind.running(self.files) for kind in KINDS.values())

    @property
    def freezes(self) -> bool:
        """Whether `save` keeps the memory too; else `load` boots, and what was only running is gone."""
        return self._kind.freezes(self.record().hardware.layout)

    @property
    def is_emulated(self) -> bool:
        """Whether its processor is emulated: some ten times slower than this host's own."""
        hardware = self.record().hardware
        return hardware.kind == "qemu" and hardware.accel == "tcg"

    # Life

    def up(self, layout: Layout, release: str = "bookworm") -> None:
        """Make the machine and return when ssh works; a running one of the same kind is kept."""
        layout = layout.on(release)
        kind = pick(self.lab, layout, release)
        hardware = kind.hardware(self.lab, image_for(self.lab, kind, layout, release), layout)
        with locked(self.lab, f"machine-{self.lab.machines.name}-{self.name}"):
            if self.running:
                self._must_be(prepared.key(self.lab, hardware))
                self._connection.wait(BOOT_LIMIT)
                return
            self.down()
            scratch = Machine(f"prepare-{prepared.key(self.lab, hardware)}", self.lab)
            source = prepared.ensure(self.lab, hardware, scratch)
            self.create(hardware, source)
            if kind.freezes(layout):
                self.load(prepared.READY)
            else:
                self.boot()

    def create(self, hardware: Hardware, source: Path | None = None) -> None:
        """Make the machine's files: disks copied from `source`, or empty; it is not started."""
        self.files.directory.mkdir(parents=True)
        self.files.sockets.mkdir(mode=0o700, exist_ok=True)
        if source is None:
            KINDS[hardware.kind].make_disks(hardware, self.files.disks)
        else:
            argv = ["cp", "-r", "--reflink=auto", "--sparse=auto", str(source), str(self.files.disks)]
            subprocess.run(argv, check=True)
        name = "" if source is None else source.name
        Record(hardware, process.free_port(), name).write(self.files)

    def down(self) -> None:
        """End the machine and delete all its files."""
        self.stop()
        if self.files.sockets != self.files.directory:
            shutil.rmtree(self.files.sockets, ignore_errors=True)
        shutil.rmtree(self.files.directory, ignore_errors=True)

    def boot(self, *disks: BootDisk) -> None:
        """Boot from the disks and return when ssh works and start-up has settled.

        `disks` are of this boot alone: in place of the layout's with their serials, or beside them.
        """
        self.start(*disks)
        self._wait()
        self.run(["systemctl", "is-system-running", "--wait"], check=False, timeout=BOOT_LIMIT)

    def start(self, *disks: BootDisk, tag: str = "") -> None:
        """Start it as `boot` does, or from what was saved as `tag`, and return at once.

        The port of its ssh changes if another process took it meanwhile.
        """
        record = self.record()
        if self.running:
            raise LabError(f"{self.name} runs already")
        self._connection.close()
        try:
            self._kind.start(self, disks, tag)
        except PortTakenError:
            record = Record(record.hardware, process.free_port(), record.prepared)
            record.write(self.files)
            self._kind.start(self, disks, tag)
        watch.end_with_owner(self.files)
        self._connection.configure(self.lab, record.port)

    def stop(self) -> None:
        """End the machine in order: what reached the disks is kept. The guest is not asked."""
        self._connection.close()
        for kind in KINDS.values():
            if kind.running(self.files):
                kind.stop(self.files, STOP_LIMIT)

    def power_off(self) -> None:
        """Shut the guest down in order, and return when the machine has ended."""
        self.run(["systemctl", "poweroff"], check=False)
        self._connection.close()
        if not self._kind.wait_ended(self.files, BOOT_LIMIT):
            raise LabError(f"{self.name} does not power off; its console: {self.files.console}")

    def renew(self) -> None:
        """Bring it back to what its layout prepared, and leave it powered off."""
        if self.freezes:
            self.load(prepared.READY)
            self.power_off()
        else:
            record = self.record()
            self.down()
            self.create(record.hardware, self.lab.prepared / record.prepared)

    def reset(self) -> None:
        """Power cycle without shutdown; disks keep all they were sent, also unflushed."""
        self._must_run()
        self.stop()
        self.boot()

    def reboot(self) -> None:
        """Let the guest reboot itself, in order, and return when it is up again."""
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
        """SIGKILL; the disks' files stay as they are. `boot` brings the machine back."""
        self._must_run()
        self._kind.kill(self.files)
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
                qemu.monitor(self, "system_wakeup")
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
        """Keep disks, and memory if the machine `freezes`, under the name `tag`; the machine goes on."""
        self._must_run()
        if self._kind.freezes(self.record().hardware.layout):
            self._connection.close()
        self._kind.save(self, tag)
        self._set_clock()

    def load(self, tag: str, *disks: BootDisk) -> None:
        """Go back to what `save` kept, with the present time. A cut machine can be loaded too.

        `disks` are those of the boot that was saved, as `boot` took them.
        """
        self.stop()
        self.start(*disks, tag=tag)
        self._wait()
        if self.freezes:
            self._set_clock()
        else:
            self.run(["systemctl", "is-system-running", "--wait"], check=False, timeout=BOOT_LIMIT)

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

    def unplug(self, serial: str) -> None:
        """Take a disk away from the running guest; the next boot or load has it again."""
        self._must_run()
        self._kind.unplug(self, self._disk(serial))
        self._await(lambda seen: serial not in seen, f"does not let go of {serial}")

    def plug(self, serial: str, replacement: str | None = None) -> None:
        """Bring an unplugged disk back, or an empty one with another serial in its place.

        The next boot or load has the layout's own disk again.
        """
        self._must_run()
        disk = self._disk(serial)
        if replacement is not None:
            self._check_replacement(replacement)
        self._kind.plug(self, disk, replacement)
        wanted = replacement or serial
        self._await(lambda seen: wanted in seen, f"does not see {wanted}")

    def plug_in(self, disk: BootDisk) -> None:
        """Give the running guest one more SCSI disk, that is served elsewhere."""
        self._must_run()
        self._kind.plug_in(self, disk)
        self._await(lambda seen: disk.serial in seen, f"does not see {disk.serial}")

    def make_disk(self, serial: str, size: int) -> None:
        """Make one more disk of `size` bytes, empty, for a `BootDisk` with that serial; `down` deletes it."""
        self._must_be_off()
        self._check_replacement(serial)
        self._kind.make_disk(self.files, serial, size)

    def copy_disk(self, serial: str, target: Path) -> None:
        """Copy what is on a disk of the machine, which is off, to a raw file."""
        self._must_be_off()
        self._kind.copy_disk(self.files, serial, target)

    def turn_cache_on(self, serial: str) -> None:
        """Turn the write cache of a virtio disk on behind the guest's back, as a live migration does.

        Where memory is kept, that is by a new QEMU with its caches as they were configured: all of them come on.
        """
        self._must_run()
        if not self.freezes:
            self._kind.turn_cache_on(self.files, self._disk(serial).serial)
            return
        self.save(_MIGRATED)
        self.files.caches_off(_MIGRATED).unlink()
        self.load(_MIGRATED)

    def set_fault(self, serial: str, operation: str, effect: str) -> None:
        """Give a disk a fault until the machine ends: by `flush`, `write` or `mode_select` it answers with an `error`, does
        not answer (`hang`), answers without doing it (`lie`), or is unplugged (`leave`). `none` takes the fault away.
        """
        self._must_run()
        self._kind.set_fault(self.files, serial, operation, effect)

    def qmp(self, command: str, **arguments: Any) -> Any:
        """Send a command of QEMU's machine protocol, to a machine of that kind, and return its result."""
        return qmp.execute(self.files.qmp, command, arguments)

    def record(self) -> Record:
        """Return what the machine was made from."""
        return Record.read(self.files)

    # Internals

    @property
    def _kind(self) -> Kind:
        return KINDS[self.record().hardware.kind]

    def _wait(self) -> None:
        """Return when ssh works."""
        self._connection.wait(BOOT_LIMIT, lambda: self._kind.must_run(self.files))

    def _set_clock(self) -> None:
        """A guest that slept in a snapshot has a clock that stood still meanwhile."""
        self.run(["date", "--utc", "--set", f"@{time.time():.6f}"])

    def _must_run(self) -> None:
        self.record()
        if not self.running:
            raise LabError(f"{self.name} does not run; `boot` starts it")

    def _must_be_off(self) -> None:
        self.record()
        if self.running:
            raise LabError(f"{self.name} runs; its disks can be touched when it is off")

    def _disk(self, serial: str) -> Disk:
        for disk in self.record().hardware.layout.disks:
            if disk.serial == serial:
                return disk
        raise LabError(f"{self.name} has no disk with serial {serial}")

    def _check_replacement(self, serial: str) -> None:
        if not re.fullmatch(SERIAL, serial):
            raise LabError("a serial is 1 to 20 letters and digits")
        if serial in (ROOT_SERIAL, *(disk.serial for disk in self.record().hardware.layout.disks)):
            raise LabError(f"{self.name} has a disk with serial {serial}")

    def _await(self, arrived: Callable[[list[str]], bool], otherwise: str) -> None:
        """Return when what the guest knows of serials is as wanted; udev has them last of all."""
        argv = ["lsblk", "--nodeps", "--noheadings", "--raw", "--output", "SERIAL"]
        deadline = time.monotonic() + PLUG_LIMIT
        while not arrived(self.run(argv).stdout.split()):
            if time.monotonic() > deadline:
                raise LabError(f"{self.name}: the guest {otherwise}")
            time.sleep(0.1)

    def _must_be(self, wanted: str) -> None:
        if self.record().prepared != wanted:
            raise LabError(f"{self.name} runs with another layout or release; `down` it first")
        say(f"{self.name} is up already")


def image_for(lab: Lab, kind: Kind, layout: Layout, release: str) -> Image:
    """Return the image that a kind of machine starts from, built if it is not in the cache."""
    recipe = Recipe(release, ssh.public_key(lab), layout.packages, kernel=not kind.has_kernel)
    return image.ensure(lab, recipe)


def all_machines(lab: Lab) -> list[Machine]:
    """Return every machine of a lab that is of this checkout, up or not, in order of name."""
    if not lab.machines.is_dir():
        return []
    return [Machine(path.name, lab) for path in sorted(lab.machines.iterdir()) if path.is_dir()]
