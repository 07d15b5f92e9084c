# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Exposed commits are those that a cut takes: counted from the log, and by rebuilding the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof import exposure, simulated
from proof.errors import ProofError
from proof.log import Event, Kind
from proof.simulated import Setup
from proof.sweep import Cut, Model, sweep
from proof.volatile import DROP, WriteBack
from proof.writer import Job

NEVER = Model(WriteBack(bytes=1 << 40, age=1 << 40))
JOB = Job("/somewhere", "direct_fdatasync", clients=3, commits=12)


def unflushed(flush_at: int) -> list[Event]:
    """Commits that flush nothing, with one flush of somebody else's."""
    events = simulated.events(JOB, Setup(by="nothing"))
    events.insert(flush_at, Event(0, Kind.FLUSH))
    return [Event(number, e.kind, e.offset, e.length, e.fua, e.data) for number, e in enumerate(events)]


@pytest.mark.parametrize("flush_at", [0, 40, 70])
def test_it_counts_what_a_cut_loses(tmp_path: Path, flush_at: int) -> None:
    run = simulated.raw_run(tmp_path, JOB, Setup())
    run = type(run)(run.base, unflushed(flush_at), JOB)
    found = exposure.commits(run.events, JOB)
    cuts = [Cut(event.sequence, DROP.name, 0) for event in run.events]
    lost = [outcome.missing for outcome in sweep(run, cuts, simulated.raw_judge(JOB), NEVER)]
    assert [exposure.exposed(found, cut.sequence) for cut in cuts] == lost
    assert max(lost) > 0
    # Right after the flush nothing is.
    assert exposure.exposed(found, flush_at) == 0


@pytest.mark.parametrize("by", ["flush", "fua"])
def test_of_safe_commits_none_is_ever_exposed(by: str) -> None:
    events = simulated.events(JOB, Setup(by=by))
    found = exposure.commits(events, JOB)
    assert len(found) == JOB.clients * JOB.commits
    assert not any(exposure.exposed(found, event.sequence) for event in events)
    assert exposure.last_exposed(found) == 0


def test_what_is_exposed_to_the_end_and_what_was_never_written_is_told() -> None:
    events = unflushed(40)
    with pytest.raises(ProofError, match="exposed to the end"):
        exposure.last_exposed(exposure.commits(events, JOB))
    with pytest.raises(ProofError, match="never written"):
        exposure.commits([event for event in events if event.kind is not Kind.WRITE], JOB)
    flushed = [*events, Event(len(events), Kind.FLUSH)]
    assert exposure.last_exposed(exposure.commits(flushed, JOB)) == len(events)


def test_words_are_durable_at_the_flush_that_follows_their_write() -> None:
    events = [
        Event(0, Kind.FLUSH),
        Event(1, Kind.WRITE, data=b"...the words..."),
        Event(2, Kind.WRITE, data=b"others"),
        Event(3, Kind.FLUSH),
        Event(4, Kind.WRITE, data=b"written through", fua=True),
    ]
    assert exposure.made_durable(events, b"the words") == 3
    assert exposure.made_durable(events, b"through") == 4
    assert exposure.made_durable(events[:3], b"the words") is None
    with pytest.raises(ProofError, match="no write"):
        exposure.made_durable(events, b"not there")


def test_marks_are_found_and_are_no_acknowledgements() -> None:
    events = simulated.events(JOB, Setup())
    marked = [*events, Event(len(events), Kind.ACK, data=b"mark 7 here".ljust(512))]
    assert exposure.marks(marked) == {"7 here": len(events)}
    assert len(exposure.commits(marked, JOB)) == len(exposure.commits(events, JOB))
    kept = exposure.only(marked, 0, len(events) // 2)
    assert [event.sequence for event in kept] == list(range(len(marked)))
    assert 0 < sum(event.kind is Kind.ACK for event in kept) < JOB.clients * JOB.commits
    assert sum(event.kind is Kind.FLUSH for event in kept) == JOB.clients * JOB.commits
