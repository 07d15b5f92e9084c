# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sums: what a flush and a clean stop need, and what the battery gives."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.ups import budget
from ansible_collections.durable.dbhost.plugins.module_utils.ups.budget import Available, Budget, Term
from ansible_collections.durable.dbhost.plugins.module_utils.ups.collect import live, observe
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.power_host import (
    SECRET,
    UPSMON,
    VARIABLES,
    Upsd,
    fix_of,
    nut_28,
    with_apcupsd,
)

POSTGRESQL = {"engine": "postgresql", "unit": "postgresql@15-main.service", "seconds": "300"}
MSSQL = {"engine": "mssql", "unit": "mssql-server.service", "seconds": "1800"}


def clean_stop(*stops: dict[str, Any]) -> Budget:
    """Return the sum for a host of NUT's."""
    return observe(nut_28(), stops).budgets["clean_stop"]


@pytest.mark.fact(40)
def test_the_sum_is_that_of_its_terms_and_told_in_words() -> None:
    found = observe(nut_28(), [POSTGRESQL])
    assert {term.name: term.seconds for term in found.budgets["clean_stop"].terms} == {
        "driver": 2,
        "poll": 5,
        "host_sync": 0,
        "final_delay": 5,
        "shutdown_delay": 0,
        "stop of postgresql@15-main.service": 300,
        "margin": 60,
    }
    durability, stop = found.conditions[-2:]
    assert stop.evidence == (
        "needed: 2 s driver + 5 s poll + 0 s host_sync + 5 s final_delay + 0 s shutdown_delay"
        " + 300 s stop of postgresql@15-main.service + 60 s margin = 372 s;"
        " available: 900 s (runtime when low of rack@localhost)"
    )
    assert durability.evidence == (
        "needed: 2 s driver + 5 s poll + 15 s silence + 1 s notify + 60 s margin = 83 s;"
        " available: 2400 s (runtime now of rack@localhost)"
    )


@pytest.mark.fact(30)
@pytest.mark.fact(40)
def test_half_an_hour_of_sql_server_is_more_than_most_batteries_give() -> None:
    found = observe(nut_28(), [MSSQL])
    assert found.budgets["clean_stop"].needed == 1872
    states = {condition.name: condition.state for condition in found.conditions}
    assert states["runtime_clean_stop"] == "unmet"
    assert states["runtime_durability"] == "met"


@pytest.mark.parametrize(
    ("seconds", "state", "needed"),
    [
        ("infinity", "unmet", "infinity"),
        ("unknown", "unknown", "unknown"),
        ("90", "met", 162.0),
        ("90.5", "met", 162.5),
        ("nan", "unknown", "unknown"),
        ("-1", "unknown", "unknown"),
        ("1e999", "unknown", "unknown"),
        ([], "unknown", "unknown"),
        (None, "unknown", "unknown"),
    ],
)
def test_a_stop_without_end_is_unmet_and_one_that_is_not_known_unknown(
    seconds: Any, state: str, needed: Any
) -> None:
    found = clean_stop({**POSTGRESQL, "seconds": seconds}).as_dict()
    assert (found["state"], found["needed"]) == (state, needed)
    json.dumps(found, allow_nan=False)


def test_a_stop_without_end_is_unmet_where_the_battery_is_not_known_either() -> None:
    host = nut_28()
    host.upsd.variables["rack"].pop("driver.flag.ignorelb")
    assert observe(host, [{**POSTGRESQL, "seconds": "infinity"}]).budgets["clean_stop"].state == "unmet"
    assert observe(host, [POSTGRESQL]).budgets["clean_stop"].state == "unknown"


@pytest.mark.fact(37)
def test_a_driver_that_knows_no_runtime_cannot_call_it_low() -> None:
    host = nut_28()
    host.upsd.variables["rack"].pop("battery.runtime")
    found = observe(host)
    assert {name: each.available.seconds for name, each in found.budgets.items()} == {
        "durability": None,
        "clean_stop": None,
    }
    assert "tells no battery.runtime" in found.budgets["clean_stop"].available.source


