# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines with formatted and mounted disks, stored as snapshots if possible, so that `up` is quick."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Protocol

from lab.guest import Guest
from lab.hardware import Hardware
from lab.kinds import KINDS
from lab.layout import Disk
from lab.locks import locked
from lab.paths import Lab
from lab.progress import say

READY = "ready"
SCRIPT = Path(__file__).parent / "guest" / "prepare_disks.sh"
SCRIPT_LIMIT = 600.0  # for the layout's own


class Scratch(Guest, Protocol):
    """A machine as far as it takes to prepare its disks; its verbs are those of `lab.machine.Machine`."""

    def create(self, hardware: Hardware) -> None:
        """Make its files, with empty disks."""

    def boot(self) -> None:
        """Start it, and return when it is up."""

    def save(self, tag: str) -> None:
        """Keep disks and memory as `tag`."""

    def stop(self) -> None:
        """End it, without asking the guest."""

    def power_off(self) -> None:
        """Have the guest shut down, and return when it has."""

    def down(self) -> None:
        """End it and delete its files."""


def key(lab: Lab, hardware: Hardware) -> str:
    """Return a hash of all that a prepared machine depends on."""
    identity = KINDS[hardware.kind].identity(lab, hardware)
    on_disks = [rows(hardware.layout.disks), [disk.size for disk in hardware.layout.disks]]
    freezes = KINDS[hardware.kind].freezes(hardware.layout)
    parts = json.dumps([hardware.kind, hardware.image.key, identity, on_disks, freezes]).encode()
    scripts = SCRIPT.read_bytes() + hardware.layout.script.encode()
    return hashlib.sha256(parts + scripts).hexdigest()[:16]


def rows(disks: tuple[Disk, ...]) -> str:
    """Return what the guest's script reads: a line for each disk that is to be changed."""
    lines = [
        f"{disk.serial} {'yes' if disk.partition else 'no'} "
        f"{disk.fstype or '-'} {disk.mount or '-'} {disk.options}\n"
        for disk in disks
        if disk.partition or disk.fstype
    ]
    return "".join(lines)


def ensure(lab: Lab, hardware: Hardware, scratch: Scratch) -> Path:
    """Return the directory of prepared disks, made with the machine `scratch` if need be."""
    target = lab.prepared / key(lab, hardware)
    if target.exists():
        return target
    with locked(lab, f"prepared-{target.name}"):
        if not target.exists():
            _prepare(hardware, scratch, target)
    return target


def _prepare(hardware: Hardware, scratch: Scratch, target: Path) -> None:
    """Boot, format, mount, freeze; the directory of disks is moved into place when whole."""
    scratch.down()
    say("preparing: first boot of this layout (later machines start from its disks)")
    scratch.create(hardware)
    try:
        scratch.boot()
        say("preparing: file systems")
        scratch.run(["sh", "-c", SCRIPT.read_text()], input=rows(hardware.layout.disks))
        if hardware.layout.script:
            say("preparing: the layout's script")
            scratch.run(["sh", "-c", hardware.layout.script], timeout=SCRIPT_LIMIT)
        if KINDS[hardware.kind].freezes(hardware.layout):
            say("preparing: snapshot")
            scratch.save(READY)
            scratch.stop()
        else:
            scratch.power_off()
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch.files.disks.rename(target)
    except BaseException:
        say(f"preparing failed; the console is kept in {scratch.files.console}")
        scratch.stop()
        raise
    scratch.down()
