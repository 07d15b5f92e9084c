# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts and a profile in; verdict, rows, requirements and plan out.

The policy of the collection. Pure: no clock, no files, no Ansible; runs on a host as well.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .. import attestations
from ..attestations import Attestation
from ..catalog import LAYERS, NAMES, is_engine
from ..engines.contract import judge_of
from ..engines.placement import place
from ..host.observation import UNKNOWN
from ..profiles import BadInput, Profile, choose, known
from ..rows import Setting, Unknown
from ..storage import flush_passthrough, mount_settings
from . import (
    chosen_layers,
    engines,
    guard,
    managed,
    plan,
    requirements,
    scheduling,
    settings,
    shape,
    ups,
    ups_inputs,
)
from . import variable_names as names
from .guarded import Guarded, guarded_by
from .requirements import Requirement

#: Version of the report's JSON.
SCHEMA = 1
#: Verdicts of a host, worst first; the last three stand beside the order.
VERDICTS = (
    "at_risk",
    "blocked",
    "unreachable",
    "unknown",
    "drifted",
    "pending",
    "unverified",
    "attested",
    "durable",
    "accepted_loss",
    "not_managed",
    "not_applicable",
)
#: Verdicts that fail a host unless the user chooses others.
FAIL_ON = ("at_risk", "blocked", "unreachable", "unknown", "drifted", "pending")
#: Permissions that durable_allow may give.
PERMISSIONS = ("restart_engines", "reboot")
#: Names of processes in one warning.
_WRITERS = 5
_NO_ENGINES: dict[str, Any] = {"time": "", "engines": [], "unattributed": [], "writers": []}
#: Facts older than this, by the controller's clock, are last run's (a fact cache keeps them).
_MAX_AGE = datetime.timedelta(hours=1)


class Inputs(NamedTuple):
    """What the inventory says of one host, as written; read by `assess`.

    `ups` is `durable_ups` without the password of its monitor; `names` are those of all variables of the
    host, to find one that is misspelt.
    """

    profile: Any = None
    shipped: Any = None
    own: Any = None
    overrides: Any = None
    attestations: Any = None
    mounts: Any = None
    databases: Any = None
    allow: Any = ()
    layers: Any = None
    accept_data_loss: Any = False
    fail_on: Any = FAIL_ON
    ups: Any = None
    rate: bool = False
    names: Any = ()


class Case(NamedTuple):
    """One host as it is judged: what its owner says, what was observed, and the mounts that count.

    `power` is `durable_power`, None where nobody asked for it; `asked` is what `durable_ups` says; `words`
    are the attestations in force, `expired` the others by where they are written; `today` an ISO 8601 date.
    `engines` is `durable_engines` but for the `idle` ones: stopped, and to stay so. `layers`: those that a run may
    touch.
    """

    inputs: Inputs
    storage: dict[str, Any]
    engines: dict[str, Any]
    power: dict[str, Any] | None
    asked: ups_inputs.Asked
    words: list[Attestation]
    expired: dict[str, Attestation]
    mounts: list[dict[str, Any]]
    today: str
    idle: tuple[dict[str, Any], ...] = ()
    layers: frozenset[str] = frozenset()


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
        collected = list(filter(None, (storage, engines, power)))
        for facts in collected:
            _check_age(facts, now)
        _check_boot(collected)
        _check_shape(storage, engines or _NO_ENGINES, power)
    except ValueError as error:
        return _empty(inputs, UNKNOWN, [str(error)])
    try:
        return _assess(inputs, storage, engines or _NO_ENGINES, power, now[:10])
    except BadInput as error:
        return _empty(inputs, "blocked", [str(error)])


def unobserved(inputs: Inputs, verdict: str, why: str) -> dict[str, Any]:
    """Return the assessment of a host of which nothing can be said but why."""
    return _empty(inputs, verdict, [why])


