# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From one log to thousands of power cuts: rebuild the disk at each, recover it, and look for the commits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from proof import bounds
from proof.checks import Check, scratch_directory
from proof.edits import EDITS, needed
from proof.errors import ProofError
from proof.images import Image, copy_sparse
from proof.log import Event, Kind
from proof.verify import Acknowledged, Records
from proof.volatile import BLOCKS, DROP, KEEP, POLICIES, SECTORS, Disk, Faults, Policy, WriteBack
from proof.writer import Job

#: Of ten cuts. Keeping all loses nothing by itself: it is there for recovery.
MIX = (*[DROP] * 4, *[SECTORS] * 3, *[BLOCKS] * 2, KEEP)
#: The same for those who write pages of 4 KiB and cannot mend one that is torn.
WHOLE_PAGES = tuple(BLOCKS if policy is SECTORS else policy for policy in MIX)
#: Acknowledgements after an edit at which a disk is looked at.
NEAR = 12


class Cut(NamedTuple):
    """A power cut after the event with this sequence; the seed chooses what a random policy keeps."""

    sequence: int
    policy: str
    seed: int


@dataclass(frozen=True)
class Run:
    """One recorded run: what the disk held at first, what it was told, what the guest wrote."""

    base: Path
    events: Sequence[Event]
    job: Job


class Verdict(NamedTuple):
    """Whether recovery went well, what was said otherwise, and how many acknowledged commits it did not bring back."""

    clean: bool
    said: str
    missing: int
    torn: int


#: Takes an image that it must not change, the acknowledged commits of each client, and a directory for scratch files.
Judge = Callable[[Path, Sequence[int], Path], Verdict]


@dataclass(frozen=True)
class Files:
    """The judge of what the writer wrote: recovers the file system and compares files.

    `directory` is where the job's files lie, seen from the root of their file system.
    """

    check: Check
    job: Job
    directory: str = "/"

    def __call__(self, image: Path, counts: Sequence[int], scratch: Path) -> Verdict:
        """Judge one image."""
        paths = {name: f"{self.directory.rstrip('/')}/{name}" for name in self._records.files}
        checked = self.check(image, list(paths.values()), scratch)
        files = {name: checked.files[path] for name, path in paths.items()}
        losses = self._records.losses(files, counts)
        return Verdict(checked.clean, checked.said, len(losses.missing), len(losses.torn))

    @cached_property
    def _records(self) -> Records:
        return Records(self.job)


@dataclass(frozen=True)
class Model:
    """The disk that the run is taken to have had."""

    write_back: WriteBack = field(default_factory=WriteBack)
    faults: Faults = field(default_factory=Faults)
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """What one cut left. `volatile` and `kept` are bytes in the cache, and those of them that survived."""

    cut: Cut
    volatile: int
    kept: int
    acknowledged: int
    missing: int
    torn: int
    clean: bool
    said: str = ""

    @property
    def lost(self) -> bool:
        """Whether an acknowledged commit is lost."""
        return self.missing + self.torn > 0


@dataclass(frozen=True)
class Summary:
    """Counts over the cuts that had volatile data; `bound` is the 95 % bound of the share that loses commits.

    `lost_without_volatile` are cuts that lost or broke something though nothing was volatile: no cut may.
    """

    cuts: int
    without_volatile: int
    lost_without_volatile: int
    losing: int
    damaged: int
    commits_lost: int
    bound: float | None


def schedule(events: Sequence[Event], count: int, seed: int, mix: Sequence[Policy] = MIX) -> list[Cut]:
    """Choose cuts: half of them at acknowledgements, evenly spread, half anywhere between the first and the last.

    It depends on the seed, and on acknowledgements by their number: a control that commits as often gets the same.
    """
    acks = [place for place, event in enumerate(events) if event.kind is Kind.ACK]
    if not acks:
        raise ProofError("the log has no acknowledgement")
    chance = random.Random(f"schedule {seed}")
    at_acks = (count + 1) // 2
    places = [acks[int((number + chance.random()) * len(acks) / at_acks)] for number in range(at_acks)]
    places += [_between(chance, acks) for _ in range(count - at_acks)]
    cuts = [
        Cut(
            events[place].sequence,
            mix[int(chance.random() * len(mix))].name,
            int(chance.random() * (1 << 32)),
        )
        for place in places
    ]
    return sorted(cuts)


def every_ack(events: Sequence[Event], seed: int) -> list[Cut]:
    """Choose a cut after each acknowledgement."""
    chance = random.Random(f"every {seed}")
    return [
        Cut(event.sequence, MIX[int(chance.random() * len(MIX))].name, int(chance.random() * (1 << 32)))
        for event in events
        if event.kind is Kind.ACK
    ]


