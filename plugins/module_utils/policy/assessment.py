# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts and a profile in; verdict, rows, requirements and plan out.

The policy of the collection. Pure: no clock, no files, no Ansible; runs on a host as well.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import shlex
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from .. import attestations
from ..engines.placement import Placement, place
from ..host.observation import UNKNOWN
from ..host.printable import message
from ..host.printable import name as quoted
from ..profiles import BadInput, Profile, choose, gathered, known
from ..rows import Reason, Setting
from ..storage import findings, flush_passthrough
from . import (
    chosen_layers,
    counted,
    engines,
    facts_check,
    guard,
    kinds,
    managed,
    measured,
    notes,
    others,
    plan,
    prices,
    promises,
    recommendation,
    requirements,
    risks,
    scheduling,
    settings,
    stack,
    unit_mounts,
    ups,
    ups_inputs,
    verdicts,
    waivers,
)
from .case import NO_ENGINES, Case
from .found import Findings
from .guarded import Guarded, guarded_by
from .inputs import Inputs
from .requirements import Requirement

#: Inputs that are used or left out together where inputs are refused.
_LEFT_OUT = (("attestations",), ("mounts", "databases", "mount_profiles"), ("ignore",), ("ups",))
#: Verdicts of what is found of a host without a profile.
_NOW = ("at_risk", UNKNOWN)
#: Version of the report's JSON.
SCHEMA = 2
#: What is to be done about what a run mends.
_RUN = "run harden-db"


