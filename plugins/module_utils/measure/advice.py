# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the figures of a benchmark say to people: which are not plausible, and what to set within a profile. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..facts.storage import DiskFacts
from . import variants
from .figures import Row
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
    doubted: Sequence[str],
) -> list[str]:
    """Return all lines except the doubts."""
    lines = recommend(made, rows, profiles)
    limited = [row for row in rows if row["held_back"] == "yes"]
    if limited:
        lines.append(
            f"{len(limited)} run(s) reached the limit of {made.rate} commits/s: these could be faster"
        )
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


def _delays(made: Plan, rows: Sequence[Row]) -> list[str]:
    """Return which commit_delay is the fastest on each mount, by the number of clients, if several were measured."""
    lines = []
    for place in made.places:
        rates: dict[int, dict[int | None, float]] = {}
        for row in rows:
            if (row["mount"], row["variant"]) == (place["target"], variants.AS_IT_IS):
                rates.setdefault(row["clients"], {})[row["commit_delay"]] = row["rate"]
        grouped = {clients: {k: v for k, v in of.items() if k is not None} for clients, of in rates.items()}
        best = {clients: _best_delay(of) for clients, of in sorted(grouped.items()) if len(of) > 1}
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
        if best:
            lines.append(f"{place['target']}: the fastest commit_delay of FairCom DB for {each}; {how}")
    return lines


def _best_delay(rates: Mapping[int, float]) -> int | None:
    """Return the fastest delay, None if it is faster by noise alone."""
    best = max(rates, key=lambda delay: rates[delay])
    others = [rate for delay, rate in rates.items() if delay != best]
    return best if rates[best] >= (1 + WORTH) * max(others) else None


def _settings(made: Plan, rows: Sequence[Row], profiles: Mapping[str, Mapping[str, Any]]) -> list[str]:
    by_name = {variant.name: variant for variant in made.variants if variant.is_about_speed}
    gains = {name: gain(rows, name) for name in by_name}
    best = max(gains, key=lambda name: gains[name], default=None)
    if best is None:
        return []
    if gains[best] < WORTH:
        return [f"keep the settings as they are: nothing tried was faster by {WORTH:.0%}"]
    return [f"{best}: faster by {gains[best]:.0%}; {_how(made, by_name[best], profiles)}"]


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
    setting = "atime" if variant.setting == "atime" else _scheduler_setting(made.leaves)
    if setting is None:
        return "no profile sets a scheduler for this kind of disk"
    profiles = {mount: fields for mount, fields in profiles.items() if mount in made.targets}
    if not profiles:
        return f"pin a profile, and set durable_overrides: {{{setting}: {variant.value}}}"
    if all(profile.get(setting) == variant.value for profile in profiles.values()):
        return "the pinned profile wants it already: run harden_db"
    return f"it meets the guarantee of the profile: durable_overrides: {{{setting}: {variant.value}}}"


def _scheduler_setting(leaves: Iterable[DiskFacts]) -> str | None:
    kinds = {(leaf["kind"], leaf["rotational"]) for leaf in leaves}
    if len(kinds) != 1:
        return None
    kind, rotational = kinds.pop()
    if kind == "virtual":
        return "scheduler_virtual"
    if kind != "physical":
        return None
    return {"yes": "scheduler_rotational", "no": "scheduler_solid_state"}.get(rotational)
