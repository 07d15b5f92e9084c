# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real apcupsd with its driver for UPSes that speak through the wires of a serial port alone.

Such a UPS tells neither charge nor runtime, so nothing is leased: facts and gate are all that it can show.
"""

from __future__ import annotations

from support.runs import Playbooks

from lab.machine import Machine

HOST = "apcupsd"


def test_its_facts_are_read_and_what_it_cannot_tell_blocks(machine: Machine, playbooks: Playbooks) -> None:
    said = "for second in $(seq 60); do apcaccess 2> /dev/null | grep '^STATUS *: ONLINE' && exit; sleep 1; done; exit 1"
    machine.run(["sh", "-c", said], timeout=120)
    run = playbooks.run("harden-db", "--check")
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


def test_without_its_daemon_that_is_what_is_said(machine: Machine, playbooks: Playbooks) -> None:
    machine.run(["systemctl", "stop", "apcupsd"])
    run = playbooks.run("harden-db", "--check")
    conditions = {each["name"]: each for each in run.reports[HOST]["power"]["conditions"]}
    assert conditions["monitor_active"]["state"] == "unmet"
    assert conditions["status_online"]["state"] == "unknown"
    assert (run.code, run.reports[HOST]["verdict"]) == (2, "blocked")