def test_of_several_batteries_the_shortest_counts() -> None:
    host = nut_28()
    host.edit(UPSMON, "MINSUPPLIES 1", f"MONITOR b@ups2 1 u {SECRET} slave\nMINSUPPLIES 2")
    shorter = {**VARIABLES, "battery.runtime": "1000", "battery.runtime.low": "400"}
    host.daemons["ups2", 3493] = Upsd({"b": shorter})
    found = observe(host).budgets
    assert found["durability"].available == Available(1000, "runtime now of b@ups2")
    assert found["clean_stop"].available == Available(400, "runtime when low of b@ups2")


def test_a_ups_with_power_value_0_changes_no_budget() -> None:
    alone = {name: found.as_dict() for name, found in observe(nut_28()).budgets.items()}
    host = nut_28()
    host.edit(UPSMON, "MINSUPPLIES 1", f"MONITOR b@ups2 0 u {SECRET} slave\nMINSUPPLIES 1")
    other = {
        **VARIABLES,
        "battery.runtime": "10",
        "battery.runtime.low": "5",
        "driver.parameter.pollinterval": "60",
    }
    host.daemons["ups2", 3493] = Upsd({"b": other}, logins=3)
    assert {name: found.as_dict() for name, found in observe(host).budgets.items()} == alone


def test_what_is_known_to_be_too_much_is_unmet_whatever_else_is_unknown() -> None:
    found = clean_stop({**POSTGRESQL, "seconds": "unknown"}, MSSQL)
    assert (found.needed, found.state) == (None, "unmet")


def test_a_unit_counts_once_and_an_engine_without_one_by_itself() -> None:
    docker = {"engine": "mariadb", "unit": None, "seconds": "unknown"}
    terms = budget.of_stops([POSTGRESQL, POSTGRESQL, MSSQL, docker, docker])
    assert [term.name for term in terms] == [
        "stop of postgresql@15-main.service",
        "stop of mssql-server.service",
        "stop of mariadb",
        "stop of mariadb",
    ]


@pytest.mark.parametrize(
    ("stop", "fix"),
    [
        (
            {**POSTGRESQL, "seconds": "infinity"},
            "set TimeoutStopSec= of postgresql@15-main.service to a number of seconds in which it stops (systemctl edit"
            " postgresql@15-main.service)",
        ),
        (
            {**POSTGRESQL, "seconds": "unknown"},
            "run postgresql by postgresql@15-main.service alone, with TimeoutStopSec= set to a number",
        ),
        (
            {"engine": "mariadb", "unit": None, "seconds": "unknown"},
            "run mariadb by a systemd unit alone, with TimeoutStopSec= set to a number",
        ),
    ],
)
def test_each_cause_of_an_unknown_or_endless_stop_has_its_own_fix(stop: dict[str, Any], fix: str) -> None:
    assert fix_of(clean_stop(stop).condition()) == fix


def test_a_battery_that_ends_too_soon_is_told_with_the_seconds_that_are_needed() -> None:
    found = clean_stop({**MSSQL, "seconds": "1799.5"})
    assert found.needed is not None and found.needed > 1799.5
    seconds, minutes = math.ceil(found.needed), math.ceil(found.needed / 60)
    assert fix_of(found.condition()) == (
        f"raise override.battery.runtime.low (with ignorelb) to {seconds} in ups.conf, or MINUTES to {minutes} in"
        " /etc/apcupsd/apcupsd.conf and restart apcupsd, or lower TimeoutStopSec= of the servers, or use a larger battery"
    )
    host = nut_28()
    host.upsd.variables["rack"]["driver.flag.ignorelb"] = ""
    silent = observe(host, [MSSQL]).budgets["clean_stop"]
    assert silent.needed is not None
    assert fix_of(silent.condition()).startswith(
        f"set ignorelb and override.battery.runtime.low = {math.ceil(silent.needed)} in ups.conf and restart the driver"
    )
    assert "to the required seconds" in fix_of(silent.held_against(None))


