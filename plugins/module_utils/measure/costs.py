# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of each safety profile on the measured disks, in commits per second. Pure.

A price is that of write caches and barriers. Schedulers and atime options have separate figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..profiles import KEEP
from ..storage.caches import DISABLED, ENABLED, NONE
from .figures import Price, PricedRate, Row
from .planned import Plan
from .plot import way
from .targets import Place
from .variants import AS_IT_IS, CACHE_OFF

_WIDE = 14


def of(made: Plan, rows: Sequence[Row], known: Mapping[str, Mapping[str, Any]]) -> list[Price]:
    """Return for each mount and known profile its `variant` and `rates`, or `why` it has no price here.

    `known`: the fields of profiles by name. `of_now`: the rate as a share of what it is now.
    """
    found: list[Price] = []
    for place in made.places:
        now = {_point(row): row["rate"] for row in _rows(rows, place["target"], AS_IT_IS)}
        for name, fields in known.items():
            variant, why = _variant(made, place, fields)
            rates = [
                _rate(row, row["rate"] / now[_point(row)]) for row in _rows(rows, place["target"], variant)
            ]
            found.append(
                {"mount": place["target"], "profile": name, "variant": variant, "why": why, "rates": rates}
            )
    return found


def headline(prices: Sequence[Price]) -> str:
    """Return the costs in one line: of settings that are not in force, or if there are none, of those in force."""
    now = [price for price in prices if price["variant"] == AS_IT_IS]
    others = [price for price in prices if price["variant"] not in (None, AS_IT_IS)]
    of_now = [rate["of_now"] for price in others for rate in price["rates"]]
    if of_now:
        return f"{_names(others)}: {min(of_now):.2f} to {max(of_now):.2f} times the commits of now ({_names(now) or AS_IT_IS})"
    rates = [rate["rate"] for price in now for rate in price["rates"]]
    return f"{_names(now)}: {min(rates):,.0f} to {max(rates):,.0f} commits/s" if rates else ""


def _names(prices: Sequence[Price]) -> str:
    return ", ".join(dict.fromkeys(price["profile"] for price in prices))


def as_lines(prices: Sequence[Price]) -> list[str]:
    """Return the prices as lines of text: a column for each number of clients."""
    found = []
    for mount in dict.fromkeys(price["mount"] for price in prices):
        here = [price for price in prices if price["mount"] == mount]
        clients = sorted({rate["clients"] for price in here for rate in price["rates"]})
        head = "".join(f"{f'{count} client(s)':>{_WIDE}}" for count in clients)
        found += [
            f"{mount}: commits/s of each profile (times those of now)",
            f"{'pattern':<20}{head}  profile",
        ]
        for variant in dict.fromkeys(price["variant"] for price in here if price["rates"]):
            found += _priced([price for price in here if price["variant"] == variant], clients)
        found += [f"{price['profile']}: no price: {price['why']}" for price in here if price["why"]]
    return found


def _priced(prices: Sequence[Price], clients: Sequence[int]) -> list[str]:
    """Return the lines of profiles that are one variant, and so have one price."""
    rates = prices[0]["rates"]
    cells = {(way(rate), rate["clients"]): f"{rate['rate']:.0f} ({rate['of_now']:.2f})" for rate in rates}
    return [
        f"{pattern:<20}{''.join(f'{cells[pattern, count]:>{_WIDE}}' for count in clients)}  {_names(prices)}"
        for pattern in dict.fromkeys(way(rate) for rate in rates)
    ]


def _variant(made: Plan, place: Place, fields: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the variant in which a mount is as a profile wants it, or None and why it was not measured."""
    if fields["engines"] != "full":
        return None, "its engines do not wait for the disk"
    if fields["rests_on"] == "ups":
        return None, "its guard removes barriers, which no benchmark does"
    if fields["barrier"] not in (KEEP, place["barrier"]):
        return None, f"barriers are {place['barrier']} here, and a benchmark leaves them so"
    states = {leaf["write_cache"]["device"] for leaf in place["leaves"]} - {NONE}
    wanted = fields["write_cache"]
    if wanted == KEEP or states <= {wanted}:
        return AS_IT_IS, None
    if wanted == DISABLED and any(variant.name == CACHE_OFF for variant in made.variants):
        return CACHE_OFF, None
    observed = " and ".join(sorted(states))
    if wanted == ENABLED:
        return None, f"the write cache is {observed} here, and a benchmark switches none on"
    return None, f"the write cache is {observed} here; measure with write_caches: [{DISABLED}]"


def _rows(rows: Sequence[Row], mount: str, variant: str | None) -> list[Row]:
    return [row for row in rows if (row["mount"], row["variant"]) == (mount, variant)]


def _point(row: Row) -> tuple[str, int | None, int]:
    return row["pattern"], row["commit_delay"], row["clients"]


def _rate(row: Row, of_now: float) -> PricedRate:
    return {
        "pattern": row["pattern"],
        "commit_delay": row["commit_delay"],
        "clients": row["clients"],
        "rate": row["rate"],
        "server": row["server"],
        "of_now": round(of_now, 3),
    }
