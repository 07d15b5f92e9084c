# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy of the collection: from facts and a profile to verdict, rows, requirements and plan.

Pure: no clock, no files, no Ansible; runs on a host too.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ...engines import causes as engine_causes
from ...facts.engines import EnginesFacts
from ...facts.storage import MountFacts, StorageFacts
from ...facts.ups import PowerFacts
from ...host.observation import UNKNOWN
from ...host.printable import message, quote
from ...profiles import (
    BadInput,
    Refusal,
    gathered,
)
from ...rows import VERDICTS, Reason
from .. import kinds
from ..assess import case as cases
from ..assess import (
    costs,
    engines,
    facts_check,
    guard,
    plan,
    ups,
    verdicts,
    warnings,
)
from ..assess.case import Case
from ..assess.compare import find
from ..assess.facts_check import NO_ENGINES
from ..assess.found import Findings
from ..assess.ratings import NOW, promising_of, rate
from ..assess.ratings import now as found_without_profile
from ..expect import chosen_layers, declared, waivers
from ..expect.guarantees import Mount
from ..expect.inputs import Inputs
from ..report_types import MountEntry, Rating, Recommendation
from . import checklist, recommendation, stack

#: Inputs that are used or left out together if inputs are refused.
_LEFT_OUT = (("attestations",), ("mounts", "databases", "mount_profiles"), ("ignore",), ("ups",))
#: Version of the report's JSON.
SCHEMA = 2


def assess(
    inputs: Inputs,
    storage: StorageFacts,
    now: str,
    engines: EnginesFacts | None = None,
    power: PowerFacts | None = None,
) -> dict[str, Any]:
    """Return the assessment of one host: the report's fields, and `plan`.

    `storage` is `durable_storage`; `engines` is `durable_engines`, `power` is `durable_power`, each None
    if not collected; `now` is the controller's UTC time in ISO 8601. Never raises for input of a user or a host:
    the verdict is then `blocked` (bad input, nothing may change) or `unknown`.
    """
    try:
        facts_check.check(storage, engines, power, now)
    except ValueError as error:
        return _empty(inputs, UNKNOWN, [kinds.FACTS.found(cause=str(error))])
    storage = facts_check.explained(storage)
    found_engines = engine_causes.explained(engines) if engines else NO_ENGINES
    power = ups.explained(power) if power else None
    try:
        return _assess(inputs, storage, found_engines, power, now[:10])
    except BadInput as error:
        found = _known_anyway(inputs, storage, found_engines, power, now[:10])
        refused = [kinds.INPUT.found(cause=each.problem, cure=each.fix) for each in error.errors]
        exposed = [each for each in found if each.verdict == "at_risk"]
        others = [each for each in found if each.verdict != "at_risk"]
        return _empty(inputs, "at_risk" if exposed else "blocked", [*exposed, *refused, *others])


def _known_anyway(
    inputs: Inputs,
    storage: StorageFacts,
    found_engines: EnginesFacts,
    power: PowerFacts | None,
    today: str,
) -> list[Reason]:
    """Return the current risks of a host whose inputs are refused, and its paths that are on no mount.

    Refused inputs are left out: a profile changes no risk, and without mounts those of the engines count.
    """
    # Waivers are ignored: this report does not name their author.
    given = inputs._replace(profile=None, own={}, overrides=None, layers=None, accept=None)
    left_out: dict[str, Any] = dict.fromkeys(itertools.chain(*_LEFT_OUT))
    given = given._replace(**left_out)
    unreadable = {name for name, _error in inputs.unreadable}
    for names in _LEFT_OUT:
        if not unreadable.isdisjoint(f"durable_{name}" for name in names):
            continue
        as_given: dict[str, Any] = {name: getattr(inputs, name) for name in names}
        tried = given._replace(**as_given)
        with contextlib.suppress(BadInput):
            _case(tried, storage, found_engines, power, today)
            given = tried
    try:
        case = _case(given, storage, found_engines, power, today)
        reasons, _found = found_without_profile(case, "correct the input")
    except BadInput:
        return []
    return [*(each for each in reasons if each.verdict == "at_risk"), *case.lost]


def unobserved(inputs: Inputs, why: Reason) -> dict[str, Any]:
    """Return the assessment of a host that is unknown for one reason."""
    return _empty(inputs, why.verdict, [why])


