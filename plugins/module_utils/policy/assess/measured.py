# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings about speed that this host's own benchmark contradicts: they are left unchanged. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...host import json_text
from ...rows import Reason, Setting
from ...storage import findings
from . import costs

#: The smallest relative difference that counts: smaller ones are noise.
WORTH = 0.1
#: Names in the benchmark: the settings at that time, and FairCom DB's way of committing.
AS_IT_IS, GROUPED = "as it is", "group_osync"
#: Setting of a row -> how the benchmark names its variant.
_VARIANTS = {"scheduler": "scheduler {}", "atime": "mount option {}"}


def left(
    rows: Iterable[Setting], benchmark: str | None, storage: Mapping[str, Any], today: str
) -> tuple[list[Setting], list[Reason]]:
    """Return the rows, and a note for each row whose change the benchmark of this host shows to be slower: it is dropped.

    `benchmark`, `storage` and `today` as costs.of takes them. A benchmark that does not fit the host is ignored.
    """
    figures, day = _figures(benchmark, storage, today)
    rows = list(rows)
    slower = [_slower(row, figures) if row.klass == "performance" and row.phase else "" for row in rows]
    whys = [
        f"left at {row.running}: by this host's benchmark of {day}, {row.wanted_running} {how}" if how else ""
        for row, how in zip(rows, slower)
    ]
    found = [
        row._replace(verdict="ok", phase=None, why=why, remedy="") if why else row
        for row, why in zip(rows, whys)
    ]
    return found, [
        findings.MEASURED.found(row.target, setting=f"{row.target} {row.setting}", what=why)
        for row, why in zip(rows, whys)
        if why
    ]


def _figures(
    benchmark: str | None, storage: Mapping[str, Any], today: str
) -> tuple[list[Mapping[str, Any]], str]:
    """Return the rows of a benchmark that fits the host, and its day."""
    if not benchmark:
        return [], ""
    try:
        parsed = json_text.loads(benchmark)
        rows = [
            {
                "mount": str(row["mount"]),
                "pattern": str(row["pattern"]),
                "delay": row["commit_delay"],
                "clients": int(row["clients"]),
                "variant": str(row["variant"]),
                "rate": float(row["rate"]),
                "spread": float(row.get("spread", 0.0)),
            }
            for row in parsed["rows"]
        ]
        why = costs.unfit(benchmark, storage, today)
    except costs.NO_BENCHMARK:
        return [], ""
    return ([] if why else [row for row in rows if row["rate"] > 0]), str(parsed["time"])[:10]


def _slower(row: Setting, figures: Iterable[Mapping[str, Any]]) -> str:
    """Return by how much the wanted value was slower than the current one, '' if it was not, or was not measured."""
    if row.setting == "COMMIT_DELAY":
        return _slower_with_delay(row, figures)
    name = _VARIANTS.get(row.setting, "").format(row.wanted_running)
    then = {_point(each): each for each in figures if each["variant"] == AS_IT_IS}
    found = [
        (then[_point(each)], each) for each in figures if each["variant"] == name and _point(each) in then
    ]
    shares = [after["rate"] / before["rate"] for before, after in found]
    mean = math.prod(shares) ** (1 / len(shares)) if shares else 1.0
    is_slower = mean <= 1 - WORTH and not _is_noise(mean, [each for pair in found for each in pair])
    return f"has {mean:.2f} times its commits" if is_slower else ""


def _slower_with_delay(row: Setting, figures: Iterable[Mapping[str, Any]]) -> str:
    rows = {
        (each["mount"], each["clients"], str(each["delay"])): each
        for each in figures
        if (each["pattern"], each["variant"]) == (GROUPED, AS_IT_IS)
    }
    # Which number of clients a server has is not measured: none may lose.
    pairs = {
        clients: (each, rows[mount, clients, row.wanted_running])
        for (mount, clients, delay), each in rows.items()
        if delay == row.running and (mount, clients, row.wanted_running) in rows
    }
    ratios = {
        clients: after["rate"] / before["rate"]
        for clients, (before, after) in pairs.items()
        if not _is_noise(after["rate"] / before["rate"], (before, after))
    }
    worst = min(ratios, key=lambda clients: ratios[clients], default=None)
    if worst is None or ratios[worst] > 1 - WORTH:
        return ""
    return f"has {ratios[worst]:.2f} times its commits with {worst} client{'' if worst == 1 else 's'}"


def _is_noise(ratio: float, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether runs of the same setting differ by as much as the settings do."""
    return bool(abs(1 - ratio) <= sum(row["spread"] for row in rows) / len(rows))


def _point(each: Mapping[str, Any]) -> tuple[Any, ...]:
    return each["mount"], each["pattern"], each["delay"], each["clients"]
