# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts and a profile in; verdict, rows, requirements and plan out.

The policy of the collection. Pure: no clock, no files, no Ansible; runs on a host as well.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .. import attestations
from ..attestations import Attestation
from ..catalog import LAYERS, NAMES, is_engine
from ..engines.contract import judge_of
from ..engines.placement import Placement, place
from ..host.observation import UNKNOWN
from ..profiles import BadInput, Profile, choose, known
from ..rows import MEND, Setting, Unknown
from ..storage import disk_kinds, drbd, flush_passthrough, mount_settings, multipath
from ..storage.disk_kinds import CONTAINERS
from ..storage.raid_controllers import volume
from . import (
    chosen_layers,
    counted,
    engines,
    guard,
    managed,
    plan,
    prices,
    promises,
    recommendation,
    requirements,
    scheduling,
    settings,
    shape,
    stack,
    unit_mounts,
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
#: Seconds after which a host goes back by itself; the least that leaves time to boot, and the most.
UNDO_AFTER, _LEAST_UNDO, _MOST_UNDO = 900, 60, 86400
#: Permissions that durable_allow may give.
PERMISSIONS = ("restart_engines", "reboot", "alter_system")
#: What is changed of a disk that a layer over it is made by.
_CACHE_SETTINGS = ("write_cache", "kernel_cache_mode")
#: Names of processes in one warning.
_WRITERS = 5
_UNPINNED = "no durable_profile is pinned: nothing is changed; pin one in the inventory's group_vars"
_NO_ENGINES: dict[str, Any] = {"time": "", "engines": [], "unattributed": [], "writers": []}
#: Facts older than this, by the controller's clock, are last run's (a fact cache keeps them).
_MAX_AGE = datetime.timedelta(hours=1)
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)


class Inputs(NamedTuple):
    """What the inventory says of one host, as written; read by `assess`.

    `ups` is `durable_ups` without the password of its monitor; `names` are those of all variables of the
    host, to find one that is misspelt. `benchmark` is the text of the one that was kept of it, '' for none and None for
    one that cannot be read.
    """

    profile: Any = None
    shipped: Any = None
    own: Any = None
    overrides: Any = None
    attestations: Any = None
    mounts: Any = None
    databases: Any = None
    mount_profiles: Any = None
    ignore: Any = None
    allow: Any = ()
    layers: Any = None
    accept_data_loss: Any = False
    undo_after: Any = UNDO_AFTER
    fail_on: Any = FAIL_ON
    ups: Any = None
    rate: bool = False
    names: Any = ()
    benchmark: str | None = ""


