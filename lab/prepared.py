# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines with formatted and mounted disks, stored as snapshots if possible, so that `up` is quick."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any, Protocol

from lab.guest import Guest
from lab.hardware import Hardware
from lab.kinds import KINDS
from lab.layout import Disk, Layout
from lab.locks import locked
from lab.paths import Lab
from lab.progress import say, stream

READY = "ready"
PLAYBOOK = Path(__file__).parent / "layouts" / "playbooks" / "prepare_disks.yml"
SCRIPT_LIMIT = 600  # seconds of a script, and of a task of a playbook


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
    on_disks = [variables(hardware.layout.disks), [disk.size for disk in hardware.layout.disks]]
    freezes = KINDS[hardware.kind].freezes(hardware.layout)
    parts = json.dumps([hardware.kind, hardware.image.key, identity, on_disks, freezes]).encode()
    texts = PLAYBOOK.read_text() + hardware.layout.playbook + hardware.layout.script
    return hashlib.sha256(parts + texts.encode()).hexdigest()[:16]


def variables(disks: tuple[Disk, ...]) -> dict[str, list[dict[str, Any]]]:
    """Return the variables of PLAYBOOK: the disks that it changes."""
    return {
        "disks": [
            {
                "link": disk.link,
                "partition": disk.partition,
                "volume": disk.link + ("-part1" if disk.partition else ""),
                "fstype": disk.fstype,
                "uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, disk.serial)),
                "mount": disk.mount,
                "options": disk.options,
            }
            for disk in disks
            if disk.partition or disk.fstype
        ]
    }


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
        _play(hardware.layout, scratch)
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


def _play(layout: Layout, scratch: Guest) -> None:
    """Run the playbooks of a layout on the machine."""
    own = scratch.files.directory / "playbook.yml"
    own.write_text(layout.playbook)
    given = variables(layout.disks)
    playbooks = [*([str(PLAYBOOK)] if given["disks"] else []), *([str(own)] if layout.playbook else [])]
    if not playbooks:
        return
    # Molecule's settings are those of the scenario.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    program = shutil.which("ansible-playbook", path=path) or "ansible-playbook"
    argv = [program, "-i", str(scratch.files.inventory), "-e", json.dumps(given), *playbooks]
    environment |= {"ANSIBLE_PIPELINING": "true", "ANSIBLE_TASK_TIMEOUT": str(SCRIPT_LIMIT)}
    stream(argv, scratch.files.directory / "playbook.log", env=environment)
