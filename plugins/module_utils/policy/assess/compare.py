# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host compared with a profile: its rows, requirements, risks and what is unknown. Pure."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...facts.storage import MountFacts
from ...host.observation import UNKNOWN
from ...host.printable import name as quoted
from ...profiles import Profile
from ...rows import Reason, Setting
from ...storage import findings, flush_passthrough
from ..expect import chosen_layers, guarantees
from ..expect.guarantees import Disk, Mount, Scope
from . import (
    engines,
    guard,
    measured,
    others,
    requirements,
    risks,
    root_image,
    scheduling,
    settings,
    unit_mounts,
    verdicts,
    warnings,
)
from .case import Case
from .found import Cause, Findings
from .guarded import Guarded, guarded_by
from .requirements import Requirement


def find(case: Case, profile: Profile, pinned: Profile) -> Findings:
    """Return the findings of a host under a profile; its mounts may have other profiles. Raises BadInput.

    `pinned`: the profile without overrides.
    """
    declared, storage = case.declared, case.storage
    mounts = guarantees.of_mounts(case.mounts, declared.entries, profile, pinned)
    leaves, unknowns = risks.leaves(storage, case.mounts)
    disks = guarantees.of_disks(leaves, mounts)
    scopes = guarantees.scopes(mounts, disks, profile, pinned)
    servers = guarantees.of_engines(case.placed, mounts, profile)
    own = _rows(case, mounts, disks)
    torn = list(requirements.of_engines(servers, mounts))
    common = [*_common(case, mounts, disks, own), *(need for _mount, need in torn)]
    needed, unmet, guarded = _needed(case, scopes, common)

    every = [each.profile for each in scopes] + [each.profile for each in servers]
    is_promised = any(each.promises_durability for each in every)
    lasting = _lasting(mounts, (mount for mount, _need in torn))
    of_guard = guard.risks(case.power) if is_promised else []
    of_storage = risks.of(lasting, guarantees.below(lasting, leaves), declared.attestations, guarded.held)
    found = engines.assess(
        servers,
        case.engines["unattributed"],
        storage,
        lambda disk: requirements.fua_honoured(disk, declared.attestations),
        declared.inputs.allow,
        declared.layers,
        lambda where: bool(of_guard or of_storage) and risks.lies_on_loss(case, where, guarded.held),
    )
    unknowns += root_image.unknowns(storage)
    unknowns += [*case.lost, *found.unknowns]
    unknowns += [*warnings.unplaced(case), *dict.fromkeys(warnings.not_found(case))]
    names = frozenset(each.name for each in every)
    # A row that is left out withholds every profile, which the rows then depend on.
    for withheld in (names if unknowns or found.lasting else unmet, names):
        guarded = guarded.within(withheld, storage["leased"])
        rows, left_out = chosen_layers.leave_out([*own.beside(guarded), *found.rows], declared.layers)
        if not left_out:
            break
    rows, slower = measured.left(rows, declared.inputs.benchmark, storage, case.today)
    image = storage["root_image"]
    rows = [root_image.of_row(_with_name(row), image) for row in rows]
    causes = _with_fixes(of_storage, rows)
    return Findings(
        promises=is_promised,
        mounts=mounts,
        rows=tuple(rows),
        needed=[
            root_image.of_need(need, image)
            for need in requirements.with_attestations(needed, storage, case.today)
        ],
        risks=[
            *of_guard,
            *risks.of_memory(servers),
            *(each.risk for each in causes),
            *found.risks,
        ],
        unknowns=[root_image.of_reason(each, image) for each in unknowns],
        warnings=(
            # The most important first: a page has few lines for them.
            *warnings.contained(case),
            *warnings.read_only(case),
            *warnings.not_collected(case),
            *warnings.behind(case),
            *found.warnings,
            *(_of_losses(mounts) if is_promised else ()),
            *warnings.writers(case),
            *warnings.limited(case),
            *warnings.without_dir_index(case),
            *warnings.torn_pages(case),
            *unit_mounts.not_checked(case.engines["engines"], storage),
            *warnings.substitute_names(leaves),
            *warnings.unmatched(case),
            *guarded.warnings,
            *guarantees.shared(disks, mounts),
            *warnings.not_judged(case),
            *verdicts.slow(rows),
            *slower,
        ),
        exposed=found.exposed,
        withheld=withheld,
        lasting=found.lasting,
        lease=guarded.lease,
        left_out=left_out,
        causes=(*causes, *found.causes),
        waivers=declared.waivers,
    )


def _with_fixes(found: Iterable[risks.Risk], rows: list[Setting]) -> list[Cause]:
    """Return the causes of risks; the fix of each depends on the rows of its host."""
    return [Cause(risk.with_fix(rows), risk.target, risk.setting) for risk in found]


def _lasting(mounts: Iterable[Mount], torn: Iterable[Mount]) -> list[MountFacts]:
    """Return the facts of the mounts that must preserve commits; `torn`: mounts that an engine needs with them."""
    return [mount.facts for mount in (*(each for each in mounts if not each.may_lose), *torn)]


