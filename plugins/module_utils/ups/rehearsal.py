# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a rehearsed shutdown, and the attestation that an administrator may sign. Pure."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..attestations import HEAD, written
from ..host import json_text
from ..host.printable import Lines, lines
from . import journal
from .journal import Entry

CLAIM = "ups_rehearsed"
KEPT, NOT_KEPT, UNKNOWN = "kept", "not_kept", "unknown"
#: The start of the shutdown: the monitor's own forced shutdown, or a person who pulls the UPS's plug.
MONITOR, HAND = "monitor", "hand"

#: What monitors say when they shut the host down: upsmon of NUT 2.7 and 2.8, apcupsd 3.14.
_MONITOR_SAYS = {
    "nut": re.compile(r"forced shutdown|power-fail shutdown|shutdown proceeding|User requested FSD", re.I),
    "apcupsd": re.compile(r"initiating system shutdown|doing shutdown|initiated shutdown|UPS shutdown", re.I),
}
#: What the guard says when barriers are on again and flushed, when they are not, and when it took them away.
_GUARD_TIGHT = re.compile(r"(?:tight|waiting) after [0-9.]+ s:|stopped(?: after [0-9.]+ s)?:")
_GUARD_FAILED = re.compile(r"failed(?: after [0-9.]+ s)?:")
_GUARD_LOOSE = re.compile(r".*: barriers are off$")
_GUARD = (_GUARD_TIGHT, _GUARD_FAILED, _GUARD_LOOSE)
#: systemd's words on processes that did not end by themselves.
_KILLED = re.compile(r"timed out|\bwith signal SIG(KILL|ABRT)\b|Failed to kill")
#: What kernels and fsck say of a file system that was not unmounted.
_UNCLEAN = re.compile(
    r"EXT[34]-fs \((?P<ext>[^)]+)\): (?:recovery complete|\d+ orphan)"
    r"|XFS \((?P<xfs>[^)]+)\): Starting recovery"
    r"|BTRFS[^(]*\(device (?P<btrfs>[^)]+)\)[^:]*: start tree-log replay"
    r"|(?P<fsck>\S+): (?:recovering journal|.*not cleanly unmounted)"
)
#: What an engine says in the journal at its start: that it has to recover, and that it need not. Of others their facts may
#: tell, from logs of their own.
RECOVERS = {
    "postgresql": ("was not properly shut down", "database system was interrupted"),
    "mariadb": ("Starting crash recovery", "Database was not shutdown normally"),
}
_NEED_NOT = {"postgresql": ("database system was shut down",), "mariadb": ("ready for connections",)}


class Engine(NamedTuple):
    """An engine that runs when the rehearsal begins: its service, '' if none is known, and seconds that a
    stop of it may take, as systemd has it."""

    engine: str
    name: str
    unit: str
    limit: str

    @property
    def label(self) -> str:
        """What it is called in reports."""
        return f"{self.engine} {self.name}"


class Job(NamedTuple):
    """A rehearsal: the boot that ends, when it began by the host's clock, the monitor and its service, how the
    shutdown is started, the engines, and the guard's service where that runs."""

    boot_id: str
    began: int
    monitor: str
    unit: str
    by: str
    engines: tuple[Engine, ...]
    guard: str


class Row(NamedTuple):
    """One step: what, when it began and ended, in seconds since the monitor spoke, and what is wrong with it."""

    step: str
    began: float | None
    ended: float | None
    fault: str


class Outcome(NamedTuple):
    """The outcome of a rehearsal. `recovered` and `up`: {engine's label: yes, no or unknown}."""

    verdict: str
    why: str
    rows: tuple[Row, ...]
    unclean: tuple[str, ...]
    recovered: dict[str, str]
    up: dict[str, str]
    seconds: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**self._asdict(), "rows": [row._asdict() for row in self.rows], "unclean": list(self.unclean)}


def dumps(job: Job) -> str:
    """Return a job as text that :func:`loads` takes."""
    return json.dumps(
        {**job._asdict(), "engines": [engine._asdict() for engine in job.engines]}, sort_keys=True
    )


