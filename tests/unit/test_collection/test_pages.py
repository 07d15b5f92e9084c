# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each command that README and docs print is run by a test, or said to be run by none, with the reason."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "molecule"))

from support import pages  # noqa: E402

TABLE = pages.table()


def test_each_printed_command_stands_in_the_table() -> None:
    printed = Counter(
        (str(page.relative_to(ROOT)), command) for page in pages.pages() for command in pages.commands(page)
    )
    assert len(printed) > 80
    assert Counter((row["page"], row["command"]) for rows in TABLE.values() for row in rows) == printed


def test_each_key_of_a_row_is_one_that_a_test_reads() -> None:
    """YAML reads `on` as true: a command for the host would run on the controller."""
    keys = {"page", "command", "code", "machine", "shows", "by", "why"}
    assert {key for rows in TABLE.values() for row in rows for key in row} <= keys


def test_who_is_not_run_says_why() -> None:
    assert all(row["why"] for row in TABLE["by_hand"])
    assert set(TABLE) == {"default", "start", "engines", "proof", "alike", "by_hand"}


@pytest.mark.parametrize("row", TABLE["alike"], ids=lambda row: row["command"][:60])
def test_who_runs_something_alike_names_it(row: dict[str, str]) -> None:
    """The playbook, module or program stands in that file, with dashes or underscores."""
    words = shlex.split(row["command"])
    named = [word.removeprefix("durable.dbhost.") for word in words if word.startswith("durable.dbhost.")]
    what = named[0] if named else words[1] if words[0] in ("make", "ansible-galaxy") else words[0]
    text = (ROOT / row["by"]).read_text(encoding="utf-8")
    assert re.search(what.replace("_", "[-_]"), text)


#: `make scenario`, with its tests, as a page prints it.
_SCENARIO = re.compile(r"make scenario NAME=(\w+) TEST=('[^']+'|\w+)")


def test_a_scenario_has_the_tests_by_which_pages_ask_for_them() -> None:
    asked = {
        found.groups()
        for page in [
            *ROOT.glob("*.md"),
            *ROOT.glob("docs/*.md"),
            *ROOT.glob("*/README.md"),
            ROOT / "Makefile",
        ]
        for found in _SCENARIO.finditer(page.read_text(encoding="utf-8"))
    }
    assert len(asked) > 5
    for scenario, expression in asked:
        tests = ROOT / "molecule" / scenario / "tests"
        names = "\n".join(
            f"{path.stem}\n{path.read_text(encoding='utf-8')}" for path in tests.glob("test_*.py")
        )
        for word in set(re.findall(r"\w+", expression)) - {"and", "or", "not"}:
            assert re.search(rf"^(def )?\w*{word}", names, re.M), f"no test of {scenario} is called {word}"