def _assess(
    inputs: Inputs,
    storage: dict[str, Any],
    found_engines: dict[str, Any],
    power: dict[str, Any] | None,
    today: str,
) -> dict[str, Any]:
    words, expired = attestations.read(inputs.attestations or {}, today)
    _check_words(inputs)
    asked = ups_inputs.read(inputs.ups)
    mounts = managed.mounts_of(inputs.mounts, inputs.databases, storage, found_engines)
    told = [engines.told(instance, storage) for instance in found_engines["engines"]]
    counted = managed.expected(found_engines, inputs.databases)
    idle = [instance for instance in found_engines["engines"] if instance not in counted]
    case = Case(
        inputs,
        storage,
        _without(found_engines, counted),
        power,
        asked,
        words,
        expired,
        mounts,
        today,
        tuple(idle),
        chosen_layers.read(inputs.layers),
    )
    ratings = {}
    if inputs.rate or inputs.profile is None:
        ratings = rate(case)
    if inputs.profile is None:
        reasons = ["no durable_profile is pinned: nothing is changed"]
        if not ratings:
            reasons.append("nothing to rate: no file system on a block device is mounted for writing")
        if storage["leased"] != "no":
            reasons.append(
                "a guard may take barriers away here: durable.dbhost.release_db takes its lease back"
            )
        beside = {"ratings": ratings, "engines": told, "power": ups.section(power)}
        return {**_empty(inputs, "not_managed", reasons), **beside}
    profile, pinned = choose(inputs.profile, inputs.shipped, inputs.own, inputs.overrides)
    if storage["fstab_error"]:
        raise BadInput(storage["fstab_error"])
    if not mounts and not any(case.engines[kind] for kind in ("engines", "unattributed")):
        why = (
            "no database engine was found, and no managed mount: list them in durable_mounts, or the"
            " databases' paths in durable_databases"
        )
        nothing = {
            **_empty(inputs, "not_applicable", [why, *_idle(case)]),
            "ratings": ratings,
            "engines": told,
        }
        return _withdrawn(nothing, storage, power, case.layers)
    found = _find(case, profile, pinned)
    return {**_summary(case, found), "ratings": ratings, "engines": told}


def rate(case: Case) -> dict[str, Any]:
    """Return {profile: what it would take} for every known profile, pinned or not."""
    inputs = case.inputs
    every = chosen_layers.read(None)
    case = case._replace(mounts=case.mounts or managed.everything(case.storage), layers=every)
    ratings = {}
    for name in known(inputs.shipped, inputs.own) if case.mounts else ():
        profile, pinned = choose(name, inputs.shipped, inputs.own, None)
        found = _find(case, profile, pinned)
        steps = plan.build(found.rows, found.may_loosen)
        # What a run sets stands under changes; the reasons say what it would not.
        kept = tuple(row for row in found.rows if row.phase is None or found.withholds(row))
        ratings[name] = {
            "verdict": _verdict(found),
            "changes": plan.changes(steps, found.rows),
            "unmet": [need._asdict() for need in found.needed if need.state in ("unmet", "unverified")],
            "why": _reasons(found._replace(rows=kept)),
        }
    return ratings


class Findings(NamedTuple):
    """What holding facts against a profile found, before it is summed up.

    `exposed`: the checks for damage that may be there already; `may_loosen`: every requirement is met,
    so that something may become less strict. `lasting`: the servers that will lose commits, or may,
    whatever this run sets. `lease`: what the guard is to be allowed, None for nothing. `left_out`: layers that
    `durable_layers` leaves out, and that would make something safer.
    """

    profile: Profile
    rows: tuple[Setting, ...]
    needed: list[Requirement]
    risks: list[str]
    unknowns: list[Unknown]
    warnings: tuple[str, ...]
    exposed: tuple[str, ...]
    may_loosen: bool
    lasting: tuple[str, ...] = ()
    lease: guard.Lease | None = None
    left_out: tuple[str, ...] = ()

    def withholds(self, row: Setting) -> bool:
        """Tell whether a row's loosening waits for a requirement."""
        return row.phase == "loosen" and not self.may_loosen


