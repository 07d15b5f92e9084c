# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a benchmark reports of its runs, as the module returns it."""

from __future__ import annotations

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
    """The same, with the setting that was in force."""

    variant: str


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
    table: str
    svg: str