def sweep(
    run: Run, cuts: Iterable[Cut], judge: Judge, model: Model | None = None, look_at_all: bool = False
) -> Iterator[Outcome]:
    """Yield the outcome of each cut, in the order of the log.

    A cut with nothing volatile is not looked at, unless all are to be: of a disk whose cache is off.
    """
    model = model or Model()
    waiting = sorted(cuts, reverse=True)
    disk = Disk(model.write_back, model.faults, model.seed)
    acknowledged = Acknowledged(run.job)
    with scratch_directory() as name:
        scratch = Path(name)
        copy_sparse(run.base, scratch / "cut.img")
        image = Image(scratch / "cut.img")
        for event in run.events:
            image.make_durable(disk.apply(event))
            if event.kind is Kind.ACK:
                acknowledged.take(event)
            while waiting and waiting[-1].sequence <= event.sequence:
                if disk.pending_bytes or look_at_all:
                    yield _outcome(waiting.pop(), disk, image, acknowledged.counts, judge, scratch)
                else:
                    yield Outcome(waiting.pop(), 0, 0, sum(acknowledged.counts), 0, 0, True)
            if not waiting:
                break
        image.close()
    if waiting:
        raise ProofError(f"the log ends before event {waiting[-1].sequence}")


def with_volatile(run: Run, cuts: Iterable[Cut], model: Model | None = None) -> list[Cut]:
    """Return the cuts that have something volatile, in the order of the log; no image is made for it."""
    model = model or Model()
    waiting = sorted(cuts, reverse=True)
    disk = Disk(model.write_back, model.faults, model.seed)
    found = []
    for event in run.events:
        disk.apply(event)
        while waiting and waiting[-1].sequence <= event.sequence:
            cut = waiting.pop()
            if disk.pending_bytes:
                found.append(cut)
        if not waiting:
            break
    if waiting:
        raise ProofError(f"the log ends before event {waiting[-1].sequence}")
    return found


def sweep_in_parts(
    run: Run, cuts: Sequence[Cut], judge: Judge, model: Model, jobs: int, look_at_all: bool = False
) -> list[Outcome]:
    """Sweep with several processes; each goes through the log for its part. The outcomes are the same."""
    ordered = sorted(cuts)
    size = -(-len(ordered) // jobs)
    parts = [ordered[begin : begin + size] for begin in range(0, len(ordered), size)]
    picklable = replace(run, events=[_held(event) for event in run.events])
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(_part, picklable, part, judge, model, look_at_all) for part in parts]
        return [outcome for future in futures for outcome in future.result()]


def rebuild(run: Run, cut: Cut, target: Path, model: Model | None = None) -> list[int]:
    """Write the image that one cut leaves, to boot from; return the acknowledged commits of each client."""
    model = model or Model()
    disk = Disk(model.write_back, model.faults, model.seed)
    acknowledged = Acknowledged(run.job)
    copy_sparse(run.base, target)
    image = Image(target)
    for event in run.events:
        if event.sequence > cut.sequence:
            break
        image.make_durable(disk.apply(event))
        if event.kind is Kind.ACK:
            acknowledged.take(event)
    image.make_durable(disk.cut(POLICIES[cut.policy], cut.seed))
    image.close()
    return acknowledged.counts


def summary(outcomes: Iterable[Outcome]) -> Summary:
    """Count."""
    everything = list(outcomes)
    counted = [outcome for outcome in everything if outcome.volatile]
    losing = sum(outcome.lost for outcome in counted)
    return Summary(
        cuts=len(counted),
        without_volatile=len(everything) - len(counted),
        lost_without_volatile=sum(o.lost or not o.clean for o in everything if not o.volatile),
        losing=losing,
        damaged=sum(not outcome.clean for outcome in counted),
        commits_lost=sum(outcome.missing + outcome.torn for outcome in counted),
        bound=bounds.upper(losing, len(counted)) if counted else None,
    )


class Trial(NamedTuple):
    """One edit of a safe log: what was taken, whether a commit rests on it alone, and whether a cut showed it.

    What is needed must be caught. What is not may be harmless.
    """

    taken: int
    needed: bool
    caught: bool


def sensitivity(run: Run, edit: str, seed: int, judge: Judge, model: Model | None = None) -> Trial:
    """Take one "flush" or "fua" from a log and look at the disk where that can matter: at the next acknowledgements."""
    edited = EDITS[edit](run.events, seed)
    near = [
        event.sequence
        for event in edited.events
        if event.kind is Kind.ACK and edited.taken < event.sequence <= edited.until
    ][:NEAR]
    cuts = [Cut(sequence, policy.name, seed) for sequence in near for policy in (DROP, SECTORS, BLOCKS)]
    outcomes = sweep(replace(run, events=edited.events), cuts, judge, model)
    caught = any(outcome.lost or not outcome.clean for outcome in outcomes)
    return Trial(edited.taken, edited.taken in needed(run.events, run.job), caught)


def _between(chance: random.Random, acks: list[int]) -> int:
    return acks[0] + int(chance.random() * (acks[-1] - acks[0] + 1))


def _outcome(
    cut: Cut, disk: Disk, image: Image, counts: Sequence[int], judge: Judge, scratch: Path
) -> Outcome:
    pieces = disk.cut(POLICIES[cut.policy], cut.seed)
    with image.at_cut(pieces) as path:
        verdict = judge(path, counts, scratch)
    kept = sum(piece.length for piece in pieces)
    return Outcome(
        cut, disk.pending_bytes, kept, sum(counts), verdict.missing, verdict.torn, verdict.clean, verdict.said
    )


def _part(run: Run, cuts: list[Cut], judge: Judge, model: Model, look_at_all: bool) -> list[Outcome]:
    return list(sweep(run, cuts, judge, model, look_at_all))


def _held(event: Event) -> Event:
    """Return the event with bytes of its own, which another process can be given."""
    return replace(event, data=bytes(event.data))
