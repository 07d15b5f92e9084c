# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a host: the result of each change, and the report as text. Pure."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from ...attestations import HEAD, HOST
from ...catalog import LAYERS, is_engine
from ...facts.ups import UpsFacts
from ...host.printable import Lines, lines
from ...host.printable import name as quoted
from ...rows import VERDICTS
from ..assess import plan
from ..report_types import (
    Change,
    Outcome,
    PowerSection,
    Rating,
    ReasonEntry,
    Recommendation,
    Report,
    RequirementEntry,
    Row,
)
from . import checklist

#: A report as made in this run, or as read from a file.
AnyReport = TypeVar("AnyReport", bound=Mapping[str, Any])

#: Attestations that are written out for one host; its file has all.
_WRITTEN = 5

#: State of a change -> the heading of its list.
_STATES = {
    "foreseen": "would change",
    "done": "changed",
    "failed": "could not change",
    "undone": "restored by the rollback timer",
    "not_begun": "not changed: the run ended before",
    "unknown": "may have changed: not observed after the run",
}


def with_outcomes(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report with the result of each change in `state`.

    `begun` of the report: the started steps, each its phase and layer; `undone`: whether the rollback timer of this
    run has restored the host. The result comes from the facts after the run, not from the steps.
    """
    started = {tuple(step) for step in report.get("begun", ())}
    after = {(row["layer"], row["target"], row["setting"]): row for row in report["settings"]}
    changes = [{**change, "state": _state(change, report, started, after)} for change in report["changes"]]
    rest = {key: value for key, value in report.items() if key not in ("begun", "undone")}
    return {**rest, "changes": changes}


def _state(
    change: Change,
    report: Mapping[str, Any],
    started: set[tuple[str, ...]],
    after: dict[tuple[str, str, str], Row],
) -> str:
    if report["looked_only"]:
        return "foreseen"
    if (change["phase"], change["layer"]) not in started:
        return "not_begun"
    if not report["settings"] and report["error"]:
        return "unknown"
    row = after.get((change["layer"], change["target"], change["setting"]))
    if row is None and any(_has_owner(change, each) for each in after.values()):
        return "failed"
    if row is None and not _is_observed(change, report):
        return "unknown"
    # A missing row requires nothing more: a pending flush is done, or an engine is stopped.
    held = row is None or row["verdict"] in ("ok", "pending", "tightened")
    if row and change["persisted"] is None:
        # The persisted value is not part of this change.
        held = row["running"] == change["wanted"]
    if held:
        return "done"
    return "undone" if report.get("undone") and LAYERS[change["layer"]].undone else "failed"


def _has_owner(change: Change, row: Row) -> bool:
    """Return whether a row shows that a change of a file's owner is still necessary."""
    persisted = row.get("evidence", {}).get("persisted") or {}
    about = (row["layer"], row["target"], persisted.get("owner_of"))
    return about == (change["layer"], change["target"], change["setting"])


def _is_observed(change: Change, report: Mapping[str, Any]) -> bool:
    """Return whether the target of a change without a row was observed after the run: a disk or an engine can be gone."""
    if is_engine(change["layer"]):
        return any(each["engine"] == change["layer"] for each in report["engines"])
    if change["layer"] in ("mount_options", "write_cache", "io_scheduler"):
        return any(row["target"] == change["target"] for row in report["settings"])
    return True


def natural(name: str) -> tuple[Any, ...]:
    """Return a key that sorts names naturally: db2 before db10."""
    return tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name)
    )


def worst_first(reports: Iterable[AnyReport]) -> list[AnyReport]:
    """Return the reports, those that need attention first."""
    return sorted(
        reports,
        key=lambda report: (VERDICTS.index(report["verdict"]), natural(report["host"]), report["host"]),
    )


def takes_place(change: Outcome) -> bool:
    """Return whether a run would make a change, or has made it."""
    return change["state"] in ("foreseen", "done")


def details(reports: Iterable[Mapping[str, Any]]) -> Lines:
    """Return each host's verdict with all its reasons, changes and notes, worst first."""
    return lines(row for report in worst_first(cast(Iterable[Report], reports)) for row in _details(report))


def _details(report: Report) -> list[str]:
    found = _listed("failed", filter(None, [report["error"]]))
    for state, heading in _STATES.items():
        changes = (change for change in report["changes"] if change["state"] == state)
        found += _listed(heading, map(change_line, changes))
    if report["reasons"]:
        found += ["  why:", *(row for each in report["reasons"] for row in _reason(each))]
    found += _to_attest(report)
    found += _listed("commits in six questions", checklist.lines_of(report.get("checklist")))
    if report["power"] and _shows_power(report):
        found += _listed("power", power_lines(report["power"]))
    found += _listed("note", [*report["warnings"], *report["exposed"]])
    found += _best(report["recommendation"])
    for name, rating in report["ratings"].items():
        found += [f"  {name}: {rating['verdict']}", *(f"    - {what}" for what in _takes(rating))]
    was = f" (was {report['was']})" if report["was"] != report["verdict"] else ""
    profile = f", profile {report['profile']}" if report["profile"] else ""
    return [f"{report['host']}: {report['verdict']}{was}{profile}", *found, ""]


