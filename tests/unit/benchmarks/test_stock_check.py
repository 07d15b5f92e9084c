# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of the comparison with stock modules."""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks.keeping import DOCS, RESULTS
from benchmarks.lines import document
from benchmarks.stock_check import PLAYBOOKS, rows, tables


def run(playbook: str, pipelining: bool, wall: float) -> dict[str, Any]:
    cost = {"wall": wall, "cpu": 1.0, "executions": 2, "sent": 2048, "received": 1024}
    return {"playbook": playbook, "pipelining": pipelining, **cost}


def test_a_row_is_the_median_of_its_own_runs() -> None:
    runs = [
        run(name, pipelining, wall + (10 if pipelining else 0))
        for pipelining in (False, True)
        for name in PLAYBOOKS
        for wall in (3.0, 1.0, 8.0)
    ]
    found = list(rows(runs))
    assert [row[:2] for row in found] == [
        ["durable.dbhost", "off"],
        ["stock modules", "off"],
        ["durable.dbhost", "on"],
        ["stock modules", "on"],
    ]
    assert found[0][2:] == ["3.0", "1.0", "1.0", "2", "2", "1"]
    assert found[3][2:4] == ["13.0", "11.0"]


def test_the_page_shows_the_results_that_are_kept() -> None:
    page = "".join(path.read_text(encoding="utf-8") for path in DOCS)
    shown = tables(json.loads((RESULTS / "stock_check.json").read_text(encoding="utf-8")))
    assert document(page, shown) == page
    assert set(shown) <= set(re.findall(r"<!-- measured: (\w+) -->", page))
