# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two kinds of machine behind one interface, and which of them a layout gets.

`uml` is User Mode Linux: a kernel that is a process of this host, quick, with virtio and SCSI disks and one processor: the
newest, or one of the version that a release has. `qemu` emulates a whole computer: every bus, each release's very kernel,
tracing, suspend.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from lab.errors import LabError
from lab.guest import Guest
from lab.hardware import BootDisk, Hardware
from lab.image import Image
from lab.layout import Disk, Layout
from lab.paths import Lab, MachineFiles
from lab.qemu.kind import Qemu
from lab.uml.kind import Uml


class Kind(Protocol):
    """How one kind of machine is made, started and ended. All state is in the machine's files."""

    name: str
    #: Whether it brings its kernel, so that an image needs none.
    has_kernel: bool

    def hardware(self, lab: Lab, image: Image, layout: Layout) -> Hardware:
        """Return the hardware of this kind for a layout."""

    def identity(self, lab: Lab, hardware: Hardware) -> list[Any]:
        """Return all beside image and layout that decides what a prepared machine is, as JSON primitives."""

    def freezes(self, layout: Layout) -> bool:
        """Tell whether `save` keeps the memory too, so that `load` needs no boot."""

    def make_disks(self, hardware: Hardware, directory: Path) -> None:
        """Make empty disks, and a root disk that lies over the image."""

    def start(self, guest: Guest, disks: tuple[BootDisk, ...] = (), tag: str = "") -> None:
        """Start the machine, from what `save` kept as `tag` if it is given; it need not answer yet."""

    def running(self, files: MachineFiles) -> bool:
        """Tell whether it runs."""

    def must_run(self, files: MachineFiles) -> None:
        """LabError, with what it printed, unless it runs or starts."""

    def stop(self, files: MachineFiles, limit: float) -> None:
        """End it in order; the guest is not asked."""

    def kill(self, files: MachineFiles) -> None:
        """End it at once."""

    def wait_ended(self, files: MachineFiles, limit: float) -> bool:
        """Return whether it ends within `limit` seconds."""

    def save(self, guest: Guest, tag: str) -> None:
        """Keep its state as `tag`; it goes on."""

    def unplug(self, guest: Guest, disk: Disk) -> None:
        """Take a disk away from the running guest."""

    def plug(self, guest: Guest, disk: Disk, replacement: str | None) -> None:
        """Bring it back, or an empty one with another serial in its place."""

    def plug_in(self, guest: Guest, disk: BootDisk) -> None:
        """Give the running guest a disk that is served elsewhere."""

    def make_disk(self, files: MachineFiles, serial: str, size: int) -> None:
        """Make the file of one more disk, empty, of `size` bytes: a BootDisk with that serial has it."""

    def copy_disk(self, files: MachineFiles, serial: str, target: Path) -> None:
        """Copy what is on a disk of a machine that is off to a raw file."""

    def turn_cache_on(self, files: MachineFiles, serial: str) -> None:
        """Turn the write cache of a virtio disk on behind the running guest's back. LabError: it cannot, but at `load`."""

    def set_fault(self, files: MachineFiles, serial: str, operation: str, effect: str) -> None:
        """Give a disk of the running machine a fault, or take it away. LabError: it cannot."""

    def can_have(self, layout: Layout) -> bool:
        """Tell whether it has all that a layout needs."""

    def refusal(self, lab: Lab, layout: Layout, release: str) -> str:
        """Return why this host cannot run one of a layout that it can have, or nothing. Tried once for each boot of the host."""


#: The cheapest first.
KINDS: dict[str, Kind] = {kind.name: kind for kind in (Uml(), Qemu())}


def pick(lab: Lab, layout: Layout, release: str) -> Kind:
    """Return the cheapest kind that has what the layout needs and that this host can run; $DBHOST_LAB_KIND asks for one."""
    asked = os.environ.get("DBHOST_LAB_KIND")
    if asked and asked not in KINDS:
        raise LabError(f"DBHOST_LAB_KIND is {asked!r}; known are {list(KINDS)}")
    why = []
    for kind in KINDS.values():
        if asked and kind.name != asked:
            continue
        if not kind.can_have(layout):
            why.append(f"{kind.name} has not all that the layout needs")
        elif refusal := kind.refusal(lab, layout, release):
            why.append(f"{kind.name}: {refusal}")
        else:
            return kind
    raise LabError(f"no kind of machine for this layout: {'; '.join(why)}")