def assess(
    inputs: Inputs,
    storage: dict[str, Any],
    now: str,
    engines: dict[str, Any] | None = None,
    power: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the assessment of one host: the report's fields, and `plan`.

    `storage` is `durable_storage`; `engines` is `durable_engines`, `power` is `durable_power`, each None
    where nobody asked for it; `now` is the controller's UTC time in ISO 8601. Never raises for what a user
    wrote or a host said: those come back as verdict `blocked` (bad input, nothing may change) or `unknown`.
    """
    try:
        facts_check.check(storage, engines, power, now)
    except ValueError as error:
        return _empty(inputs, UNKNOWN, [kinds.FACTS.found(cause=str(error))])
    try:
        return _assess(inputs, storage, engines or NO_ENGINES, power, now[:10])
    except BadInput as error:
        found = _known_anyway(inputs, storage, engines or NO_ENGINES, power, now[:10])
        refused = [kinds.INPUT.found(cause=each) for each in error.errors]
        exposed = [each for each in found if each.verdict == "at_risk"]
        others = [each for each in found if each.verdict != "at_risk"]
        return _empty(inputs, "at_risk" if exposed else "blocked", [*exposed, *refused, *others])


def _known_anyway(
    inputs: Inputs,
    storage: dict[str, Any],
    found_engines: dict[str, Any],
    power: dict[str, Any] | None,
    today: str,
) -> list[Reason]:
    """Return how commits can be lost now on a host whose inputs are refused, and which of its paths are on no mount.

    What is refused is left out: a profile changes no risk, and without mounts those of the engines count.
    """
    # What is accepted is reported too: this report has no place that names who accepted it.
    given = inputs._replace(profile=None, own={}, overrides=None, layers=None, accept=None)
    left_out: dict[str, Any] = dict.fromkeys(itertools.chain(*_LEFT_OUT))
    given = given._replace(**left_out)
    for names in _LEFT_OUT:
        as_given: dict[str, Any] = {name: getattr(inputs, name) for name in names}
        tried = given._replace(**as_given)
        with contextlib.suppress(BadInput):
            _case(tried, storage, found_engines, power, today)
            given = tried
    try:
        case = _case(given, storage, found_engines, power, today)
        told, _found = _now(case, "correct the input")
    except BadInput:
        return []
    return [*(each for each in told if each.verdict == "at_risk"), *case.lost]


def unobserved(inputs: Inputs, why: Reason) -> dict[str, Any]:
    """Return the assessment of a host of which nothing can be said but why."""
    return _empty(inputs, why.verdict, [why])


def _assess(
    inputs: Inputs,
    storage: dict[str, Any],
    found_engines: dict[str, Any],
    power: dict[str, Any] | None,
    today: str,
) -> dict[str, Any]:
    _check, case, chosen = gathered(
        (
            inputs.check,
            functools.partial(_case, inputs, storage, found_engines, power, today),
            functools.partial(_chosen, inputs),
        )
    )
    storage, mounts = case.storage, case.mounts
    listed = {
        "engines": [engines.told(each, storage) for each in case.standings],
        "ignored": [each.as_dict() for each in case.ignoring.entries],
        "mounts": _mounts(case.mounts, case.temporary),
    }
    said = [word._asdict() for word in case.words]
    ratings = {}
    if inputs.rate or inputs.profile is None:
        ratings = rate(case)
    if inputs.profile is None:
        told, now = _now(case)
        reasons = [*told, kinds.UNPINNED.found()]
        if not ratings:
            reasons.append(kinds.UNRATED.found())
        if storage["leased"] != "no":
            reasons.append(kinds.LEASED.found())
        beside = {
            "ratings": ratings,
            "recommendation": _recommended(case, ratings),
            "exposed": list(now.exposed) if now else [],
            "accepted": _accepted(now, _NOW),
            "power": ups.section(power),
            "stack": stack.of(case.mounts, storage),
            "attestations": said,
            **noted([*_of_waivers(case, now), *notes.unmatched(case), *notes.not_judged(case)]),
        }
        return {**_empty(inputs, told[0].verdict if told else "not_managed", reasons), **listed, **beside}
    profile, pinned = chosen
    if storage["fstab_error"]:
        raise BadInput(storage["fstab_error"])
    if not mounts and not case.lost and not any(case.engines[kind] for kind in ("engines", "unattributed")):
        listed_only = (each._replace(verdict="not_applicable") for each in notes.not_judged(case))
        nothing = {
            **_empty(inputs, "not_applicable", [kinds.NO_DATABASE.found(), *listed_only]),
            "attestations": said,
            **noted(notes.unmatched(case)),
            **listed,
            "ratings": ratings,
        }
        return _withdrawn(nothing, storage, power, case.layers)
    found = _find(case, profile, pinned)
    listed["mounts"] = _mounts(found.mounts, case.temporary)
    beside = {"ratings": ratings, "recommendation": _recommended(case, ratings)}
    return {**_summary(case, found), **listed, **beside}


def _case(
    inputs: Inputs,
    storage: dict[str, Any],
    found_engines: dict[str, Any],
    power: dict[str, Any] | None,
    today: str,
) -> Case:
    """Return the host as it is judged. Raises BadInput."""
    (words, expired), asked, ignoring, entries, layers, accepted, *_paths = gathered(
        (
            functools.partial(attestations.read, inputs.attestations or {}, today),
            functools.partial(ups_inputs.read, inputs.ups),
            functools.partial(counted.read, inputs.ignore, inputs.databases, today),
            functools.partial(promises.read, inputs.mount_profiles, inputs.shipped, inputs.own),
            functools.partial(chosen_layers.read, inputs.layers),
            functools.partial(waivers.read, inputs.accept, inputs.accept_data_loss is True, today),
            functools.partial(managed.database_paths, inputs.databases),
            functools.partial(
                managed.paths_in, "durable_mounts", [] if inputs.mounts is None else inputs.mounts
            ),
        )
    )
    storage = {**storage, "mounts": requirements.vouched(storage["mounts"], words)}
    standings = counted.standings(found_engines, inputs.databases, ignoring.entries)
    judged = counted.judged(standings)
    lost: list[Reason] = []
    mounts = managed.mounts_of(inputs.mounts, inputs.databases, storage, judged, entries, lost)
    placed = tuple((each, place(each, storage)) for each in judged)
    return Case(
        inputs,
        storage,
        found_engines if found_engines is NO_ENGINES else {**found_engines, "engines": judged},
        power,
        asked,
        words,
        expired,
        mounts,
        today,
        entries,
        placed,
        _temporary(placed, mounts),
        tuple(standings),
        ignoring,
        layers,
        tuple(lost),
        accepted,
    )


def _chosen(inputs: Inputs) -> tuple[Profile, Profile] | None:
    """Return the pinned profile, with its overrides and without, None where none is pinned. Raises BadInput."""
    if inputs.profile is None:
        return None
    return choose(inputs.profile, inputs.shipped, inputs.own, inputs.overrides)


def rate(case: Case) -> dict[str, Any]:
    """Return {profile: what it would take} for every known profile, pinned or not."""
    inputs = case.inputs
    every = chosen_layers.read(None)
    case = case._replace(
        mounts=case.mounts or managed.everything(case.storage),
        layers=every,
        entries=promises.without_overrides(case.entries),
    )
    ratings: dict[str, dict[str, Any]] = {}
    for name in known(inputs.shipped, inputs.own) if case.mounts else ():
        profile, pinned = choose(name, inputs.shipped, inputs.own, None)
        try:
            # What people accept is accepted for the profile that is pinned.
            found = _find(case, profile, pinned)._replace(waivers=waivers.Waivers())
        except BadInput as error:
            # Beside it a mount has a profile of its own that contradicts this one.
            ratings[name] = {
                "verdict": "blocked",
                "after": "blocked",
                "changes": [],
                "unmet": [],
                "why": [str(error)],
            }
            continue
        steps = plan.build(found.planned, True)
        # What a run sets stands under changes; the reasons say what it would not.
        kept = tuple(row for row in found.rows if row.phase is None or found.withholds(row))
        ratings[name] = {
            "verdict": verdicts.of(found),
            "after": "at_risk" if found.lasting else verdicts.of(found._replace(rows=kept, risks=[])),
            "changes": plan.changes(steps, found.planned),
            "unmet": [need.as_dict() for need in found.needed if need.state in ("unmet", "unverified")],
            "why": [each.text() for each in verdicts.reasons(found._replace(rows=kept))],
        }
    return ratings


def _now(case: Case, first: str = "pin a profile") -> tuple[list[Reason], Findings | None]:
    """Return what is at risk or unknown now on a host without a pinned profile, worst first, and all that was found.
    `first`: what to do before a run.

    It is what any profile that promises durability finds. A host without a database has nothing to lose.
    """
    is_empty = not case.mounts and not case.lost
    if is_empty and not any(case.engines[kind] for kind in ("engines", "unattributed")):
        return [], None
    promising = next(iter(_promising(case.inputs)), None)
    if promising is None:
        raise BadInput("no profile promises durability")
    profile, pinned = choose(promising, case.inputs.shipped, case.inputs.own, None)
    found = _find(case._replace(layers=chosen_layers.read(None)), profile, pinned)
    told = [each for each in verdicts.told(found) if each.verdict in _NOW]
    # A run changes nothing here.
    told = [
        each._replace(fix=f"{first}, then {each.fix}") if each.fix.startswith(_RUN) else each for each in told
    ]
    return told, found


def _promising(inputs: Inputs) -> dict[str, Profile]:
    """Return the profiles that promise durability, by name."""
    names = known(inputs.shipped, inputs.own)
    chosen = {name: choose(name, inputs.shipped, inputs.own, None)[0] for name in names}
    # The shipped ones first, in the order of their file.
    ordered = [*(name for name in inputs.shipped or () if name in chosen), *chosen]
    return {name: chosen[name] for name in ordered if chosen[name].promises_durability}


def _recommended(case: Case, ratings: dict[str, Any]) -> dict[str, Any] | None:
    """Return the profile that fits best, None where nothing was rated or none fits."""
    if not ratings:
        return None
    found = (
        [] if case.inputs.mounts else [mount["target"] for mount in case.mounts if mount["fstype"] != "raw"]
    )
    promising = _promising(case.inputs)
    costs = prices.of(promising.values(), case.inputs.benchmark, case.storage, case.today)
    return recommendation.of(ratings, list(promising), found, *costs)


def _find(case: Case, profile: Profile, pinned: Profile) -> Findings:
    """Return what holding a host against a profile finds; some of its mounts may have others. Raises BadInput."""
    inputs, storage, words = case.inputs, case.storage, case.words
    mounts = promises.of_mounts(case.mounts, case.entries, profile, pinned)
    disks, unknowns = risks.leaves(storage, mounts)
    disks = promises.of_disks(disks, mounts)
    scopes = promises.scopes(mounts, disks, profile, pinned)
    torn = list(promises.torn(case.placed, mounts, profile))
    needed, unmet, guarded = _needed(case, scopes, _common(case, mounts, disks, torn))
    where = {id(instance): placed for instance, placed in case.placed}

    def held_to(instance: dict[str, Any]) -> Profile:
        return promises.of_engine(where[id(instance)], mounts, profile)

    every = [*(scope.profile for scope in scopes), *map(held_to, case.engines["engines"])]
    is_promised = any(each.promises_durability for each in every)
    lasting = [*filter(_has_to_last, mounts), *(mount for mount, _need in torn)]
    of_guard = guard.risks(case.power) if is_promised else []
    of_memory = list(risks.of_memory(case, lambda instance: held_to(instance).promises_durability))
    of_storage = risks.of(lasting, promises.below(lasting, disks), words, guarded.held)
    found = engines.assess(
        case.engines,
        held_to,
        storage,
        lambda disk: requirements.fua_honoured(disk, words),
        inputs.allow,
        lambda instance: bool(of_guard or of_storage) and risks.lies_on_loss(case, instance, guarded.held),
    )
    unknowns += [*case.lost, *found.unknowns, *notes.unplaced(case), *dict.fromkeys(notes.not_found(case))]
    names = frozenset(each.name for each in every)
    withheld = names if unknowns or found.lasting else unmet
    guarded = guarded.within(withheld, storage["leased"])
    rows, left_out = chosen_layers.leave_out([*_rows(case, mounts, guarded, disks), *found.rows], case.layers)
    if left_out:
        withheld = names
        guarded = guarded.within(withheld, storage["leased"])
        rows = chosen_layers.leave_out([*_rows(case, mounts, guarded, disks), *found.rows], case.layers)[0]
    rows, slower = measured.left(rows, inputs.benchmark, storage, case.today)
    rows = [_with_name(row) for row in rows]
    return Findings(
        is_promised,
        mounts,
        tuple(rows),
        requirements.with_attestations(needed, storage, case.today),
        [*of_guard, *of_memory, *(risk.told(rows) for risk in of_storage), *found.risks],
        unknowns,
        (
            # The most important first: a page has few lines for them.
            *notes.contained(case),
            *notes.read_only(case),
            *notes.not_asked(case),
            *notes.behind(case),
            *found.warnings,
            *(
                findings.LOSS_AS_ASKED.found(mount["target"], mount=mount["target"], what=_lost(mount))
                for mount in mounts
                if is_promised and not _has_to_last(mount)
            ),
            *notes.writers(case),
            *notes.limited(case),
            *unit_mounts.not_checked(case.engines["engines"], storage),
            *notes.substitute_names(disks),
            *notes.unmatched(case),
            *guarded.warnings,
            *promises.shared(disks, mounts),
            *notes.not_judged(case),
            *verdicts.slow(rows),
            *slower,
        ),
        found.exposed,
        withheld,
        found.lasting,
        guarded.lease,
        left_out,
        case.waivers,
    )


def _with_name(row: Setting) -> Setting:
    """Return a row in whose texts the name of its target is in quotes, unless it can only be a name."""
    shown = quoted(row.target)
    if shown == row.target:
        return row
    # In a command it is one word already.
    argument = shlex.quote(row.target)
    why, remedy = (
        argument.join(part.replace(row.target, shown) for part in text.split(argument))
        for text in (row.why, row.remedy)
    )
    return row._replace(why=why, remedy=remedy)


def _has_to_last(mount: dict[str, Any]) -> bool:
    return bool(mount["profile"].promises_durability)


def _common(
    case: Case,
    mounts: list[dict[str, Any]],
    disks: list[dict[str, Any]],
    torn: Iterable[tuple[dict[str, Any], Requirement]],
) -> list[Requirement]:
    """Return what must be true before anything of the host loosens, whatever its profile."""
    needed = requirements.of_expired(case.expired)
    for profile in dict.fromkeys(disk["profile"] for disk in disks):
        own = [disk for disk in disks if disk["profile"] == profile]
        needed += requirements.of_neighbours(profile, case.storage["mounts"], mounts, own)
    for mount in filter(_has_to_last, mounts):
        rows = settings.of_mount(mount, mount["profile"], settings.Boot.of(case.storage))
        needed += requirements.of_barriers(rows)
    return [*needed, *(need for _mount, need in torn)]


def _needed(
    case: Case, scopes: list[promises.Scope], common: list[Requirement]
) -> tuple[list[Requirement], frozenset[str], Guarded]:
    """Return all requirements of a host, the names of the profiles of which not all are met, and what a guard changes."""
    accepts = case.inputs.accept_data_loss is True
    needs = [(scope, requirements.of_host(*scope, case.words, accepts)) for scope in scopes]
    on_ups = [(scope, own) for scope, own in needs if scope.profile.rests_on == "ups"]
    others = [(scope, own) for scope, own in needs if scope.profile.rests_on != "ups"]
    guarded = guarded_by(
        (on_ups or needs)[0][0].profile,
        [*_every(on_ups), *common],
        case.storage,
        [mount for scope, _own in on_ups for mount in scope.mounts],
        [disk for scope, _own in on_ups for disk in scope.disks],
        ups_asked=case.asked,
        power=case.power,
        words=case.words,
        units=[instance["unit"] for instance in case.engines["engines"] if instance["unit"]],
        today=case.today,
    )
    unmet = {scope.profile.name for scope, own in others if not requirements.hold([*own, *common])}
    if not requirements.hold(guarded.needed):
        unmet |= {scope.profile.name for scope, _own in on_ups}
    return list(dict.fromkeys([*_every(others), *guarded.needed])), frozenset(unmet), guarded


def _every(needs: Iterable[tuple[promises.Scope, list[Requirement]]]) -> Iterator[Requirement]:
    return itertools.chain.from_iterable(own for _scope, own in needs)


def _rows(
    case: Case, mounts: list[dict[str, Any]], guarded: Guarded, disks: list[dict[str, Any]]
) -> Iterator[Setting]:
    """Yield the rows of everything but the engines."""
    yield from map(others.apply, _own_rows(case, mounts, guarded, disks))


def _own_rows(
    case: Case, mounts: list[dict[str, Any]], guarded: Guarded, disks: list[dict[str, Any]]
) -> Iterator[Setting]:
    storage, words, boot = case.storage, case.words, settings.Boot.of(case.storage)
    yield from (row._replace(profile=guarded.profile) for row in guarded.rows)
    for mount in mounts:
        for row in settings.of_mount(mount, mount["profile"], boot):
            yield guarded.seen(row, mount)._replace(profile=mount["profile"].name)
    yield from settings.of_boot(storage["boot_faults"], mounts, storage["mounts"], storage["kernel"])
    yield from unit_mounts.rows(case.engines["engines"], storage)
    for disk in disks:
        word = requirements.vouches(disk["profile"], disk, words)
        for row in settings.of_disk(disk, disk["profile"], word.sentence if word else None):
            yield row._replace(profile=disk["profile"].name)
    lossy = [disk for disk in disks if not requirements.is_protected(disk, words)]
    yield from settings.of_layers(mounts, lossy, flush_passthrough.early(storage["mounts"]))
    yield from settings.of_multipath(mounts)
    yield from scheduling.rows(mounts, disks, storage["tuned"])


def _withdrawn(
    nothing: dict[str, Any], storage: dict[str, Any], power: dict[str, Any] | None, layers: frozenset[str]
) -> dict[str, Any]:
    """Return an assessment without rows, and where there is a guard, the one that takes its lease back."""
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


def _temporary(
    placed: Iterable[tuple[dict[str, Any], Placement]], mounts: list[dict[str, Any]]
) -> tuple[tuple[str, str], ...]:
    found = managed.temporary(placed, mounts)
    return tuple(
        (target, f"it holds nothing but temporary files of {', '.join(who)}: not judged")
        for target, who in found.items()
    )


def _mounts(mounts: Iterable[dict[str, Any]], temporary: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the mounts as the report has them: those that are managed, and those that need not last."""
    found = []
    for mount in mounts:
        profile = mount.get("profile")
        is_lost = profile is not None and not profile.promises_durability
        found.append(
            {
                "target": mount["target"],
                "profile": profile.name if profile else None,
                "judged": "accepted_loss" if is_lost else "yes",
                "reason": _lost(mount) if is_lost else "",
            }
        )
    scratch = [
        {"target": target, "profile": None, "judged": "temporary", "reason": why} for target, why in temporary
    ]
    return [*found, *scratch]


def _lost(mount: dict[str, Any]) -> str:
    return f"profile {mount['profile'].name}: what lies there can be lost at a power cut, as asked"


def _summary(case: Case, found: Findings) -> dict[str, Any]:
    steps = plan.build(found.planned, True)
    lease = found.lease.as_dict() if found.lease else None
    return {
        **_empty(case.inputs, verdicts.of(found), verdicts.reasons(found)),
        "settings": [row.as_dict() for row in found.rows],
        "requirements": [need.as_dict() for need in found.needed],
        "pending": [verdicts.pending(row) for row in found.rows if verdicts.will_wait(row, found)],
        "attestations": [word._asdict() for word in case.words],
        "plan": steps,
        "changes": plan.changes(steps, found.planned),
        "files": plan.files(steps, found.planned, case.engines["engines"], case.power),
        **noted([*_of_waivers(case, found), *found.warnings]),
        "accepted": _accepted(found),
        "exposed": list(found.exposed),
        "stack": stack.of(case.mounts, case.storage),
        "power": ups.section(case.power),
        "lease": lease,
        "steps": plan.steps(steps, found.planned, case.inputs.allow, lease),
    }


def _of_waivers(case: Case, found: Findings | None) -> Iterator[Reason]:
    """Yield what is accepted of a host, and what of `durable_accept` accepts nothing; `found`: None where nothing is managed."""
    accepted = verdicts.accepted_by(found) if found else []
    every = [each for each in verdicts.every(found) if found.waivers.of(each) is None] if found else []
    is_whole = found is not None and case.inputs.profile is not None
    return waivers.notes(case.waivers, accepted, every, is_whole)


def _accepted(
    found: Findings | None, verdicts_of: Collection[str] = verdicts.VERDICTS
) -> list[dict[str, str]]:
    accepted = verdicts.accepted_by(found) if found else []
    return [each.as_dict() for each in accepted if each.found.verdict in verdicts_of]


def _why(reasons: Iterable[Reason]) -> dict[str, list[Any]]:
    """Return reasons as a report has them: each as one text, and by its parts."""
    told = list(reasons)
    return {
        "why": ["; ".join(message(part) for part in (each.reason, each.fix) if part) for each in told],
        "reasons": [each.as_dict() for each in told],
    }


def noted(notes: Iterable[Reason]) -> dict[str, list[Any]]:
    """Return notes as a report has them: each as one text, and by its parts."""
    found = _why(notes)
    return {"warnings": found["why"], "notes": found["reasons"]}


def _empty(inputs: Inputs, verdict: str, reasons: Iterable[Reason]) -> dict[str, Any]:
    """Return an assessment without rows: what every report has."""
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
        "steps": [],
    }