def _listed(heading: str, rows: Iterable[str]) -> list[str]:
    """Return rows below a heading, [] without rows."""
    found = [f"  - {row}" for row in rows]
    return [f"  {heading}:", *found] if found else []


def _best(best: Recommendation | None) -> list[str]:
    """Return the profile that fits best, with the variables that pin it, [] without one."""
    if not best:
        return []
    return [
        *(f"  recommended: {best['profile']}", *(f"  - {why}" for why in best["why"])),
        *(f"  - {name} gives the same verdict" for name in best["also"]),
        *("  group_vars next to the inventory:", *(f"    {row}" for row in best["group_vars"])),
    ]


def _reason(each: ReasonEntry) -> list[str]:
    """Return a reason, with its fix and with the id and target for `durable_accept`."""
    do = [f"    fix: {each['fix']}"] if each["fix"] else []
    targets = ", ".join(map(quoted, each["targets"]))
    return [f"  - {each['reason']}", *do, f"    id: {each['id']}, of {targets or HOST}"]


def _to_attest(report: Report) -> list[str]:
    """Return the attestations that a host needs, each once, as YAML to copy.

    Those of the pinned or recommended profile come first. Others, under their profile's name, complete that list.
    """
    accepted = {(each["finding"], each["target"]) for each in report["accepted"]}
    best = report["recommendation"]["profile"] if report["recommendation"] else None
    first = report["profile"] or best
    written: dict[tuple[str, ...], None] = {}
    found: list[str] = []
    number = 0
    for name, needs in _needs(report, first):
        blocks = dict.fromkeys(
            tuple(need["attest"])
            for need in needs
            if need["attest"] and (need["id"], need["target"]) not in accepted
        )
        new = [block for block in blocks if block not in written]
        written.update(dict.fromkeys(new))
        shown = new[: _WRITTEN - number]
        number += len(shown)
        if shown:
            profile = "" if name == report["profile"] else f" for {name}{' also' * bool(found)},"
            head = [] if found else [f"    {HEAD}"]
            rows = [f"    {row}" for block in shown for row in block]
            found += [f"  to attest{profile} after checking (by, reason):", *head, *rows]
    if len(written) > number:
        file = urllib.parse.quote(report["host"], safe="")
        found.append(f"    # and {len(written) - number} more, in {file}.json")
    return found


def _needs(report: Report, first: str | None) -> list[tuple[str | None, Sequence[RequirementEntry]]]:
    """Return the requirements that are not met by profile, the pinned or recommended one first."""
    unmet = {name: rating["unmet"] for name, rating in report["ratings"].items()}
    own = report["requirements"] if report["profile"] else unmet.get(first or "", [])
    return [(first, own), *((name, needs) for name, needs in unmet.items() if name != first)]


def _shows_power(report: Report) -> bool:
    """Return whether a UPS matters to a host under its own profile."""
    power = report["power"]
    is_managed = any(row["layer"] in ("power", "power_guard") for row in report["settings"])
    return power is not None and (is_managed or bool(power["guard"]["lease"]))


def power_lines(power: PowerSection) -> list[str]:
    """Return the state of the UPS, the budgets and the guard, one per line."""
    found = [_ups(ups) for ups in power["upses"]]
    found += [f"{name}: {b['state']}: {b['arithmetic']}" for name, b in power["budget"].items()]
    guard = power["guard"]
    since = f" since {guard['since']}" if guard["since"] else ""
    found.append(f"guard: {guard['state']}{since}: {guard['reason'] or 'no reason was reported'}")
    return found + [f"{mount['target']}: barrier {mount['barrier']}" for mount in guard["mounts"]]


def _ups(ups: UpsFacts) -> str:
    status = " ".join(ups["status"]) or "no status"
    measures = (("charge", "charge {:g} %"), ("runtime", "{:g} s left"), ("runtime_low", "{:g} s when low"))
    known = [
        text.format(value) for name, text in measures if isinstance(value := ups.get(name), (int, float))
    ]
    return ", ".join([f"{ups['system']} ({ups['driver'] or 'driver unknown'}): {status}", *known])


def _takes(rating: Rating) -> list[str]:
    """Return what a host needs for a profile: open reasons and changes."""
    settings: dict[str, list[str]] = {}
    for change in rating["changes"]:
        target = plan.named(change["layer"], change["target"])
        at_boot = " (at boot)" if change["running"] == change["wanted"] else ""
        settings.setdefault(target, []).append(f"{change['setting']} {change['wanted']}{at_boot}")
    return [*rating["why"], *(f"set {target}: {', '.join(s)}" for target, s in settings.items())]


def change_line(change: Change) -> str:
    """Return one change in one line, with the values now and at boot that differ from the wanted one."""
    wanted = change["wanted"]
    observed = (("now", change["running"]), ("at boot", change["persisted"]))
    parts = [
        f"{when} {value} -> {wanted}" for when, value in observed if value not in (wanted, "stopped", None)
    ]
    target = plan.named(change["layer"], change["target"])
    return f"{target} {change['setting']}: {', '.join(parts)}"
