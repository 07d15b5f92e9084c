# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured commits as a table and as a plot. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from ..host.printable import Lines, line, lines
from . import figures
from .figures import Row

#: A panel and what is drawn in it, in pixels.
_PANEL, _ACROSS = (460, 260), 2
_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 28, 370, 180
#: A rate that is less is drawn as this one: a logarithmic axis has no 0.
_LEAST = 0.1
COLOURS = 6
STYLE = """\
text{fill:#222} .faint{fill:#666} .paper{fill:#fff} .grid{stroke:#ddd} path{fill:none;stroke-width:2}
.s0{stroke:#0072b2} .s1{stroke:#d55e00;stroke-dasharray:6 3} .s2{stroke:#009e73;stroke-dasharray:2 3}
.s3{stroke:#cc79a7;stroke-dasharray:9 3} .s4{stroke:#b8860b;stroke-dasharray:4 4} .s5{stroke:#777}
.dot{fill:#888} .raw{stroke:#222;stroke-width:1} .grid{stroke-width:1}
.f0{fill:#0072b2} .f1{fill:#d55e00} .f2{fill:#009e73} .f3{fill:#cc79a7} .f4{fill:#b8860b} .f5{fill:#777}
@media (prefers-color-scheme:dark){text{fill:#eee} .faint{fill:#aaa} .paper{fill:#16181c} .grid{stroke:#444}
.s0{stroke:#56b4e9} .s1{stroke:#ff8c42} .s2{stroke:#3ddc97} .s3{stroke:#f0a6ca} .s4{stroke:#f0e442} .s5{stroke:#bbb}
.raw{stroke:#eee} .f0{fill:#56b4e9} .f1{fill:#ff8c42} .f2{fill:#3ddc97} .f3{fill:#f0a6ca} .f4{fill:#f0e442} .f5{fill:#bbb}}"""


def way(row: figures.Way) -> str:
    """Return how the commits of a row were written."""
    delay = row["commit_delay"]
    return str(row["pattern"]) if delay is None else f"{row['pattern']} ({delay} ms)"


def label(row: Row) -> str:
    """Return what one row measured."""
    return f"{row['mount']}, {way(row)}, {row['clients']} client(s), {row['variant']}"


def as_lines(rows: Sequence[Row], notes: Sequence[str]) -> list[str]:
    """Return the rows as lines of text, those of a mount below its name, and the notes below."""
    head = (
        f"{'pattern':<20} {'clients':>7} {'setting':<24} {'commits/s':>10} {'spread':>6} {'mean ms':>9}"
        f" {'p99 ms':>9} {'flushes':>8}"
    )
    found = []
    for mount in dict.fromkeys(row["mount"] for row in rows):
        found += [mount, head]
        found += [
            f"{way(row):<20} {row['clients']:>7} {row['variant']:<24} {row['rate']:>10} {row['spread']:>6.0%} {row['mean']:>9}"
            f" {'-' if row['p99'] is None else row['p99']:>9} {row['flushes_per_commit']:>8}"
            for row in rows
            if row["mount"] == mount
        ]
    servers = {row["pattern"]: row["server"] for row in rows if row["server"]}
    found += [f"{load}: transactions of {line(server)}" for load, server in servers.items()]
    return [*found, *(f"- {note}" for note in notes)]