def loads(text: str) -> Job:
    """Return the job that a text is. Raises ValueError."""
    try:
        found = json_text.loads(text)
        engines = tuple(
            Engine(**{name: str(engine[name]) for name in Engine._fields}) for engine in found["engines"]
        )
        words = {name: str(found[name]) for name in ("boot_id", "monitor", "unit", "by", "guard")}
        job = Job(began=int(found["began"]), engines=engines, **words)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError("job: expected what the state planned has returned") from error
    boot = re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", job.boot_id)
    names = [job.unit, *filter(None, (job.guard, *(engine.unit for engine in engines)))]
    if not boot or not all(re.fullmatch(r"[A-Za-z0-9:_.\\@-]+\.[a-z]+", name) for name in names):
        raise ValueError("job: expected what the state planned has returned")
    return job


def judge(
    job: Job,
    ended: Sequence[Entry],
    now: Sequence[Entry],
    up: Mapping[str, str],
    recovered_by_engine: Mapping[str, str],
) -> Outcome:
    """Return the outcome of a rehearsal.

    `ended`: entries of the boot that ended, from its beginning on; `now`: those of this boot, the kernel's and
    the engines'; `up`: {unit: whether systemd reports it as active}; `recovered_by_engine`: {engine's label: yes, no or
    unknown}, for engines whose own logs report whether they had to recover.
    """
    of_monitor = journal.entries_of(ended, job.unit)
    start = next((each.at for each in of_monitor if _MONITOR_SAYS[job.monitor].search(each.text)), None)
    stops = [_stop(ended, engine, start) for engine in job.engines]
    guard = [_guard(ended, job, start)] if job.guard else []
    rows = (_monitor(job, start), *guard, *stops, _end(ended, stops, start))
    unclean = tuple(dict.fromkeys(name for each in now for name in _unclean(each)))
    recovered = {
        engine.label: recovered_by_engine.get(engine.label) or _recovered(engine, now)
        for engine in job.engines
    }
    lasted = [row.ended for row in stops if row.ended is not None]
    seconds = max(lasted) if lasted and len(lasted) == len(stops) else None
    verdict, why = _verdict(job, _faults(rows, unclean, recovered), seconds)
    states = {engine.label: up.get(engine.unit, "unknown") for engine in job.engines}
    return Outcome(verdict, why, rows, unclean, recovered, states, seconds)


def _verdict(job: Job, faults: list[str], seconds: float | None) -> tuple[str, str]:
    """Return the verdict and its reason."""
    unknown = [
        f"{engine.label}: no service of systemd's, so nothing tells how it stopped"
        for engine in job.engines
        if not engine.unit
    ]
    verdict = NOT_KEPT if faults else UNKNOWN if unknown else KEPT
    why = "; ".join(faults or unknown) or (
        f"{job.monitor} shut the host down, every engine had stopped {seconds or 0:.1f} s later, and every file"
        " system was unmounted"
    )
    return verdict, why


def _monitor(job: Job, start: float | None) -> Row:
    step = f"{job.monitor} shuts the host down"
    return Row(step, None, None, _SILENT) if start is None else Row(step, 0.0, None, "")


def _faults(rows: Iterable[Row], unclean: Iterable[str], recovered: Mapping[str, str]) -> list[str]:
    """Return what went wrong, as far as it is known."""
    return [
        *(f"{row.step}: {row.fault}" for row in rows if row.fault),
        *(f"{name}: a file system that was not unmounted in time" for name in unclean),
        *(f"{label}: had to recover at its start" for label, word in recovered.items() if word == "yes"),
    ]


def attestation(job: Job, outcome: Outcome, by: str, today: str) -> Lines:
    """Return the YAML for the host's variables. `today` is an ISO 8601 date. Raises ValueError."""
    if not by.strip():
        raise ValueError("by: observed nothing; expected who attests the rehearsal")
    try:
        begin = datetime.date.fromisoformat(today)
    except ValueError:
        raise ValueError(f"today: observed {today!r}; expected YYYY-MM-DD") from None
    how = "its forced shutdown" if job.by == MONITOR else "the UPS on battery"
    reason = (
        f"shut down by {job.monitor} ({how}) on {today}: {', '.join(engine.label for engine in job.engines)} stopped"
        f" cleanly within {outcome.seconds or 0:.1f} s, every file system was unmounted{_of_recovery(outcome)}"
    )
    return lines([HEAD, *written(CLAIM, by, reason, begin)])


