# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sweep: a safe run loses nothing, an unsafe one does, and a rig that misses a flush is caught."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from proof.checks import Checked
from proof.errors import ProofError
from proof.log import Event, Kind
from proof.simulated import Setup, raw_judge, raw_run
from proof.sweep import (
    Cut,
    Files,
    Model,
    Outcome,
    Verdict,
    every_ack,
    rebuild,
    schedule,
    sensitivity,
    started,
    summary,
    sweep,
    with_volatile,
)
from proof.volatile import Faults, WriteBack
from proof.writer import Job

JOB = Job("/d", "direct_fdatasync", clients=4, commits=100, seed=1)
DISHONEST = {
    "flush": Model(faults=Faults(ignore_flush_every=50)),
    "fua": Model(faults=Faults(ignore_fua=True)),
}


def swept(directory: Path, setup: Setup, model: Model | None = None, count: int = 400) -> list[Outcome]:
    """Sweep a simulated run on a raw disk."""
    run = raw_run(directory, JOB, setup)
    return list(sweep(run, schedule(run.events, count, 3), raw_judge(JOB), model))


@pytest.mark.parametrize("by", ["flush", "fua"])
def test_a_safe_run_loses_nothing(tmp_path: Path, by: str) -> None:
    """Although noise is lost at nearly every cut."""
    found = summary(swept(tmp_path, Setup(by)))
    assert (found.losing, found.commits_lost, found.damaged) == (0, 0, 0)
    assert found.cuts >= 150
    assert found.cuts + found.without_volatile == 400
    assert found.bound == pytest.approx(3 / found.cuts, rel=0.02)


def test_an_unsafe_run_loses_commits_in_most_cuts(tmp_path: Path) -> None:
    """The same schedule, but nothing is flushed: only cuts that keep all lose nothing."""
    found = swept(tmp_path, Setup("nothing"))
    assert summary(found).losing >= 0.5 * summary(found).cuts
    assert not any(outcome.lost for outcome in found if outcome.cut.policy == "keep all")
    assert all(outcome.lost for outcome in found if outcome.cut.policy == "drop all" and outcome.acknowledged)


@pytest.mark.parametrize("by", ["flush", "fua"])
def test_a_lying_disk_is_caught(tmp_path: Path, by: str) -> None:
    """One that ignores every 50th flush, at the acknowledgements alone; one that ignores FUA."""
    run = raw_run(tmp_path, JOB, Setup(by))
    outcomes = list(sweep(run, every_ack(run.events, 1), raw_judge(JOB), DISHONEST[by]))
    assert any(outcome.lost for outcome in outcomes)
    assert not any(outcome.lost for outcome in sweep(run, every_ack(run.events, 1), raw_judge(JOB)))


@pytest.mark.parametrize(("edit", "share"), [("flush", 0.3), ("fua", 0.9)])
def test_one_flush_or_fua_bit_less_is_caught(tmp_path: Path, edit: str, share: float) -> None:
    """Always if a commit rests on it alone. Another client's flush may stand in for a flush, nothing for a FUA bit."""
    run = raw_run(tmp_path, JOB, Setup(edit))
    trials = [sensitivity(run, edit, seed, raw_judge(JOB)) for seed in range(40)]
    assert len({trial.taken for trial in trials}) > 25
    assert sum(trial.caught for trial in trials) >= share * len(trials)
    assert all(trial.caught == trial.needed for trial in trials)


@pytest.mark.parametrize("edit", ["flush", "fua"])
def test_with_one_client_every_flush_or_fua_bit_is_needed(tmp_path: Path, edit: str) -> None:
    """So a run of one client is what shows that the rig sees each."""
    job = replace(JOB, clients=1)
    run = raw_run(tmp_path, job, Setup(edit))
    trials = [sensitivity(run, edit, seed, raw_judge(job)) for seed in range(20)]
    assert all(trial.caught for trial in trials)
    model = Model(faults=Faults(ignore_flush_every=50, ignore_fua=True))
    assert any(outcome.lost for outcome in sweep(run, every_ack(run.events, 1), raw_judge(job), model))


def test_the_same_log_and_seed_give_the_same_outcomes(tmp_path: Path) -> None:
    """And another seed others."""
    run = raw_run(tmp_path, replace(JOB, commits=25), Setup("nothing"))
    cuts = schedule(run.events, 60, 3)
    model, judge = Model(WriteBack(64 << 10, 100), seed=4), raw_judge(run.job)
    first = list(sweep(run, cuts, judge, model))
    assert first == list(sweep(run, cuts, judge, model))
    assert first != list(sweep(run, cuts, judge, replace(model, seed=5)))
    assert cuts == schedule(run.events, 60, 3) != schedule(run.events, 60, 4)


def test_half_of_the_cuts_are_at_acknowledgements(tmp_path: Path) -> None:
    """Spread over the whole run, all policies among them."""
    run = raw_run(tmp_path, JOB, Setup())
    cuts = schedule(run.events, 200, 0)
    acks = [event.sequence for event in run.events if event.kind is Kind.ACK]
    at_acks = [cut for cut in cuts if cut.sequence in set(acks)]
    assert 100 <= len(at_acks) < 160
    assert cuts == sorted(cuts)
    assert min(cuts).sequence <= acks[8]
    assert max(cuts).sequence >= acks[-8]
    assert {cut.policy for cut in cuts} == {"drop all", "keep all", "random 512 B", "random 4 KiB"}
    assert [cut.sequence for cut in every_ack(run.events, 0)] == acks


