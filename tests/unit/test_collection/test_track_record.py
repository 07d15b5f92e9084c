# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/track-record.md: each defect has a way to reproduce it that exists, and the day of its last run."""

from __future__ import annotations

import ast
import datetime
import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(name="tool")
def the_tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the program that writes the page."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("track_record")


def names_in(path: Path) -> set[str]:
    """Return the tests of a file, those of a class as CLASS::TEST."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


def test_the_page_is_written_from_its_data(tool: Any) -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.render(tool.read())
    assert set(tool.read()) == set(tool.PARTS)


def test_each_row_has_one_way_to_reproduce_it_and_a_day(tool: Any) -> None:
    for row in (row for rows in tool.read().values() for row in rows):
        assert len({"mutant", "test", "command"} & set(row)) == 1, row
        assert ("command" in row) is ("evidence" in row), row
        assert set(row) - {"mutant", "test", "command", "evidence"} == {"defect", "found_by", "reproduced"}
        assert "|" not in row["defect"] and isinstance(row["reproduced"], datetime.date)


def test_the_page_explains_each_way_in_which_a_defect_was_found(tool: Any) -> None:
    explained = tool.HEAD.partition("- *found by*: ")[2].replace("\n  ", " ")
    names = set(re.findall(r"(?:^|\. )([A-Z[][\w ]+?\]?)(?:\([^)]*\))?:", f". {explained}"))
    used = {row["found_by"] for rows in tool.read().values() for row in rows}
    assert {name.strip("[]").lower() for name in names} == used


def test_each_mutant_and_each_test_exists(tool: Any) -> None:
    known = {mutant.name for mutant in tool.mutants.read()}
    for row in (row for rows in tool.read().values() for row in rows):
        assert row.get("mutant") in (None, *known)
        if "test" in row:
            path, _, name = row["test"].partition("::")
            assert name in names_in(ROOT / path), row["test"]


def test_each_command_is_one_of_the_proof_s_and_its_evidence_has_the_cell(tool: Any) -> None:
    options_of = (ROOT / "proof/run.py").read_text(encoding="utf-8")
    rows = [row for row in tool.read()["other_software"] if "command" in row]
    assert rows
    for row in rows:
        words = re.fullmatch(r"make prove CELLS='(.+)'", row["command"])
        assert words, row
        text = (ROOT / row["evidence"]).read_text(encoding="utf-8")
        for word in words[1].split():
            assert word.isdigit() or word == "uml" or word in (options_of if word.startswith("--") else text)


def test_a_command_is_dated_no_later_than_its_evidence(tool: Any) -> None:
    for row in (row for row in tool.read()["other_software"] if "command" in row):
        git = ["git", "-C", str(ROOT)]
        changed, written = (
            subprocess.run(
                [*git, *words, "--", row["evidence"]], stdout=subprocess.PIPE, text=True, check=True
            )
            for words in (("status", "--porcelain"), ("log", "-1", "--format=%cs"))
        )
        day = datetime.date.today() if changed.stdout else datetime.date.fromisoformat(written.stdout.strip())
        assert row["reproduced"] <= day, row


def test_no_day_is_before_the_project_or_to_come(tool: Any) -> None:
    # The clock of a machine that tests can be a day behind, by its zone.
    newest = datetime.date.today() + datetime.timedelta(days=1)
    for row in (row for rows in tool.read().values() for row in rows):
        assert datetime.date(2026, 11, 20) <= row["reproduced"] <= newest, row


def test_a_run_dates_what_ended_as_expected_and_leaves_the_rest(
    tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        'attack:\n  - defect: "a"\n    mutant: "x: y"\n    reproduced: 2026-11-20\n'
        "  - test: t.py::b\n    reproduced: 2026-11-20\n"
        "  - command: c\n    evidence: e\n    reproduced: 2026-11-20\n"
    )
    rows = tmp_path / "rows.yml"
    rows.write_text(text)
    monkeypatch.setattr(tool, "ROWS", rows)
    tool._date({"x: y"})
    today = datetime.date.today().isoformat()
    assert rows.read_text() == text.replace("reproduced: 2026-11-20", f"reproduced: {today}", 1)
