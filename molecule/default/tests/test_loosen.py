# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From strict to disposable: only when losing data is accepted, and through a permitted reboot."""

from __future__ import annotations

from support import truth
from support.runs import Playbooks

from lab.machine import Machine

DISPOSABLE = {"durable_profile": "disposable", "durable_accept_data_loss": True}


def test_nothing_is_loosened_until_losing_data_is_accepted(machine: Machine, playbooks: Playbooks) -> None:
    before = truth.read(machine)["mounts"]
    run = playbooks.run("harden-db", variables={**DISPOSABLE, "durable_accept_data_loss": False})
    assert run.code == 2
    assert run.reports["dbhost"]["verdict"] == "blocked"
    assert "data_loss_accepted" in run.details
    assert run.recap["dbhost"]["changed"] == 0
    assert truth.read(machine)["mounts"] == before


def test_caches_then_barriers_and_a_reboot_for_the_journal(machine: Machine, playbooks: Playbooks) -> None:
    boot = truth.read(machine)["boot_id"]
    waiting = playbooks.run("harden-db", variables=DISPOSABLE)
    assert waiting.code == 2
    assert waiting.reports["dbhost"]["verdict"] == "pending"
    now = truth.read(machine)
    assert now["boot_id"] == boot
    assert {disk["cache"] for disk in now["disks"].values()} == {"on"}
    assert now["mounts"]["/srv/pgdata"]["barrier"] == "off"
    assert now["mounts"]["/srv/pgdata"]["data"] == "ordered"

    # Nothing is left to change, and no run reboots for what another one has changed.
    allowed = {**DISPOSABLE, "durable_allow": ["reboot"]}
    again = playbooks.run("harden-db", variables=allowed)
    assert (again.code, again.recap["dbhost"]["changed"]) == (2, 0)
    assert truth.read(machine)["boot_id"] == boot

    machine.run(["sed", "-i", "/srv.pgdata/s/data=writeback/data=ordered/", "/etc/fstab"])
    rebooted = playbooks.run("harden-db", variables=allowed)
    assert rebooted.code == 0
    assert rebooted.reports["dbhost"]["verdict"] == "accepted_loss"
    then = truth.read(machine)
    assert then["boot_id"] != boot
    assert then["mounts"]["/srv/pgdata"]["data"] == "writeback"
    assert then["mounts"]["/srv/pgdata"]["barrier"] == "off"
