# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host compared with every known profile, and without one. Pure."""

from __future__ import annotations

from ...host.observation import UNKNOWN
from ...profiles import (
    RESTS_ON,
    BadInput,
    Profile,
    choose,
    known,
)
from ...rows import RUN, Reason
from ..expect import chosen_layers, guarantees, managed
from ..expect.inputs import Inputs
from ..expect.waivers import Waivers
from ..report_types import Rating
from . import plan, verdicts
from .case import Case
from .compare import find
from .found import Findings

#: Verdicts that a host without a profile can have from its findings.
NOW = ("at_risk", UNKNOWN)


def rate(case: Case) -> dict[str, Rating]:
    """Return {profile: its rating} for every known profile."""
    inputs = case.declared.inputs
    case = case._replace(
        mounts=case.mounts or managed.everything(case.storage),
        declared=case.declared._replace(
            layers=chosen_layers.read(None),
            entries=guarantees.without_overrides(case.declared.entries),
            # Waivers are for the pinned profile.
            waivers=Waivers(),
        ),
    )
    names = known(inputs.shipped, inputs.own) if case.mounts else ()
    return {name: _rating(case, *choose(name, inputs.shipped, inputs.own, None)) for name in names}


def _rating(case: Case, profile: Profile, pinned: Profile) -> Rating:
    try:
        found = find(case, profile, pinned)
    except BadInput as error:
        # A mount has a separate profile that contradicts this one.
        return {"verdict": "blocked", "after": "blocked", "changes": [], "unmet": [], "why": [str(error)]}
    steps = plan.build(found.planned, True)
    # `changes` has what a run would set; `why` has the reasons that it does not fix.
    remaining = tuple(row for row in found.rows if row.phase is None or found.withholds(row))
    reasons = verdicts.reasons(found._replace(rows=remaining))
    return {
        "verdict": verdicts.of(found),
        "after": "at_risk" if found.lasting else verdicts.of(found._replace(rows=remaining, risks=[])),
        "changes": plan.changes(steps, found.planned),
        "unmet": [need.as_dict() for need in found.needed if need.state in ("unmet", "unverified")],
        "why": [each.text() for each in reasons if each.fix != RUN],
    }


def now(case: Case, first: str = "pin a profile") -> tuple[list[Reason], Findings | None]:
    """Return the current risks and unknown values of a host without a pinned profile, worst first, and all findings.
    `first`: the step before a run.

    Any profile that guarantees durability has the same. A host without a database has none.
    """
    if case.is_empty:
        return [], None
    inputs = case.declared.inputs
    promising = next(iter(promising_of(inputs)), None)
    if promising is None:
        raise BadInput("no profile guarantees durability")
    profile, pinned = choose(promising, inputs.shipped, inputs.own, None)
    found = find(case, profile, pinned)
    found_now = [each for each in verdicts.unaccepted(found) if each.verdict in NOW]
    # A run changes nothing here.
    found_now = [
        each._replace(fix=f"{first}, then {each.fix}")
        if each.fix.startswith(RUN) or each.fix.endswith(f", then {RUN}")
        else each
        for each in found_now
    ]
    return found_now, found


def promising_of(inputs: Inputs) -> dict[str, Profile]:
    """Return the profiles that guarantee durability by name, those with the fewest assumptions first."""
    names = known(inputs.shipped, inputs.own)
    chosen = {name: choose(name, inputs.shipped, inputs.own, None)[0] for name in names}
    # Of those with the same basis the shipped ones are first.
    shipped_first = [*(name for name in inputs.shipped or () if name in chosen), *chosen]
    ordered = sorted(shipped_first, key=lambda name: RESTS_ON.index(chosen[name].rests_on))
    return {name: chosen[name] for name in ordered if chosen[name].promises_durability}
