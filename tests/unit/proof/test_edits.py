# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits of a log: one flush less, one FUA bit less."""

from __future__ import annotations

import pytest

from proof import writer
from proof.edits import needed, without_flush, without_fua
from proof.errors import ProofError
from proof.log import SECTOR, Event, Kind
from proof.writer import Job


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


def test_what_a_commit_rests_upon_alone_is_needed() -> None:
    """A commit that two flushes cover needs neither; the FUA write of one that a flush covers too, neither."""
    job = Job("/d", "dsync", clients=1)
    log = list[Event]()

    def commit(number: int, *words: str) -> None:
        for word in words:
            data = writer.record(job, 0, number) if word in ("w", "fua") else b""
            data = writer.acknowledgement(0, number) if word == "ack" else data
            kind = {"f": Kind.FLUSH, "ack": Kind.ACK}.get(word, Kind.WRITE)
            log.append(Event(len(log), kind, 0, len(data), word == "fua", data))

    commit(0, "w", "f", "ack")
    commit(1, "w", "f", "f", "ack")
    commit(2, "fua", "ack")
    commit(3, "fua", "f", "ack")
    commit(4, "w", "ack")
    assert needed(log, job) == {1, 7}


def test_a_commit_inside_a_larger_write_is_found() -> None:
    """A page that was written again for another commit in it rests on the flush after that."""
    job = Job("/d", "dsync", clients=1)
    page = writer.record(job, 0, 0) + writer.record(job, 0, 1)
    log = [
        Event(0, Kind.WRITE, 0, 1024, False, page),
        Event(1, Kind.FLUSH),
        Event(2, Kind.ACK, 0, 512, False, writer.acknowledgement(0, 1)),
    ]
    assert needed(log, job) == {1}


def test_the_seed_decides() -> None:
    """The same one again."""
    log = events("ack", *["fua", "ack"] * 50)
    assert without_fua(log, 3) == without_fua(log, 3)
    assert len({without_fua(log, seed).taken for seed in range(20)}) > 10


def test_a_log_without_commits_cannot_be_edited() -> None:
    """There is nothing to lose in it."""
    with pytest.raises(ProofError, match="no FUA write lies between"):
        without_fua(events("fua", "f"), 0)