def _find(case: Case, profile: Profile, pinned: Profile) -> Findings:
    inputs, storage, words, mounts = case.inputs, case.storage, case.words, case.mounts
    disks, unknowns = _leaves(storage, mounts)
    needed = requirements.of_host(profile, pinned, mounts, disks, words, inputs.accept_data_loss is True)
    needed += requirements.of_expired(case.expired)
    needed += requirements.of_neighbours(profile, storage["mounts"], mounts, disks)
    guarded = guarded_by(
        profile,
        needed,
        storage,
        mounts,
        disks,
        ups_asked=case.asked,
        power=case.power,
        words=words,
        units=[instance["unit"] for instance in case.engines["engines"] if instance["unit"]],
        today=case.today,
    )
    of_guard: list[str] = []
    of_storage: list[Risk] = []
    if profile.promises_durability:
        of_guard, of_storage = guard.risks(case.power), _risks(mounts, disks, words, guarded.held)
    found = engines.assess(
        case.engines,
        profile,
        storage,
        lambda disk: requirements.fua_honoured(disk, words),
        "restart_engines" in inputs.allow,
        lambda instance: bool(of_guard or of_storage) and _lies_on_loss(case, instance, guarded.held),
    )
    unknowns += [*found.unknowns, *_unplaced(case), *_not_found(case)]
    may_loosen = requirements.hold(guarded.needed) and not unknowns and not found.lasting
    if not may_loosen:
        guarded = guarded.withheld(storage["leased"])
    every = [*_rows(case, profile, guarded, disks), *found.rows]
    rows, left_out = chosen_layers.leave_out(every, case.layers)
    if may_loosen and left_out:
        may_loosen = False
        guarded = guarded.withheld(storage["leased"])
        every = [*_rows(case, profile, guarded, disks), *found.rows]
        rows = chosen_layers.leave_out(every, case.layers)[0]
    return Findings(
        profile,
        tuple(rows),
        guarded.needed,
        [*of_guard, *(risk.told(rows) for risk in of_storage), *found.risks],
        unknowns,
        (
            *found.warnings,
            *_not_asked(case),
            *_unmatched(case),
            *_idle(case),
            *_writers(case),
            *guarded.warnings,
            *_slow(rows),
        ),
        found.exposed,
        may_loosen,
        found.lasting,
        guarded.lease,
        left_out,
    )


def _rows(case: Case, profile: Profile, guarded: Guarded, disks: list[dict[str, Any]]) -> Iterator[Setting]:
    """Yield the rows of everything but the engines."""
    storage, mounts, words = case.storage, case.mounts, case.words
    yield from guarded.rows
    for mount in mounts:
        for row in settings.of_mount(mount, profile, storage["kernel"]):
            yield guarded.seen(row, mount)
    yield from settings.of_fstab(storage["fstab_refused"], mounts, storage["kernel"])
    for disk in disks:
        word = requirements.vouches(profile, disk, words)
        yield from settings.of_disk(disk, profile, word.sentence if word else None)
    lossy = [disk for disk in disks if not requirements.is_protected(disk, words)]
    yield from settings.of_layers(mounts, lossy, profile, flush_passthrough.early(storage["mounts"]))
    yield from scheduling.rows(mounts, disks, profile, storage["tuned"])


def _withdrawn(
    nothing: dict[str, Any], storage: dict[str, Any], power: dict[str, Any] | None, layers: frozenset[str]
) -> dict[str, Any]:
    """Return an assessment without rows, and where there is a guard, the one that takes its lease back."""
    row = guard.lease(None, power, storage["leased"])
    rows = chosen_layers.leave_out([row] if row else [], layers)[0]
    steps = plan.build(rows, False)
    return {
        **nothing,
        "settings": [row.as_dict() for row in rows],
        "plan": steps,
        "steps": plan.steps(steps, (), None),
        "changes": plan.changes(steps, rows),
        "files": plan.files(steps, rows, [], power),
        "why": [*nothing["why"], *(_reason(row) for row in rows)],
        "power": ups.section(power),
    }


def _without(found: dict[str, Any], counted: list[dict[str, Any]]) -> dict[str, Any]:
    return found if found is _NO_ENGINES else {**found, "engines": counted}


