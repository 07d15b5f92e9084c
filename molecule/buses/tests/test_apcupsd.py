# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real apcupsd with its driver for UPSes that speak through the wires of a serial port alone.

Such a UPS tells neither charge nor runtime, so nothing is leased: facts and gate are all that it can show. The daemon
runs for these tests alone. All but the profile is as in the scenario's own inventory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.attested import UPS_CLAIMS, attested
from support.runs import Playbooks

from lab.machine import Machine

HOST = "buses"
INVENTORY: dict[str, Any] = {
    "durable_profile": "ups",
    "durable_mounts": ["/srv/scsi"],
    "durable_attestations": [attested(claim) for claim in UPS_CLAIMS],
}
ONLINE = "for second in $(seq 60); do apcaccess 2> /dev/null | grep '^STATUS *: ONLINE' && exit; sleep 1; done; exit 1"


@pytest.fixture(scope="module")
def watched(machine: Machine) -> Iterator[Machine]:
    """The machine with apcupsd enabled and started, which sees its UPS."""
    machine.run(["systemctl", "--quiet", "enable", "--now", "apcupsd"])
    machine.run(["sh", "-c", ONLINE], timeout=120)
    yield machine
    machine.run(["systemctl", "--quiet", "disable", "--now", "apcupsd"])


def test_its_facts_are_read_and_what_it_cannot_tell_blocks(watched: Machine, playbooks: Playbooks) -> None:
    run = playbooks.run("harden-db", "--check", variables=INVENTORY)
    report = run.reports[HOST]
    power = report["power"]
    assert power["monitor"] == "apcupsd"
    (ups,) = power["upses"]
    assert (ups["status"], ups["stale"], ups["test"]) == (["OL"], "no", "no")
    assert "dumb" in ups["driver"].lower()
    assert (ups["charge"], ups["runtime"]) == (None, None)
    assert (run.code, report["verdict"]) == (2, "blocked")
    states = {condition["name"]: condition["state"] for condition in power["conditions"]}
    assert states["monitor_active"] == states["status_online"] == states["driver_real"] == "met"
    assert states["runtime_durability"] == states["runtime_clean_stop"] == "unknown"
    assert {"power_guard", "power"}.isdisjoint(report["plan"]["tighten"])
    assert report["plan"]["loosen"] == {}


def test_without_its_daemon_that_is_what_is_said(watched: Machine, playbooks: Playbooks) -> None:
    watched.run(["systemctl", "stop", "apcupsd"])
    run = playbooks.run("harden-db", "--check", variables=INVENTORY)
    conditions = {each["name"]: each for each in run.reports[HOST]["power"]["conditions"]}
    assert conditions["monitor_active"]["state"] == "unmet"
    assert conditions["status_online"]["state"] == "unknown"
    assert (run.code, run.reports[HOST]["verdict"]) == (2, "blocked")
