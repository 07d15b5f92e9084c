# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The emulated hardware that a guest sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.image import Image
from lab.layout import Disk, Layout


@dataclass(frozen=True)
class Hardware:
    """An image, a layout, the kind of machine (`uml` or `qemu`), and how QEMU runs its processor (`tcg` or `kvm`)."""

    image: Image
    layout: Layout
    kind: str = "qemu"
    accel: str = ""


@dataclass(frozen=True)
class BootDisk(Disk):
    """A disk of one boot: in place of the layout's with the same serial, or one more; with ROOT_SERIAL, the root.

    Its content is that of the machine's own disk with the serial `content`, its own if none is given.
    One that is served elsewhere names both ways to it: `nbd`, an address for QEMU, and `store`, what the disk server
    of a `uml` machine makes of it (lab/vhost). `model` and `ignores_flush` are for QEMU's SATA disks.
    """

    model: str | None = None
    ignores_flush: bool = False
    content: str | None = None
    nbd: str | None = None
    store: Mapping[str, Any] | None = None


def content_of(disk: Disk) -> str:
    """Return the serial of the machine's own disk whose content a disk has."""
    return (disk.content if isinstance(disk, BootDisk) else None) or disk.serial


def disks_of_boot(layout: Layout, others: tuple[BootDisk, ...]) -> tuple[Disk, ...]:
    """Return the disks of a boot: the layout's, each replaced by the one of `others` with its serial, then what is new."""
    left = {disk.serial: disk for disk in others}
    own = tuple(left.pop(disk.serial, disk) for disk in layout.disks)
    return own + tuple(left.values())
