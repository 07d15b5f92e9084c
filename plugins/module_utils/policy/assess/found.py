# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holding a host against a profile found, before it is summed up. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ...rows import Reason, Setting
from ..expect.guarantees import Mount
from ..expect.waivers import Waivers
from . import guard
from .requirements import Requirement


class Findings(NamedTuple):
    """What holding facts against a profile found, before it is summed up.

    `promises`: whether any mount or engine is to keep its commits; `mounts`: the managed ones.
    `exposed`: the checks for damage that may be there already; `withheld`: names of profiles of which not every
    requirement is met, so that nothing that is held to them may become less strict. `lasting`: the servers that will
    lose commits, or may, whatever this run sets. `lease`: what the guard is to be allowed, None for nothing.
    `left_out`: layers that `durable_layers` leaves out, and that would make something safer. `waivers`: `durable_accept`.
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
    waivers: Waivers = Waivers()

    def withholds(self, row: Setting) -> bool:
        """Tell whether a row's loosening waits for a requirement."""
        return row.phase == "loosen" and row.profile in self.withheld

    @property
    def planned(self) -> list[Setting]:
        """Return the rows without those whose loosening waits."""
        return [row for row in self.rows if not self.withholds(row)]
