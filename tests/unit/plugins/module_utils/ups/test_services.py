# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which monitor a host has, by systemd's word."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.ups import conditions
from ansible_collections.durable.dbhost.plugins.module_utils.ups.collect import observe
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.power_host import (
    PowerHost,
    fix_of,
    nut_28,
    with_apcupsd,
)

RUNS = {"ActiveState": "active", "UnitFileState": "enabled", "MainPID": "900"}
STOPPED = {"ActiveState": "inactive", "UnitFileState": "disabled", "MainPID": "0"}
WOULD_START = {"ActiveState": "failed", "UnitFileState": "enabled", "MainPID": "0"}
NUT, APCUPSD = "nut-monitor.service", "apcupsd.service"


@pytest.mark.parametrize(
    ("nut", "apcupsd", "monitor"),
    [
        (RUNS, None, "nut"),
        (None, RUNS, "apcupsd"),
        (RUNS, STOPPED, "nut"),
        (STOPPED, RUNS, "apcupsd"),
        (WOULD_START, RUNS, "apcupsd"),
        (WOULD_START, STOPPED, "nut"),
        (STOPPED, None, "nut"),
        (None, STOPPED, "apcupsd"),
        (RUNS, RUNS, "unknown"),
        (WOULD_START, WOULD_START, "unknown"),
        (STOPPED, STOPPED, "unknown"),
    ],
)
def test_the_monitor_is_what_runs_else_what_would_start(
    nut: dict[str, str] | None, apcupsd: dict[str, str] | None, monitor: str
) -> None:
    host = nut_28()
    host.units = {name: said for name, said in ((NUT, nut), (APCUPSD, apcupsd)) if said}
    found = observe(host)
    assert found.monitor == monitor
    assert found.pid == (900 if monitor != "unknown" and RUNS in (nut, apcupsd) else 0)
    assert bool(found.reason) == (monitor == "unknown")


def test_two_monitors_leave_every_condition_unknown_with_both_names() -> None:
    host = nut_28()
    host.units[APCUPSD] = RUNS
    found = observe(host)
    assert {condition.state for condition in found.conditions} == {"unknown"}
    assert found.reason == "nut-monitor.service and apcupsd.service are both there"
    assert {fix_of(condition) for condition in found.conditions} == {
        "disable one of nut-monitor.service and apcupsd.service (systemctl disable --now)"
    }
    assert [condition.name for condition in found.conditions] == list(conditions.NAMES)


def test_no_monitor_at_all_meets_nothing_and_says_what_to_install() -> None:
    host = nut_28()
    host.units = {"other.service": RUNS}
    found = observe(host)
    assert found.monitor == "none"
    assert {condition.state for condition in found.conditions} == {"unmet"}
    assert all("install" in fix_of(condition) for condition in found.conditions)
    assert {each.state for each in found.budgets.values()} == {"unknown"}


def test_without_systemd_nothing_is_known() -> None:
    host = nut_28()
    host.units = {}
    found = observe(host)
    assert {condition.state for condition in found.conditions} == {"unknown"}
    cure = "make systemctl show work as root, then run again"
    assert {fix_of(condition) for condition in found.conditions} == {cure}


@pytest.mark.parametrize("make", [nut_28, with_apcupsd])
def test_one_look_runs_one_command(make: type[PowerHost]) -> None:
    host = make()
    observe(host)
    assert [argv[:2] for argv in host.asked] == [("systemctl", "show")]
    assert host.mutations == []


def test_a_service_under_its_other_name_is_the_same_one() -> None:
    host = nut_28()
    host.units = {"nut-client.service": {**RUNS, "Id": NUT, "Names": f"{NUT} nut-client.service"}}
    host.units[NUT] = host.units["nut-client.service"]
    assert (observe(host).monitor, observe(host).unit) == ("nut", NUT)


def test_a_hang_of_systemctl_is_told() -> None:
    class Hangs(PowerHost):
        def run(self, argv: list[str], timeout: float = 10) -> object:  # type: ignore[override]
            raise Unobservable(f"{argv[0]}: no answer within 10 s")

    found = observe(Hangs(NUT))
    assert (found.monitor, found.reason) == ("unknown", "systemctl: no answer within 10 s")
