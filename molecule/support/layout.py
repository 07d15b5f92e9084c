# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The default layout's mounts, which disk lies below each, and how disks are named and switched by hand."""

from __future__ import annotations

TARGETS = {
    "/srv/pgdata": "SCSI0001",
    "/srv/fbdata": "SCSI0002",
    "/srv/mssql": "SCSI0003",
    "/srv/maria": "VIRT0001",
    "/srv/faircom": "VIRT0002",
}


def link_of(serial: str) -> str:
    """Return the stable name of a disk below /dev/disk/by-id."""
    return f"virtio-{serial}" if serial.startswith("VIRT") else f"scsi-0QEMU_QEMU_HARDDISK_{serial}"


def id_of(serial: str) -> str:
    """Return the id of a disk in reports."""
    return f"serial:{serial}" if serial.startswith("VIRT") else f"serial:0QEMU_QEMU_HARDDISK_{serial}"


def cache_on(serial: str) -> str:
    """Return the shell command with which a person turns a SCSI disk's cache on: through the kernel, which knows of it."""
    name = f'$(basename "$(readlink -f /dev/disk/by-id/{link_of(serial)})")'
    return f"echo 'write back' | tee /sys/block/{name}/device/scsi_disk/*/cache_type > /dev/null"
