# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a record to the judgement of its cells: the sweep, the self-test of the device, the accounting, trials of the rig."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random
from typing import Any

from proof import accounting, bounds, log, machine
from proof.cells import SAFE, UNTRUSTED, Cell, Setting
from proof.checks import CHECKS, PLACES, scratch_directory
from proof.early import early
from proof.engine import Server, absent
from proof.engines import ENGINES
from proof.errors import ProofError
from proof.log import Event, Kind
from proof.machine import RECORD, Segment
from proof.sweep import (
    MIX,
    WHOLE_PAGES,
    Cut,
    Files,
    Judge,
    Model,
    Run,
    Summary,
    Verdict,
    rebuild,
    schedule,
    sensitivity,
    started,
    summary,
    sweep,
    with_volatile,
)
from proof.verify import Records
from proof.volatile import DROP, Faults, Policy
from proof.writer import NOISE, PATTERNS, Job

#: Cuts with volatile data that a safe cell has to survive, over all its seeds.
NEEDED, NEEDED_OF_ENGINE = 1000, 200
#: Cuts are chosen blindly, so many times as many as are looked at: of those with volatile data, an even spread.
CONSIDERED = 4
#: Cuts of each run of a safe cell that lose or break something, and are judged by their whole image too.
DOUBTFUL = 20
#: Of the cuts of a control, how many have to lose commits.
SHARE = 0.5
TRIALS = 20
#: Cuts of which one is booted from.
REBOOT_AMONG = 60
#: Disks that lie. Where a commit takes two flushes, one of them may be ignored without harm: so the count begins at an odd
#: and at an even one, and where both cover the commit itself only two in a row are seen.
LIARS = {
    "every 50th flush": 1,
    "two in a row of each 50 flushes": 2,
}


@dataclass(frozen=True)
class Record:
    """What `machine.record` left in a directory."""

    directory: Path
    raw: dict[str, Any]

    @classmethod
    def read(cls, directory: Path) -> Record:
        """Read it; ProofError if it is not there or not whole."""
        try:
            return cls(directory, json.loads((directory / RECORD).read_text()))
        except FileNotFoundError:
            raise ProofError(f"{directory} holds no whole record: it was never made, or broken off") from None

    @property
    def setting(self) -> Setting:
        """Return the setting."""
        return Setting(**self.raw["setting"])

    @cached_property
    def events(self) -> list[Event]:
        """Return the log."""
        return log.read(self.directory / "disk").events

    def segments(self, workload: str) -> list[Segment]:
        """Return the runs of a workload; ProofError if it has none."""
        found = [Segment.read(raw) for raw in self.raw["segments"] if raw["workload"] == workload]
        if not found:
            raise ProofError(f"{self.directory} has no run of {workload}: record it anew (--fresh)")
        return found

    def run(self, segment: Segment) -> Run:
        """Return one run, as the sweep takes it: all that the disk was told, but the acknowledgements of this run alone."""
        return Run(self.directory / "disk/base.img", window(self.events, segment), segment.job, segment.begin)

    @cached_property
    def full(self) -> tuple[str, ...]:
        """Return the paths of all files that were written in full before a run, in its file system."""
        found = dict[str, None]()
        for raw in self.raw["segments"]:
            job = Segment.read(raw).job
            names = Records(job).files if PATTERNS[job.pattern].lies_in_place else []
            found.update({f"/{Path(job.directory).name}/{name}": None for name in (*names, NOISE)})
        return tuple(found)


def window(events: Sequence[Event], segment: Segment) -> list[Event]:
    """Return the events up to the last cut of a run, without the acknowledgements of other runs."""
    return [
        event
        for event in events[: max(segment.end, segment.look_end)]
        if event.kind is not Kind.ACK or segment.begin <= event.sequence < segment.end
    ]


def cuts_of(
    events: Sequence[Event], segment: Segment, count: int, seed: int, mix: Sequence[Policy] = MIX
) -> list[Cut]:
    """Choose the cuts of a run: by its acknowledgements, or, where they all lie before, anywhere in what is looked at."""
    if segment.look_begin < segment.end:
        return schedule(events, count, seed, mix)
    # an idle disk was told nothing: then there is one place, and the policies and seeds differ
    places = [event.sequence for event in events if event.sequence >= segment.look_begin] or [
        events[-1].sequence
    ]
    chance = Random(f"after {seed}")
    return sorted(
        Cut(
            chance.choice(places), mix[int(chance.random() * len(mix))].name, int(chance.random() * (1 << 32))
        )
        for _ in range(count)
    )


