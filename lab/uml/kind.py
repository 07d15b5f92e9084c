# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines of User Mode Linux: a kernel that is a process of this host, with disks of our own server (lab/vhost)."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from lab import watch
from lab.errors import LabError
from lab.guest import Guest
from lab.hardware import BootDisk, Hardware
from lab.image import Image
from lab.layout import RELEASE_KERNEL, Disk, Layout
from lab.locks import locked
from lab.paths import Lab, MachineFiles
from lab.progress import say
from lab.uml import disks, process, program

#: seccomp=auto: system calls by seccomp where kernel and host can, twice as quick as by ptrace. It makes 256 pairs of old
#: terminals, which udev and systemd look at one by one: 4 s of each boot and of each daemon-reload.
ALWAYS = (
    *("con=none", "con0=fd:0,fd:1", "ssl=none", "pty.legacy_count=0"),
    *("uml_dir=/tmp/", "umid=machine", "seccomp=auto"),
)
#: Before all else these kernels measure for 0.9 s how fast they compute RAID 6 (raid6_init; raid6_select_algo before 7.2), a
#: fifth of a boot. Without that nothing but RAID 6 is missing, and making one brings the machine down.
APPEND = "quiet net.ifnames=0 initcall_blacklist=raid6_init,raid6_select_algo"
NETWORK = ("vec0:transport=tap,ifname=tap0,gro=1", "noreboot")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROBE_LIMIT = 20.0
PROBED = "lab: the probe has come this far"
TOOLS = ("unshare", "mount", "chroot", "ip", "cpio", "dpkg-deb", "apt-get")


class Uml:
    """The kind `uml`; lab.kinds.Kind says what each method promises."""

    name = "uml"
    has_kernel = True

    def hardware(self, lab: Lab, image: Image, layout: Layout) -> Hardware:
        """Return it."""
        return Hardware(image, layout, self.name)

    def identity(self, lab: Lab, hardware: Hardware) -> list[Any]:
        """The program's versions, and what its disks are."""
        nowhere = MachineFiles(Path("/"))
        configuration = disks.configuration(hardware, nowhere, ())
        return [_program(lab, hardware).version, arguments(hardware, configuration), configuration]

    def freezes(self, layout: Layout) -> bool:
        """Memory cannot be kept: `load` boots from the disks that `save` copied."""
        return False

    def can_have(self, layout: Layout) -> bool:
        """Virtio and SCSI disks, and the newest kernel or that of the release."""
        return layout.buses <= disks.BUSES and set(layout.needs) <= {RELEASE_KERNEL}

    def refusal(self, lab: Lab, layout: Layout, release: str) -> str:
        """Return why not. What a kernel does is found once for each boot of this host, and said once in each run."""
        distribution = _distribution(layout, release)
        lab.root.mkdir(parents=True, exist_ok=True)
        # Stages of a run begin side by side: one of them tries, and tells.
        with locked(lab, f"uml-answer-{distribution}"):
            return _answer(lab, distribution).reason

    def make_disks(self, hardware: Hardware, directory: Path) -> None:
        """As sparse files."""
        disks.make(hardware, directory)

    def start(self, guest: Guest, disks: tuple[BootDisk, ...] = (), tag: str = "") -> None:
        """Start the first process of the machine, in name spaces of its own."""
        if tag:
            _bring_back(guest.files, tag)
        record = guest.record()
        _start(guest.lab, guest.files, record.hardware, record.port, disks)

    def running(self, files: MachineFiles) -> bool:
        """By the lock that its processes hold."""
        return process.running(files)

    def must_run(self, files: MachineFiles) -> None:
        """What it printed is in its log and on its console."""
        if not process.running(files):
            said = files.log.read_text(errors="replace").strip()[-1000:] if files.log.exists() else ""
            raise LabError(f"the machine has ended: {said}; its console: {files.console}")

    def stop(self, files: MachineFiles, limit: float) -> None:
        """What reached the disk server is in its files."""
        process.kill(files)

    def kill(self, files: MachineFiles) -> None:
        """SIGKILL."""
        process.kill(files)

    def wait_ended(self, files: MachineFiles, limit: float) -> bool:
        """Until its last process has ended."""
        return process.wait_ended(files, limit)

    def save(self, guest: Guest, tag: str) -> None:
        """Copy the disks, between two requests, when the guest has written out what it held."""
        guest.run(["sync"])
        target = _saved(guest.files, tag)
        shutil.rmtree(target, ignore_errors=True)
        disks.ask(guest.files, "copy", source=str(guest.files.disks), target=str(target))

    def unplug(self, guest: Guest, disk: Disk) -> None:
        """From the SCSI controller; virtio disks could not come back."""
        _must_be_scsi(disk)
        disks.ask(guest.files, "unplug", serial=disk.serial)

    def plug(self, guest: Guest, disk: Disk, replacement: str | None) -> None:
        """On the SCSI controller."""
        _must_be_scsi(disk)
        if replacement:
            disks.make_file(guest.files.disks, replacement, disk.size)
        words = disks.words(disk, guest.files, None, replacement or "")
        disks.ask(guest.files, "plug", disk=words)

    def plug_in(self, guest: Guest, disk: BootDisk) -> None:
        """On the SCSI controller."""
        _must_be_scsi(disk)
        disks.ask(guest.files, "plug", disk=disks.words(disk, guest.files, None))

    def make_disk(self, files: MachineFiles, serial: str, size: int) -> None:
        """As a sparse file."""
        disks.make_file(files.disks, serial, size)

    def copy_disk(self, files: MachineFiles, serial: str, target: Path) -> None:
        """As it is."""
        disks.copy(files.disks, serial, target)

    def turn_cache_on(self, files: MachineFiles, serial: str) -> None:
        """By the disk server."""
        disks.ask(files, "set_cache", serial=serial, on=True)

    def set_fault(self, files: MachineFiles, serial: str, operation: str, effect: str) -> None:
        """By the disk server."""
        disks.ask(files, "fault", serial=serial, operation=operation, effect=effect)


