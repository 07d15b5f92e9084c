# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table, the plot and the advice of compared file systems. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ..host.printable import Lines, line, lines
from .advice import WORTH
from .file_systems import DEFAULTS, RAW, Row
from .plot import COLOURS, STYLE, text

#: Pixels: a bar and the gap below a file system's bars; where they begin, and the length of the longest.
_BAR, _GAP, _LEFT, _LENGTH = 9, 6, 150, 560
_SCALES = (100, 125, 150, 200, 300, 400, 500, 750, 1000)
#: Options with which acknowledged commits can be lost, a file system that never flushes, and one without a journal.
_UNSAFE_OPTIONS = {
    "barrier=0": "sends no flushes: acknowledged commits can be lost if a volatile cache loses power",
    "data=writeback": "can leave old data in files after a power cut",
}
_NO_FLUSH, _NO_JOURNAL = "jfs", "ext2"

_Key = tuple[str, str]


def table(rows: Sequence[Row], notes: Sequence[str], copied: Sequence[str]) -> Lines:
    """Return one table for each pattern and number of clients, with a column for each scheduler.

    `copied`: lines for group_vars.
    """
    schedulers = list(dict.fromkeys(row["scheduler"] for row in rows))
    found = []
    for pattern, clients in _panels(rows):
        own = [row for row in rows if (row["pattern"], row["clients"]) == (pattern, clients)]
        found.append(f"{pattern}, {clients} client(s): commits/s, with {RAW}, {schedulers[0]} = 100")
        head = "".join(f"{name:>12}" for name in schedulers)
        found.append(f"{'file system':<14}{'options':<18}{head}{'spread':>8}{'flushes':>9}")
        for (kind, options), those in _groups(own).items():
            cells = "".join(f"{those[name]['of_raw']:>12}" for name in schedulers)
            spread = max(row["spread"] for row in those.values())
            flushes = those[schedulers[0]]["flushes_per_commit"]
            found.append(f"{kind:<14}{options:<18}{cells}{spread:>8.0%}{flushes:>9}")
    to_copy = ["for group_vars, if disks of databases are like this one:", *copied] if copied else []
    return lines([*found, *(f"- {note}" for note in notes), *to_copy])


def advice(rows: Sequence[Row], drift: float, left_out: Mapping[str, str], setting: str | None) -> list[str]:
    """Return what the figures recommend. `setting`: the key of a profile that sets the disk's scheduler.

    `drift`: as Measured has it.
    """
    safe = [
        row
        for row in rows
        if row["file_system"] not in (RAW, _NO_FLUSH, _NO_JOURNAL) and row["options"] not in _UNSAFE_OPTIONS
    ]
    lines_found = []
    if abs(drift) >= WORTH:
        lines_found.append(
            f"{RAW}: {_than(drift)} at the end than at the start, so file systems that differ by less do not differ. Fix:"
            " measure when host and disk are quiet"
        )
    for pattern, clients in _panels(safe) if abs(drift) < WORTH else ():
        own = [row for row in safe if (row["pattern"], row["clients"]) == (pattern, clients)]
        best = max(own, key=lambda row: float(row["of_raw"]))
        lines_found.append(
            f"{pattern}, {clients} client(s): {best['file_system']}, {best['options']}, {best['scheduler']} is the fastest"
            f" that is safe in a power cut, {best['of_raw']:g}"
        )
    lines_found += _of_scheduler(safe, setting)
    lines_found += _of_options(safe)
    lines_found += [
        f"{options} {why}"
        for options, why in _UNSAFE_OPTIONS.items()
        if any(row["options"] == options for row in rows)
    ]
    if any(row["file_system"] == _NO_FLUSH for row in rows):
        lines_found.append(
            "jfs sends no flushes with any option: acknowledged commits can be lost if a volatile cache loses power"
        )
    if any(row["file_system"] == _NO_JOURNAL for row in rows):
        lines_found.append("ext2 has no journal: after a power cut it must be checked, and can be damaged")
    if rows[0]["runs"] == 1:
        lines_found.append(
            "one run of each has no spread: differences can be noise. Fix: choose with runs: 3"
        )
    return [*lines_found, *(f"{kind} was not measured: {why}" for kind, why in left_out.items())]


def group_vars(rows: Sequence[Row], setting: str | None) -> list[str]:
    """Return the recommended settings as lines of YAML, none without a clear difference."""
    found = {}
    best = _best_scheduler(rows)
    if best and setting:
        found[setting] = best
    if _is_better(*_compare(rows, "options", DEFAULTS, "noatime")):
        found["atime"] = "noatime"
    return ["durable_overrides:", *(f"  {name}: {value}" for name, value in found.items())] if found else []


def _of_scheduler(rows: Sequence[Row], setting: str | None) -> Iterator[str]:
    schedulers = list(dict.fromkeys(row["scheduler"] for row in rows))
    for name in schedulers[1:]:
        gain, spread = _compare(rows, "scheduler", schedulers[0], name)
        yield f"scheduler {name}: {_effect(gain, spread, schedulers[0])}"
    best = _best_scheduler(rows)
    if best:
        yield (
            f"durable_overrides: {{{setting}: {best}}}"
            if setting
            else "no profile sets a scheduler for this kind of disk"
        )


