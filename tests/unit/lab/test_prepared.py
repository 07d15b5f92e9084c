# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done to a machine before it is frozen, and in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab import prepared
from lab.hardware import Hardware
from lab.image import Image
from lab.layout import Disk, Layout
from lab.machine import Machine
from lab.paths import Lab
from lab.qemu import accel


class Scratch(Machine):
    """A machine that only writes down what it is told."""

    def __init__(self, lab: Lab) -> None:
        """Keep no record: it is never started."""
        super().__init__("scratch", lab)
        self.told: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        """Replace the verbs."""
        if name not in ("boot", "down", "power_off", "save", "stop"):
            return super().__getattribute__(name)
        return lambda *_: self.told.append(name)

    def create(self, hardware: Hardware, source: Path | None = None) -> None:
        """Make its directory of disks, as the real one does."""
        self.files.disks.mkdir(parents=True)

    def run(self, argv: list[str], **_: Any) -> Any:
        """Note the script."""
        self.told.append(argv[2])

    def play(self, argv: list[str], _log: Path, *, env: dict[str, str]) -> None:
        """Note the playbooks, in the place of ansible-playbook."""
        assert argv[:3] == [argv[0], "-i", str(self.inventory)]
        assert env["ANSIBLE_PIPELINING"] == "true"
        assert "ANSIBLE_CONFIG" not in env
        assert env["PATH"]
        (disk,) = json.loads(argv[4])["disks"] or [{}]
        self.told += [f"{Path(name).stem} {disk.get('mount')}" for name in argv[5:]]


MOUNTED = Disk("sata", "A", fstype="ext4", mount="/a")


@pytest.mark.parametrize(
    ("disk", "playbook", "script", "steps"),
    [
        (MOUNTED, "", "mine", ["boot", "prepare_disks /a", "mine", "save", "stop"]),
        (MOUNTED, "own", "mine", ["boot", "prepare_disks /a", "playbook /a", "mine", "save", "stop"]),
        (Disk("nvme", "A"), "own", "", ["boot", "playbook None", "power_off"]),
        (Disk("sata", "A"), "", "", ["boot", "save", "stop"]),
    ],
)
def test_playbooks_and_then_the_script_prepare_a_machine(
    disk: Disk, playbook: str, script: str, steps: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script finds the disks formatted and mounted, and its result is frozen."""
    monkeypatch.setattr(accel, "qemu_version", lambda: "QEMU 7.2")
    monkeypatch.setenv("ANSIBLE_CONFIG", "/of/molecule")
    lab = Lab(tmp_path)
    layout = Layout((disk,), playbook=playbook, script=script)
    hardware = Hardware(Image(Path("/i"), "u"), layout, "qemu", "tcg")
    scratch = Scratch(lab)
    monkeypatch.setattr(prepared, "stream", scratch.play)
    target = prepared.ensure(lab, hardware, scratch)
    assert target.is_dir()
    assert scratch.told == ["down", *steps, "down"]
    assert prepared.ensure(lab, hardware, scratch) == target
    assert scratch.told == ["down", *steps, "down"]
