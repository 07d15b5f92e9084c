# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What those meet who join: hooks before a commit, the forge's workflow, its forms. All call what is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.variable_names import INPUTS

from .test_action_groups import MODULES
from .test_private_modules import PRIVATE

ROOT = Path(__file__).resolve().parents[3]
GITHUB = ROOT / ".github"
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))
#: These checks of `make lint` wait for `make check`: too slow for each commit, or about a release.
SLOW = ("ansible-lint", "changelog", "mypy")


def load(path: Path) -> Any:
    """Return what a YAML file says."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_hooks_before_a_commit_are_the_quick_checks_of_make_lint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    stages = importlib.import_module("stages")
    wanted = {
        stage.name: " ".join(stage.command)
        for stage in stages.lint_stages()
        if not stage.name.startswith(SLOW)
    }
    (repository,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = {hook["name"]: hook["entry"] for hook in repository["hooks"]}
    assert hooks == {name: f".venv/lint/bin/{command}" for name, command in wanted.items()}
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}


def test_the_workflow_calls_make_and_targets_that_are_there() -> None:
    jobs = load(GITHUB / "workflows/test.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if step.get("name") == "Test"]
    assert "make test" in commands
    assert all(re.match(r"make (\S+)", command)[1] in TARGETS for command in commands)  # type: ignore[index]


def test_the_workflow_asks_for_stages_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    stages = importlib.import_module("stages")
    jobs = load(GITHUB / "workflows/test.yml")["jobs"].values()
    asked = [
        name.replace("${{ matrix.core }}", core)
        for job in jobs
        for core in job.get("strategy", {}).get("matrix", {}).get("core", [""])
        for name in re.findall(r"ONLY='(.+?)'", str(job["steps"]))
    ]
    of_cores = [f"unit tests, {name}" for name in (*stages.ANSIBLES, *stages.BETWEEN)]
    assert set(of_cores) <= set(asked)
    for name in asked:
        assert stages.select(stages.all_stages(Path("scratch")), name)


def test_each_week_the_examples_run_with_their_programs_and_a_release_needs_each_test_of_integrations() -> (
    None
):
    jobs = load(GITHUB / "workflows/test.yml")["jobs"]
    (command,) = [step["run"] for step in jobs["integrations"]["steps"] if step.get("name") == "Test"]
    assert command == "make integrations" and "'schedule'" in jobs["integrations"]["if"]
    page = (ROOT / "docs/releasing.md").read_text(encoding="utf-8")
    recipes = re.findall(r"^([a-z-]+):.*?\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    for path in (ROOT / "tests/integrations").glob("test_*.py"):
        name = f"tests/integrations/{path.name}"
        ways = [f"`make {target}`" for target, recipe in recipes if name in recipe] or [name]
        assert [way for way in ways if way in page], name


def test_each_week_ansible_test_runs_with_each_ansible_core_and_the_next_one() -> None:
    found = load(GITHUB / "workflows/test.yml")
    # YAML 1.1 reads `on` as true.
    (schedule,) = found.get("on", found.get(True))["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", schedule["cron"])
    cores = found["jobs"]["sanity"]["strategy"]["matrix"]["core"]
    oldest = re.search(r">=2\.(\d+)", (ROOT / "meta/runtime.yml").read_text())
    newest = re.search(r">=2\.(\d+)", (ROOT / "requirements/ansible-latest.txt").read_text())
    assert oldest and newest
    released = range(int(oldest[1]), int(newest[1]) + 1)
    assert cores == [*(f"stable-2.{minor}" for minor in released), "devel"]


@pytest.mark.parametrize("form", ["bug.yml", "wrong_verdict.yml"])
def test_a_form_asks_for_capture_and_report(form: str) -> None:
    found = load(GITHUB / "ISSUE_TEMPLATE" / form)
    assert {"name", "description", "body"} <= set(found)
    fields = {field["id"]: field for field in found["body"] if field["type"] != "markdown"}
    assert len(fields) == sum(field["type"] != "markdown" for field in found["body"])
    assert fields["capture"]["validations"] == {"required": True}
    assert "capture-<host>.json" in fields["capture"]["attributes"]["description"]
    assert "durable-report/<host>.json" in fields["capture"]["attributes"]["description"]


@pytest.mark.parametrize("path", [ROOT / "CONTRIBUTING.md", *GITHUB.rglob("*.*")], ids=lambda path: path.name)
def test_pages_and_targets_that_are_named_are_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:docs|tests|changelogs)/\w+\.md|\b[A-Z]{4,}\.md\b", text):
        assert (ROOT / name).exists(), name
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= TARGETS


def test_what_tests_share_lies_apart_from_tests() -> None:
    unit = ROOT / "tests/unit/plugins/module_utils"
    shared = {path.relative_to(unit) for path in unit.rglob("*.py") if not path.name.startswith("test_")}
    assert {path.parts[0] for path in shared} == {"fakes"}
    assert not [*(unit / "fakes").rglob("test_*.py")]


RELEASES = load(ROOT / "changelogs/changelog.yaml")["releases"]


def test_the_changelog_has_this_version_and_the_page_has_each_of_its_entries() -> None:
    assert list(RELEASES)[-1] == load(ROOT / "galaxy.yml")["version"]
    page = re.sub(r"</?code>", "``", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("\\", ""))
    shown = " ".join(page.split())
    for release in RELEASES.values():
        changes = dict(release["changes"])
        entries = [changes.pop("release_summary"), *(entry for rows in changes.values() for entry in rows)]
        assert [entry for entry in entries if " ".join(entry.split()) not in shown] == []


def test_an_entry_of_the_changelog_names_first_what_a_user_calls() -> None:
    found = {path.stem for kind in ("callback", "lookup") for path in (ROOT / "plugins" / kind).glob("*.py")}
    found |= {path.stem for path in (ROOT / "playbooks").glob("*.yml")} | INPUTS
    found |= {path.name for path in (ROOT / "roles").iterdir()} | set(MODULES) - PRIVATE
    found |= {"All modules", "Action groups", "Private modules", "examples", "profiles", "report"}
    for release in RELEASES.values():
        changes = release["changes"]
        rows = [
            row
            for name in changes
            if name not in ("release_summary", "known_issues")
            for row in changes[name]
        ]
        assert [row for row in rows if not set(row.partition(" - ")[0].split(", ")) <= found] == []


def test_entries_of_the_changelog_are_in_its_own_markup() -> None:
    """That of the modules' documentation would stand there as it is."""
    for path in (ROOT / "changelogs/changelog.yaml", *(ROOT / "changelogs/fragments").glob("*.yml")):
        assert not re.findall(r"\b[CVOMIBL]\(", path.read_text(encoding="utf-8")), path.name


def test_the_code_of_conduct_is_ansible_s() -> None:
    text = (ROOT / "CODE_OF_CONDUCT.md").read_text(encoding="utf-8")
    assert "(https://docs.ansible.com/ansible/latest/community/code_of_conduct.html)" in text


def test_each_part_of_the_contract_has_a_row_for_major_and_minor_versions() -> None:
    text = (ROOT / "docs/support.md").read_text(encoding="utf-8").partition("## Versions")[2]
    parts = " ".join(re.findall(r"^\| ([^|]+) \| [^|]*\w[^|]* \| [^|]+ \|$", text, re.M)).lower()
    contract = (
        "variables",
        "roles",
        "modules",
        "playbooks",
        "facts",
        "report keys",
        "verdicts",
        "exit codes",
    )
    assert [each for each in (*contract, "metrics", "[finding](findings.md) ids") if each not in parts] == []
    assert "(https://semver.org/)" in text
