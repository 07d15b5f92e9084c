# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same host gets the same report, whichever controller asks, and whatever that remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.runs import ROOT, Playbooks

from lab.machine import Machine

SCENARIO = Path(__file__).resolve().parents[1]
VENVS = ("ansible-2.19", "ansible-latest")
NOT_INJECTED = {"ANSIBLE_INJECT_FACT_VARS": "false"}


def cached(directory: Path) -> dict[str, str]:
    """Return the settings of a controller that keeps facts from run to run."""
    return {
        **NOT_INJECTED,
        "ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(directory / "facts"),
        "ANSIBLE_GATHERING": "smart",
    }


def report(playbooks: Playbooks, venv: str, environment: dict[str, str]) -> dict[str, Any]:
    """Return the report of a check run with that ansible-core."""
    if not (ROOT / ".venv").exists():
        pytest.skip("compares two versions of ansible-core: make setup")
    binary = ROOT / ".venv" / venv / "bin"
    if not (binary / "ansible-playbook").exists():
        pytest.fail(f"{venv} is not installed: make setup")
    playbooks.bin, playbooks.environment = binary, environment
    run = playbooks.run("harden-db", "--check", "-v")
    assert run.code == 0
    # When it was made, and what was before it, differs.
    return {key: value for key, value in run.reports["dbhost"].items() if key not in ("time", "since")}


@pytest.fixture(scope="module")
def reports(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Playbooks, list[dict[str, Any]]]:
    """Reports under each ansible-core and setting; the last run may keep facts, and has none to keep."""
    scratch = tmp_path_factory.mktemp("reports")
    playbooks = Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], scratch, {})
    # Facts as variables and modules as files: what Ansible does that nobody has told otherwise.
    found = [report(playbooks, VENVS[0], {"ANSIBLE_INJECT_FACT_VARS": "true", "ANSIBLE_PIPELINING": "false"})]
    for venv in VENVS:
        found += [report(playbooks, venv, settings) for settings in (NOT_INJECTED, cached(scratch))]
    assert not list((scratch / "facts").glob("*"))
    return playbooks, found


def test_reports_are_equal_under_each_ansible_core_and_setting(
    reports: tuple[Playbooks, list[dict[str, Any]]],
) -> None:
    first, *others = reports[1]
    assert first["verdict"] == "attested"
    assert len(first["settings"]) > 10
    assert others == [first] * 4


def test_cached_facts_of_an_earlier_run_are_not_used(
    machine: Machine, reports: tuple[Playbooks, list[dict[str, Any]]]
) -> None:
    playbooks, _found = reports
    # A play of somebody's own keeps them, where a run would find them.
    playbooks.ask("dbhost", "durable.dbhost.host_facts")
    (kept,) = (playbooks.directory / "facts").iterdir()
    assert "durable_storage" in kept.read_text()
    machine.run(["mount", "-o", "remount,barrier=0", "/srv/pgdata"])
    run = playbooks.run("harden-db", "--check")
    assert run.settings("dbhost")["/srv/pgdata", "barrier"] == "drift_running"
    machine.run(["mount", "-o", "remount,barrier=1", "/srv/pgdata"])
