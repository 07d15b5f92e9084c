# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From measurements to lines, and to the tables that show them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import correlation, linear_regression
from typing import Any, NamedTuple

_MEASURED = re.compile(r"(<!-- measured: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.S)
#: Which of its own measurements each series is, in the order of the tables: {kind: {name: parts}}.
SERIES: dict[str, dict[str, tuple[str, ...]]] = {
    "facts": {
        "facts, elapsed": ("facts.wall",),
        "facts, CPU": ("facts.own", "facts.children"),
        "... of this, in Python": ("facts.own",),
    },
    "disks": {
        "tools, elapsed, 8 at a time": ("udevadm.wall", "cat.wall", "sdparm at a time.wall"),
        "tools, elapsed, one by one": ("udevadm.wall", "cat.wall", "sdparm.wall"),
        "tools, CPU": ("udevadm.children", "cat.children", "sdparm.children"),
    },
    "mounts": {
        "tools, elapsed, 8 at a time": ("dmsetup.wall", "cat.wall", "dumpe2fs at a time.wall"),
        "tools, elapsed, one by one": ("dmsetup.wall", "cat.wall", "dumpe2fs.wall"),
        "tools, CPU": ("dmsetup.children", "cat.children", "dumpe2fs.children"),
    },
}


class Line(NamedTuple):
    """A least-squares line: what each one more costs, what none costs, how well it fits.

    `lower` and `upper` are the slopes of the lower and of the upper half of the sizes: they are
    far apart where the cost grows faster than the number.
    """

    slope: float
    intercept: float
    r_squared: float
    lower: float
    upper: float


def fit(points: Mapping[int, float]) -> Line:
    """Return the line through {size: seconds}; at least three sizes."""
    sizes = sorted(points)
    slope, intercept = linear_regression(sizes, [points[size] for size in sizes])
    r_squared = correlation(sizes, [points[size] for size in sizes]) ** 2
    middle = len(sizes) // 2
    lower, upper = (_slope(points, half) for half in (sizes[: middle + 1], sizes[middle:]))
    return Line(slope, intercept, r_squared, lower, upper)


def _slope(points: Mapping[int, float], sizes: Sequence[int]) -> float:
    return linear_regression(sizes, [points[size] for size in sizes]).slope


def series(kind: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, float]]:
    """Return {name: {size: seconds}} of disks or mounts: of several runs the least disturbed one."""
    names = {**SERIES["facts"], **SERIES[kind]}
    return {
        name: {row["count"]: min(_sum(run, parts) for run in row["runs"]) for row in rows}
        for name, parts in names.items()
    }


def _sum(run: Mapping[str, Any], parts: Sequence[str]) -> float:
    pairs = (part.split(".") for part in parts)
    return sum(float(run[tool][clock]) for tool, clock in pairs)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose columns stand below each other in plain text as well."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(head))]
    dashes = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    padded = [
        [cell.ljust(width) if index == 0 else cell.rjust(width)]
        for row in (cells[0], dashes, *cells[1:])
        for index, (cell, width) in enumerate(zip(row, widths))
    ]
    flat = [cell for (cell,) in padded]
    size = len(head)
    return "\n".join(f"| {' | '.join(flat[start : start + size])} |" for start in range(0, len(flat), size))


def sizes_table(kind: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what each size cost."""
    found = series(kind, rows)
    head = [kind, "commands", *found, "complete"]
    return table(
        head,
        (
            [
                str(row["count"]),
                str(sum(row["runs"][0]["facts"]["commands"].values())),
                *(f"{points[row['count']]:.2f}" for points in found.values()),
                "; ".join(row["missing"]) or "yes",
            ]
            for row in rows
        ),
    )


def lines_table(kind: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the lines through what the sizes cost."""
    head = ["", f"each of the {kind}, ms", "lower half, ms", "upper half, ms", "fixed, s", "R²"]
    fits = {name: fit(points) for name, points in series(kind, rows).items()}
    return table(
        head,
        (
            [
                name,
                *(f"{1000 * number:.1f}" for number in (line.slope, line.lower, line.upper)),
                f"{line.intercept:.2f}",
                f"{line.r_squared:.4f}",
            ]
            for name, line in fits.items()
        ),
    )


def hung_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return what hung devices cost, beside the same machine when it is well."""
    head = ["what hangs", "well, s", "hung, s", "more, s", "process ended", "unknown", "all else"]
    return table(
        head,
        (
            [
                row["what"],
                f"{row['well']:.1f}",
                f"{row['wall']:.1f}" if row["ended"] else "never",
                f"{row['wall'] - row['well']:.1f}" if row["ended"] else "never",
                "yes" if row["ended"] else f"no: {row['stopped_in']}",
                str(len(row["lost"])),
                "; ".join(row["wrong"]) or "complete",
            ]
            for row in rows
        ),
    )


def profile_table(profile: Mapping[str, Any]) -> str:
    """Return where the time of the facts goes."""
    parts = sorted(profile["parts"].items(), key=lambda item: -item[1])
    whole = sum(seconds for _name, seconds in parts)
    rows = ([name, f"{seconds:.2f}", f"{seconds / whole:.0%}"] for name, seconds in parts)
    return table(["doing", "s", "share"], rows)


def document(text: str, shown: Mapping[str, str]) -> str:
    """Return a page with these results {name: text} in their places; all others stay."""

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        return f"{found[1]}\n{shown[name]}\n\n{found[3]}" if name in shown else found[0]

    return _MEASURED.sub(fill, text)