def _best_scheduler(rows: Sequence[Row]) -> str:
    """Return the fastest scheduler if it is clearly faster than the present one, else ''."""
    present, *others = dict.fromkeys(row["scheduler"] for row in rows)
    gains = {name: _compare(rows, "scheduler", present, name) for name in others}
    best = max(gains, key=lambda name: gains[name][0], default="")
    return best if best and _is_better(*gains[best]) else ""


def _of_options(rows: Sequence[Row]) -> Iterator[str]:
    for options in dict.fromkeys(row["options"] for row in rows):
        if options != DEFAULTS:
            gain, spread = _compare(rows, "options", DEFAULTS, options)
            yield f"{options}: {_effect(gain, spread, DEFAULTS)}"


def _effect(gain: float, spread: float, than: str) -> str:
    if abs(gain) <= spread:
        return f"no difference from {than}: observed {gain:+.0%}, but runs of the same setting differ by {spread:.0%}"
    return f"{_than(gain)} than {than}"


def _than(gain: float) -> str:
    return f"{abs(gain):.0%} {'faster' if gain > 0 else 'slower'}"


def _is_better(gain: float, spread: float) -> bool:
    return gain >= WORTH and gain > spread


def _compare(rows: Sequence[Row], field: str, old: str, new: str) -> tuple[float, float]:
    """Return by which share rows with a new value are faster (geometric mean), and the mean spread of both."""
    points: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in rows:
        if field == "scheduler":
            value, other = row["scheduler"], row["options"]
        else:
            value, other = row["options"], row["scheduler"]
        points.setdefault((row["file_system"], other, row["pattern"], row["clients"]), {})[value] = row
    pairs = [(of[old], of[new]) for of in points.values() if old in of and new in of]
    if not pairs:
        return 0.0, 0.0
    ratios = [after["rate"] / before["rate"] for before, after in pairs]
    spreads = [row["spread"] for pair in pairs for row in pair]
    return math.prod(ratios) ** (1 / len(ratios)) - 1, sum(spreads) / len(spreads)


def _panels(rows: Sequence[Row]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((row["pattern"], row["clients"]) for row in rows))


def _groups(rows: Sequence[Row]) -> dict[_Key, dict[str, Row]]:
    """Return the rows by file system and options, then by scheduler."""
    found: dict[_Key, dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["file_system"], row["options"]), {})[row["scheduler"]] = row
    return found


def svg(rows: Sequence[Row], made_by: str) -> Lines:
    """Return bars as lines of SVG: a panel for each pattern and number of clients, a bar for each scheduler."""
    schedulers = list(dict.fromkeys(row["scheduler"] for row in rows))
    most = max(row["of_raw"] for row in rows)
    scale = next((each for each in _SCALES if each >= most), most)
    title = f"Commits on file systems, with {RAW}, {schedulers[0]} = 100"
    parts, y = [], 40
    for number, name in enumerate(schedulers):
        parts += [
            f'<rect class="f{number % COLOURS}" x="{8 + 130 * number}" y="{y - 8}" width="28" height="9"/>',
            f'<text x="{42 + 130 * number}" y="{y}">{text(name)}</text>',
        ]
    for pattern, clients in _panels(rows):
        own = [row for row in rows if (row["pattern"], row["clients"]) == (pattern, clients)]
        y += 34
        parts.append(
            f'<text x="8" y="{y - 10}" font-weight="bold">{text(f"{pattern}, {clients} client(s)")}</text>'
        )
        bottom = y + sum(_BAR * len(those) + _GAP for those in _groups(own).values())
        for mark in (mark for mark in (0, 25, 50, 75, *_SCALES) if mark <= scale):
            x = round(_LEFT + _LENGTH * mark / scale, 1)
            style = "raw" if mark == 100 else "grid"
            parts.append(f'<path class="{style}" d="M{x} {y}V{bottom}"/>')
            parts.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle" class="faint">{mark}</text>')
        for (kind, options), those in _groups(own).items():
            label = kind if options == DEFAULTS else f"{kind}, {options}"
            middle = y + _BAR * len(those) / 2 + 4
            parts.append(f'<text x="{_LEFT - 6}" y="{middle}" text-anchor="end">{text(label)}</text>')
            for name, row in those.items():
                width = round(_LENGTH * row["of_raw"] / scale, 1)
                tip = f"{label}, {name}: {row['of_raw']:g}, spread {row['spread']:.0%}"
                parts.append(
                    f'<rect class="f{schedulers.index(name) % COLOURS}" x="{_LEFT}" y="{y}" width="{width}" height="{_BAR - 1}">'
                    f"<title>{text(tip)}</title></rect>"
                )
                y += _BAR
            y += _GAP
        y += 22
    wide, high = _LEFT + _LENGTH + 40, y + 24
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">',
        f"<title>{text(title)}</title>",
        f"<style>{' '.join(STYLE.split())}</style>",
        f'<rect class="paper" width="{wide}" height="{high}"/>',
        f'<text x="8" y="20" font-size="14" font-weight="bold">{text(title)}</text>',
    ]
    return lines(
        [*head, *parts, f'<text x="8" y="{high - 8}" class="faint">{text(line(made_by))}</text>', "</svg>"]
    )
