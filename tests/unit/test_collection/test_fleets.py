# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of docs/fleets.md are what the engines take, and the playbook ends as its page says."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.action import merge_reports
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.variable_names import INPUTS
from ansible_collections.durable.dbhost.plugins.plugin_utils import output
from ansible_collections.durable.dbhost.plugins.plugin_utils.merge import TIME
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes import fleet
from ansible_collections.durable.dbhost.tests.unit.test_collection.test_run_ends_with_page import AWAY, run

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
#: Files of a private data directory: https://docs.ansible.com/projects/runner/en/latest/intro/
RUNNER = {"envvars", "extravars", "passwords", "cmdline", "settings", "ssh_key"}
#: Sections of version 3: https://docs.ansible.com/projects/builder/en/latest/definition/
BUILDER = {
    *("additional_build_files", "additional_build_steps", "build_arg_defaults"),
    *("dependencies", "images", "options", "version"),
}


def parsed(path: Path) -> Any:
    """Return what a YAML file says."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_private_data_directory_has_the_files_of_one() -> None:
    runner = EXAMPLES / "runner"
    assert {path.name for path in runner.iterdir()} == {"env", "inventory", "project"}
    assert {path.name for path in (runner / "env").iterdir()} <= RUNNER
    assert set(parsed(runner / "env/extravars")) <= INPUTS
    assert shlex.split((runner / "env/cmdline").read_text(encoding="utf-8")) == ["--check", "--become"]


@pytest.mark.parametrize("path", ["runner/project/check.yml", "pull/local.yml"])
def test_a_project_is_one_import_of_a_playbook_that_is_there(path: str) -> None:
    (play,) = parsed(EXAMPLES / path)
    name = play["ansible.builtin.import_playbook"].removeprefix("durable.dbhost.")
    assert (ROOT / f"playbooks/{name}.yml").exists()


@pytest.mark.parametrize("inventory", ["runner/inventory", "pull"])
def test_an_inventory_pins_its_hosts_and_none_is_called_localhost(inventory: str) -> None:
    hosts = parsed(EXAMPLES / inventory / "hosts.yml")["databases"]["hosts"]
    assert hosts
    assert "localhost" not in hosts
    assert parsed(EXAMPLES / inventory / "group_vars/databases.yml")["durable_profile"] == "strict"


def test_reports_of_runs_that_begin_elsewhere_go_to_an_absolute_path() -> None:
    for path in ("runner/env/extravars", "pull/group_vars/databases.yml"):
        assert Path(parsed(EXAMPLES / path)["durable_report_dir"]).is_absolute()


def test_the_execution_environment_takes_the_tarball_of_this_version() -> None:
    found = parsed(EXAMPLES / "execution-environment/execution-environment.yml")
    assert (found["version"], set(found) - BUILDER) == (3, set())
    galaxy = parsed(ROOT / "galaxy.yml")
    tarball = f"{galaxy['namespace']}-{galaxy['name']}-{galaxy['version']}.tar.gz"
    assert found["additional_build_files"] == [{"src": tarball, "dest": "collections"}]
    (collection,) = found["dependencies"]["galaxy"]["collections"]
    assert collection == {"name": f"/build/collections/{tarball}", "type": "file"}
    wanted = parsed(ROOT / "meta/runtime.yml")["requires_ansible"].removesuffix(".0")
    assert found["dependencies"]["ansible_core"] == {"package_pip": f"ansible-core{wanted}"}


def test_what_the_collection_asks_of_an_image_is_there() -> None:
    found = parsed(ROOT / "meta/execution-environment.yml")
    assert found["version"] == 1
    assert all((ROOT / path).read_text(encoding="utf-8").strip() for path in found["dependencies"].values())


def test_the_page_has_the_bounds_of_the_code() -> None:
    text = (ROOT / "docs/fleets.md").read_text(encoding="utf-8")
    assert f"`durable_reports_max_hours` ({merge_reports._MAX_HOURS})" in text
    assert (
        f"at most {output._LARGEST // 2**20} MiB each, {output._ALL // 2**20} MiB and {output._FILES:,} files in all"
        in text
    )


@pytest.fixture(name="directory")
def an_inventory_and_reports(tmp_path: Path) -> Path:
    """Return a directory with an inventory of hosts that nobody can reach, and reports of two of them."""
    reports = {report["host"]: report for report in fleet.reports(4)}
    (tmp_path / "in").mkdir()
    for host in ("db3", "db4"):
        now = time.strftime(TIME, time.gmtime())
        (tmp_path / f"in/{host}.json").write_text(json.dumps({**reports[host], "time": now}))
    hosts = dict.fromkeys(("db3", "db4", "db6"), AWAY)
    (tmp_path / "hosts.yml").write_text(json.dumps({"databases": {"hosts": hosts}}))
    return tmp_path


def test_the_playbook_ends_as_its_page_says(directory: Path) -> None:
    """No host is asked: none could be reached."""
    brief = {"ANSIBLE_STDOUT_CALLBACK": "durable.dbhost.brief"}
    code, out, err = run(directory, "-e", "durable_reports=in", playbook="merge_reports", **brief)
    assert (code, err) == (2, "")
    assert "3 hosts: 1 unknown, 1 drifted, 1 attested" in out
    assert "2 of 3 hosts fail (1 unknown, 1 drifted): exit code 2" in out
    assert not any(word in out for word in ("fatal:", "[ERROR]", "NO MORE HOSTS", "PLAY RECAP"))
    well = ("-e", "durable_reports=in", "--limit", "db4", "-e", "durable_report_dir=out")
    (directory / "in/db3.json").unlink()
    code, out, err = run(directory, *well, playbook="merge_reports")
    assert (code, err) == (0, "")
    assert "no host fails: exit code 0" in out
    assert {path.name for path in (directory / "out").iterdir()} == {"report.html", "report.txt"}
