# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mode pages: MODE SENSE and MODE SELECT as QEMU's scsi-hd answers them."""

from __future__ import annotations

from lab.vhost.sense import INVALID_FIELD, INVALID_PARAMETER, PARAMETER_LENGTH, SAVING_NOT_SUPPORTED, Refused

CACHING, ERRORS, ALL = 0x08, 0x01, 0x3F
WCE = 4
DPOFUA = 0x10
CURRENT, CHANGEABLE, SAVED = 0, 1, 3
MOST_BLOCKS = 0xFFFFFF


def sense(cdb: bytes, cache: bool, fua: bool, blocks: int) -> bytes:
    """Return the data of MODE SENSE, 6 or 10."""
    control, wanted = cdb[2] >> 6, cdb[2] & 0x3F
    if control == SAVED:
        raise Refused(SAVING_NOT_SUPPORTED)
    if wanted not in (CACHING, ERRORS, ALL):
        raise Refused(INVALID_FIELD)
    codes = (ERRORS, CACHING) if wanted == ALL else (wanted,)
    content = b"".join(_page(code, control, cache) for code in codes)
    descriptor = b"" if cdb[1] & 8 else _block_descriptor(blocks)
    parameter = DPOFUA if fua else 0
    body = descriptor + content
    if cdb[0] == 0x1A:
        return bytes((3 + len(body), 0, parameter, len(descriptor))) + body
    return bytes((0, 6 + len(body), 0, parameter, 0, 0, 0, len(descriptor))) + body


def select(cdb: bytes, data: bytes, cache: bool) -> bool:
    """Return the state of the cache that MODE SELECT, 6 or 10, asks for; nothing else can be changed, or saved."""
    if cdb[1] & 0x11 != 0x10:
        raise Refused(INVALID_FIELD)  # PF must be 1 and SP, which would save, 0
    if not data:
        return cache
    header = 4 if cdb[0] == 0x15 else 8
    if len(data) < header:
        raise Refused(PARAMETER_LENGTH)
    descriptor = data[3] if header == 4 else int.from_bytes(data[6:8], "big")
    if descriptor not in (0, 8):
        raise Refused(INVALID_PARAMETER)
    if len(data) < header + descriptor:
        raise Refused(PARAMETER_LENGTH)
    return _pages(data[header + descriptor :], cache)


def _pages(data: bytes, cache: bool) -> bool:
    result = cache
    while data:
        if len(data) < 2 or len(data) < 2 + data[1]:
            raise Refused(PARAMETER_LENGTH)
        code, page, data = data[0], data[: 2 + data[1]], data[2 + data[1] :]
        if code not in (CACHING, ERRORS):
            raise Refused(INVALID_PARAMETER)
        now, mask = _page(code, CURRENT, cache), _page(code, CHANGEABLE, cache)
        if len(page) != len(now):
            raise Refused(INVALID_PARAMETER)
        if any((a ^ b) & ~m for a, b, m in zip(page[2:], now[2:], mask[2:], strict=True)):
            raise Refused(INVALID_PARAMETER)
        if code == CACHING:
            result = bool(page[2] & WCE)
    return result


def _page(code: int, control: int, cache: bool) -> bytes:
    """Default values are the current ones, as QEMU has it."""
    if code == CACHING:
        return bytes((CACHING, 0x12, WCE if cache or control == CHANGEABLE else 0)).ljust(20, b"\0")
    return bytes((ERRORS, 0x0A, 0 if control == CHANGEABLE else 0x80)).ljust(12, b"\0")


def _block_descriptor(blocks: int) -> bytes:
    count = blocks if blocks <= MOST_BLOCKS else 0
    return b"\0" + count.to_bytes(3, "big") + b"\0" + (512).to_bytes(3, "big")
