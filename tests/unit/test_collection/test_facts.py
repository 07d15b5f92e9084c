# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each measured fact that docs/facts.md lists has a test that would fail if it were otherwise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_ROW = re.compile(r"^\|(?P<number>\d+)\|(?P<fact>[^|]+)\|(?P<places>[^|]+)\|$", re.M)
LISTED = {
    int(row["number"]): (row["fact"], set(row["places"].split(", ")))
    for row in _ROW.finditer((ROOT / "docs/facts.md").read_text(encoding="utf-8"))
}
PLACES = {"unit": "tests/unit/**/test_*.py", "lab": "molecule/*/tests/test_*.py"}


def marked(tree: ast.AST) -> Iterator[int]:
    """Yield the number of every `pytest.mark.fact(number)`."""
    for node in ast.walk(tree):
        is_mark = isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fact"
        if is_mark and isinstance(node, ast.Call):
            (number,) = node.args
            assert isinstance(number, ast.Constant)
            assert isinstance(number.value, int)
            yield number.value


MARKED = {
    place: {
        number
        for path in ROOT.glob(pattern)
        for number in marked(ast.parse(path.read_text(encoding="utf-8"), str(path)))
    }
    for place, pattern in PLACES.items()
}


@pytest.mark.parametrize("number", LISTED)
def test_a_listed_fact_is_tested_where_it_says(number: int) -> None:
    fact, places = LISTED[number]
    assert fact.strip()
    assert places == {place for place in PLACES if number in MARKED[place]}


def test_every_mark_is_of_a_listed_fact() -> None:
    assert set().union(*MARKED.values()) - set(LISTED) == set()


def test_each_row_is_read() -> None:
    text = (ROOT / "docs/facts.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| *\d", text, re.M)) == len(LISTED) > 20