def _assess(
    inputs: Inputs,
    storage: StorageFacts,
    found_engines: EnginesFacts,
    power: PowerFacts | None,
    today: str,
) -> dict[str, Any]:
    _check, case, chosen = gathered(
        (
            inputs.check,
            functools.partial(_case, inputs, storage, found_engines, power, today),
            inputs.chosen,
        )
    )
    storage = case.storage
    listed: dict[str, Any] = {
        "engines": [engines.as_report(each, storage) for each in case.standings],
        "ignored": [each.as_dict() for each in case.declared.ignoring.entries],
        "mounts": _mounts(case.mounts, (), case.temporary),
    }
    attested = [each._asdict() for each in case.declared.attestations]
    if inputs.rate:
        listed["checklist"] = checklist.of(case, stack.of(case.mounts, storage))
    ratings: dict[str, Rating] = {}
    if inputs.rate or inputs.profile is None:
        ratings = rate(case)
    if inputs.profile is None:
        risks_now, found_now = found_without_profile(case)
        reasons = [*risks_now, kinds.UNPINNED.found()]
        if not ratings:
            reasons.append(kinds.UNRATED.found())
        if storage["leased"] != "no":
            reasons.append(kinds.LEASED.found())
        beside = {
            "ratings": ratings,
            "recommendation": _recommendation(case, ratings),
            "exposed": list(found_now.exposed) if found_now else [],
            "accepted": _accepted(found_now, NOW),
            "power": ups.section(power),
            "stack": stack.of(case.mounts, storage),
            "attestations": attested,
            **noted([*_of_waivers(case, found_now), *warnings.unmatched(case), *warnings.not_judged(case)]),
        }
        return {
            **_empty(inputs, risks_now[0].verdict if risks_now else "not_managed", reasons),
            **listed,
            **beside,
        }
    profile, pinned = chosen
    if storage["fstab_error"]:
        error = quote(storage["fstab_error"])
        raise BadInput(
            Refusal(f"no plan: /etc/fstab cannot be read: {error}", "correct that file, then run again")
        )
    if case.is_empty:
        listed_only = (each._replace(verdict="not_applicable") for each in warnings.not_judged(case))
        nothing = {
            **_empty(inputs, "not_applicable", [kinds.NO_DATABASE.found(), *listed_only]),
            "attestations": attested,
            **noted([*waivers.notes(case.declared.waivers, (), (), True), *warnings.unmatched(case)]),
            **listed,
            "ratings": ratings,
        }
        return _withdrawn(nothing, storage, power, case.declared.layers)
    found = find(case, profile, pinned)
    listed["mounts"] = _mounts((), found.mounts, case.temporary)
    beside = {"ratings": ratings, "recommendation": _recommendation(case, ratings)}
    return {**_summary(case, found), **listed, **beside}


def _case(
    inputs: Inputs,
    storage: StorageFacts,
    found_engines: EnginesFacts,
    power: PowerFacts | None,
    today: str,
) -> Case:
    """Return the host for its assessment. Raises BadInput."""
    return cases.of(declared.read(inputs, today), storage, found_engines, power, today)


def _recommendation(case: Case, ratings: dict[str, Rating]) -> Recommendation | None:
    """Return the profile that fits best, None without ratings or a fitting one."""
    if not ratings:
        return None
    inputs = case.declared.inputs
    found = [] if inputs.mounts else [mount["target"] for mount in case.mounts if mount["fstype"] != "raw"]
    promising = promising_of(inputs)
    priced = costs.of(promising.values(), inputs.benchmark, case.storage, case.today)
    disks = {name for mount in case.mounts for name in mount["disks_seen"]}
    is_virtual = any(disk["kind"] == "virtual" for disk in case.storage["disks"] if disk["name"] in disks)
    return recommendation.of(ratings, list(promising), found, *priced, is_virtual)


def _withdrawn(
    nothing: dict[str, Any], storage: StorageFacts, power: PowerFacts | None, layers: frozenset[str]
) -> dict[str, Any]:
    """Return an assessment without rows, except that of a guard's lease, which is revoked."""
    row = guard.lease(None, power, storage["leased"])
    rows = chosen_layers.leave_out([row] if row else [], layers)[0]
    steps = plan.build(rows, False)
    reasons = [verdicts.reason(row, nothing["verdict"]) for row in rows]
    return {
        **nothing,
        "settings": [row.as_dict() for row in rows],
        "plan": steps,
        "steps": plan.steps(steps, rows, (), None),
        "changes": plan.changes(steps, rows),
        "files": plan.files(steps, rows, [], power),
        **{name: [*nothing[name], *found] for name, found in _why(reasons).items()},
        "power": ups.section(power),
    }


