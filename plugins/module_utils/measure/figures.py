# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a benchmark, as its module returns them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict


class Way(TypedDict):
    """How commits were written; `commit_delay` in milliseconds, None without one."""

    pattern: str
    commit_delay: int | None


class Rate(Way):
    """Commits in a second by so many clients; `server`: the version of the server that made them, None without one."""

    clients: int
    rate: float
    server: str | None


class Run(Rate):
    """The figures of one mount; `flushes_per_commit` is a number or `unknown`, `held_back` yes or no."""

    mount: str
    commits: int
    mean: float
    p99: float | None
    flushes_per_commit: float | str
    held_back: str


class Row(Run):
    """The median of several runs, with the setting that was in force.

    `spread`: the difference between the fastest and the slowest run, as a share of the median.
    """

    variant: str
    runs: int
    spread: float


class PricedRate(Rate):
    """A rate as a share of the rate with the settings in force, too."""

    of_now: float


class Price(TypedDict):
    """What a profile costs on a mount; `variant` is None without a price, for the reason `why`."""

    mount: str
    profile: str
    variant: str | None
    why: str | None
    rates: list[PricedRate]


class Result(TypedDict):
    """All that the module returns."""

    mounts: list[str]
    disks: dict[str, list[str | None]]
    rows: list[Row]
    doubts: list[str]
    advice: list[str]
    prices: list[Price]
    group_vars: list[str]
    table: str
    svg: str


def median(variant: str, runs: Sequence[Run]) -> Row:
    """Return the run with the median rate of several of one measurement; of an even number, the slower one. Pure."""
    by_rate = sorted(runs, key=lambda run: run["rate"])
    found = by_rate[(len(by_rate) - 1) // 2]
    spread = (by_rate[-1]["rate"] - by_rate[0]["rate"]) / found["rate"]
    return {"variant": variant, **found, "runs": len(runs), "spread": round(spread, 3)}


def spread_of(rows: Iterable[Row]) -> float:
    """Return by which share runs of the same measurement differ: the mean of several measurements. Pure."""
    found = [row["spread"] for row in rows]
    return sum(found) / len(found) if found else 0.0
