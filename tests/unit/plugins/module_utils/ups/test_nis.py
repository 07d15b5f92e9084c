# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apcupsd's server says, asked over loopback of a stand-in, and what is made of a hostile answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.ups import nis
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.power_host import STATUS, Nis
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.stand_in import (
    answering,
    listening,
)


def test_a_stand_in_over_loopback_tells_what_apcupsd_tells() -> None:
    with listening(answering(Nis(), size=1)) as port:
        found = nis.ask(Host(), "127.0.0.1", port)
    assert found == {name: value.strip() for name, value in STATUS.items()}


def test_what_is_no_field_is_refused_by_what_was_seen() -> None:
    with (
        listening(answering(lambda question: b"\x00\x05hello\x00\x00")) as port,
        pytest.raises(Unobservable, match="observed 'hello', expected NAME : value"),
    ):
        nis.ask(Host(), "127.0.0.1", port)


def test_a_field_that_is_told_twice_is_refused() -> None:
    record = b"\x00\x0bSTATUS : OL"
    with pytest.raises(ValueError, match="STATUS twice"):
        nis.fields(record + record + b"\0\0")


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        (b"", False),
        (b"\0", False),
        (b"\0\0", True),
        (b"\x00\x03abc", False),
        (b"\x00\x03abc\x00", False),
        (b"\x00\x03abc\x00\x00", True),
        (b"\xff\xff\x00\x00", False),
    ],
)
def test_an_answer_is_whole_with_its_empty_record(said: bytes, whole: bool) -> None:
    assert nis.is_whole(bytearray(said)) is whole


@given(st.binary(max_size=200))
def test_no_answer_does_worse_than_be_refused(said: bytes) -> None:
    if nis.is_whole(bytearray(said)):
        try:
            nis.fields(said)
        except ValueError as error:
            assert "expected" in str(error)
