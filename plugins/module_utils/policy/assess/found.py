# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings of a comparison of a host with a profile. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ...rows import Reason, Setting
from ..expect.guarantees import Mount
from ..expect.waivers import Waivers
from . import guard
from .requirements import Requirement


class Cause(NamedTuple):
    """A risk that comes from one setting, and `target` and `setting` of the row that corrects it."""

    risk: Reason
    target: str
    setting: str


class Findings(NamedTuple):
    """The findings of a comparison of facts with a profile, before the summary.

    `promises`: whether any mount or engine must preserve its commits; `mounts`: the managed ones.
    `exposed`: checks for damage that is possible already; `withheld`: names of profiles with an unmet
    requirement: no setting under them may become less strict. `lasting`: servers that can lose commits
    with all changes of this run. `lease`: what the guard will be allowed, None for nothing.
    `left_out`: layers that `durable_layers` leaves out and that would make something safer. `causes`: of the risks that come from
    one setting, that setting. `waivers`: `durable_accept`.
    """

    promises: bool
    mounts: list[Mount]
    rows: tuple[Setting, ...]
    needed: list[Requirement]
    risks: list[Reason]
    unknowns: list[Reason]
    warnings: tuple[Reason, ...]
    exposed: tuple[str, ...]
    withheld: frozenset[str]
    lasting: tuple[str, ...] = ()
    lease: guard.Lease | None = None
    left_out: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    waivers: Waivers = Waivers()

    def withholds(self, row: Setting) -> bool:
        """Return whether a row's loosening is withheld for a requirement."""
        return row.phase == "loosen" and row.profile in self.withheld

    @property
    def planned(self) -> list[Setting]:
        """Return the rows without those whose loosening is withheld."""
        return [row for row in self.rows if not self.withholds(row)]
