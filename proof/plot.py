# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bars as SVG, drawn by hand: text and rectangles, readable without a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

WIDTH, LABELS, ROW, TOP = 900, 430, 18, 48
COLOURS = {"safe": "#2b7a3d", "loses": "#b3352c", "untrusted": "#777777", "": "#35618f"}


class Bar(NamedTuple):
    """One bar: its label, its value, a word behind it, and its colour by name."""

    label: str
    value: float
    word: str
    colour: str = ""


def bars(title: str, rows: Sequence[Bar], most: float) -> str:
    """Return a picture of bars from 0 to `most`."""
    height = TOP + ROW * len(rows) + 12
    scale = (WIDTH - LABELS - 130) / most if most > 0 else 0.0
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="24" font-size="15">{escape(title)}</text>',
    ]
    for number, row in enumerate(rows):
        y = TOP + ROW * number
        long = max(0.0, min(row.value, most)) * scale
        lines += [
            f'<text x="{LABELS - 8}" y="{y + 11}" text-anchor="end">{escape(row.label)}</text>',
            f'<rect x="{LABELS}" y="{y}" width="{max(long, 1):.1f}" height="{ROW - 5}" '
            f"fill={quoteattr(COLOURS[row.colour])}/>",
            f'<text x="{LABELS + max(long, 1) + 6:.1f}" y="{y + 11}">{escape(row.word)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