class Case(NamedTuple):
    """One host as it is judged: what its owner says, what was observed, and the mounts that count.

    `power` is `durable_power`, None where nobody asked for it; `asked` is what `durable_ups` says; `words`
    are the attestations in force, `expired` the others by where they are written; `today` an ISO 8601 date.
    `engines` is `durable_engines` but for those that are only listed: `standings` has them all, with
    `durable_ignore` in `ignoring`. `temporary`: (mount point, why it is not judged) of those that hold only temporary
    files. `entries`: `durable_mount_profiles` by path; `placed`: where each of `engines` keeps its files. `layers`: those that a
    run may touch.
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
    entries: Mapping[str, promises.Entry] = MappingProxyType({})
    placed: tuple[tuple[dict[str, Any], Placement], ...] = ()
    temporary: tuple[tuple[str, str], ...] = ()
    standings: tuple[counted.Standing, ...] = ()
    ignoring: counted.Ignoring = counted.Ignoring()
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
    storage = {**storage, "mounts": requirements.vouched(storage["mounts"], words)}
    ignoring = counted.read(inputs.ignore, inputs.databases, today)
    standings = counted.standings(found_engines, inputs.databases, ignoring.entries)
    judged = counted.judged(standings)
    entries = promises.read(inputs.mount_profiles, inputs.shipped, inputs.own)
    mounts = managed.mounts_of(inputs.mounts, inputs.databases, storage, judged, entries)
    placed = tuple((each, place(each, storage)) for each in judged)
    case = Case(
        inputs,
        storage,
        found_engines if found_engines is _NO_ENGINES else {**found_engines, "engines": judged},
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
        chosen_layers.read(inputs.layers),
    )
    listed = {
        "engines": [engines.told(each, storage) for each in standings],
        "ignored": [each.as_dict() for each in ignoring.entries],
        "mounts": _mounts(case.mounts, case.temporary),
    }
    said = [word._asdict() for word in words]
    ratings = {}
    if inputs.rate or inputs.profile is None:
        ratings = rate(case)
    if inputs.profile is None:
        told, exposed = _now(case)
        reasons = [*(why for _verdict, why in told), _UNPINNED]
        if not ratings:
            reasons.append("nothing to rate: no file system on a block device is mounted for writing")
        if storage["leased"] != "no":
            reasons.append(
                "a guard may take barriers away here; durable.dbhost.release_db takes its lease back"
            )
        beside = {
            "ratings": ratings,
            "recommendation": _recommended(case, ratings),
            "exposed": exposed,
            "power": ups.section(power),
            "stack": stack.of(case.mounts, storage),
            "attestations": said,
            "warnings": [*_unmatched(case), *_not_judged(case)],
        }
        return {**_empty(inputs, told[0][0] if told else "not_managed", reasons), **listed, **beside}
    profile, pinned = choose(inputs.profile, inputs.shipped, inputs.own, inputs.overrides)
    if storage["fstab_error"]:
        raise BadInput(storage["fstab_error"])
    if not mounts and not any(case.engines[kind] for kind in ("engines", "unattributed")):
        why = (
            "no database engine was found, and no managed mount: list them in durable_mounts, or the"
            " databases' paths in durable_databases"
        )
        nothing = {
            **_empty(inputs, "not_applicable", [why, *_not_judged(case)]),
            "attestations": said,
            "warnings": list(_unmatched(case)),
            **listed,
            "ratings": ratings,
        }
        return _withdrawn(nothing, storage, power, case.layers)
    found = _find(case, profile, pinned)
    listed["mounts"] = _mounts(found.mounts, case.temporary)
    beside = {"ratings": ratings, "recommendation": _recommended(case, ratings)}
    return {**_summary(case, found), **listed, **beside}


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
            found = _find(case, profile, pinned)
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
            "verdict": _verdict(found),
            "after": _verdict(found._replace(rows=kept, risks=list(found.lasting))),
            "changes": plan.changes(steps, found.planned),
            "unmet": [need._asdict() for need in found.needed if need.state in ("unmet", "unverified")],
            "why": _reasons(found._replace(rows=kept)),
        }
    return ratings


def _now(case: Case) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (verdict, reason) of what is at risk or unknown now on a host that nobody has pinned, worst first, and what
    was exposed by it.

    It is what any profile that promises durability finds. A host without a database has nothing to lose.
    """
    if not case.mounts and not any(case.engines[kind] for kind in ("engines", "unattributed")):
        return [], []
    profile, pinned = choose(next(iter(_promising(case.inputs))), case.inputs.shipped, case.inputs.own, None)
    found = _find(case._replace(layers=chosen_layers.read(None)), profile, pinned)
    told = [(verdict, why) for verdict, why in _told(found) if verdict in ("at_risk", UNKNOWN)]
    return [(verdict, _pin_first(why)) for verdict, why in told], list(found.exposed)


def _pin_first(why: str) -> str:
    """Return a reason whose remedy is a run, which changes nothing here."""
    return why.replace("; run harden-db", "; pin a profile, then run harden-db")


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


