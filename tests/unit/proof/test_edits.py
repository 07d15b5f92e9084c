# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits of a log: one flush less, one FUA bit less."""

from __future__ import annotations

import pytest

from proof.edits import without_flush, without_fua
from proof.errors import ProofError
from proof.log import SECTOR, Event, Kind


def events(*words: str) -> list[Event]:
    """Return events from words: w, fua, f, ack."""
    kinds = {"w": Kind.WRITE, "fua": Kind.WRITE, "f": Kind.FLUSH, "ack": Kind.ACK}
    return [
        Event(number, kinds[word], 0, SECTOR, word == "fua", bytes(SECTOR))
        for number, word in enumerate(words)
    ]


def test_one_flush_is_left_out() -> None:
    """One that had something to do: neither the second of two, nor one before or after all commits."""
    log = events("w", "f", "ack", "w", "f", "f", "ack", "w", "f", "ack", "w", "f")
    edits = [without_flush(log, seed) for seed in range(40)]
    assert {edit.taken for edit in edits} == {4, 8}
    assert {(edit.taken, edit.until) for edit in edits} == {(4, 5), (8, 11)}
    for edit in edits:
        assert edit.events == [event for event in log if event.sequence != edit.taken]


def test_a_flush_after_fua_writes_had_nothing_to_do() -> None:
    """Its loss could not be seen."""
    with pytest.raises(ProofError, match="no flush lies between"):
        without_flush(events("ack", "fua", "f", "ack"), 0)


def test_one_fua_bit_is_taken() -> None:
    """The write stays."""
    log = events("fua", "ack", "fua", "w", "ack", "fua", "ack")
    edits = [without_fua(log, seed) for seed in range(40)]
    assert {edit.taken for edit in edits} == {2, 5}
    for edit in edits:
        changed = [new for new, old in zip(edit.events, log, strict=True) if new != old]
        assert [(event.sequence, event.fua) for event in changed] == [(edit.taken, False)]
        assert edit.until == 6


def test_the_seed_decides() -> None:
    """The same one again."""
    log = events("ack", *["fua", "ack"] * 50)
    assert without_fua(log, 3) == without_fua(log, 3)
    assert len({without_fua(log, seed).taken for seed in range(20)}) > 10


def test_a_log_without_commits_cannot_be_edited() -> None:
    """There is nothing to lose in it."""
    with pytest.raises(ProofError, match="no FUA write lies between"):
        without_fua(events("fua", "f"), 0)
