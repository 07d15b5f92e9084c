# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advice from the figures of a benchmark: implausible rates, and settings to choose within a profile. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..facts.classes import DiskFacts
from . import variants
from .figures import Price, Row, spread_of
from .planned import Plan
from .plausible import doubt
from .plot import way
from .variants import Variant

#: A setting is recommended when it is faster by this share at least: less is noise.
WORTH = 0.1


def all_of(
    made: Plan,
    rows: Sequence[Row],
    profiles: Mapping[str, Mapping[str, Any]],
    priced: Sequence[Price],
    doubted: Sequence[str],
) -> list[str]:
    """Return all lines except the doubts."""
    lines = [*recommend(made, rows, profiles), *_profiles(made, rows, priced)]
    limited = [row for row in rows if row["held_back"] == "yes"]
    if limited:
        lines.append(
            f"{len(limited)} run(s) reached the limit of {made.rate} commits/s: these could be faster"
        )
    if rows[0]["runs"] == 1:
        lines.append("one run of each has no spread: differences can be noise. Fix: choose with runs: 3")
    first = ["do not choose by these figures before the warnings are settled"] if doubted else []
    return [*first, *lines]


def doubts(made: Plan, rows: Sequence[Row]) -> list[str]:
    """Return why some rates are not plausible; the worst of each disk."""
    found: dict[str, str] = {}
    leaves = {place["target"]: place["leaves"] for place in made.places}
    for row in sorted(rows, key=lambda row: float(row["rate"] / row["clients"])):
        for leaf in leaves[row["mount"]]:
            why = doubt(leaf, row["rate"], row["clients"])
            if why:
                found[leaf["name"]] = why
    return list(found.values())


