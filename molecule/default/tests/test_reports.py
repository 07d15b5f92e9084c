# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The same host gets the same report, whichever controller asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.runs import ROOT, Playbooks

from lab.machine import Machine

VENVS = ("ansible-2.19", "ansible-latest")


def report(playbooks: Playbooks, venv: str, environment: dict[str, str]) -> dict[str, Any]:
    """Return the report of a check run with that ansible-core."""
    binary = ROOT / ".venv" / venv / "bin"
    if not (binary / "ansible-playbook").exists():
        pytest.fail(f"{venv} is not installed: make setup")
    playbooks.bin, playbooks.environment = binary, environment
    run = playbooks.run("harden-db", "--check", "-v")
    assert run.code == 0
    return run.reports["dbhost"]


def test_reports_are_equal_under_each_ansible_core_and_setting(
    machine: Machine, playbooks: Playbooks, tmp_path: Path
) -> None:
    injected = {"ANSIBLE_INJECT_FACT_VARS": "true"}
    not_injected = {"ANSIBLE_INJECT_FACT_VARS": "false"}
    cached = {
        **not_injected,
        "ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(tmp_path / "facts"),
        "ANSIBLE_GATHERING": "smart",
    }
    first = report(playbooks, VENVS[0], injected)
    assert first["verdict"] == "attested"
    assert len(first["settings"]) > 10
    for venv in VENVS:
        for environment in (not_injected, cached):
            assert report(playbooks, venv, environment) == first


def test_cached_facts_of_an_earlier_run_are_not_believed(
    machine: Machine, playbooks: Playbooks, tmp_path: Path
) -> None:
    environment = {
        "ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile",
        "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(tmp_path / "facts"),
    }
    assert report(playbooks, VENVS[1], environment)["verdict"] == "attested"
    machine.run(["mount", "-o", "remount,barrier=0", "/srv/pgdata"])
    run = playbooks.run("harden-db", "--check")
    assert run.settings("dbhost")["/srv/pgdata", "barrier"] == "drift_running"
    machine.run(["mount", "-o", "remount,barrier=1", "/srv/pgdata"])