def arguments(hardware: Hardware, configuration: dict[str, Any]) -> list[str]:
    """Return the arguments of the kernel; a layout's `append` replaces the lab's own choice."""
    chosen = APPEND if hardware.layout.append is None else hardware.layout.append
    return [
        f"mem={hardware.layout.memory}M",
        f"initrd={program.INITRD}",
        *ALWAYS,
        *NETWORK,
        *disks.kernel_arguments(configuration),
        f"root=UUID={hardware.image.root_uuid}",
        "ro",
        *chosen.split(),
    ]


def _start(
    lab: Lab, files: MachineFiles, hardware: Hardware, port: int, others: tuple[BootDisk, ...]
) -> None:
    configuration = disks.configuration(hardware, files, others)
    disks_file = files.directory / "disks.json"
    disks_file.write_text(json.dumps(configuration, indent=1))
    config = {
        "root": str(_program(lab, hardware).root),
        "sockets": str(files.sockets),
        "memory": hardware.layout.memory,
        "disks": str(disks_file),
        "arguments": arguments(hardware, configuration),
        "console": str(files.console),
    }
    process.start(files, port, config)


def _program(lab: Lab, hardware: Hardware) -> program.Program:
    return program.ensure(lab, _distribution(hardware.layout, hardware.image.release))


def _distribution(layout: Layout, release: str) -> str:
    """Return the distribution whose kernel a machine runs."""
    return release if RELEASE_KERNEL in layout.needs else program.NEWEST


def _saved(files: MachineFiles, tag: str) -> Path:
    return files.directory / f"saved-{tag}"


def _bring_back(files: MachineFiles, tag: str) -> None:
    saved = _saved(files, tag)
    if not saved.is_dir():
        raise LabError(f"{files.directory.name} has nothing saved as {tag}")
    shutil.rmtree(files.disks)
    subprocess.run(["cp", "-r", "--reflink=auto", "--sparse=auto", str(saved), str(files.disks)], check=True)