class _Rows(NamedTuple):
    """All rows except those of engines and guard: those of mounts, each with its mount, and others."""

    of_mounts: tuple[tuple[Mount, Setting], ...]
    others: tuple[Setting, ...]

    def beside(self, guarded: Guarded) -> Iterator[Setting]:
        """Yield the rows with the effects of a guard, after the rows of the guard."""
        yield from (row._replace(profile=guarded.profile) for row in guarded.rows)
        for mount, row in self.of_mounts:
            yield others.apply(guarded.of_mount(row, mount)._replace(profile=mount.profile.name))
        yield from self.others


def _rows(case: Case, mounts: list[Mount], disks: list[Disk]) -> _Rows:
    """Return all rows except those of engines and guard."""
    boot = settings.Boot.of(case.storage)
    attestations = case.declared.attestations
    safe = {disk.facts["name"] for disk in disks if requirements.outlives_power(disk.facts, attestations)}
    of_mounts = (
        (mount, row)
        for mount in mounts
        for row in settings.of_mount(mount.facts, mount.profile, boot, not _all_in(safe, mount.facts))
    )
    return _Rows(tuple(of_mounts), tuple(map(others.apply, _other_rows(case, mounts, disks))))


def _all_in(safe: set[str], mount: MountFacts) -> bool:
    """Return whether all disks below a mount are known and among the safe ones."""
    names = mount["disks"]
    return names != UNKNOWN and bool(names) and safe.issuperset(names)


def _other_rows(case: Case, mounts: list[Mount], disks: list[Disk]) -> Iterator[Setting]:
    storage, attestations = case.storage, case.declared.attestations
    facts = [mount.facts for mount in mounts]
    yield from settings.of_boot(storage["boot_faults"], facts, storage["mounts"], storage["kernel"])
    yield from unit_mounts.rows(case.engines["engines"], storage)
    for disk, profile in disks:
        attestation = requirements.attestation_for(profile, disk, attestations)
        for row in settings.of_disk(disk, profile, attestation.sentence if attestation else None):
            yield row._replace(profile=profile.name)
    lossy = [disk for disk in disks if not requirements.is_protected(disk.facts, attestations)]
    yield from settings.of_layers(facts, lossy, flush_passthrough.early(storage["mounts"]))
    yield from settings.of_multipath(facts)
    yield from scheduling.rows(mounts, disks, storage["tuned"])


def _with_name(row: Setting) -> Setting:
    """Return a row whose texts quote the name of its target, unless quotes are unnecessary."""
    shown = quoted(row.target)
    if shown == row.target:
        return row
    # In a command the name is quoted already.
    argument = shlex.quote(row.target)
    why, remedy = (
        argument.join(part.replace(row.target, shown) for part in text.split(argument))
        for text in (row.why, row.remedy)
    )
    return row._replace(why=why, remedy=remedy)


def _of_losses(mounts: Iterable[Mount]) -> Iterator[Reason]:
    """Yield a warning for each mount whose profile may lose commits."""
    for mount in mounts:
        if mount.may_lose:
            target = mount.facts["target"]
            yield findings.LOSS_AS_ASKED.found(target, mount=target, what=mount.may_lose)


def _common(case: Case, mounts: list[Mount], disks: list[Disk], own: _Rows) -> list[Requirement]:
    """Return the requirements for any loosening of the host, under every profile."""
    needed = requirements.of_expired(case.declared.expired)
    facts = [mount.facts for mount in mounts]
    for profile in dict.fromkeys(disk.profile for disk in disks):
        of_profile = [disk.facts for disk in disks if disk.profile == profile]
        needed += requirements.of_neighbours(profile, case.storage["mounts"], facts, of_profile)
    needed += requirements.of_barriers(row for mount, row in own.of_mounts if not mount.may_lose)
    return needed


def _needed(
    case: Case, scopes: list[Scope], common: list[Requirement]
) -> tuple[list[Requirement], frozenset[str], Guarded]:
    """Return all requirements of a host, the names of the profiles of which not all are met, and what a guard changes."""
    declared = case.declared
    accepts = declared.inputs.accept_data_loss is True
    needs = [(scope, requirements.of_host(*scope, declared.attestations, accepts)) for scope in scopes]
    on_ups = [(scope, own) for scope, own in needs if scope.profile.rests_on == "ups"]
    rest = [(scope, own) for scope, own in needs if scope.profile.rests_on != "ups"]
    guarded = guarded_by(
        (on_ups or needs)[0][0].profile,
        [*_every(on_ups), *common],
        case.storage,
        [mount for scope, _own in on_ups for mount in scope.mounts],
        [disk for scope, _own in on_ups for disk in scope.disks],
        ups_requested=declared.ups_requested,
        power=case.power,
        attestations=declared.attestations,
        units=[instance["unit"] for instance in case.engines["engines"] if instance["unit"]],
        today=case.today,
    )
    unmet = {scope.profile.name for scope, own in rest if not requirements.hold([*own, *common])}
    if not requirements.hold(guarded.needed):
        unmet |= {scope.profile.name for scope, _own in on_ups}
    return list(dict.fromkeys([*_every(rest), *guarded.needed])), frozenset(unmet), guarded


def _every(needs: Iterable[tuple[Scope, list[Requirement]]]) -> Iterator[Requirement]:
    return itertools.chain.from_iterable(own for _scope, own in needs)
