# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parameters of a machine, stored next to its disks so that any process can boot it again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import LabError
from lab.hardware import Hardware
from lab.image import Image
from lab.layout import Disk, Layout
from lab.paths import MachineFiles


@dataclass(frozen=True)
class Record:
    """The hardware, the port of its ssh, and the prepared disks it started from."""

    hardware: Hardware
    port: int
    prepared: str

    def write(self, files: MachineFiles) -> None:
        """Store as JSON."""
        image, layout = self.hardware.image, self.hardware.layout
        files.record.write_text(
            json.dumps(
                {
                    "image": {"directory": str(image.directory), "root_uuid": image.root_uuid},
                    "layout": asdict(layout),
                    "kind": self.hardware.kind,
                    "accel": self.hardware.accel,
                    "port": self.port,
                    "prepared": self.prepared,
                },
                indent=2,
            )
        )

    @classmethod
    def read(cls, files: MachineFiles) -> Record:
        """Read back what `write` stored. LabError if there is no such machine."""
        try:
            raw = json.loads(files.record.read_text())
        except FileNotFoundError:
            raise LabError(f"there is no machine {files.directory.name}; `up` makes one") from None
        image = Image(Path(raw["image"]["directory"]), raw["image"]["root_uuid"])
        layout = raw["layout"]
        disks = tuple(Disk(**disk) for disk in layout.pop("disks"))
        packages, needs = tuple(layout.pop("packages")), tuple(layout.pop("needs"))
        whole = Layout(disks, packages=packages, needs=needs, **layout)
        hardware = Hardware(image, whole, raw["kind"], raw["accel"])
        return cls(hardware, raw["port"], raw["prepared"])