def _must_be_scsi(disk: Disk) -> None:
    if disk.bus != "scsi":
        raise LabError(
            f"{disk.serial} is a {disk.bus} disk: this kind of machine can exchange SCSI disks only"
        )


class _Answer(NamedTuple):
    """Why User Mode Linux does not run here, '' if it does; to whom that was said: a run, at a boot of this host.

    `lasts`: for the boot what the kernel of a `program` did; for a run what was fetched or not, so that not each machine waits
    for an archive that does not answer, and a kernel that took too long, for the host may have been busy; for a moment that
    tools are missing, for a run installs them.
    """

    reason: str
    lasts: str
    run: str
    boot: str
    program: str = ""


def _answer(lab: Lab, distribution: str) -> _Answer:
    """Return the answer of now; a new one is said, and kept."""
    run, boot = os.environ.get(watch.OWNER, ""), _BOOT_ID.read_text().strip()
    file = lab.root / f"uml-answer-{distribution}"
    kept = None
    with suppress(FileNotFoundError, ValueError, TypeError):
        kept = _Answer(**json.loads(file.read_text()))
    found = _found(lab, distribution, kept if kept and kept.boot == boot else None, run)._replace(
        run=run, boot=boot
    )
    if found != kept:
        if found.reason:
            say(
                f"User Mode Linux of {distribution} does not run here, so QEMU runs what would, slower: {found.reason}"
            )
        file.write_text(json.dumps(found._asdict()))
    return found


def _found(lab: Lab, distribution: str, kept: _Answer | None, run: str) -> _Answer:
    """Return the answer of now, without run and boot; `kept`: an earlier one of this boot."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return _Answer(f"{', '.join(missing)} not found", "moment", "", "")
    if kept and kept.lasts == "run" and run and kept.run == run:
        return kept
    if obstacle := _obstacle(lab, distribution):
        return _Answer(obstacle, "run", "", "")
    # What has gone since it was tried, or is another now, does not answer for what is here.
    here = program.ensure(lab, distribution).version
    if kept and kept.lasts == "boot" and kept.program == here:
        return kept
    try:
        return _Answer(_probe(lab, distribution), "boot", "", "", here)
    except subprocess.TimeoutExpired:
        return _Answer(f"its kernel does not come up within {PROBE_LIMIT:.0f} s", "run", "", "")


def _obstacle(lab: Lab, distribution: str) -> str:
    """Return what is not here, or nothing."""
    if platform.machine() != "x86_64":
        return f"its package is for x86_64, this host is {platform.machine()}"
    try:
        program.ensure(lab, distribution)
        with Path("/dev/net/tun").open("rb"):
            pass
    except (LabError, OSError) as error:
        return str(error)
    return ""


def _probe(lab: Lab, distribution: str) -> str:
    """Boot a distribution's kernel without a root; return why that fails, or nothing. Raises subprocess.TimeoutExpired."""
    root = program.ensure(lab, distribution).root
    script = (
        'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/tmp"'
        ' && ip tuntap add dev tap0 mode tap && HOME=/tmp TMPDIR=/tmp exec chroot "$@"'
    )
    kernel = ["/usr/bin/linux.uml", "mem=128M", f"initrd={program.INITRD}", *ALWAYS, "lab_probe"]
    # At the end of its input the console would hang.
    silent, kept_open = os.pipe()
    try:
        done = subprocess.run(
            [*process.unshare(), "sh", "-c", script, "probe", str(root), *kernel],
            stdin=silent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PROBE_LIMIT,
            check=False,
        )
    finally:
        os.close(silent)
        os.close(kept_open)
    said = done.stdout.decode(errors="replace")
    return "" if PROBED in said else f"its kernel does not come up: {said.strip()[-500:]}"