def _of_recovery(outcome: Outcome) -> str:
    """Return what is known of recovery, for people who sign it: not more."""
    unknown = [label for label, word in outcome.recovered.items() if word == UNKNOWN]
    return (
        f"; whether {', '.join(unknown)} had to recover is unknown" if unknown else ", nothing had to recover"
    )


def table(outcome: Outcome) -> Lines:
    """Return all of it as text."""
    rows = [
        f"test-shutdown: {outcome.verdict}",
        f"  {outcome.why}",
        f"  {'FROM':>8}  {'TO':>8}  STEP (seconds)",
    ]
    for row in outcome.rows:
        fault = f": {row.fault}" if row.fault else ""
        rows.append(f"  {_seconds(row.began):>8}  {_seconds(row.ended):>8}  {row.step}{fault}")
    rows += [f"  not unmounted: {name}" for name in outcome.unclean]
    for label, word in outcome.recovered.items():
        rows.append(f"  {label}: had to recover: {word}; is up again: {outcome.up[label]}")
    return lines(rows)


_SILENT = "nothing in its journal says that it did; something else ended this boot, or its messages were lost"


def _stop(ended: Sequence[Entry], engine: Engine, start: float | None) -> Row:
    step = f"{engine.label} stops"
    if not engine.unit:
        return Row(step, None, None, "")
    began = journal.of(ended, engine.unit, journal.STOPPING)
    stopped = journal.of(ended, engine.unit, journal.STOPPED)
    if not began or not stopped or stopped[-1].at < began[-1].at:
        outcome = (
            "systemd began to stop it, and does not say that it had stopped"
            if began
            else "systemd does not say that it stopped it"
        )
        return Row(
            step,
            _since(start, began[-1].at if began else None),
            None,
            f"{outcome}: the power may have gone first",
        )
    fault = ""
    for entry in journal.of(ended, engine.unit):
        if entry.at >= began[-1].at and (_KILLED.search(entry.text) or entry.id == journal.FAILURE_RESULT):
            fault = f"did not stop cleanly without a kill ({entry.text or entry.result})"
            break
    if not fault and start is not None and began[-1].at < start:
        fault = "began to stop before the monitor spoke"
    return Row(step, _since(start, began[-1].at), _since(start, stopped[-1].at), fault)


def _guard(ended: Sequence[Entry], job: Job, start: float | None) -> Row:
    """Return the row of the guard: the last that it says before an engine stops must be that all is tight."""
    step = "the guard has barriers on, and flushed"
    began = [each.at for engine in job.engines for each in journal.of(ended, engine.unit, journal.STOPPING)]
    first = min(began, default=math.inf)
    last = None
    for each in journal.entries_of(ended, job.guard):
        if each.at <= first and any(form.match(each.text) for form in _GUARD):
            last = each
    if last is None or _GUARD_LOOSE.match(last.text):
        return Row(step, None, None, "it does not say so before an engine begins to stop")
    at = _since(start, last.at)
    return Row(step, at, at, last.text if _GUARD_FAILED.match(last.text) else "")


def _end(ended: Sequence[Entry], stops: Sequence[Row], start: float | None) -> Row:
    last = _since(start, ended[-1].at if ended else None)
    stopped = [row.ended for row in stops if row.ended is not None]
    fault = ""
    if last is None or (stopped and last < max(stopped)):
        fault = "its journal ends before that"
    return Row("the journal of that boot ends", last, None, fault)


def _unclean(entry: Entry) -> list[str]:
    found = _UNCLEAN.search(entry.text)
    return [name for name in found.groups() if name] if found else []


def _recovered(engine: Engine, now: Sequence[Entry]) -> str:
    texts = [each.text for each in journal.entries_of(now, engine.unit)] if engine.unit else []
    for word, phrases in (("yes", RECOVERS), ("no", _NEED_NOT)):
        if any(phrase in text for text in texts for phrase in phrases.get(engine.engine, ())):
            return word
    return "unknown"


def _since(start: float | None, at: float | None) -> float | None:
    return None if start is None or at is None else round(at - start, 3)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