def judge_cell(cell: Cell, record: Record, cuts: int) -> dict[str, Any]:
    """Return the evidence for one cell: `cuts` cuts, shared by its seeds, and all that shows what they are worth."""
    alone, many = _split(record.segments(cell.workload))
    # recovery by a server takes longer, and fewer are asked for
    wanted = cuts * NEEDED_OF_ENGINE // NEEDED if cell.setting.engine else cuts
    each = -(-wanted // len(many))
    judged = [_sweep(cell, record, segment, each) for segment in many]
    total = added(judged)
    found: dict[str, Any] = {
        "cell": cell.name,
        "expects": cell.expects,
        "control": cell.control,
        "workload": cell.workload,
        "totals": asdict(total) | {"bound": total.bound},
        "seeds": [
            {"seed": segment.job.seed, **asdict(one)} for segment, one in zip(many, judged, strict=True)
        ],
        "accounting": [_accounted(cell, record, segment) for segment in (*alone, *many)],
        "model": asdict(Model()),
        **{
            key: record.raw[key] for key in ("setting", "plant", "hardened", "seen", "seen_after", "versions")
        },
    }
    if alone and cell.expects in (SAFE, UNTRUSTED):
        found["self_test"] = _self_test(record, alone[0])
    if alone and cell.expects == SAFE:
        found["rig"] = _trials(cell, record, alone[0])
    # what a plant's first part acknowledged is early by design
    looked = [run for run in (*alone, *many) if run.look_begin < run.end]
    if cell.expects == SAFE and not cell.setting.engine and looked:
        found["early"] = _early(record, looked)
    found["problems"] = problems(cell, total, found)
    found["verdict"] = "not shown" if found["problems"] else "told" if cell.expects == UNTRUSTED else "shown"
    return found


def kept_or_judged(cell: Cell, directory: Path, cuts: int) -> dict[str, Any]:
    """Return the evidence for one cell of a record. It is kept beside the record, and found there by a run that goes on.

    It holds for this number of cuts, these sources and this record, which a fresh one replaces with all that lies there.
    """
    kept = directory / f"judged-{cell.workload}.json"
    name = {"cuts": cuts, "sources": _sources()}
    with suppress(FileNotFoundError, ValueError):
        found: dict[str, Any] = json.loads(kept.read_text())
        if found["of"] == name:
            return dict(found["evidence"])
    judged = judge_cell(cell, _read(directory), cuts)
    new = kept.with_suffix(".new")
    new.write_text(json.dumps({"of": name, "evidence": judged}))
    new.replace(kept)
    return judged


@lru_cache(maxsize=1)
def _read(directory: Path) -> Record:
    """Read a record once for all of its cells that a process gets."""
    return Record.read(directory)


@lru_cache
def _sources() -> str:
    """Return a digest of the sources of the proof."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def reboot_cell(cell: Cell, record: Record, directory: Path) -> dict[str, Any]:
    """Boot a machine from what one cut left, one that took volatile data, and return what is missing there."""
    _, many = _split(record.segments(cell.workload))
    segment = many[-1]
    run, model = record.run(segment), Model(seed=segment.job.seed)
    cuts = cuts_of(run.events, segment, REBOOT_AMONG, segment.job.seed, mix_of(cell.setting))
    taking = [o for o in sweep(run, cuts, _unseen, model) if o.kept < o.volatile or cell.setting.cache_is_off]
    if not taking:
        raise ProofError(f"{cell.name}: none of {len(cuts)} cuts takes volatile data: nothing to boot from")
    cut = taking[len(taking) // 2].cut
    with scratch_directory() as scratch:
        image = Path(scratch, "cut.img")
        counts = rebuild(run, cut, image, model)
        missing, torn, complaints = _booted(cell.setting, segment.job, counts, image, directory)
    told = {"acknowledged": sum(counts), "missing": missing, "torn": torn, "complaints": complaints}
    return {"cut": cut._asdict(), **told}


def _booted(
    setting: Setting, job: Job, counts: Sequence[int], image: Path, directory: Path
) -> tuple[int, int, list[str]]:
    """Boot from an image; return how many commits are missing and torn there, and the kernel's complaints."""
    if setting.engine:
        found = machine.reboot(setting, image, [], job.seed, directory)
        return len(absent(counts, found.rows)), 0, found.complaints
    where = {name: f"{Path(job.directory).name}/{name}" for name in Records(job).files}
    found = machine.reboot(setting, image, list(where.values()), job.seed, directory)
    losses = Records(job).losses({name: found.files[path] for name, path in where.items()}, counts)
    return len(losses.missing), len(losses.torn), found.complaints


def problems_of_reboot(found: dict[str, Any]) -> list[str]:
    """Return what is wrong with what a machine found after a cut."""
    wrong = [f"the kernel complains after a cut and a boot: {line}" for line in found["complaints"]]
    if found["missing"] + found["torn"]:
        lost = f"{found['missing']} missing, {found['torn']} torn of {found['acknowledged']}"
        wrong.append(f"after a cut and a boot commits are lost: {lost}")
    return wrong


def added(judged: Iterable[Summary]) -> Summary:
    """Add up what several seeds gave; the bound is that of all their cuts."""
    numbers = Counter[str]()
    for one in judged:
        numbers.update({name: value for name, value in asdict(one).items() if name != "bound"})
    values = {name: numbers[name] for name in Summary.__dataclass_fields__ if name != "bound"}
    bound = bounds.upper(values["losing"], values["cuts"]) if values["cuts"] else None
    return Summary(**values, bound=bound)


def problems(cell: Cell, total: Summary, found: dict[str, Any]) -> list[str]:
    """Return, in words, why a cell does not show what it should; nothing if it does."""
    if cell.expects == SAFE:
        return [*_problems_of_safe(cell, total), *_problems_of_rig(found)]
    if cell.expects == UNTRUSTED:
        return []
    if not total.cuts:
        return ["no cut had volatile data, so this control controls nothing"]
    if total.losing < SHARE * total.cuts:
        return [f"a control that loses commits in {total.losing} of {total.cuts} cuts; wanted at least half"]
    return []


def _problems_of_safe(cell: Cell, total: Summary) -> list[str]:
    found, needed = [], NEEDED_OF_ENGINE if cell.setting.engine else NEEDED
    if total.losing or total.damaged:
        found.append(
            f"{total.losing} of {total.cuts} cuts lose commits, {total.damaged} leave a damaged file system"
        )
    if total.lost_without_volatile:
        found.append(f"{total.lost_without_volatile} cuts lose something though nothing was volatile")
    if cell.setting.cache_is_off:
        if total.cuts:
            found.append(f"the cache is off, yet {total.cuts} cuts had volatile data")
        if total.without_volatile < needed:
            found.append(f"only {total.without_volatile} cuts; wanted {needed}: raise --cuts or --seeds")
    elif total.cuts < needed:
        found.append(f"only {total.cuts} cuts had volatile data; wanted {needed}: raise --cuts or --seeds")
    return found


def _problems_of_rig(found: dict[str, Any]) -> list[str]:
    wrong = [row["deviation"] for row in found["accounting"] if row["deviation"]]
    test, rig, soon = found.get("self_test"), found.get("rig"), found.get("early")
    if soon and soon["early"]:
        wrong.append(
            f"{len(soon['early'])} of {soon['acknowledged']} acknowledgements came before the disk had to keep their commit"
        )
    if test and test["losing"]:
        wrong.append(
            f"self-test of the device: {test['losing']} of {test['cuts']} commits do not survive a drop of all"
        )
    if rig and rig["needed_and_missed"]:
        wrong.append(f"{rig['needed_and_missed']} trials took what a commit rests upon, and no cut showed it")
    if rig and rig["trials"] and not rig["lie_caught"]:
        wrong.append("a disk that ignores two in a row of each 50 flushes, and FUA, is not caught")
    return wrong


def _unseen(image: Path, counts: Sequence[int], scratch: Path) -> Verdict:
    """Stand in for a judge where only what is volatile is asked for."""
    return Verdict(True, "", 0, 0)


def _split(segments: Sequence[Segment]) -> tuple[list[Segment], list[Segment]]:
    alone = [segment for segment in segments if segment.job.clients == 1]
    return alone, [segment for segment in segments if segment.job.clients > 1]


def judge_of(record: Record, segment: Segment) -> Judge:
    """Return the judge of one run: the file system's own check and the writer's files, or the engine's own server."""
    setting = record.setting
    if setting.engine:
        return Server(ENGINES[setting.engine], setting.file_system, segment.job)
    check, places = CHECKS[setting.file_system], PLACES[setting.file_system]
    return Files(check, segment.job, f"/{Path(segment.job.directory).name}", record.full, places)


def mix_of(setting: Setting) -> Sequence[Policy]:
    """Return what cuts of a setting do with volatile data, each as often as it stands there."""
    return WHOLE_PAGES if setting.engine and ENGINES[setting.engine].whole_pages else MIX


def _sweep(cell: Cell, record: Record, segment: Segment, cuts: int) -> Summary:
    run, judge, model = record.run(segment), judge_of(record, segment), Model(seed=segment.job.seed)
    mix, doubtful = mix_of(cell.setting), DOUBTFUL if cell.expects == SAFE else 0
    with started(run, judge, model) as start:
        if cell.setting.cache_is_off:
            chosen = cuts_of(run.events, segment, cuts, model.seed, mix)
            return summary(sweep(run, chosen, judge, model, True, start, doubtful))
        considered = cuts_of(run.events, segment, CONSIDERED * cuts, model.seed, mix)
        volatile = with_volatile(run, considered, start)
        found = summary(sweep(run, _spread(volatile, cuts), judge, model, False, start, doubtful))
    return replace(found, without_volatile=len(considered) - len(volatile))


def _spread(cuts: Sequence[Cut], count: int) -> list[Cut]:
    """Return so many of them, evenly from all, or all if they are fewer."""
    if len(cuts) <= count:
        return list(cuts)
    return [cuts[number * len(cuts) // count] for number in range(count)]


def _dropped_at_each_ack(run: Run) -> list[Cut]:
    return [Cut(event.sequence, DROP.name, 0) for event in run.events if event.kind is Kind.ACK]


def _self_test(record: Record, alone: Segment) -> dict[str, int]:
    """What one client has acknowledged survives a drop of all, at each acknowledgement: device model and path are honest."""
    run = record.run(alone)
    outcomes = list(sweep(run, _dropped_at_each_ack(run), judge_of(record, alone), look_at_all=True))
    losing = sum(outcome.lost or not outcome.clean for outcome in outcomes)
    return {
        "cuts": len(outcomes),
        "volatile": sum(outcome.volatile > 0 for outcome in outcomes),
        "losing": losing,
    }


def _trials(cell: Cell, record: Record, alone: Segment) -> dict[str, Any]:
    """Take one flush or FUA bit from the log, again and again, and let the disk lie.

    With the cache off neither matters; with neither of them there is nothing to take.
    """
    counted = accounting.of_log(record.events[alone.begin : alone.end])
    if cell.setting.cache_is_off or not counted.flushes + counted.fua:
        return {"edit": "", "trials": 0, "caught": 0, "needed_and_missed": 0, "lie_caught": ""}
    run, judge = record.run(alone), judge_of(record, alone)
    edit = "flush" if counted.flushes * 2 > sum(alone.result["commits"]) else "fua"
    with started(run, judge) as start:
        trials = [sensitivity(run, edit, seed, judge, start) for seed in range(TRIALS)]
    return {
        "edit": edit,
        "trials": len(trials),
        "caught": sum(trial.caught for trial in trials),
        "needed_and_missed": sum(trial.needed and not trial.caught for trial in trials),
        "lie_caught": next((lie for lie, in_a_row in LIARS.items() if _caught(run, judge, in_a_row)), ""),
    }


def _early(record: Record, runs: Sequence[Segment]) -> dict[str, Any]:
    """Look at each acknowledgement: had the disk to keep its commit by then?"""
    found = [
        [run.job.seed, *one] for run in runs for one in early(record.events[run.begin : run.end], run.job)
    ]
    return {"acknowledged": sum(sum(run.result["commits"]) for run in runs), "early": found}


def _caught(run: Run, judge: Judge, in_a_row: int) -> bool:
    """Whether a disk that ignores so many of each 50 flushes, and FUA, loses a commit of this run."""
    for before in (0, 1):
        liar = Model(faults=Faults(50, in_a_row, ignore_fua=True, flushes=before))
        if any(outcome.lost for outcome in sweep(run, _dropped_at_each_ack(run), judge, liar)):
            return True
    return False


def _accounted(cell: Cell, record: Record, segment: Segment) -> dict[str, Any]:
    """Set what the kernel sent for each commit, and what the disk got, beside the minimum."""
    commits = sum(segment.result["commits"])
    kernel = accounting.Counted(**segment.kernel)
    # a kernel that cannot be traced has no trace, not one of zeros
    trace = accounting.Counted(**segment.trace).per_commit(commits) if segment.trace else {}
    arrived = accounting.of_log(record.events[segment.begin : segment.end])
    least = accounting.minimum(cell.setting, cell.workload)
    safe = cell.expects == SAFE and segment.look_begin < segment.end
    return {
        "clients": segment.job.clients,
        "seed": segment.job.seed,
        "commits": commits,
        "noise": segment.job.noise,
        "kernel": kernel.per_commit(commits),
        "trace": trace,
        "log": arrived.per_commit(commits),
        "minimum": asdict(least),
        "deviation": _deviation(segment, kernel, least) if safe else "",
        "commit_seconds": segment.result["commit_seconds"],
    }


def _deviation(segment: Segment, kernel: accounting.Counted, least: accounting.Minimum) -> str:
    commits, seconds = sum(segment.result["commits"]), float(segment.result["seconds"])
    return accounting.deviation(kernel, commits, least, segment.job.clients, seconds)