def _idle(case: Case) -> Iterator[str]:
    """Yield the servers that do not count, and how they would."""
    for instance in case.idle:
        yield (
            f"{instance['engine']} {instance['name']}: it is stopped, and nothing starts it ({instance['unit']}): listed,"
            " not judged; name it in durable_databases to have it judged"
        )


def _writers(case: Case) -> Iterator[str]:
    """Yield who writes to a managed mount that should hold databases alone, and is no engine that is understood."""
    for mount in case.mounts:
        here = [row for row in case.engines["writers"] if row["device"] == mount["device"]]
        if here and not requirements.holds_system(mount):
            names = ", ".join(dict.fromkeys(f"{row['name']} ({row['pid']})" for row in here[:_WRITERS]))
            more = f" and {len(here) - _WRITERS} more" if len(here) > _WRITERS else ""
            yield (
                f"{mount['target']}: {names}{more} writes there ({here[0]['example']}), and is no database engine that is"
                " understood: nothing is known of how it commits"
            )


def _not_asked(case: Case) -> Iterator[str]:
    """Yield that nobody looked for engines."""
    if case.engines is _NO_ENGINES:
        yield "nobody looked for database engines: how they commit is not part of this verdict"


def _not_found(case: Case) -> Iterator[Unknown]:
    """Yield the engines that the inventory names, and that were looked for and not found."""
    if case.engines is _NO_ENGINES:
        return
    here = {instance["engine"] for instance in case.engines["engines"]}
    for name in dict.fromkeys(managed.engines_in(case.inputs.databases)):
        if NAMES.get(name, name) not in here:
            yield Unknown(
                f"durable_databases names {name}, and none was found: nothing is known of how it commits",
                "start or install it where it can be found, or take the entry out",
            )


def _unmatched(case: Case) -> Iterator[str]:
    """Yield the attestations that are about no disk of this host: nothing rests on them."""
    ids = sorted(disk["id"] for disk in case.storage["disks"] if disk["id"])
    for word in case.words:
        if word.target not in (attestations.HOST, *ids):
            yield (
                f"an attestation of {word.claim} by {word.by} is about {word.target}, and no disk here has that id:"
                f" it counts for nothing; wanted {', '.join((attestations.HOST, *ids))}"
            )


def _unplaced(case: Case) -> Iterator[Unknown]:
    """Yield what an engine keeps where nothing is promised for it."""
    managed_devices = {mount["device"] for mount in case.mounts}
    for instance in case.engines["engines"]:
        label = f"{instance['engine']} {instance['name']}"
        where = place(instance, case.storage)
        if not where.mounts and not where.unknown:
            yield Unknown(f"{label}: where it keeps its files is not known", judge_of(instance).how_to_find)
        yield from (Unknown(f"{label}: {reason}") for reason in where.unknown)
        for mount in where.mounts:
            if mount["device"] not in managed_devices:
                held = f"files on {mount['target']} ({where.examples[mount['device']]})"
                yield Unknown(f"{label} keeps {held}, which is not managed", "list it in durable_mounts")


def _summary(case: Case, found: Findings) -> dict[str, Any]:
    steps = plan.build(found.rows, found.may_loosen)
    lease = found.lease.as_dict() if found.lease else None
    return {
        **_empty(case.inputs, _verdict(found), _reasons(found)),
        "settings": [row.as_dict() for row in found.rows],
        "requirements": [need._asdict() for need in found.needed],
        "pending": [_pending(row) for row in found.rows if _will_wait(row, found)],
        "attestations": [word._asdict() for word in case.words],
        "plan": steps,
        "changes": plan.changes(steps, found.rows),
        "files": plan.files(steps, found.rows, case.engines["engines"], case.power),
        "warnings": list(found.warnings),
        "exposed": list(found.exposed),
        "power": ups.section(case.power),
        "lease": lease,
        "steps": plan.steps(steps, case.inputs.allow, lease),
    }


