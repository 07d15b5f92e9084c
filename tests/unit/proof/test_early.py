# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each acknowledgement of a log, held against what the disk had to keep by then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proof import edits, simulated
from proof.early import Early, early
from proof.log import Event, Kind
from proof.simulated import Setup
from proof.writer import Job, acknowledgement, acknowledgement_place, record

ALONE = Job("/srv/proof/log", "direct_fdatasync", 1, 20, seed=7)


@pytest.mark.parametrize("by", ["flush", "fua"])
def test_what_was_flushed_or_written_with_fua_is_not_early(by: str) -> None:
    many = replace(ALONE, clients=4)

    assert early(simulated.events(many, Setup(by)), many) == []


@pytest.mark.parametrize("by", ["flush", "fua"])
def test_one_flush_or_fua_bit_less_makes_one_early(by: str) -> None:
    edited = edits.EDITS[by](simulated.events(ALONE, Setup(by)), 1)

    (found,) = early(edited.events, ALONE)

    assert edited.taken in (found.write, found.acknowledged - 1)


def test_without_any_flush_all_are_early() -> None:
    assert len(early(simulated.events(ALONE, Setup("nothing")), ALONE)) == ALONE.commits


def test_a_flush_that_ended_before_the_write_does_not_count() -> None:
    events = [
        Event(0, Kind.FLUSH),
        Event(1, Kind.WRITE, 0, 512, False, record(ALONE, 0, 0)),
        Event(2, Kind.ACK, acknowledgement_place(0), 512, False, acknowledgement(0, 0)),
        Event(3, Kind.FLUSH),
    ]

    assert early(events, ALONE) == [Early(0, 0, 1, 2)]


def test_what_an_earlier_run_left_in_the_block_is_not_the_commit() -> None:
    earlier = replace(ALONE, seed=6)
    events = [
        Event(0, Kind.WRITE, 0, 512, False, record(earlier, 0, 0)),
        Event(1, Kind.FLUSH),
        Event(2, Kind.ACK, acknowledgement_place(0), 512, False, acknowledgement(0, 0)),
    ]

    assert early(events, ALONE) == [Early(0, 0, None, 2)]