@pytest.mark.parametrize(
    ("value", "seconds", "state"),
    [
        ("600", 600, "unmet"),
        ("15", 15, "met"),
        ("0", None, "met"),
        ("-1", None, "met"),
        ("1m", None, "unknown"),
    ],
)
def test_a_low_battery_that_counts_late_takes_battery_time(
    value: str, seconds: int | None, state: str
) -> None:
    """OBLBDURATION of upsmon.conf(5)."""
    host = nut_28()
    host.files[UPSMON] = f"{host.read(UPSMON)}OBLBDURATION {value}\n"
    found = observe(host, [POSTGRESQL]).budgets["clean_stop"]
    terms = {term.name: term.seconds for term in found.terms}
    assert (terms.get("low_battery"), found.state) == (seconds, state)
    assert ("low_battery" in terms) == (value not in ("0", "-1"))


@pytest.mark.parametrize("stops", [["postgresql"], [{"unit": "x.service"}], [{"engine": 1}]])
def test_what_is_no_list_of_stops_is_refused(stops: list[Any]) -> None:
    with pytest.raises(ValueError, match="expected engine, unit and seconds"):
        observe(nut_28(), stops)


@pytest.mark.fact(37)
def test_hosts_wait_for_each_other_where_there_are_others_or_nobody_knows() -> None:
    for kind, logins, seconds in (("primary", 1, 0), ("primary", 2, 15), ("secondary", 1, 15)):
        host = nut_28()
        host.upsd.logins = logins
        host.edit(UPSMON, f"{SECRET} primary", f"{SECRET} {kind}")
        (term,) = (one for one in observe(host).budgets["clean_stop"].terms if one.name == "host_sync")
        assert term.seconds == seconds
    host = nut_28()
    host.upsd.answers["GET NUMLOGINS rack"] = "NUMLOGINS other 1\n"
    (term,) = (one for one in observe(host).budgets["clean_stop"].terms if one.name == "host_sync")
    assert (term.seconds, "does not tell" in term.source) == (15, True)


@pytest.mark.parametrize(
    ("command", "seconds"),
    [
        ("/sbin/shutdown -h +0", 0),
        ("/sbin/shutdown -h now", 0),
        ("/sbin/shutdown -h", 60),
        ("/sbin/shutdown -P +3", 180),
        ("/sbin/shutdown -h 23:00", None),
        ("systemctl poweroff", 0),
    ],
)
def test_the_wait_of_shutdown_itself_counts(command: str, seconds: float | None) -> None:
    host = nut_28()
    host.edit(UPSMON, "/sbin/shutdown -h +0", command)
    (term,) = (one for one in observe(host).budgets["clean_stop"].terms if one.name == "shutdown_delay")
    assert term.seconds == seconds


@pytest.mark.fact(39)
def test_apcupsd_begins_at_the_first_of_its_limits() -> None:
    host = with_apcupsd()
    assert observe(host).budgets["clean_stop"].available.seconds == 900
    host.edit("/etc/apcupsd/apcupsd.conf", "MINUTES 15\nTIMEOUT 0", "MINUTES -1\nTIMEOUT 300")
    assert observe(host).budgets["clean_stop"].available.seconds == 2490
    host.edit("/etc/apcupsd/apcupsd.conf", "KILLDELAY 0", "KILLDELAY 200")
    assert observe(host).budgets["clean_stop"].available.seconds == 200
    host.edit("/etc/apcupsd/apcupsd.conf", "MINUTES -1\nTIMEOUT 300", "MINUTES 0\nTIMEOUT 0")
    assert observe(host).budgets["clean_stop"].available.seconds is None
    host.edit("/etc/apcupsd/apcupsd.conf", "MINUTES 0", "MINUTES 20")
    assert observe(host).budgets["clean_stop"].available.seconds == 200
    host.nis.fields.pop("TIMELEFT")
    assert observe(host).budgets["clean_stop"].available.seconds is None


