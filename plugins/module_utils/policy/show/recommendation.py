# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profile that fits a host best, why, and the variables that pin it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ...catalog import is_engine
from ...host.printable import yaml
from ..report_types import Rating, Recommendation

#: Verdicts after a run with which a profile fits, best first.
_FITTING = ("durable", "attested", "unverified", "pending")


def of(
    ratings: Mapping[str, Rating],
    promising: Sequence[str],
    mounts: Sequence[str],
    costs: Mapping[str, str] = MappingProxyType({}),
    of_costs: str = "",
    is_virtual: bool = False,
) -> Recommendation | None:
    """Return `profile`, `why`, what fits `also`, and `group_vars` to paste; None if no profile fits.

    `promising`: the profiles that guarantee durability, the one with the fewest requirements first; `mounts`: the mount
    points to manage; `is_virtual`: whether any of their disks is a hypervisor's. Of profiles with the same result, the
    first is recommended.
    """
    fitting = [name for name in promising if name in ratings and ratings[name]["after"] in _FITTING]
    if not fitting:
        return None
    best = min(fitting, key=lambda name: _FITTING.index(ratings[name]["after"]))
    also = [name for name in fitting if name != best and ratings[name]["after"] == ratings[best]["after"]]
    return {
        "profile": best,
        "why": [
            f"with this profile: {ratings[best]['verdict']} now, {ratings[best]['after']} after a run",
            *(_choice(ratings[best], is_virtual) if also else ()),
            *_work(ratings[best]),
            *(costs[name] for name in (best, *also) if name in costs),
            *([of_costs] if of_costs else []),
        ],
        "also": also,
        "group_vars": [*_pinned(best, mounts)],
    }


def _choice(rating: Rating, is_virtual: bool) -> Iterable[str]:
    """Yield why a profile is preferred to others with the same verdict."""
    yield "of the profiles with this verdict, it relies on the fewest assumptions"
    if is_virtual and rating["after"] == "unverified":
        yield "this guest cannot verify its hypervisor"


def _work(rating: Rating) -> Iterable[str]:
    """Yield the changes of a run, and the manual rest."""
    for what, chosen in (("disks and mounts", False), ("engines", True)):
        count = Counter(
            f"{change['setting']} {change['wanted']}"
            for change in rating["changes"]
            if is_engine(change["layer"]) == chosen
        )
        if count:
            yield f"a run sets on {what}: {', '.join(f'{setting} ({number})' for setting, number in count.items())}"
    yield from (f"to do by hand: {why}" for why in rating["why"])


def _pinned(profile: str, mounts: Sequence[str]) -> Iterable[str]:
    """Yield the YAML of the inventory's variables. Ansible must not evaluate any name of a mount."""
    yield f"durable_profile: {yaml(profile)}"
    if mounts:
        yield "durable_mounts:"
        yield from (f"  - {yaml(mount)}" for mount in mounts)
