# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From one log to thousands of power cuts: rebuild the disk at each, recover it, and look for the commits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from proof import bounds
from proof.checks import Check, Checked, Places, scratch_directory
from proof.edits import EDITS, needed
from proof.errors import ProofError
from proof.frames import Frame, Frames, Layout
from proof.images import Image, copy_sparse
from proof.log import SECTOR, Event, Kind
from proof.verify import Acknowledged, Records
from proof.volatile import (
    BLOCKS,
    DROP,
    KEEP,
    POLICIES,
    SECTORS,
    Disk,
    Faults,
    Kept,
    Piece,
    Policy,
    WriteBack,
    joined,
)
from proof.writer import Job

#: Of ten cuts. Keeping all loses nothing by itself: it is there for recovery.
MIX = (*[DROP] * 4, *[SECTORS] * 3, *[BLOCKS] * 2, KEEP)
#: The same for those who write pages of 4 KiB and cannot mend one that is torn.
WHOLE_PAGES = tuple(BLOCKS if policy is SECTORS else policy for policy in MIX)
#: One cut of so many is judged by its whole image beside its frame.
WHOLE_EVERY = 100
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
    #: The sequence of the first event of its own: before it, other runs and the files were made. No cut is earlier.
    begin: int = 0


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

    `directory` is where the job's files lie, seen from the root of their file system. `full` are paths of files, of this
    job and of others, that were written in full before its run, and `places` finds them: then images that recovery cannot
    tell apart are recovered once (frames.py). Without them each image is recovered by itself.
    """

    check: Check
    job: Job
    directory: str = "/"
    full: tuple[str, ...] = ()
    places: Places | None = None

    def __call__(self, image: Path, counts: Sequence[int], scratch: Path) -> Verdict:
        """Judge one image."""
        return self.verdict(self.check(image, self.paths, scratch), counts)

    def verdict(self, checked: Checked, counts: Sequence[int]) -> Verdict:
        """Judge what a check has found."""
        files = {
            name: checked.files[path] for name, path in zip(self._records.files, self.paths, strict=True)
        }
        losses = self._records.losses(files, counts)
        return Verdict(checked.clean, checked.said, len(losses.missing), len(losses.torn))

    def frames(self, image: Path, scratch: Path) -> Frames | None:
        """Return the frames of a run that begins with this image; None if each image is to be recovered."""
        if self.places is None:
            return None
        found = self.places(image, self.full, scratch)
        content = frozenset(sector for sectors in found.values() for sector in sectors)
        judged = frozenset(sector for path in self.paths for sector in found.get(path, ()))
        return Frames(self.check, self.paths, Layout(content, judged))

    @cached_property
    def paths(self) -> list[str]:
        """Return the paths of the files that are judged."""
        return [f"{self.directory.rstrip('/')}/{name}" for name in self._records.files]

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
    #: For this cut the whole image was recovered, or its frame was, as the first of its kind; or neither.
    whole: bool = False
    frame: bool = False

    @property
    def lost(self) -> bool:
        """Whether an acknowledged commit is lost."""
        return self.missing + self.torn > 0


@dataclass(frozen=True)
class Summary:
    """Counts over the cuts that had volatile data; `bound` is the 95 % bound of the share that loses commits.

    `lost_without_volatile` are cuts that lost or broke something though nothing was volatile: no cut may.
    Of all that were looked at, `whole` are those whose whole image was recovered and checked, and `frames` those whose frame
    was the first of its kind, so that it was. The others have the frame of one of these, and content of their own.
    """

    cuts: int
    without_volatile: int
    lost_without_volatile: int
    losing: int
    damaged: int
    commits_lost: int
    bound: float | None
    whole: int = 0
    frames: int = 0


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


@dataclass(frozen=True)
class Start:
    """A run at its begin: the disk by then, how many events that took, an image of what was durable, and the run's frames.

    Sweeps that differ later can begin here. What they learn of frames they share.
    """

    disk: Disk
    place: int
    image: Path
    frames: Frames | None


@contextmanager
def started(run: Run, judge: Judge, model: Model | None = None) -> Iterator[Start]:
    """Bring a run to its begin."""
    model = model or Model()
    disk = Disk(model.write_back, model.faults, model.seed)
    with scratch_directory() as name:
        scratch = Path(name)
        copy_sparse(run.base, scratch / "start.img")
        image = Image(scratch / "start.img")
        place = 0
        while place < len(run.events) and run.events[place].sequence < run.begin:
            image.make_durable(disk.apply(run.events[place]))
            place += 1
        frames = None
        if isinstance(judge, Files):
            # where the kernel has put its files by now, whether the disk must keep that or not
            with image.at_cut(disk.cut(KEEP, 0)) as path:
                frames = judge.frames(path, scratch)
        image.close()
        yield Start(disk, place, scratch / "start.img", frames)


def sweep(
    run: Run,
    cuts: Iterable[Cut],
    judge: Judge,
    model: Model | None = None,
    look_at_all: bool = False,
    start: Start | None = None,
    doubtful: int = 0,
) -> Iterator[Outcome]:
    """Yield the outcome of each cut, in the order of the log.

    A cut with nothing volatile is not looked at, unless all are to be: of a disk whose cache is off. A `start` must be of this
    run and model. So many `doubtful` cuts, which lose or break something, are judged by their whole image in any case.
    """
    waiting = sorted(cuts, reverse=True)
    with ExitStack() as stack:
        start = start or stack.enter_context(started(run, judge, model))
        view = stack.enter_context(_view(judge, start, doubtful))
        disk, acknowledged = start.disk.copy(), Acknowledged(run.job)
        for place in range(start.place, len(run.events)):
            event = run.events[place]
            view.make_durable(disk.apply(event))
            if event.kind is Kind.ACK:
                acknowledged.take(event)
            while waiting and waiting[-1].sequence <= event.sequence:
                if disk.pending_bytes or look_at_all:
                    yield _outcome(waiting.pop(), disk, view, acknowledged.counts)
                else:
                    yield Outcome(waiting.pop(), 0, 0, sum(acknowledged.counts), 0, 0, True)
            if not waiting:
                break
    if waiting:
        raise ProofError(f"the log ends before event {waiting[-1].sequence}")


@contextmanager
def _view(judge: Judge, start: Start, doubtful: int) -> Iterator[_Whole]:
    with scratch_directory() as name:
        view = (
            _Framed(judge, start, Path(name), doubtful) if start.frames else _Whole(judge, start, Path(name))
        )
        try:
            yield view
        finally:
            view.close()


class _Look(NamedTuple):
    """The verdict on a cut; whether its whole image was recovered, and whether its frame was the first of its kind."""

    verdict: Verdict
    is_whole: bool
    is_new: bool


class _Whole:
    """Looks at whole images, one cut after another."""

    def __init__(self, judge: Judge, start: Start, scratch: Path) -> None:
        self._judge, self._scratch = judge, scratch
        copy_sparse(start.image, scratch / "cut.img")
        self._image = Image(scratch / "cut.img")

    def make_durable(self, pieces: Sequence[Piece]) -> None:
        self._image.make_durable(pieces)

    def look(self, kept: Sequence[Kept], counts: Sequence[int]) -> _Look:
        """Return the verdict on a cut that keeps these sectors, and how it was found."""
        with self._image.at_cut(joined(kept)) as path:
            return _Look(self._judge(path, counts, self._scratch), is_whole=True, is_new=False)

    def close(self) -> None:
        self._image.close()


class _Framed(_Whole):
    """Looks at frames, and at a share of the whole images beside them: the verdicts must be the same."""

    def __init__(self, judge: Judge, start: Start, scratch: Path, doubtful: int) -> None:
        super().__init__(judge, start, scratch)
        assert start.frames and isinstance(judge, Files)
        self._files, self._doubtful, self._count = judge, doubtful, 0
        self._frame = Frame(start.frames, self._image, scratch / "frame.img")

    def make_durable(self, pieces: Sequence[Piece]) -> None:
        super().make_durable(pieces)
        self._frame.make_durable(pieces)

    def look(self, kept: Sequence[Kept], counts: Sequence[int]) -> _Look:
        checked, is_known = self._frame.recovered(kept, self._scratch)
        verdict = self._files.verdict(checked, counts)
        if not self._is_due(verdict):
            return _Look(verdict, is_whole=False, is_new=not is_known)
        whole = super().look(kept, counts).verdict
        # what is said names the image
        if whole != verdict._replace(said=whole.said):
            raise ProofError(f"a frame gives {verdict}, and its whole image {whole}")
        return _Look(whole, is_whole=True, is_new=not is_known)

    def _is_due(self, verdict: Verdict) -> bool:
        self._count += 1
        if self._doubtful and not (verdict.clean and verdict.missing + verdict.torn == 0):
            self._doubtful -= 1
            return True
        return self._count % WHOLE_EVERY == 1

    def close(self) -> None:
        super().close()
        self._frame.close()


def with_volatile(run: Run, cuts: Iterable[Cut], start: Start) -> list[Cut]:
    """Return the cuts that have something volatile, in the order of the log; no image is made for it."""
    waiting = sorted(cuts, reverse=True)
    disk = start.disk.copy()
    found = []
    for place in range(start.place, len(run.events)):
        event = run.events[place]
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
        whole=sum(outcome.whole for outcome in everything),
        frames=sum(outcome.frame for outcome in everything),
    )


class Trial(NamedTuple):
    """One edit of a safe log: what was taken, whether a commit rests on it alone, and whether a cut showed it.

    What is needed must be caught. What is not may be harmless.
    """

    taken: int
    needed: bool
    caught: bool


def sensitivity(run: Run, edit: str, seed: int, judge: Judge, start: Start | None = None) -> Trial:
    """Take one "flush" or "fua" from a log and look at the disk where that can matter: at the next acknowledgements."""
    edited = EDITS[edit](run.events, seed)
    near = [
        event.sequence
        for event in edited.events
        if event.kind is Kind.ACK and edited.taken < event.sequence <= edited.until
    ][:NEAR]
    cuts = [Cut(sequence, policy.name, seed) for sequence in near for policy in (DROP, SECTORS, BLOCKS)]
    outcomes = sweep(replace(run, events=edited.events), cuts, judge, start=start)
    caught = any(outcome.lost or not outcome.clean for outcome in outcomes)
    own = [event for event in run.events if event.sequence >= run.begin]
    return Trial(edited.taken, edited.taken in needed(own, run.job), caught)


def _between(chance: random.Random, acks: list[int]) -> int:
    return acks[0] + int(chance.random() * (acks[-1] - acks[0] + 1))


def _outcome(cut: Cut, disk: Disk, view: _Whole, counts: Sequence[int]) -> Outcome:
    kept = disk.kept(POLICIES[cut.policy], cut.seed)
    verdict, is_whole, is_new = view.look(kept, counts)
    size, lost = (disk.pending_bytes, SECTOR * len(kept)), (verdict.missing, verdict.torn)
    return Outcome(cut, *size, sum(counts), *lost, verdict.clean, verdict.said, is_whole, is_new)