def recommend(made: Plan, rows: Sequence[Row], profiles: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what the figures recommend within the profiles that mounts are pinned to.

    All that is measured meets a profile's guarantee: each way waits for the disk. No advice changes a guarantee.
    """
    return [*_fastest(made, rows), *_delays(made, rows), *_settings(made, rows, profiles)]


def _fastest(made: Plan, rows: Sequence[Row]) -> list[str]:
    lines = []
    for place in made.places:
        for clients in made.clients:
            here = [
                row
                for row in rows
                if (row["mount"], row["clients"], row["variant"])
                == (place["target"], clients, variants.AS_IT_IS)
                and row["server"] is None
            ]
            if here:
                best = max(here, key=lambda row: float(row["rate"]))
                lines.append(
                    f"{place['target']}, {clients} client(s): {way(best)} is the fastest way to commit, {best['mean']} ms"
                )
    return lines


def group_vars(
    made: Plan,
    rows: Sequence[Row],
    profiles: Mapping[str, Mapping[str, Any]],
    priced: Sequence[Price],
) -> list[str]:
    """Return the recommendations as lines of YAML: a profile only if it is the same on each mount."""
    found = _cheap(made, rows, priced)
    names = {name for _mount, name, _cost in found}
    lines = []
    if len(names) == 1 and {mount for mount, _name, _cost in found} == set(made.targets):
        cost = max(cost for _mount, _name, cost in found)
        lines.append(f"durable_profile: {names.pop()}  # {_cost_of(cost)}")
    overrides: dict[str, str] = {}
    for variant in _best_settings(made, rows):
        setting = _setting(made, variant)
        if setting and not _is_pinned(made, variant, setting, profiles):
            overrides[setting] = f"{variant.value}  # {gain(rows, variant.name):.0%} more commits"
    delays = {delay for best in _best_delays(made, rows).values() for delay in best.values()} - {None}
    if len(delays) == 1:
        overrides["commit_delay"] = f"{delays.pop()}  # ms, of FairCom DB"
    if overrides:
        lines += ["durable_overrides:", *(f"  {name}: {value}" for name, value in overrides.items())]
    return lines


def _best_delays(made: Plan, rows: Sequence[Row]) -> dict[str, dict[int, int | None]]:
    """Return the fastest commit_delay on each mount, by the number of clients, if several were measured."""
    found = {}
    for place in made.places:
        measured: dict[int, list[Row]] = {}
        for row in rows:
            here = (row["mount"], row["variant"]) == (place["target"], variants.AS_IT_IS)
            if here and row["commit_delay"] is not None:
                measured.setdefault(row["clients"], []).append(row)
        best = {clients: _best_delay(own) for clients, own in sorted(measured.items()) if len(own) > 1}
        if best:
            found[place["target"]] = best
    return found


def _best_delay(rows: Sequence[Row]) -> int | None:
    """Return the fastest delay, None if it is faster by noise alone."""
    best = max(rows, key=lambda row: float(row["rate"]))
    others = [row for row in rows if row is not best]
    effect = best["rate"] / max(row["rate"] for row in others) - 1
    return best["commit_delay"] if effect >= max(WORTH, spread_of(rows)) else None


def _delays(made: Plan, rows: Sequence[Row]) -> list[str]:
    """Return a line for each mount on which several delays were measured."""
    lines = []
    for target, best in _best_delays(made, rows).items():
        chosen = {delay for delay in best.values() if delay is not None}
        each = ", ".join(
            f"{clients} client(s): {'no difference' if delay is None else delay}"
            for clients, delay in best.items()
        )
        how = "leave commit_delay unchanged"
        if len(chosen) == 1:
            how = f"durable_overrides: {{commit_delay: {chosen.pop()}}}"
        elif chosen:
            how = "durable_overrides: {commit_delay: N}, by the number of clients that commit at once"
        lines.append(f"{target}: the fastest commit_delay of FairCom DB for {each}; {how}")
    return lines


def _settings(made: Plan, rows: Sequence[Row], profiles: Mapping[str, Mapping[str, Any]]) -> list[str]:
    tried = [variant for variant in made.variants if variant.is_about_speed]
    best = _best_settings(made, rows)
    lines = [
        f"{variant.name}: faster by {gain(rows, variant.name):.0%}; {_how(made, variant, profiles)}"
        for variant in best
    ]
    lines += [
        f"{variant.name}: observed {gain(rows, variant.name):+.0%}, but runs of the same setting differ by"
        f" {_spread(rows, variant.name):.0%}. Fix: measure on a quiet host, with more seconds"
        for variant in tried
        if abs(gain(rows, variant.name)) >= WORTH and not _is_clear(rows, variant.name)
    ]
    if tried and not best:
        lines.append(f"keep the settings as they are: nothing tried was clearly faster by {WORTH:.0%}")
    return lines


def _best_settings(made: Plan, rows: Sequence[Row]) -> list[Variant]:
    """Return the fastest value of each kind of setting, if it is faster by more than noise."""
    found: dict[str, Variant] = {}
    for variant in made.variants:
        if variant.is_about_speed and gain(rows, variant.name) >= WORTH and _is_clear(rows, variant.name):
            other = found.get(variant.setting)
            if other is None or gain(rows, variant.name) > gain(rows, other.name):
                found[variant.setting] = variant
    return list(found.values())


def _is_clear(rows: Sequence[Row], name: str) -> bool:
    """Return whether a setting differs from what is as it is by more than the runs of either."""
    return abs(gain(rows, name)) > _spread(rows, name)


def _spread(rows: Sequence[Row], name: str) -> float:
    points = {_point(row) for row in rows if row["variant"] == name}
    return spread_of(
        row for row in rows if row["variant"] in (name, variants.AS_IT_IS) and _point(row) in points
    )


def _profiles(made: Plan, rows: Sequence[Row], priced: Sequence[Price]) -> list[str]:
    """Return what profiles with other caches than now cost, and which are cheap."""
    lines = []
    cheap = {(mount, name) for mount, name, _cost in _cheap(made, rows, priced)}
    for price in _other(priced):
        cost, spread = _cost(price), _spread(rows, str(price["variant"]))
        why = "choose by the guarantee that you need"
        if (price["mount"], price["profile"]) in cheap:
            why = f"durable_profile: {price['profile']}, which depends on no flush, is worth it"
        lines.append(f"{price['mount']}: {price['profile']} is {_cost_of(cost)}; {why}")
        if abs(cost) < spread:
            lines.append(
                f"{price['mount']}: runs of the same setting differ by {spread:.0%}, more than {price['profile']} and the present"
                " settings do. Fix: measure on a quiet host, with more seconds, before you choose by cost"
            )
    return lines


def _cheap(made: Plan, rows: Sequence[Row], priced: Sequence[Price]) -> list[tuple[str, str, float]]:
    """Return (mount, profile, cost) of those with the cache off that cost little, and more than noise could hide."""
    return [
        (price["mount"], price["profile"], _cost(price))
        for price in _other(priced)
        if max(_cost(price), 0.0) + _spread(rows, str(price["variant"])) < WORTH
        and price["mount"] in made.targets
    ]


def _other(priced: Sequence[Price]) -> list[Price]:
    return [price for price in priced if price["variant"] == variants.CACHE_OFF and price["rates"]]


def _cost(price: Price) -> float:
    """Return by which share the commits of a profile are fewer than now, the geometric mean over what was measured."""
    ratios = [max(rate["of_now"], 0.001) for rate in price["rates"]]
    return float(1 - math.prod(ratios) ** (1 / len(ratios)))


def _cost_of(cost: float) -> str:
    return f"{abs(cost):.0%} {'slower' if cost >= 0 else 'faster'} than the present settings"


def gain(rows: Sequence[Row], name: str) -> float:
    """Return by which share the commits of a variant are faster, the geometric mean over what was measured."""
    was = {_point(row): row["rate"] for row in rows if row["variant"] == variants.AS_IT_IS}
    ratios = [row["rate"] / was[_point(row)] for row in rows if row["variant"] == name]
    return math.prod(ratios) ** (1 / len(ratios)) - 1 if ratios else 0.0


def _point(row: Row) -> tuple[str, str, int | None, int]:
    return row["mount"], row["pattern"], row["commit_delay"], row["clients"]


def _how(made: Plan, variant: Variant, profiles: Mapping[str, Mapping[str, Any]]) -> str:
    if variant.setting == "sync":
        return "no profile sets it: put it into fstab by hand, if slower buffered writes are acceptable"
    setting = _setting(made, variant)
    if setting is None:
        return "no profile sets a scheduler for this kind of disk"
    if _is_pinned(made, variant, setting, profiles):
        return "the pinned profile wants it already: run harden_db"
    if not _of_targets(made, profiles):
        return f"pin a profile, and set durable_overrides: {{{setting}: {variant.value}}}"
    return f"it meets the guarantee of the profile: durable_overrides: {{{setting}: {variant.value}}}"


def _setting(made: Plan, variant: Variant) -> str | None:
    """Return the key of a profile that sets a variant, None without one."""
    if variant.setting == "sync":
        return None
    return "atime" if variant.setting == "atime" else scheduler_setting(made.leaves)


def _is_pinned(made: Plan, variant: Variant, setting: str, profiles: Mapping[str, Mapping[str, Any]]) -> bool:
    own = _of_targets(made, profiles)
    return bool(own) and all(profile.get(setting) == variant.value for profile in own)


def _of_targets(made: Plan, profiles: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [fields for mount, fields in profiles.items() if mount in made.targets]


def scheduler_setting(leaves: Iterable[DiskFacts]) -> str | None:
    """Return the key of a profile that sets the scheduler of these disks, None without one."""
    kinds = {(leaf["kind"], leaf["rotational"]) for leaf in leaves}
    if len(kinds) != 1:
        return None
    kind, rotational = kinds.pop()
    if kind == "virtual":
        return "scheduler_virtual"
    if kind != "physical":
        return None
    return {"yes": "scheduler_rotational", "no": "scheduler_solid_state"}.get(rotational)
