# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host for its assessment: declarations, facts and managed mounts. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ...engines.placement import Placement, place
from ...facts.engines import EnginesFacts, InstanceFacts
from ...facts.storage import MountFacts, StorageFacts
from ...facts.ups import PowerFacts
from ...rows import Reason
from ..expect import engine_scope, managed
from ..expect.declared import Declared
from . import requirements
from .facts_check import NO_ENGINES


class Case(NamedTuple):
    """One host for its assessment.

    `power` is `durable_power`, None if it was not collected; `today` an ISO 8601 date. `engines` is `durable_engines` without
    the instances that are only listed: `standings` has all. `placed`: where each of `engines` stores its files, in their order.
    `mounts`: the managed ones; `lost`: paths of the inventory that are on no mount.
    """

    declared: Declared
    storage: StorageFacts
    engines: EnginesFacts
    power: PowerFacts | None
    today: str
    standings: tuple[engine_scope.Standing, ...]
    placed: tuple[tuple[InstanceFacts, Placement], ...]
    mounts: list[MountFacts]
    lost: tuple[Reason, ...]

    @property
    def is_empty(self) -> bool:
        """Return whether the host has no managed mount, and nothing that is or may be an engine."""
        no_mounts = not self.mounts and not self.lost
        return no_mounts and not any(self.engines[kind] for kind in ("engines", "unattributed"))

    @property
    def temporary(self) -> tuple[tuple[str, str], ...]:
        """Return (mount point, why it is not assessed) of mounts with temporary files only."""
        found = managed.temporary(self.placed, self.mounts)
        return tuple(
            (target, f"it holds nothing but temporary files of {', '.join(who)}: not assessed")
            for target, who in found.items()
        )


def of(
    declared: Declared,
    storage: StorageFacts,
    found_engines: EnginesFacts,
    power: PowerFacts | None,
    today: str,
) -> Case:
    """Return a host for its assessment. Raises BadInput."""
    inputs = declared.inputs
    storage = {
        **storage,
        "mounts": requirements.with_attested_layers(storage["mounts"], declared.attestations),
    }
    standings = engine_scope.standings(found_engines, inputs.databases, declared.ignoring.entries)
    judged = engine_scope.judged(standings)
    lost: list[Reason] = []
    mounts = managed.mounts_of(inputs.mounts, inputs.databases, storage, judged, declared.entries, lost)
    return Case(
        declared,
        storage,
        engines=found_engines if found_engines is NO_ENGINES else {**found_engines, "engines": judged},
        power=power,
        today=today,
        standings=tuple(standings),
        placed=tuple((each, place(each, storage)) for each in judged),
        mounts=mounts,
        lost=tuple(lost),
    )
