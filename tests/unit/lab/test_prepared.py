# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done to a machine before it is frozen, and in which order."""

from __future__ import annotations

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
        self.told.append("disks" if argv[2] == prepared.SCRIPT.read_text() else argv[2])


@pytest.mark.parametrize(
    ("bus", "script", "steps"),
    [
        ("sata", "mine", ["boot", "disks", "mine", "save", "stop"]),
        ("nvme", "mine", ["boot", "disks", "mine", "power_off"]),
        ("sata", "", ["boot", "disks", "save", "stop"]),
    ],
)
def test_the_layouts_script_has_the_last_word(
    bus: str, script: str, steps: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the disks formatted and mounted, and what it does is frozen."""
    monkeypatch.setattr(accel, "qemu_version", lambda: "QEMU 7.2")
    lab = Lab(tmp_path)
    hardware = Hardware(Image(Path("/i"), "u"), Layout((Disk(bus, "A"),), script=script), "qemu", "tcg")
    scratch = Scratch(lab)
    target = prepared.ensure(lab, hardware, scratch)
    assert target.is_dir()
    assert scratch.told == ["down", *steps, "down"]
    assert prepared.ensure(lab, hardware, scratch) == target
    assert scratch.told == ["down", *steps, "down"]