class Risk(NamedTuple):
    """A way in which acknowledged commits can vanish now: `why` in plain words, the `target` and `setting` of the
    row that mends it, and what to do where no row says it."""

    why: str
    target: str
    setting: str
    remedy: str

    def told(self, rows: Iterable[Setting]) -> str:
        """Return it in one line, with what to do."""
        said = (row.remedy for row in rows if (row.target, row.setting) == (self.target, self.setting))
        return f"{self.why}; {next(filter(None, said), self.remedy)}"


_BARRIERS = "take the option that puts them off away, and mount it anew"


def _leaves(
    storage: dict[str, Any], mounts: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[Unknown]]:
    """Return the disks below the mounts, and the reasons for stacks that are not understood."""
    by_name = {disk["name"]: disk for disk in storage["disks"]}
    names: dict[str, None] = {}
    reasons = []
    for mount in mounts:
        if mount["disks"] == UNKNOWN:
            reasons.append(Unknown(f"{mount['target']}: {mount['evidence']['disks']['reason']}"))
        elif not mount["disks"] or not mount["disks_seen"]:
            reasons.append(Unknown(f"{mount['target']}: nothing is known of the disks below it"))
        # Also where a layer between is not understood: what is safer stays safer.
        for name in mount["disks_seen"]:
            if name in by_name:
                names[name] = None
            else:
                reasons.append(Unknown(f"{mount['target']}: nothing is known of its disk {name}"))
    return [by_name[name] for name in names], reasons


def _risks(
    mounts: list[dict[str, Any]], disks: list[dict[str, Any]], words: list[Attestation], held: frozenset[str]
) -> list[Risk]:
    """Return the ways in which acknowledged commits can vanish right now.

    `held`: mount points whose barriers the guard has off, and puts back in time.
    """
    found = [
        Risk(
            f"commits on {mount['target']} can vanish: it is mounted without barriers, and nothing is known of its"
            " disks",
            mount["target"],
            "barrier",
            _BARRIERS,
        )
        for mount in mounts
        if mount["barrier"] == "off" and mount["disks"] == UNKNOWN
    ]
    bare: dict[str, list[str]] = {}
    for mount in mounts:
        if mount["barrier"] == "off" and mount["disks"] != UNKNOWN and mount["target"] not in held:
            for name in mount["disks"]:
                bare.setdefault(name, []).append(mount["target"])
    flush_blocked_by = _labels(
        layer for mount in mounts for layer in flush_passthrough.layers(mount) if layer.belief != UNKNOWN
    )
    early_ack = _labels(layer for mount in mounts for layer in flush_passthrough.early_ack(mount))
    for disk in disks:
        cache = disk["write_cache"]
        if requirements.outlives_power(disk, words):
            continue
        lost = f"commits since the last flush on {disk['name']} can vanish"
        target = disk["id"] or disk["name"]
        if disk["flush"] == "owed":
            found.append(
                Risk(f"{lost}: a run ended before it flushed that disk", target, "flush", "run harden-db")
            )
        if cache["kernel"] == "write through" and cache["device"] == "enabled":
            why = f"{lost}: the kernel believes that it caches nothing and never flushes it"
            found.append(Risk(why, target, "kernel_belief", "run harden-db"))
        found += [
            Risk(f"{lost}: {mounted} is mounted without barriers", mounted, "barrier", _BARRIERS)
            for mounted in bare.get(disk["name"], ())
        ]
        found += [
            Risk(
                f"{lost}: {layer} passes no flush on",
                layer,
                "layer_belief",
                "reboot, so that it is made anew",
            )
            for layer in flush_blocked_by.get(disk["name"], ())
        ]
        found += [
            Risk(
                f"commits can be acknowledged before {disk['name']} has flushed them: {layer} has a partial parity log",
                layer,
                "consistency_policy",
                "mdadm --grow --consistency-policy=resync, or turn the disks' caches off",
            )
            for layer in early_ack.get(disk["name"], ())
        ]
    return found


