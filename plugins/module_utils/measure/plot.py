# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured commits as a table and as a plot. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from ..host.printable import Lines, line, lines

_BAR, _LINE, _LABEL, _WIDTH = 16, 22, 400, 420


def label(row: dict[str, Any]) -> str:
    """Return what one row measured."""
    return f"{row['pattern']}, {row['clients']} client(s), {row['variant']}"


def table(mount: str, rows: Sequence[dict[str, Any]], notes: Sequence[str]) -> Lines:
    """Return the rows as text, and the notes below."""
    head = (
        f"{'pattern':<17} {'clients':>7} {'setting':<24} {'commits/s':>10} {'mean ms':>9}"
        f" {'p99 ms':>9} {'flushes':>8}"
    )
    body = [
        f"{row['pattern']:<17} {row['clients']:>7} {row['variant']:<24} {row['rate']:>10} {row['mean']:>9}"
        f" {row['p99']:>9} {row['flushes_per_commit']:>8}"
        for row in rows
    ]
    return lines([mount, head, *body, *(f"- {note}" for note in notes)])


def svg(title: str, rows: Sequence[dict[str, Any]]) -> Lines:
    """Return a bar chart of the mean commit latency, one bar for each row."""
    longest = max((row["mean"] for row in rows), default=0.0) or 1.0
    height = _LINE * (len(rows) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL + _WIDTH + 100}" height="{height}"'
        ' font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="16" font-weight="bold">{_text(title)}</text>',
    ]
    for number, row in enumerate(rows, 1):
        top = _LINE * number + 8
        width = max(1, round(_WIDTH * row["mean"] / longest))
        parts += [
            f'<text x="8" y="{top + 12}">{_text(label(row))}</text>',
            f'<rect x="{_LABEL}" y="{top}" width="{width}" height="{_BAR}" fill="#4477aa"/>',
            f'<text x="{_LABEL + width + 6}" y="{top + 12}">{row["mean"]} ms</text>',
        ]
    return lines([*parts, "</svg>"])


def _text(text: str) -> str:
    """Return a text as XML takes it."""
    return escape(line(text))