class Frame:
    """Where a number of clients and a rate are in a panel; both axes are logarithmic."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """`rows`: all that any panel shows, so that panels can be compared."""
        self.clients = sorted({row["clients"] for row in rows})
        rates = [max(row["rate"], _LEAST) for row in rows]
        low, high = (math.log10(rate) for rate in (min(rates), max(rates)))
        self._low, self._high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)

    @property
    def decades(self) -> list[int]:
        """Return the rates that have a line of their own."""
        return [10**power for power in range(self._low, self._high + 1) if power >= 0]

    def x(self, clients: int) -> float:
        """Return how far to the right so many clients are."""
        first, last = math.log(self.clients[0]), math.log(self.clients[-1])
        share = (math.log(clients) - first) / (last - first) if last > first else 0.5
        return round(_LEFT + share * _WIDTH, 1)

    def y(self, rate: float) -> float:
        """Return how far down a rate is."""
        share = (math.log10(max(rate, _LEAST)) - self._low) / (self._high - self._low)
        return round(_TOP + (1 - share) * _HEIGHT, 1)


def svg(title: str, rows: Sequence[Row], profiles: Mapping[tuple[str, str], str], made_by: str) -> Lines:
    """Return rates over clients as lines: a panel for each mount and way to write, in it one for each setting.

    `profiles`: the names of those that a (mount, setting) is the price of; `made_by`: the command that makes it.
    """
    frame = Frame(rows)
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    panels: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        panels.setdefault((row["mount"], way(row)), []).append(row)
    down = -(-len(panels) // _ACROSS)
    head = 30 + 18 * len(variants)
    wide, high = _ACROSS * _PANEL[0], head + down * _PANEL[1] + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">',
        f"<title>{text(title)}</title>",
        f"<style>{' '.join(STYLE.split())}</style>",
        f'<rect class="paper" width="{wide}" height="{high}"/>',
        f'<text x="8" y="20" font-size="14" font-weight="bold">{text(title)}</text>',
    ]
    for number, variant in enumerate(variants):
        own = ", ".join(dict.fromkeys(name for (_mount, of), name in profiles.items() if of == variant))
        y = 40 + 18 * number
        parts += [
            f'<path class="s{number % COLOURS}" d="M8 {y}h28"/>',
            f'<text x="42" y="{y + 4}">{text(variant + (f": {own}" if own else ""))}</text>',
        ]
    for number, ((mount, setting), those) in enumerate(panels.items()):
        across, below = number % _ACROSS, number // _ACROSS
        parts.append(f'<g transform="translate({across * _PANEL[0]} {head + below * _PANEL[1]})">')
        parts += [*_axes(frame, f"{mount}: {setting}"), *_series(frame, those, variants), "</g>"]
    return lines([*parts, f'<text x="8" y="{high - 8}" class="faint">{text(made_by)}</text>', "</svg>"])


def _axes(frame: Frame, title: str) -> Iterator[str]:
    yield f'<text x="{_LEFT}" y="{_TOP - 8}">{text(title)}</text>'
    for rate in frame.decades:
        y = frame.y(rate)
        yield f'<path class="grid" d="M{_LEFT} {y}h{_WIDTH}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{rate:,}</text>'
    for clients in frame.clients:
        yield f'<text x="{frame.x(clients)}" y="{_TOP + _HEIGHT + 16}" text-anchor="middle">{clients}</text>'
    middle = _TOP + _HEIGHT / 2
    yield f'<text x="{_LEFT + _WIDTH / 2}" y="{_TOP + _HEIGHT + 32}" text-anchor="middle" class="faint">clients</text>'
    yield f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle" class="faint">commits/s</text>'


def _series(frame: Frame, rows: Sequence[Row], variants: Sequence[str]) -> Iterator[str]:
    for number, variant in enumerate(variants):
        own = [row for row in rows if row["variant"] == variant]
        points = [(frame.x(row["clients"]), frame.y(row["rate"])) for row in own]
        style = f"s{number % COLOURS}"
        if points:
            yield f'<path class="{style}" d="M{" L".join(f"{x} {y}" for x, y in points)}"/>'
        for row, (x, y) in zip(own, points):
            yield f'<circle class="dot" cx="{x}" cy="{y}" r="3"><title>{text(_tooltip(row))}</title></circle>'


def _tooltip(row: Row) -> str:
    return f"{label(row)}: {row['rate']} commits/s"


def text(value: str) -> str:
    """Return a text as XML takes it."""
    return escape(line(value))