def _mounts(
    mounts: Iterable[MountFacts], held: Iterable[Mount], temporary: Iterable[tuple[str, str]]
) -> list[MountEntry]:
    """Return the mounts for the report: those without a profile, those with one, and those with temporary files."""
    rows = [
        *((mount["target"], None, "yes", "") for mount in mounts),
        *(
            (
                each.facts["target"],
                each.profile.name,
                "accepted_loss" if each.may_lose else "yes",
                each.may_lose,
            )
            for each in held
        ),
        *((target, None, "temporary", why) for target, why in temporary),
    ]
    return [
        {"target": target, "profile": profile, "judged": judged, "reason": reason}
        for target, profile, judged, reason in rows
    ]


def _summary(case: Case, found: Findings) -> dict[str, Any]:
    steps = plan.build(found.planned, True)
    lease = found.lease.as_dict() if found.lease else None
    return {
        **_empty(case.declared.inputs, verdicts.of(found), verdicts.reasons(found)),
        "settings": [row.as_dict() for row in found.rows],
        "requirements": [need.as_dict() for need in found.needed],
        "pending": [verdicts.pending(row) for row in found.rows if verdicts.will_wait(row, found)],
        "attestations": [each._asdict() for each in case.declared.attestations],
        "plan": steps,
        "changes": plan.changes(steps, found.planned),
        "files": plan.files(steps, found.planned, case.engines["engines"], case.power),
        **noted([*_of_waivers(case, found), *found.warnings]),
        "accepted": _accepted(found),
        "exposed": list(found.exposed),
        "stack": stack.of(case.mounts, case.storage),
        "power": ups.section(case.power),
        "lease": lease,
        "steps": plan.steps(steps, found.planned, case.declared.inputs.allow, lease),
    }


def _of_waivers(case: Case, found: Findings | None) -> Iterator[Reason]:
    """Yield the accepted findings of a host, and entries of `durable_accept` without effect; `found`: None without mounts."""
    accepted = verdicts.accepted_by(found) if found else []
    every = [each for each in verdicts.every(found) if found.waivers.of(each) is None] if found else []
    is_whole = found is not None and case.declared.inputs.profile is not None
    return waivers.notes(case.declared.waivers, accepted, every, is_whole)


def _accepted(found: Findings | None, verdicts_of: Collection[str] = VERDICTS) -> list[dict[str, str]]:
    accepted = verdicts.accepted_by(found) if found else []
    return [each.as_dict() for each in accepted if each.found.verdict in verdicts_of]


def _why(reasons: Iterable[Reason]) -> dict[str, list[Any]]:
    """Return reasons for the report: each as one text, and by its parts."""
    every = list(reasons)
    return {
        "why": ["; ".join(message(part) for part in (each.reason, each.fix) if part) for each in every],
        "reasons": [each.as_dict() for each in every],
    }


def noted(notes: Iterable[Reason]) -> dict[str, list[Any]]:
    """Return notes for the report: each as one text, and by its parts."""
    found = _why(notes)
    return {"warnings": found["why"], "notes": found["reasons"]}


def _empty(inputs: Inputs, verdict: str, reasons: Iterable[Reason]) -> dict[str, Any]:
    """Return an assessment without rows, with the fields of every report."""
    return {
        "schema": SCHEMA,
        "profile": str(inputs.profile) if inputs.profile is not None else None,
        "verdict": verdict,
        "fails": inputs.fails(verdict),
        **_why(reasons),
        "settings": [],
        "requirements": [],
        "pending": [],
        "attestations": [],
        "files": [],
        "plan": plan.build([], False),
        "changes": [],
        "ratings": {},
        "recommendation": None,
        **noted(()),
        "accepted": [],
        "exposed": [],
        "engines": [],
        "ignored": [],
        "mounts": [],
        "stack": {"mounts": [], "disks": []},
        "power": None,
        "lease": None,
        "checklist": None,
        "steps": [],
    }
