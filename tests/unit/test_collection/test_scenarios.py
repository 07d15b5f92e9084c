# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule's verify passes when it finds no tests: here that is a failure."""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import facts_schema
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.told_power import guard

ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = sorted(path.parent for path in ROOT.glob("molecule/*/molecule.yml"))


def test_there_is_a_scenario() -> None:
    assert SCENARIOS


@pytest.mark.parametrize(
    "config", [ROOT / ".config/molecule/config.yml", *(s / "molecule.yml" for s in SCENARIOS)]
)
def test_whoever_has_a_sequence_of_its_own_verifies(config: Path) -> None:
    text = config.read_text(encoding="utf-8")
    is_shared = config.name == "config.yml"
    assert re.search(r"^ +- verify$", text, re.M) or ("test_sequence" not in text and not is_shared)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.name)
def test_a_scenario_has_tests(scenario: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in scenario.glob("tests/test_*.py")]
    assert sum(len(re.findall(r"^ *def test_", text, re.M)) for text in texts) > 0


def test_the_page_of_faults_has_a_row_for_each_that_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (ROOT, ROOT / "molecule"):
        monkeypatch.syspath_prepend(str(path))
    faults, table = (importlib.import_module(f"support.{name}") for name in ("faults", "fault_table"))
    assert len(set(faults.NAMES)) == len(faults.NAMES)
    # Nothing until a whole run has passed.
    assert table.names() in ([], list(faults.NAMES))
    page = table.PAGE.read_text(encoding="utf-8")
    assert [
        f"| {name} | {why} |" for name, why in faults.NOT_TRIED.items() if f"| {name} | {why} |" not in page
    ] == []


def test_the_table_of_faults_replaces_what_was_between_its_markers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in (ROOT, ROOT / "molecule"):
        monkeypatch.syspath_prepend(str(path))
    table = importlib.import_module("support.fault_table")
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{table.BEGIN}\n\n{table.END}\n\nafter\n", encoding="utf-8")
    assert table.names(page) == []
    for rows in ({"b": ("2", "safe", "0")}, {"b": ("2", "safe", "0"), "a": ("0", "safe", "0")}):
        table.write(table.rendered(rows, sorted(rows)), page)
        once = page.read_text(encoding="utf-8")
        table.write(table.rendered(rows, sorted(rows)), page)
        assert page.read_text(encoding="utf-8") == once
        assert table.names(page) == sorted(rows)
        assert (once.startswith("before\n"), once.endswith("\n\nafter\n")) == (True, True)


#: What is wrong with a run on a host with a fault -> what says so.
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "less safe": ({"during": {"SCSI0001 caches"}}, "less safe than before the run"),
    "called safe": ({"before": {"x"}, "during": {"x"}, "verdict": "attested"}, "attested, with ['x']"),
    "another verdict": ({"verdict": "drifted"}, "exit code 2, drifted"),
    "another exit code": ({"code": 0}, "exit code 0, at_risk"),
    "no message": ({"details": "all is well"}, "no message has"),
    "not repaired": ({"again": 2}, "the next run: 2, attested"),
    "weak afterwards": ({"after": {"SCSI0001 caches"}}, "after the next run"),
    "left behind": ({"left": ["+ a file"]}, "left behind"),
    "settled by a second run": ({"second": (0, "attested")}, "a second run with the fault: exit code 0"),
    "failed by a second run": (
        {"second": (2, "durable")},
        "a second run with the fault: exit code 2, durable",
    ),
}


@pytest.mark.parametrize("what", [*WRONG, "nothing"])
def test_a_row_of_faults_passes_only_if_nothing_is_wrong(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (ROOT, ROOT / "molecule"):
        monkeypatch.syspath_prepend(str(path))
    faults, runs, driver = (
        importlib.import_module(f"support.{name}") for name in ("faults", "runs", "fault_runs")
    )
    given, said = WRONG.get(what, ({}, ""))
    report = {"verdict": given.get("verdict", "at_risk"), "error": None}
    code, verdict = given.get("second", (2, "at_risk"))
    result = driver.Result(
        runs.Run(given.get("code", 2), "", {}, {}, given.get("details", "/etc: no space left")),
        report,
        given.get("before", set()),
        given.get("during", set()),
        runs.Run(given.get("again", 0), "", {}, {"host": {"verdict": "attested", "error": None}}),
        given.get("after", set()),
        given.get("left", []),
        runs.Run(code, "", {}, {"host": {"verdict": verdict, "error": None}}),
    )
    fault = faults.Fault("full", code=2, verdicts=("at_risk", "attested"), says="no space left")
    found = driver.faults_of(result, fault)
    assert [said in each for each in found] == ([] if what == "nothing" else [True])


@pytest.mark.parametrize("profile", ["strict", "ups"])
def test_the_ups_that_the_kill_tests_make_up_is_one_that_the_policy_reads(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all deaths on the way to `ups` would be those of a host that is unknown."""
    for path in (ROOT, ROOT / "molecule"):
        monkeypatch.syspath_prepend(str(path))
    kill_points = importlib.import_module("support.kill_points")
    given = kill_points.given(profile, {"/srv/pgdata": "SCSI0001"}, {"SCSI0001": "serial:SCSI0001"})
    storage = json.loads((ROOT / "tests/fixtures/captures/default.facts.json").read_text(encoding="ascii"))
    told = {**given["power"], "boot_id": storage["boot_id"], "time": storage["time"], "guard": guard()}
    engines = {"time": "", "engines": [], "unattributed": [], "writers": []}
    assert facts_schema.faults(storage, engines, told) == []


@pytest.mark.parametrize("name", ["kill_harness", "kill_state"])
def test_each_name_that_the_kill_tests_take_from_the_collection_is_there(name: str) -> None:
    """They run on a machine, next to the collection's modules, where no type checker reads them."""
    package = "ansible_collections.durable.dbhost.plugins.module_utils"
    tree = ast.parse((ROOT / f"molecule/support/{name}.py").read_text(encoding="utf-8"))
    modules = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            place = ".".join(filter(None, (package, node.module)))
            for alias in node.names:
                with contextlib.suppress(ModuleNotFoundError):
                    modules[alias.asname or alias.name] = importlib.import_module(f"{place}.{alias.name}")
    used = [
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    ]
    assert used and [each for each in used if not hasattr(modules[each[0]], each[1])] == []