class Findings(NamedTuple):
    """What holding facts against a profile found, before it is summed up.

    `promises`: whether any mount or engine is to keep its commits; `mounts`: the managed ones, each with its profile.
    `exposed`: the checks for damage that may be there already; `withheld`: names of profiles of which not every
    requirement is met, so that nothing that is held to them may become less strict. `lasting`: the servers that will
    lose commits, or may, whatever this run sets. `lease`: what the guard is to be allowed, None for nothing.
    `left_out`: layers that `durable_layers` leaves out, and that would make something safer.
    """

    promises: bool
    mounts: list[dict[str, Any]]
    rows: tuple[Setting, ...]
    needed: list[Requirement]
    risks: list[str]
    unknowns: list[Unknown]
    warnings: tuple[str, ...]
    exposed: tuple[str, ...]
    withheld: frozenset[str]
    lasting: tuple[str, ...] = ()
    lease: guard.Lease | None = None
    left_out: tuple[str, ...] = ()

    def withholds(self, row: Setting) -> bool:
        """Tell whether a row's loosening waits for a requirement."""
        return row.phase == "loosen" and row.profile in self.withheld

    @property
    def planned(self) -> list[Setting]:
        """Return the rows without those whose loosening waits."""
        return [row for row in self.rows if not self.withholds(row)]


def _find(case: Case, profile: Profile, pinned: Profile) -> Findings:
    """Return what holding a host against a profile finds; some of its mounts may have others. Raises BadInput."""
    inputs, storage, words = case.inputs, case.storage, case.words
    mounts = promises.of_mounts(case.mounts, case.entries, profile, pinned)
    disks, unknowns = _leaves(storage, mounts)
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
    of_storage = _risks(lasting, promises.below(lasting, disks), words, guarded.held)
    found = engines.assess(
        case.engines,
        held_to,
        storage,
        lambda disk: requirements.fua_honoured(disk, words),
        inputs.allow,
        lambda instance: bool(of_guard or of_storage) and _lies_on_loss(case, instance, guarded.held),
    )
    unknowns += [*found.unknowns, *_unplaced(case), *dict.fromkeys(_not_found(case))]
    names = frozenset(each.name for each in every)
    withheld = names if unknowns or found.lasting else unmet
    guarded = guarded.within(withheld, storage["leased"])
    rows, left_out = chosen_layers.leave_out([*_rows(case, mounts, guarded, disks), *found.rows], case.layers)
    if left_out:
        withheld = names
        guarded = guarded.within(withheld, storage["leased"])
        rows = chosen_layers.leave_out([*_rows(case, mounts, guarded, disks), *found.rows], case.layers)[0]
    return Findings(
        is_promised,
        mounts,
        tuple(rows),
        requirements.with_attestations(needed, storage, case.today),
        [*of_guard, *(risk.told(rows) for risk in of_storage), *found.risks],
        unknowns,
        (
            *_contained(case),
            *found.warnings,
            *_not_asked(case),
            *unit_mounts.not_checked(case.engines["engines"], storage),
            *_unmatched(case),
            *_not_judged(case),
            *promises.shared(disks, mounts),
            *(
                f"{mount['target']}: {_lost(mount)}"
                for mount in mounts
                if is_promised and not _has_to_last(mount)
            ),
            *_writers(case),
            *_substitute_names(disks),
            *_behind(case),
            *_limited(case),
            *guarded.warnings,
            *_slow(rows),
        ),
        found.exposed,
        withheld,
        found.lasting,
        guarded.lease,
        left_out,
    )


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
        rows = settings.of_mount(mount, mount["profile"], case.storage["kernel"])
        needed += requirements.of_barriers(rows)
    return [*needed, *(need for _mount, need in torn)]


