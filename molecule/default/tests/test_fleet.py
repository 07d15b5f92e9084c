# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that are away, hosts that nobody pinned, and plays that cannot see their inputs."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from support import truth
from support.layout import cache_on
from support.runs import Executions, Playbooks, before_call, connection, inventory

from lab.machine import Machine

AWAY = {"ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_user": "root"}


def test_an_unreachable_and_an_unpinned_host_are_reported_beside_the_others(
    machine: Machine, playbooks: Playbooks, tmp_path: Path
) -> None:
    hosts = {"databases": {"hosts": {"away": AWAY}}, "others": {"hosts": {"free": connection(machine)}}}
    playbooks.inventories.append(inventory(tmp_path / "more.yml", hosts))
    before = truth.read(machine)["mounts"]
    run = playbooks.run("harden-db")
    verdicts = {host: report["verdict"] for host, report in run.reports.items()}
    assert verdicts == {"away": "unreachable", "dbhost": "attested", "free": "not_managed"}
    assert run.code == 2
    assert set(run.reports["free"]["ratings"]) == {"strict", "flush", "protected", "ups", "disposable"}
    assert run.recap["free"]["changed"] == 0
    assert truth.read(machine)["mounts"] == before
    table = run.output[run.output.index("3 hosts: ") :]
    assert table.index("away") < table.index("dbhost") < table.index("free")


def test_what_may_pass_is_the_users_choice(playbooks: Playbooks, tmp_path: Path) -> None:
    hosts = {"databases": {"hosts": {"away": AWAY}}}
    playbooks.inventories.append(inventory(tmp_path / "more.yml", hosts))
    playbooks.limit = "away"
    run = playbooks.run("harden-db", "--check", variables={"durable_fail_on": ["at_risk"]})
    assert run.reports["away"]["verdict"] == "unreachable"
    assert run.code == 0


def test_without_a_pinned_host_the_run_fails_and_says_where_to_pin(
    machine: Machine, playbooks: Playbooks
) -> None:
    playbooks.inventories = [machine.inventory]
    executions = Executions(machine)
    run = playbooks.run("harden-db")
    assert run.code == 2
    assert "No host of this run has a durable_profile" in run.output
    assert "group_vars/databases.yml in the same directory as the inventory file" in run.output
    assert executions.count() == 0


@pytest.mark.parametrize("name", ["durable_hosts", "durable_serial"])
@pytest.mark.parametrize("where", ["all", "databases"])
def test_play_inputs_in_the_inventory_are_refused(
    machine: Machine, playbooks: Playbooks, tmp_path: Path, name: str, where: str
) -> None:
    playbooks.inventories.append(inventory(tmp_path / "more.yml", {where: {"vars": {name: "1"}}}))
    executions = Executions(machine)
    run = playbooks.run("harden-db")
    assert run.code == 2
    assert f"{name}: observed in the inventory" in run.output
    assert executions.count() == 0


def test_serial_goes_batch_by_batch_and_no_batch_forgets_the_failure_of_another(
    machine: Machine, playbooks: Playbooks, tmp_path: Path
) -> None:
    second = {"databases": {"hosts": {"away": AWAY, "second": connection(machine)}}}
    playbooks.inventories.append(inventory(tmp_path / "more.yml", second))
    variables = {"durable_serial": 2, "durable_hosts": "databases"}
    run = playbooks.run("harden-db", "--check", variables=variables)
    assert run.output.count("PLAY [Apply the pinned profile to database hosts") == 2
    assert {host: report["verdict"] for host, report in run.reports.items()} == {
        "away": "unreachable",
        "dbhost": "attested",
        "second": "attested",
    }
    assert run.code == 2


def test_a_host_lost_on_the_way_is_looked_at_again_and_reported(
    machine: Machine, playbooks: Playbooks
) -> None:
    machine.run(["mount", "-o", "remount,barrier=0", "/srv/pgdata"])
    machine.run(["sh", "-c", cache_on("SCSI0002")])
    # After the one for the facts the second call is the one that changes something.
    before_call(playbooks, "dbhost", 2, "exit 255")
    run = playbooks.run("harden-db")
    assert run.code == 2
    report = run.reports["dbhost"]
    assert report["error"].startswith("lost the host")
    after = truth.read(machine)
    # The call that was lost did nothing, and the report is true.
    assert after["mounts"]["/srv/pgdata"]["barrier"] == "off"
    assert after["disks"]["SCSI0002"]["cache"] == "on"
    assert {change["state"] for change in report["changes"]} == {"failed"}
    assert playbooks.run("harden-db").code == 0


def test_a_host_that_answers_without_end_is_unknown_by_name_and_the_others_go_on(
    machine: Machine, playbooks: Playbooks, tmp_path: Path
) -> None:
    """Over ssh, where the connection keeps all that a host says. 1 GiB stands for no end.

    The modules go without bytecode, as they do for users: ssh takes 2 MiB for a host that reads nothing, and with bytecode
    they are longer.
    """
    flood = "#!/bin/sh\nhead -c 1073741824 /dev/zero | tr '\\0' x\n"
    machine.run(["sh", "-c", f"printf %s {shlex.quote(flood)} > /root/flood; chmod 755 /root/flood"])
    flooding = {**connection(machine), "ansible_python_interpreter": "/root/flood"}
    hosts = {"databases": {"hosts": {"flooding": flooding}}}
    playbooks.inventories.append(inventory(tmp_path / "more.yml", hosts))
    run = replace(playbooks, python="").run("harden-db", "--check")
    assert {host: report["verdict"] for host, report in run.reports.items()} == {
        "flooding": "unknown",
        "dbhost": "attested",
    }
    assert "its answer was refused" in " ".join(run.reports["flooding"]["why"])
    assert run.code == 2


def test_audit_rates_a_pinned_host_against_every_profile_and_changes_nothing(
    machine: Machine, playbooks: Playbooks
) -> None:
    before = truth.read(machine)["mounts"]
    executions = Executions(machine)
    run = playbooks.run("audit")
    assert executions.count() == 1
    assert run.code == 0
    ratings = run.reports["dbhost"]["ratings"]
    assert ratings["strict"]["verdict"] == "attested"
    assert ratings["flush"]["verdict"] == "drifted"
    assert ratings["disposable"]["verdict"] == "blocked"
    assert truth.read(machine)["mounts"] == before
