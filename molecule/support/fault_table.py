# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of results of the matrix of faults, in docs/evidence/faults.md between two markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/evidence/faults.md"
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
HEAD = ("fault", "the run with it", "the host after that run", "the next run")


def rendered(results: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """Return the table, with a row for each name."""
    rows = [HEAD, ("---",) * len(HEAD), *((name, *results[name]) for name in names)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def write(table: str, page: Path = PAGE) -> None:
    """Put a table between the markers."""
    before, between, after = _parts(page)
    if between != table:
        page.write_text(before + table + after, encoding="utf-8")


def names(page: Path = PAGE) -> list[str]:
    """Return the names of the rows that are on the page."""
    rows = _parts(page)[1].splitlines()[2:]
    return [row.split("|")[1].strip() for row in rows]


def _parts(page: Path) -> tuple[str, str, str]:
    text = page.read_text(encoding="utf-8")
    assert (text.count(BEGIN), text.count(END)) == (1, 1), f"{page}: expected {BEGIN} and {END}, once each"
    before, _begin, rest = text.partition(BEGIN)
    between, _end, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n", between.strip("\n") + "\n" if between.strip() else "", f"\n{END}{after}"
