# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a SCSI disk says of itself: that which QEMU's scsi-hd says, so that udev makes the same links of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass

VENDOR = b"QEMU    "
PRODUCT = b"QEMU HARDDISK   "
REVISION = b"2.5+"
SPC_3 = 5
LONGEST = 256
UNMAP_GRANULARITY = 8
UNMAP_RANGES = 255
MOST_MOVED = ((1 << 31) - 1) // 512
MOST_UNMAPPED = (1 << 30) // 512


@dataclass(frozen=True)
class Identity:
    """The names of one disk."""

    serial: str
    wwn: int | None = None


def standard(length: int) -> bytes:
    """Return standard INQUIRY data, as long as the initiator has room for it."""
    size = min(max(length, 36), LONGEST)
    # direct access, HiSup and response format 2, then Sync and CmdQue
    head = bytes((0, 0, SPC_3, 0x12, size - 5, 0, 0, 0x12))
    return (head + VENDOR + PRODUCT + REVISION).ljust(size, b"\0")


def no_unit() -> bytes:
    """Return what INQUIRY says of a LUN that does not exist."""
    return b"\x7f".ljust(36, b"\0")


def page(code: int, identity: Identity) -> bytes | None:
    """Return a page of vital product data, None if there is no such page."""
    make = _PAGES.get(code)
    if make is None:
        return None
    content = make(identity)
    return struct.pack(">BBH", 0, code, len(content)) + content


def _supported(identity: Identity) -> bytes:
    return bytes(_PAGES)


def _serial(identity: Identity) -> bytes:
    return identity.serial.encode()


def _identification(identity: Identity) -> bytes:
    """A designator of the vendor's own kind with the serial; then the WWN, an NAA one."""
    serial = identity.serial.encode()[:20]
    named = bytes((2, 0, 0, len(serial))) + serial
    if identity.wwn is None:
        return named
    return named + bytes((1, 3, 0, 8)) + identity.wwn.to_bytes(8, "big")


def _limits(identity: Identity) -> bytes:
    """WRITE SAME wants a length; then the limits of transfers and of UNMAP (SBC-3, section 6.5.3)."""
    words = (1, 0, 0, MOST_MOVED, 0, 0, MOST_UNMAPPED, UNMAP_RANGES, UNMAP_GRANULARITY, 0)
    return struct.pack(">BBHIIIIIII", *words).ljust(60, b"\0")


def _characteristics(identity: Identity) -> bytes:
    """No rotation rate is reported."""
    return bytes(60)


def _provisioning(identity: Identity) -> bytes:
    """UNMAP and both WRITE SAME can unmap; thin."""
    return bytes((0, 0xE0, 2, 0))


_PAGES = {
    0x00: _supported,
    0x80: _serial,
    0x83: _identification,
    0xB0: _limits,
    0xB1: _characteristics,
    0xB2: _provisioning,
}
