# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The effects of a UPS and its guard on a host's assessment: requirements, rows and the lease. Pure."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from ...attestations import Attestation
from ...facts.storage import DiskFacts, MountFacts, StorageFacts
from ...facts.ups import PowerFacts
from ...profiles import Profile
from ...rows import Reason, Setting
from ...ups import findings
from ..expect.guarantees import Mount
from ..expect.ups_inputs import Requested
from . import (
    budgets,
    guard,
    power_settings,
    requirements,
    ups,
)
from .requirements import Requirement


class Guarded(NamedTuple):
    """The findings about a UPS and a guard, for the profile of this name.

    `needed`: all requirements of the host, those on the UPS as well; `rows`: of lease and monitor; `lease`:
    what the guard will be allowed, None for nothing; `held`: mount points whose barriers it has off by a valid lease.
    """

    profile: str
    power: PowerFacts | None
    needed: list[Requirement]
    rows: tuple[Setting, ...]
    lease: guard.Lease | None = None
    held: frozenset[str] = frozenset()
    warnings: tuple[Reason, ...] = ()

    def of_mount(self, row: Setting, mount: Mount) -> Setting:
        """Return a row of a mount with the effect of the guard."""
        if mount.profile.rests_on != "ups" or row.setting != "barrier":
            return row
        target = mount.facts["target"]
        may = self.lease is not None and target in self.lease.mounts
        return guard.barrier(row, mount.facts, self.power, target in self.held, may)

    def within(self, withheld: Container[str], leased: str) -> Guarded:
        """Return it for a host on which nothing under these profiles may loosen now.

        Then no other lease is written, and one that allows more than the wanted one is revoked. `leased`:
        whether the lease's file is there.
        """
        if self.profile not in withheld or self.lease is None or not guard.is_wider(self.lease, self.power):
            return self
        rows = [row for row in self.rows if row.setting != "lease"]
        removal = guard.lease(None, self.power, leased)
        return self._replace(rows=(*filter(None, [removal]), *rows), lease=None)


def guarded_by(
    profile: Profile,
    needed: list[Requirement],
    storage: StorageFacts,
    mounts: list[MountFacts],
    disks: list[DiskFacts],
    *,
    power: PowerFacts | None,
    ups_requested: Requested,
    attestations: list[Attestation],
    units: list[str],
    today: str,
) -> Guarded:
    """Return what UPS and guard change. `needed`: the other requirements of the host; `units`: the engines' services."""
    leased = storage["leased"]
    if profile.rests_on != "ups":
        row = guard.lease(None, power, leased)
        return Guarded(profile.name, power, needed, (*filter(None, [row]), *power_settings.released(power)))
    needed = [*needed, *ups.requirements(power, storage["virtualization"], disks, attestations)]
    free = tuple(mount["target"] for mount in mounts if not guard.why_not_switched(mount))
    # The monitor need not notify a guard that will not run.
    others = [need for need in needed if not power_settings.is_for_guard(need)]
    rows = power_settings.rows(power, ups_requested, for_guard=False)
    if free and requirements.hold(power_settings.planned(others, rows)):
        rows = power_settings.rows(power, ups_requested, for_guard=True)
    needed = power_settings.planned(needed, rows)
    lease = None
    if power is not None and free and requirements.hold(needed):
        changed = power_settings.changed_times(rows)
        lease = guard.Lease(
            mounts=free,
            expires=ups.last_day(needed),
            quiet=ups_requested.quiet,
            needed={name: budgets.needed(budget, changed) for name, budget in budgets.by_name(power).items()},
            test_ups=ups.is_test(needed),
            units=tuple(dict.fromkeys(units)),
        )
    row = guard.lease(lease, power, leased)
    return Guarded(
        profile.name,
        power,
        needed,
        (*filter(None, [row]), *rows),
        lease,
        guard.held(power, mounts, today),
        () if free else (findings.NOTHING_FREE.found(),),
    )