def _lies_on_loss(case: Case, instance: dict[str, Any], held: frozenset[str]) -> bool:
    """Tell whether what an instance wrote may have been lost by the disks and mounts below it, not by others."""
    where = place(instance, case.storage)
    if where.unknown or not where.mounts or guard.risks(case.power):
        return True
    mounts = list(where.mounts)
    return bool(_risks(mounts, _leaves(case.storage, mounts)[0], case.words, held))


def _labels(layers: Iterable[flush_passthrough.FlushLayer]) -> dict[str, list[str]]:
    """Return {disk: the layers above it}, each once."""
    found: dict[str, dict[str, None]] = {}
    for layer in layers:
        for name in layer.disks:
            found.setdefault(name, {})[layer.label] = None
    return {name: list(labels) for name, labels in found.items()}


def _verdict(found: Findings) -> str:
    told = _told(found)
    if told:
        return told[0][0]
    if not found.profile.promises_durability:
        return "accepted_loss"
    return "attested" if any(need.state == "attested" for need in found.needed) else "durable"


def _told(found: Findings) -> list[tuple[str, str]]:
    """Return (verdict, reason) of all that is not right, worst first: the first is the host's verdict.

    What is only slow is a note.
    """
    rows = [row for row in found.rows if row.verdict != "ok" and row.klass == "safety"]
    told = [
        *(("at_risk", risk) for risk in found.risks),
        *(("blocked", reason) for reason in _missing(found.needed, "unmet")),
        *(("blocked", _withheld(row, found)) for row in rows if found.withholds(row)),
        *((UNKNOWN, reason.told()) for reason in found.unknowns),
        *((_verdict_of(row), _reason(row)) for row in rows if row.verdict != guard.TIGHTENED),
    ]
    if found.profile.promises_durability:
        told += [("unverified", reason) for reason in _missing(found.needed, "unverified")]
    return sorted(told, key=lambda each: VERDICTS.index(each[0]))


def _verdict_of(row: Setting) -> str:
    """Return what a safety setting that is not right makes of its host: what drifts hides nothing unknown."""
    if UNKNOWN in (row.verdict, row.running, row.persisted):
        return UNKNOWN
    return "pending" if row.verdict == "pending" else "drifted"


def _reasons(found: Findings) -> list[str]:
    by_design = (_reason(row) for row in found.rows if row.verdict == guard.TIGHTENED)
    return [*(reason for _verdict, reason in _told(found)), *by_design]


def _slow(rows: Iterable[Setting]) -> list[str]:
    """Return the settings of class performance that differ: they are listed, and decide no verdict."""
    return [_reason(row) for row in rows if row.klass != "safety" and row.verdict != "ok"]


def _reason(row: Setting) -> str:
    remedy = f"; {row.remedy}" if row.remedy else ""
    return f"{plan.named(row.layer, row.target)} {row.setting} {row.verdict}: {row.why}{remedy}"


def _withheld(row: Setting, found: Findings) -> str:
    target = plan.named(row.layer, row.target)
    return f"{target} {row.setting}: {row.wanted_running} is withheld until {_awaited(found)}"


def _awaited(found: Findings) -> str:
    if found.left_out:
        return f"{', '.join(found.left_out)} has made its part safer: durable_layers leaves it out"
    if found.lasting:
        return f"{', '.join(found.lasting)} is known to keep commits; see to its settings first"
    return "the requirements are met; see to those that are not, and run again"


def _missing(needed: list[Requirement], state: str) -> list[str]:
    """Return one line for all conditions of a state that say the same, however many targets they have."""
    targets: dict[tuple[str, str, str], list[str]] = {}
    for need in needed:
        if need.why and need.state == state:
            targets.setdefault((need.name, need.why, need.remedy), []).append(need.target)
    names: dict[tuple[str, str, str], list[str]] = {}
    for (name, why, remedy), where in targets.items():
        names.setdefault((", ".join(where), why, remedy), []).append(name)
    return [f"{', '.join(who)} ({where}): {why}; {remedy}" for (where, why, remedy), who in names.items()]