def _needed(
    case: Case, scopes: list[promises.Scope], common: list[Requirement]
) -> tuple[list[Requirement], frozenset[str], Guarded]:
    """Return all requirements of a host, the names of the profiles of which not all are met, and what a guard changes."""
    accepts = case.inputs.accept_data_loss is True
    needs = [(scope, requirements.of_host(*scope, case.words, accepts)) for scope in scopes]
    on_ups = [(scope, own) for scope, own in needs if scope.profile.rests_on == "ups"]
    guarded = guarded_by(
        (on_ups or needs)[0][0].profile,
        [*(need for _scope, own in on_ups for need in own), *common],
        case.storage,
        [mount for scope, _own in on_ups for mount in scope.mounts],
        [disk for scope, _own in on_ups for disk in scope.disks],
        ups_asked=case.asked,
        power=case.power,
        words=case.words,
        units=[instance["unit"] for instance in case.engines["engines"] if instance["unit"]],
        today=case.today,
    )
    others = [(scope, own) for scope, own in needs if scope.profile.rests_on != "ups"]
    unmet = [scope for scope, own in others if not requirements.hold([*own, *common])]
    unmet += [scope for scope, _own in on_ups if not requirements.hold(guarded.needed)]
    every = [*(need for _scope, own in others for need in own), *guarded.needed]
    return list(dict.fromkeys(every)), frozenset(scope.profile.name for scope in unmet), guarded