@pytest.mark.fact(39)
@pytest.mark.parametrize(
    ("minutes", "timeout", "running", "seconds"),
    [
        # The file was edited, and apcupsd not restarted; and the other way round.
        ("30", "0", {"MINTIMEL": "3 Minutes"}, 180),
        ("3", "0", {"MINTIMEL": "30 Minutes"}, 180),
        ("30", "0", {"MINTIMEL": "0 Minutes"}, None),
        ("30", "0", {"MINTIMEL": "-1 Minutes"}, None),
        ("0", "60", {"MAXTIME": "0 Seconds"}, None),
        ("0", "60", {"MAXTIME": "600 Seconds"}, 2190),
        ("0", "600", {"MAXTIME": "60 Seconds"}, 2190),
        ("0", "60", {"MAXTIME": "60 Seconds"}, 2730),
    ],
)
def test_apcupsd_begins_by_what_it_has_read(
    minutes: str, timeout: str, running: dict[str, str], seconds: float | None
) -> None:
    host = with_apcupsd()
    host.edit("/etc/apcupsd/apcupsd.conf", "MINUTES 15\nTIMEOUT 0", f"MINUTES {minutes}\nTIMEOUT {timeout}")
    assert host.nis.fields["MINTIMEL"] == f"{minutes} Minutes"
    host.nis.fields.update(running)
    assert observe(host).budgets["clean_stop"].available.seconds == seconds


@pytest.mark.fact(39)
def test_a_battery_that_has_less_than_minutes_already_gives_no_more_than_it_has() -> None:
    host = with_apcupsd()
    host.nis.fields["TIMELEFT"] = "4.0 Minutes"
    assert observe(host).budgets["clean_stop"].available.seconds == 240


def test_the_guard_holds_to_the_seconds_that_it_was_given() -> None:
    host = nut_28()
    host.edit(UPSMON, "MINSUPPLIES 1", "MINSUPPLIES 2")
    power = observe(host)

    def states(needed: dict[str, Any]) -> dict[str, str]:
        return {condition.name: condition.state for condition in live(power, needed)}

    enough = states({"durability": 83, "clean_stop": 900})
    assert {name for name, state in enough.items() if state != "met"} == {"power_values"}
    too_much = states({"durability": 2401, "clean_stop": 901})
    assert too_much["runtime_durability"] == too_much["runtime_clean_stop"] == "unmet"
    for nothing in (
        {},
        {"durability": "unknown", "clean_stop": None},
        {"durability": True, "clean_stop": math.nan},
    ):
        found = states(nothing)
        assert found["runtime_durability"] == found["runtime_clean_stop"] == "unknown"


@pytest.mark.fact(38)
def test_the_guard_takes_a_made_up_ups_only_where_it_may() -> None:
    host = nut_28()
    host.upsd.variables["rack"]["driver.name"] = "dummy-ups"
    power, needed = observe(host), {"durability": 1, "clean_stop": 1}
    assert [one.name for one in live(power, needed) if one.state != "met"] == ["driver_real"]
    assert [one.name for one in live(power, needed, test_ups=True) if one.state != "met"] == []
    host.upsd.variables["rack"].pop("driver.name")
    found = live(observe(host), needed, test_ups=True)
    assert [(one.name, one.state) for one in found if one.state != "met"] == [("driver_real", "unknown")]


def test_without_an_available_runtime_nothing_is_met() -> None:
    for seconds in (1.0, None):
        found = Budget("durability", (Term("x", seconds, "y"),), Available(None, "z"))
        assert found.state == "unknown"
        assert found.condition().state == "unknown"