def test_a_control_with_as_many_commits_has_the_same_schedule(tmp_path: Path) -> None:
    """Cut by cut the same acknowledgement, with the same policy and seed."""
    schedules = []
    for by in ("flush", "nothing"):
        log = raw_run(tmp_path, JOB, Setup(by)).events
        numbers = {
            event.sequence: number for number, event in enumerate(e for e in log if e.kind is Kind.ACK)
        }
        schedules.append([(numbers[cut.sequence], *cut[1:]) for cut in every_ack(log, 7)])
    assert schedules[0] == schedules[1]


def test_cuts_without_volatile_data_are_neither_counted_nor_looked_at(tmp_path: Path) -> None:
    """They prove nothing: one client, FUA, no noise."""
    job = replace(JOB, clients=1)
    run = raw_run(tmp_path, job, Setup("fua", noise=0))
    judge = raw_judge(job)
    found = summary(sweep(run, every_ack(run.events, 0), judge))
    assert (found.cuts, found.without_volatile, found.bound, judge.check.asked) == (0, 100, None, 0)


def test_all_cuts_can_be_looked_at(tmp_path: Path) -> None:
    """Of a disk whose cache is off: a loss there is told apart, for nothing was volatile."""
    job = replace(JOB, clients=1)
    run = raw_run(tmp_path, job, Setup("fua", noise=0))
    judge = raw_judge(job)
    found = summary(sweep(run, every_ack(run.events, 0), judge, look_at_all=True))
    assert (found.without_volatile, found.lost_without_volatile, judge.check.asked) == (100, 0, 100)
    other = raw_judge(replace(job, seed=2))
    found = summary(sweep(run, every_ack(run.events, 0), other, look_at_all=True))
    assert (found.losing, found.lost_without_volatile) == (0, 100)


@pytest.mark.parametrize("by", ["flush", "fua"])
def test_what_is_volatile_is_known_without_an_image(tmp_path: Path, by: str) -> None:
    """The same cuts as a sweep finds; and a cut behind the end of the log is an error here too."""
    run = raw_run(tmp_path, JOB, Setup(by))
    cuts = schedule(run.events, 80, 3)
    swept = [outcome.cut for outcome in sweep(run, cuts, raw_judge(JOB)) if outcome.volatile]
    with started(run, raw_judge(JOB)) as start:
        assert with_volatile(run, cuts, start) == swept
        assert len(swept) > 0
        with pytest.raises(ProofError, match="the log ends before"):
            with_volatile(run, [Cut(len(run.events) + 5, "none", 0)], start)


def test_a_sweep_can_begin_where_its_run_begins(tmp_path: Path) -> None:
    """With what was written before, waiting or durable; and one begin serves many sweeps."""
    run = raw_run(tmp_path, replace(JOB, commits=25), Setup("nothing"))
    model, judge = Model(WriteBack(64 << 10, 100), seed=4), raw_judge(run.job)
    first = next(place for place, event in enumerate(run.events) if event.kind is Kind.ACK)
    cuts = schedule(run.events, 60, 3)
    whole = list(sweep(run, cuts, judge, model))
    later = replace(run, begin=first)
    with started(later, judge, model) as start:
        assert start.place == first
        assert whole == list(sweep(later, cuts, judge, model, start=start))
        assert whole == list(sweep(later, cuts, judge, model, start=start))
    assert whole == list(sweep(later, cuts, judge, model))


def test_damage_is_counted(tmp_path: Path) -> None:
    """A file system that recovery cannot make whole is told, and a file that is gone has lost all."""
    run = raw_run(tmp_path, JOB, Setup())

    def broken(image: Path, paths: Sequence[str], scratch: Path) -> Checked:
        return Checked(False, "Inode 12 is broken", dict.fromkeys(paths))

    outcomes = list(sweep(run, schedule(run.events, 10, 0), Files(broken, JOB)))
    counted = [outcome for outcome in outcomes if outcome.volatile]
    assert summary(outcomes).damaged == len(counted) > 0
    assert all(outcome.missing == outcome.acknowledged for outcome in counted)
    assert {outcome.said for outcome in counted} == {"Inode 12 is broken"}


def test_an_image_can_be_rebuilt_for_one_cut(tmp_path: Path) -> None:
    """The same bytes that the sweep judged."""
    run = raw_run(tmp_path, replace(JOB, commits=10), Setup("nothing"), 33 << 20)
    cuts = schedule(run.events, 12, 3)
    seen = list[tuple[bytes, list[int]]]()

    def judge(image: Path, counts: Sequence[int], scratch: Path) -> Verdict:
        seen.append((hashlib.sha256(image.read_bytes()).digest(), list(counts)))
        return Verdict(True, "", 0, 0)

    assert len(list(sweep(run, cuts, judge))) == len(seen)
    for cut, (digest, counts) in zip(cuts, seen, strict=True):
        assert rebuild(run, cut, tmp_path / "one.img") == counts
        assert hashlib.sha256((tmp_path / "one.img").read_bytes()).digest() == digest


def test_a_cut_behind_the_end_of_the_log_is_an_error(tmp_path: Path) -> None:
    """It belongs to another log."""
    run = raw_run(tmp_path, JOB, Setup())
    with pytest.raises(ProofError, match="the log ends before event 99999"):
        list(sweep(run, [Cut(99999, "drop all", 0)], raw_judge(JOB)))
    with pytest.raises(ProofError, match="no acknowledgement"):
        schedule([Event(0, Kind.FLUSH)], 1, 0)
