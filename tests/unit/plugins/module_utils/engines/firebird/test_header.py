# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The header page of a Firebird database. The pages are those of real ones, made by Debian's packages."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird.header import (
    LENGTH,
    Header,
    Unfamiliar,
    is_database,
    next_file,
    parse,
)


def page(text: str) -> bytes:
    """Return a page of which the rest is zeros."""
    return bytes.fromhex(text).ljust(LENGTH, b"\0")


#: gstat -h: ODS version 12.0, Attributes force write, Continuation file /srv/db/m.fd2
FIREBIRD_3 = page(
    "0100000015000000000000000000000000100c8003000000000000000a0000000b0000000c00000000001200b4ef0000b497fe28"
    "0c000000000000000101010000009900000000000b" + "00" * 59 + "020d2f7372762f64622f6d2e66643203042b01"
)
#: The same with ODS version 13.0; a unique id stands before the name.
FIREBIRD_4 = page(
    "0100000016000000000000000000000000100d8003000000000000000a0000000b0000000c00000000001200b4ef0000f4fbff28"
    "0c00000000000000010101000000a700000000000b" + "00" * 55 + "0a10bdbe3dff1de47b478afb017d57270a4c"
    "020d2f7372762f64622f6d2e66643203042b01"
)
#: The second file of FIREBIRD_3, and its shadow: Attributes force write, active shadow.
SECOND = page(
    "0100000000000000000000002c01000000100c80000000000000000000000000000000000000000001001000b4ef0000a09cfe28"
    "00000000000000000101010002008400"
)
SHADOW = page(
    "0100000015000000000000000000000000100c8003000000000000000a0000000b0000000c00000000001300b4ef0000b497fe28"
    "0c000000000000000101010000009300000000000b" + "00" * 59 + "010d2f7372762f64622f6d2e666462"
)
#: The file beside a database in which changes are kept while a backup is under way.
DELTA = page("0300000002000000b2")


def with_flags(flags: int, whole: bytes = FIREBIRD_3) -> bytes:
    return whole[:42] + struct.pack("<H", flags) + whole[44:]


def with_ods(major: int, minor: int = 0) -> bytes:
    return (
        FIREBIRD_3[:18]
        + struct.pack("<H", 0x8000 | major)
        + FIREBIRD_3[20:64]
        + bytes((minor, 0))
        + FIREBIRD_3[66:]
    )


@pytest.mark.fact(34)
@pytest.mark.parametrize(
    ("whole", "ods", "created"),
    [(FIREBIRD_3, "12.0", "b4ef0000b497fe28"), (FIREBIRD_4, "13.0", "b4ef0000f4fbff28")],
)
def test_forced_writes_are_a_flag_in_the_header(whole: bytes, ods: str, created: str) -> None:
    assert parse(whole) == Header(ods, "on", "read_write", created, "/srv/db/m.fd2")
    # What gfix -write async left of it.
    assert parse(with_flags(0x10, whole)) == Header(ods, "off", "read_write", created, "/srv/db/m.fd2")
    assert next_file(whole) == "/srv/db/m.fd2"


@pytest.mark.parametrize("whole", [SECOND, SHADOW, DELTA, b"", FIREBIRD_3[:100], b"\0" * LENGTH])
def test_other_files_are_no_databases_of_their_own(whole: bytes) -> None:
    assert parse(whole) is None
    assert next_file(whole) is None


@pytest.mark.parametrize(
    ("flags", "mode", "forced"),
    [
        (0x12, "read_write", "on"),
        (0x32, "read_only", "on"),
        (0x1012, "shutdown", "on"),
        # Multi-user and single-user maintenance: the administrator can attach.
        (0x92, "read_write", "on"),
        (0x1092, "read_write", "on"),
        (0x412, "backup", "on"),
        (0x810, "backup", "off"),
    ],
)
def test_the_modes_of_a_database(flags: int, mode: str, forced: str) -> None:
    header = parse(with_flags(flags))
    assert header
    assert (header.mode, header.forced_writes) == (mode, forced)


@pytest.mark.parametrize(
    ("major", "owner"), [(11, "Firebird 2"), (14, "Firebird 6"), (15, "expected 12 or 13")]
)
def test_an_unknown_structure_is_named_and_not_guessed(major: int, owner: str) -> None:
    with pytest.raises(Unfamiliar, match=f"ODS {major}.*{owner}"):
        parse(with_ods(major))
    assert next_file(with_ods(major)) is None


def test_firebird_5_adds_to_the_minor_version() -> None:
    header = parse(with_ods(13, 1))
    assert header
    assert header.ods == "13.1"


@given(st.binary(max_size=LENGTH))
def test_any_bytes_are_no_database_or_one(tail: bytes) -> None:
    for whole in (tail, FIREBIRD_3[:132] + tail, FIREBIRD_3[:20] + tail):
        next_file(whole)
        try:
            header = parse(whole)
        except Unfamiliar:
            assert is_database(whole)
        else:
            assert header is None or header.forced_writes in ("on", "off")