def _rows(
    case: Case, mounts: list[dict[str, Any]], guarded: Guarded, disks: list[dict[str, Any]]
) -> Iterator[Setting]:
    """Yield the rows of everything but the engines."""
    storage, words = case.storage, case.words
    yield from (row._replace(profile=guarded.profile) for row in guarded.rows)
    for mount in mounts:
        for row in settings.of_mount(mount, mount["profile"], storage["kernel"]):
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
    return {
        **nothing,
        "settings": [row.as_dict() for row in rows],
        "plan": steps,
        "steps": plan.steps(steps, rows, (), None),
        "changes": plan.changes(steps, rows),
        "files": plan.files(steps, rows, [], power),
        "why": [*nothing["why"], *(_reason(row) for row in rows)],
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


def _not_judged(case: Case) -> Iterator[str]:
    """Yield the mounts and servers that are only listed, how they would count, and what is wrong with who ignores them."""
    yield from (f"{target}: {why}" for target, why in case.temporary)
    yield from counted.notes(
        case.standings, case.ignoring if case.engines is not _NO_ENGINES else counted.Ignoring()
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


def _substitute_names(disks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the disks below managed mounts whose id is not their own, and in which way it can come to mean another."""
    for disk in disks:
        risk = disk["evidence"]["id"]["reason"]
        if disk["id"] and risk:
            yield f"{disk['name']} goes by {disk['id']}: {risk}; {disk_kinds.named_by(disk['place'])}"


def _contained(case: Case) -> Iterator[str]:
    """Yield that this is no host of its own."""
    word = case.storage["virtualization"]
    if word in CONTAINERS:
        yield (
            f"this is a container ({word}): its disks, mounts and next boot are its host's; run on that host, which finds"
            " the engines in it"
        )


def _behind(case: Case) -> Iterator[str]:
    """Yield that a peer would not have all commits if it took over now."""
    for said in dict.fromkeys(said for mount in case.mounts for said in drbd.behind(mount)):
        yield f"{said}: one that is not, and takes over, has not all commits; see drbdadm status"


def _limited(case: Case) -> Iterator[str]:
    """Yield that writes do not wait for ever for a path."""
    every = dict.fromkeys(found for mount in case.mounts for found in multipath.queueing(mount))
    for found in every:
        if found.persisted == multipath.LIMITED:
            yield (
                f"{found.label}: when no path has come back within its no_path_retry, writes end in errors, and the servers on"
                " it have to stop"
            )


def _not_asked(case: Case) -> Iterator[str]:
    """Yield that nobody looked for engines."""
    if case.engines is _NO_ENGINES:
        yield "nobody looked for database engines: how they commit is not part of this verdict"


def _not_found(case: Case) -> Iterator[Unknown]:
    """Yield the engines and servers that the inventory names, and that were looked for and not found."""
    if case.engines is _NO_ENGINES:
        return
    here = {instance["engine"] for instance in case.engines["engines"]}
    for entry in case.inputs.databases or ():
        name = str(entry["engine"])
        engine, paths = NAMES.get(name, name), ", ".join(entry["paths"])
        of_engine = [where for instance, where in case.placed if instance["engine"] == engine]
        if engine not in here:
            yield Unknown(
                f"durable_databases names {name}, and none was found: nothing is known of how it commits",
                "start or install it where it can be found, or take the entry out",
            )
        elif not any(managed.is_on(where, entry, case.storage) for where in of_engine):
            yield Unknown(
                f"durable_databases names {name} on {paths}, and no {engine} that was found has anything there: nothing is"
                " known of how it commits",
                "start it where it can be found, or correct the paths; list what holds no server in durable_mounts",
            )


def _unmatched(case: Case) -> Iterator[str]:
    """Yield the attestations that are about no disk or layer of this host: nothing rests on them."""
    layers = (layer for mount in case.storage["mounts"] for layer in mount["stack"])
    names = {
        *(disk["id"] for disk in case.storage["disks"]),
        *(layer["id"] for layer in layers if requirements.can_vouch(layer)),
    }
    ids = sorted(filter(None, names))
    for word in case.words:
        if word.target not in (attestations.HOST, *ids):
            yield (
                f"an attestation of {word.claim} by {word.by} is about {word.target}, and no disk here has that id, nor a"
                f" layer that is not understood: it counts for nothing; wanted {', '.join((attestations.HOST, *ids))}"
            )


def _unplaced(case: Case) -> Iterator[Unknown]:
    """Yield what an engine keeps where nothing is promised for it."""
    managed_devices = {mount["device"] for mount in case.mounts}
    for instance, where in case.placed:
        label = f"{instance['engine']} {instance['name']}"
        if not where.mounts and not where.unknown:
            yield Unknown(f"{label}: where it keeps its files is not known", judge_of(instance).how_to_find)
        yield from (Unknown(f"{label}: {reason}") for reason in where.unknown)
        for mount in where.mounts:
            if mount["device"] not in managed_devices:
                held = f"files on {mount['target']} ({where.examples[mount['device']]})"
                yield Unknown(f"{label} keeps {held}, which is not managed", "list it in durable_mounts")


def _summary(case: Case, found: Findings) -> dict[str, Any]:
    steps = plan.build(found.planned, True)
    lease = found.lease.as_dict() if found.lease else None
    return {
        **_empty(case.inputs, _verdict(found), _reasons(found)),
        "settings": [row.as_dict() for row in found.rows],
        "requirements": [need._asdict() for need in found.needed],
        "pending": [_pending(row) for row in found.rows if _will_wait(row, found)],
        "attestations": [word._asdict() for word in case.words],
        "plan": steps,
        "changes": plan.changes(steps, found.planned),
        "files": plan.files(steps, found.planned, case.engines["engines"], case.power),
        "warnings": list(found.warnings),
        "exposed": list(found.exposed),
        "stack": stack.of(case.mounts, case.storage),
        "power": ups.section(case.power),
        "lease": lease,
        "steps": plan.steps(steps, found.planned, case.inputs.allow, lease),
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
            reasons.append(
                Unknown(f"{mount['target']}: {mount['evidence']['disks']['reason']}", _how_to_vouch(mount))
            )
        elif not mount["disks"] or not mount["disks_seen"]:
            reasons.append(Unknown(f"{mount['target']}: nothing is known of the disks below it"))
        # Also where a layer between is not understood: what is safer stays safer.
        for name in mount["disks_seen"]:
            if name in by_name:
                names[name] = None
            else:
                reasons.append(Unknown(f"{mount['target']}: nothing is known of its disk {name}"))
    return [by_name[name] for name in names], reasons


def _how_to_vouch(mount: dict[str, Any]) -> str:
    """Return what to do where the layers below a mount are not understood."""
    ids = dict.fromkeys(layer["id"] for layer in mount["stack"] if requirements.can_vouch(layer))
    if not ids:
        return MEND
    about = " and ".join(ids)
    return f"move the data; or, if you know that each flush passes through it, attest layer_passes_flushes of {about}"


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
        layer for mount in mounts for layer in flush_passthrough.layers(mount) if layer.cache_mode != UNKNOWN
    )
    unflushed = dict.fromkeys(found for mount in mounts for found in drbd.unflushed(mount))
    early_ack = _labels(layer for mount in mounts for layer in flush_passthrough.early_ack(mount))
    for disk in disks:
        cache = disk["write_cache"]
        if requirements.outlives_power(disk, words):
            continue
        lost = f"commits since the last flush on {disk['name']} can vanish"
        target = disk["id"] or disk["name"]
        wrong = requirements.fault_of_volume(disk)
        if wrong and volume.is_exposed(disk["raid"]):
            why = f"commits on {disk['name']} can vanish: {wrong.why}"
            found.append(Risk(why, target, "write_cache", f"{wrong.remedy} {disk['place']}"))
        if disk["flush"] == "owed":
            found.append(
                Risk(f"{lost}: a run ended before it flushed that disk", target, "flush", "run harden-db")
            )
        if cache["kernel"] == "write through" and cache["device"] == "enabled":
            why = f"{lost}: its kernel cache mode is write through, so the kernel never flushes it"
            found.append(Risk(why, target, "kernel_cache_mode", "run harden-db"))
        found += [
            Risk(f"{lost}: {mounted} is mounted without barriers", mounted, "barrier", _BARRIERS)
            for mounted in bare.get(disk["name"], ())
        ]
        found += [
            Risk(
                f"{lost}: {layer} passes no flush on",
                layer,
                "layer_cache_mode",
                "reboot, so that it is made anew",
            )
            for layer in flush_blocked_by.get(disk["name"], ())
        ]
        found += [
            Risk(
                f"{lost}: {layer.label} (DRBD) is set to {said}",
                layer.label,
                "flush",
                requirements.DRBD_REMEDY,
            )
            for layer, said in unflushed
            if disk["name"] in layer.disks
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
    if not found.promises:
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
    if found.promises:
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
    # A layer over disks is made anew where the run has changed what it is made over.
    over = [(disk, setting) for disk in row.evidence.get("below", ()) for setting in _CACHE_SETTINGS]
    return {
        "layer": row.layer,
        "target": row.target,
        "setting": row.setting,
        "needs": layer.needs,
        "why": str(layer.waits.get(row.setting, layer.waits.get(""))),
        # What has to be changed before it: a run reboots only for what it has changed itself.
        "after": [f"{target} {setting}" for target, setting in over or [(row.target, row.setting)]],
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
        "recommendation": None,
        "warnings": [],
        "exposed": [],
        "engines": [],
        "ignored": [],
        "mounts": [],
        "stack": {"mounts": [], "disks": []},
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
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"the facts are of no time: seen {text!r}; collect them anew in this run")
    # strptime asks the locale for the names of days, once in each process that Ansible makes for a host.
    year, month, day, hour, minute, second = map(int, found.groups())
    return datetime.datetime(year, month, day, hour, minute, second)


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
    if not undo_is_valid(inputs.undo_after):
        raise BadInput(
            f"durable_undo_after: seen {inputs.undo_after!r}; wanted whole seconds from {_LEAST_UNDO} to {_MOST_UNDO}, or 0"
            " for no dead man's switch"
        )


def undo_is_valid(seconds: Any) -> bool:
    """Tell whether a value is one for `durable_undo_after`."""
    return (
        isinstance(seconds, int)
        and not isinstance(seconds, bool)
        and (seconds == 0 or _LEAST_UNDO <= seconds <= _MOST_UNDO)
    )


def _fails(inputs: Inputs, verdict: str) -> bool:
    """Tell whether a verdict fails its host; always, when it cannot be told what should."""
    try:
        _check_words(inputs)
    except BadInput:
        return True
    return verdict in inputs.fail_on
