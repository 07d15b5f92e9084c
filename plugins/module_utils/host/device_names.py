# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial numbers, WWNs and UUIDs that many devices share, and so identify none. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: What firmware, bridges and emulators write if nobody gave the device a number, in small letters and without blanks.
_TEXTS = frozenset(
    "none na null nil unknown default defaultstring empty invalid oem tobefilledbyoem notspecified notapplicable"
    " notavailable notset noserial noserialnumber serial serialnumber serialno systemserialnumber".split()
)
_COUNTED = ("0123456789abcdef", "123456789abcdef", "01234567890123456789", "12345678901234567890")
#: WWNs that makers gave to many disks: 0x502b2a201d1c1b1a is that of unrelated 120 GB to 1 TB SSDs in public reports.
_SHARED = frozenset(("502b2a201d1c1b1a",))
#: What stands before a number and says of which kind it is.
_PREFIX = re.compile(r"(?:0x|naa\.|eui\.|uuid\.|urn:uuid:)+", re.I)
_HEX = re.compile(r"[0-9a-f]+")
#: An NVMe namespace without a number of its own, as the kernel names it: vendor, serial number, model, namespace.
_NVME = re.compile(r"nvme\.[0-9a-f]{4}-(?P<serial>(?:[0-9a-f]{2})*)-[0-9a-f]*-[0-9a-f]+", re.I)
#: Digits from which on a number is a whole WWN, EUI-64 or UUID.
_WHOLE = 16
#: Shortest row of one letter, or of digits that count up, that is no number.
_ROW = 6


def is_filler(text: str) -> bool:
    """Return whether a serial number, WWN or UUID is one that names no device."""
    bare = text.strip().lower()
    of_nvme = _NVME.fullmatch(bare)
    if of_nvme:
        return is_filler(bytes.fromhex(of_nvme["serial"]).decode("latin-1"))
    bare = re.sub(r"[^0-9a-z]", "", _PREFIX.sub("", bare, count=1))
    if not bare or bare in _TEXTS or set(bare) == {"0"} or bare in _SHARED:
        return True
    if len(bare) >= _ROW and (len(set(bare)) == 1 or (bare.startswith(("01", "12")) and _counts(bare))):
        return True
    # The first digit of a WWN says only who gave it; a number of one or two digits behind zeros is a default.
    rest = bare[1:]
    is_whole = len(bare) >= _WHOLE and _HEX.fullmatch(bare) is not None
    return is_whole and (len(rest.strip("0")) <= 2 or set(rest) == {"f"})


def names(kind: str, value: str, properties: Mapping[str, str]) -> bool:
    """Return whether a udev property names one device; `kind` as udev.PROPERTIES has it.

    A serial number of udev's (ID_SERIAL) is made of the model and the disk's own number. Without the latter it is the
    name of all disks of that model.
    """
    if kind == "path":
        return True
    if kind == "dm":
        return not is_filler(value.rpartition("-")[2])
    if kind != "serial":
        return not is_filler(value)
    own, model = properties.get("ID_SERIAL_SHORT", ""), properties.get("ID_MODEL", "")
    if is_filler(value) or (own and is_filler(own)):
        return False
    rest = value[len(model) :].lstrip("_") if model and value.startswith(model) else value
    return rest == value or not is_filler(rest)


def _counts(bare: str) -> bool:
    return any(row.startswith(bare) for row in _COUNTED)