def _will_wait(row: Setting, found: Findings) -> bool:
    """Tell whether a setting waits for a reboot or restart, or will once a run has persisted it."""
    if row.verdict == "pending":
        return True
    if is_engine(row.layer):
        wrong = row.running not in (row.wanted_running, "stopped", UNKNOWN)
        return row.verdict == "drift_persisted" and wrong and bool(row.phase) and not found.withholds(row)
    if row.setting not in LAYERS[row.layer].waits or row.verdict != "drift_persisted":
        return False
    waits = not mount_settings.satisfies(row.setting, row.running, row.wanted_running)
    return waits and row.phase is not None and not found.withholds(row)


def _pending(row: Setting) -> dict[str, Any]:
    layer = LAYERS[row.layer]
    return {
        "layer": row.layer,
        "target": row.target,
        "setting": row.setting,
        "needs": layer.needs,
        "why": str(layer.waits.get(row.setting, layer.waits.get(""))),
        # What has to be changed before it: a run reboots only for what it has changed itself.
        "after": list(row.evidence.get("below", [row.target])),
    }


def _empty(inputs: Inputs, verdict: str, why: list[str]) -> dict[str, Any]:
    """Return an assessment without rows: what every report has."""
    return {
        "schema": SCHEMA,
        "profile": str(inputs.profile) if inputs.profile is not None else None,
        "verdict": verdict,
        "fails": _fails(inputs, verdict),
        "why": why,
        "settings": [],
        "requirements": [],
        "pending": [],
        "attestations": [],
        "files": [],
        "plan": plan.build([], False),
        "changes": [],
        "ratings": {},
        "warnings": [],
        "exposed": [],
        "engines": [],
        "power": None,
        "lease": None,
        "steps": [],
    }


def _check_age(storage: dict[str, Any], now: str) -> None:
    taken, here = (_time(text) for text in (storage.get("time"), now))
    if abs(here - taken) > _MAX_AGE:
        raise ValueError(
            f"the facts are of {storage['time']}, the controller's clock says {now}: they are of an"
            " older run, or a clock is wrong; collect them anew in this run"
        )


def _check_boot(collected: list[dict[str, Any]]) -> None:
    """Refuse facts of several boots: what held in the one need not in the other."""
    boots = [facts.get("boot_id") for facts in collected]
    told_one = all(isinstance(boot, str) and boot not in ("", UNKNOWN) for boot in boots)
    if not told_one or len(set(boots)) != 1:
        told = ", ".join(sorted(set(map(str, boots))))
        raise ValueError(
            f"the facts are of more than one boot, or do not say of which ({told}): the host was restarted"
            " while it was looked at; run again"
        )


def _check_shape(storage: dict[str, Any], engines: dict[str, Any], power: dict[str, Any] | None) -> None:
    found = shape.faults(storage, engines, power)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ValueError(
            f"the facts cannot be read: {found[0]}{more}; collect them anew with this version of the collection,"
            " and send a capture (docs/capture.md) when they come back so"
        )


def _time(text: Any) -> datetime.datetime:
    if not isinstance(text, str):
        raise ValueError(f"the facts are of no time: seen {text!r}; collect them anew in this run")
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def _check_words(inputs: Inputs) -> None:
    for wrong in names.unknown(inputs.names):
        raise BadInput(wrong)
    for name, words, known_words in (
        ("durable_allow", inputs.allow, PERMISSIONS),
        ("durable_fail_on", inputs.fail_on, VERDICTS),
    ):
        if not isinstance(words, (list, tuple)) or any(word not in known_words for word in words):
            raise BadInput(f"{name}: seen {words!r}; wanted a list of {', '.join(known_words)}")
    if not isinstance(inputs.accept_data_loss, bool):
        raise BadInput(f"durable_accept_data_loss: seen {inputs.accept_data_loss!r}; wanted true or false")


def _fails(inputs: Inputs, verdict: str) -> bool:
    """Tell whether a verdict fails its host; always, when it cannot be told what should."""
    try:
        _check_words(inputs)
    except BadInput:
        return True
    return verdict in inputs.fail_on
