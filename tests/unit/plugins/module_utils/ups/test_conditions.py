# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each condition of a properly configured UPS, failed one at a time: it alone, with its own words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import HOOK
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apcupsd, conditions
from ansible_collections.durable.dbhost.plugins.module_utils.ups.collect import collect, observe
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.power_host import (
    SECRET,
    UPSMON,
    VARIABLES,
    PowerHost,
    Upsd,
    fix_of,
    nut_27,
    nut_28,
    with_apcupsd,
)

Arrange = Callable[[PowerHost], object]
STOPS = [{"engine": "postgresql", "unit": "postgresql@15-main.service", "seconds": "300"}]
WELL = {"2.7": nut_27, "2.8": nut_28, "apcupsd": with_apcupsd}
NUT = ("2.7", "2.8")
ALL = (*NUT, "apcupsd")
CONF = apcupsd.CONF
#: A literal list, so that a value removed from the module's list fails its test.
BAD = "OB LB FSD RB BYPASS OFF OVER ALARM WAIT CAL NOBATT"


def unit(host: PowerHost) -> dict[str, str]:
    """Return what systemd says of the monitor's service."""
    (name,) = (name for name in host.units if name != "nut.target")
    return host.units[name]


def says(name: str, value: str) -> Arrange:
    """Have NUT's UPS say something else; '' for nothing."""

    def arrange(host: PowerHost) -> None:
        host.upsd.variables["rack"].pop(name)
        if value:
            host.upsd.variables["rack"][name] = value

    return arrange


def field(name: str, value: str) -> Arrange:
    """Have apcupsd say something else."""
    return lambda host: host.nis.fields.update({name: value})


def edit(before: str, after: str, path: str = UPSMON) -> Arrange:
    """Change the monitor's configuration."""
    return lambda host: host.edit(path, before, after)


def unread(path: str) -> Arrange:
    """Have a file that cannot be read."""
    return lambda host: host.files.update({path: Unobservable(f"{path}: Permission denied")})


def second_ups(status: str, supplies: int, driver: str = "snmp-ups") -> Arrange:
    """Add a UPS that another host's upsd serves."""

    def arrange(host: PowerHost) -> None:
        host.edit(UPSMON, "MINSUPPLIES 1", f"MONITOR b@ups2 1 u {SECRET} slave\nMINSUPPLIES {supplies}")
        host.daemons["ups2", 3493] = Upsd({"b": {**VARIABLES, "ups.status": status, "driver.name": driver}})

    return arrange


def silent_upsd(host: PowerHost) -> None:
    """Have nobody listen."""
    host.daemons.clear()


def answers(text: str) -> Arrange:
    """Have upsd answer this instead of a list."""
    return lambda host: host.upsd.answers.update({"LIST VAR rack": text})


#: Monitors, what is wrong, the condition, its state, and words that its evidence and its remedy have.
#: One wording for all that a run of ours sets, and a lease needs.
OTHERS = "meet the other UPS requirements, then run harden_db"
#: STARTTIME of the fake apcupsd: 2026-01-31 10:00:00 UTC.
STARTED = 1769853600


def changed_after_the_start(host: PowerHost) -> None:
    host.owned[CONF] = host.status(CONF)._replace(modified=STARTED + 1.0)


def started_at_no_time(host: PowerHost) -> None:
    host.nis.fields.pop("STARTTIME")


def test_a_file_of_the_second_in_which_apcupsd_started_was_read() -> None:
    host = WELL["apcupsd"]()
    host.owned[CONF] = host.status(CONF)._replace(modified=STARTED + 0.9)
    assert {condition.state for condition in observe(host, STOPS).conditions} == {"met"}


TABLE: list[tuple[tuple[str, ...], Arrange, str, str, str, str]] = [
    (
        ALL,
        lambda h: unit(h).update(ActiveState="failed"),
        "monitor_active",
        "unmet",
        "is failed",
        "systemctl start",
    ),
    (
        ALL,
        lambda h: unit(h).update(ActiveState="inactive"),
        "monitor_active",
        "unmet",
        "is inactive",
        "systemctl start",
    ),
    (
        ALL,
        lambda h: unit(h).update(ActiveState="reloading"),
        "monitor_active",
        "unknown",
        "is reloading",
        "journal",
    ),
    (
        ALL,
        lambda h: unit(h).update(UnitFileState="disabled"),
        "monitor_enabled",
        "unmet",
        "is disabled",
        "run systemctl enable",
    ),
    (
        ALL,
        lambda h: unit(h).update(UnitFileState="masked"),
        "monitor_enabled",
        "unmet",
        "is masked",
        ", then systemctl enable ",
    ),
    (
        ALL,
        lambda h: unit(h).update(UnitFileState="masked-runtime"),
        "monitor_enabled",
        "unmet",
        "is masked-runtime",
        "run systemctl unmask --runtime ",
    ),
    (
        ALL,
        lambda h: unit(h).update(UnitFileState="enabled-runtime"),
        "monitor_enabled",
        "unmet",
        "runtime",
        "enable",
    ),
    (
        ALL,
        lambda h: unit(h).update(UnitFileState="generated"),
        "monitor_enabled",
        "unknown",
        "generated",
        "enable",
    ),
    (
        NUT,
        lambda h: h.units.update({"nut.target": {"UnitFileState": "disabled"}}),
        "monitor_enabled",
        "unmet",
        "nut.target, which may start it, is disabled",
        "systemctl enable nut.target",
    ),
    (
        NUT,
        edit("MODE=standalone", "MODE=none", "/etc/nut/nut.conf"),
        "mode_set",
        "unmet",
        "MODE is none",
        "MODE=netclient",
    ),
    (
        NUT,
        edit("MODE=", "#MODE=", "/etc/nut/nut.conf"),
        "mode_set",
        "unmet",
        "MODE is not set",
        "MODE=netclient",
    ),
    (
        NUT,
        edit("MODE=", "MODE = ", "/etc/nut/nut.conf"),
        "mode_set",
        "unknown",
        "nut.conf line 2",
        "MODE=netclient",
    ),
    (NUT, unread("/etc/nut/nut.conf"), "mode_set", "unknown", "Permission denied", "MODE=netclient"),
    (
        ("apcupsd",),
        edit("=yes", "=no", "/etc/default/apcupsd"),
        "mode_set",
        "unmet",
        "ISCONFIGURED is no",
        "ISCONFIGURED=yes",
    ),
    (
        NUT,
        edit("MINSUPPLIES 1", "MINSUPPLIES 2"),
        "power_values",
        "unmet",
        "add up to 1, MINSUPPLIES",
        f"add a MONITOR line with a power value for each UPS that feeds this host to {UPSMON}",
    ),
    (
        NUT,
        edit("MINSUPPLIES 1", "MINSUPPLIES 0"),
        "power_values",
        "unmet",
        "is 0",
        f"set MINSUPPLIES to 1 or more in {UPSMON}",
    ),
    (
        NUT,
        edit("MINSUPPLIES 1", "MINSUPPLIES many"),
        "power_values",
        "unknown",
        "MINSUPPLIES",
        "set MINSUPPLIES to a number in /etc/nut/upsmon.conf",
    ),
    (
        ("apcupsd",),
        edit("UPSTYPE usb", "#UPSTYPE", CONF),
        "power_values",
        "unmet",
        "UPSTYPE is not set",
        "UPSCABLE",
    ),
    (
        NUT,
        edit("SHUTDOWNCMD", "#SHUTDOWNCMD"),
        "shutdown_command",
        "unmet",
        "no SHUTDOWNCMD",
        "set shutdown_command: /sbin/shutdown -h now in durable_ups, then run harden_db",
    ),
    (NUT, edit("/sbin/shutdown -h +0", ""), "shutdown_command", "unmet", "no SHUTDOWNCMD", "/sbin/shutdown"),
    (
        NUT,
        lambda h: h.program("/bin/true") or h.edit(UPSMON, "/sbin/shutdown -h +0", "/bin/true"),
        "shutdown_command",
        "unmet",
        "'/bin/true': it shuts nothing down",
        "/sbin/shutdown",
    ),
    (
        NUT,
        edit("/sbin/shutdown -h +0", "echo off"),
        "shutdown_command",
        "unmet",
        "'echo off'",
        "/sbin/shutdown",
    ),
    (
        NUT,
        edit("/sbin/shutdown -h +0", "/opt/down"),
        "shutdown_command",
        "unmet",
        "/opt/down is not there",
        "shutdown",
    ),
    (
        NUT,
        edit("/sbin/shutdown -h +0", "/sbin/shutdown -k now"),
        "shutdown_command",
        "unmet",
        "it warns only (-k)",
        "/sbin/shutdown -h now",
    ),
    (
        NUT,
        edit("/sbin/shutdown -h +0", "/sbin/shutdown -h +1"),
        "shutdown_command",
        "unmet",
        "it waits 1 min (+1)",
        "/sbin/shutdown -h now",
    ),
    (
        NUT,
        edit("/sbin/shutdown -h +0", "notify shutdown -h now"),
        "shutdown_command",
        "unknown",
        "what notify does is unknown",
        "/sbin/shutdown -h now",
    ),
    (
        ("apcupsd",),
        edit("${SHUTDOWN} -h now", "# ${SHUTDOWN} -h now", "/etc/apcupsd/apccontrol"),
        "shutdown_command",
        "unmet",
        "shuts nothing down",
        "package",
    ),
    (
        ("apcupsd",),
        edit("${SHUTDOWN} -h now", "${SHUTDOWN} -r now", "/etc/apcupsd/apccontrol"),
        "shutdown_command",
        "unmet",
        "restarts the host (-r)",
        "package",
    ),
    (
        ("apcupsd",),
        edit("SHUTDOWN=/sbin", "SHUTDOWN=/bin/true\nSHUTDOWN=/sbin", "/etc/apcupsd/apccontrol"),
        "shutdown_command",
        "unknown",
        "inserts a value",
        "package",
    ),
    (
        ("apcupsd",),
        lambda h: h.program("/etc/apcupsd/doshutdown", '#!/bin/sh\nexit "$CODE"\n'),
        "shutdown_command",
        "unknown",
        "may end with 99",
        "end /etc/apcupsd/doshutdown with exit 0",
    ),
    (
        ("apcupsd",),
        edit("doshutdown)", "nothing)", "/etc/apcupsd/apccontrol"),
        "shutdown_command",
        "unmet",
        "does nothing at doshutdown",
        "package",
    ),
    (
        ("apcupsd",),
        lambda h: h.program("/etc/apcupsd/doshutdown", "#!/bin/sh\nexit 99\n"),
        "shutdown_command",
        "unknown",
        "may end with 99",
        "end /etc/apcupsd/doshutdown with exit 0",
    ),
    (("apcupsd",), unread("/etc/apcupsd/apccontrol"), "shutdown_command", "unknown", "denied", "package"),
    (
        NUT,
        edit("POWERDOWNFLAG", "#POWERDOWNFLAG"),
        "powerdown_flag",
        "unmet",
        "POWERDOWNFLAG is not set",
        "set powerdown_flag: /etc/killpower in durable_ups, then run harden_db",
    ),
    (
        ("2.7",),
        edit(f"{SECRET} master", f"{SECRET} primary"),
        "powerdown_flag",
        "unmet",
        "before 2.8",
        f"write master in place of primary in MONITOR of {UPSMON}, then run systemctl restart nut-monitor",
    ),
    (
        NUT,
        lambda h: h.modes.update({"/lib/systemd/system-shutdown/nutshutdown": 0o644}),
        "powerdown_flag",
        "unmet",
        "may be executed",
        "install nut-server (nut on Red Hat and SUSE), and make nutshutdown in",
    ),
    (
        ("apcupsd",),
        lambda h: h.files.pop("/lib/systemd/system-shutdown/apcupsd_shutdown"),
        "powerdown_flag",
        "unmet",
        "system-shutdown",
        "apcupsd_shutdown, which runs /etc/apcupsd/apccontrol killpower if /etc/apcupsd/powerfail exists",
    ),
    (
        NUT,
        edit("NOTIFYCMD", "#NOTIFYCMD"),
        "notify_reaches_guard",
        "unmet",
        "NOTIFYCMD is not set",
        OTHERS,
    ),
    (
        NUT,
        edit(HOOK, '"/bin/curl -u a:b x"'),
        "notify_reaches_guard",
        "unmet",
        "is [command not shown",
        OTHERS,
    ),
    (
        NUT,
        edit("/sbin/shutdown -h +0", "/usr/bin/upscmd -u a -p b ups load.off"),
        "shutdown_command",
        "unmet",
        "SHUTDOWNCMD is '[command not shown: it can contain a secret]', and /usr/bin/upscmd is not there",
        "/sbin/shutdown",
    ),
    (NUT, edit(HOOK, "/sbin/upssched"), "notify_reaches_guard", "unmet", "is /sbin/upssched", OTHERS),
    (
        NUT,
        edit("NOTIFYFLAG COMMBAD SYSLOG+EXEC", "NOTIFYFLAG COMMBAD SYSLOG+WALL"),
        "notify_reaches_guard",
        "unmet",
        "no EXEC for COMMBAD",
        OTHERS,
    ),
    (
        NUT,
        edit("NOTIFYFLAG ONBATT SYSLOG+EXEC", "NOTIFYFLAG ONBATT EXEC+IGNORE"),
        "notify_reaches_guard",
        "unmet",
        "no EXEC for ONBATT",
        OTHERS,
    ),
    (NUT, lambda h: h.modes.update({HOOK: 0o644}), "notify_reaches_guard", "unmet", "executed", OTHERS),
    (
        NUT,
        lambda h: h.files.pop(HOOK) and h.modes.pop(HOOK),
        "notify_reaches_guard",
        "unmet",
        HOOK,
        OTHERS,
    ),
    (
        ("apcupsd",),
        lambda h: h.files.pop("/etc/apcupsd/commfailure") and h.modes.pop("/etc/apcupsd/commfailure"),
        "notify_reaches_guard",
        "unmet",
        "for commfailure",
        OTHERS,
    ),
    (
        ("apcupsd",),
        lambda h: h.modes.update({"/etc/apcupsd/onbattery": 0o644}),
        "notify_reaches_guard",
        "unmet",
        "for onbattery",
        OTHERS,
    ),
    (
        NUT,
        says("driver.name", "dummy-ups"),
        "driver_real",
        "unmet",
        "dummy-ups",
        "set driver= in ups.conf to that of",
    ),
    (
        NUT,
        says("driver.name", "clone"),
        "driver_real",
        "unknown",
        "clone",
        "name the UPS of the real driver in MONITOR",
    ),
    (NUT, says("driver.name", ""), "driver_real", "unknown", "rack@localhost: unknown", "driver.name"),
    (
        ("apcupsd",),
        field("DRIVER", "TEST UPS Driver"),
        "driver_real",
        "unmet",
        "TEST UPS",
        "set UPSTYPE in /etc/apcupsd/apcupsd.conf to that of",
    ),
    (
        NUT,
        says("ups.status", "OB DISCHRG"),
        "status_online",
        "unmet",
        "(OB)",
        "restore the power of rack@localhost",
    ),
    (
        NUT,
        second_ups("OB LB", 2),
        "status_online",
        "unmet",
        "b@ups2: OB LB (OB LB)",
        "restore the power of b@ups2",
    ),
    (
        NUT,
        second_ups("OL TEST", 2),
        "status_online",
        "unknown",
        "(TEST: not known here)",
        "send a capture with the status TEST",
    ),
    (NUT, says("ups.status", "CHRG"), "status_online", "unmet", "(no OL)", "restore the power"),
    (
        NUT,
        says("ups.status", ""),
        "status_online",
        "unknown",
        "its status is empty",
        "run upsc rack@localhost to see",
    ),
    (NUT, says("ups.status", "ol <b>"), "status_online", "unknown", "expected keywords", "send a capture"),
    (
        ("apcupsd",),
        field("STATUS", "ONBATT LOWBATT "),
        "status_online",
        "unmet",
        "OB LB",
        "restore the power of ups@",
    ),
    (
        ("apcupsd",),
        field("STATUS", "ONLINE REPLACEBATT"),
        "status_online",
        "unmet",
        "(RB)",
        "replace the battery of ups@",
    ),
    (
        ("apcupsd",),
        field("STATUS", "ONLINE OVERLOAD"),
        "status_online",
        "unmet",
        "(OVER)",
        "reduce the load of ups@",
    ),
    (
        ("apcupsd",),
        field("STATUS", "ONLINE SELFTEST"),
        "status_online",
        "unmet",
        "(CAL)",
        "run again after the test",
    ),
    (
        ("apcupsd",),
        field("STATUS", "SHUTTING DOWN"),
        "status_online",
        "unmet",
        "(FSD)",
        "then restart its upsd",
    ),
    (
        ("apcupsd",),
        field("STATUS", "COMMLOST"),
        "status_online",
        "unknown",
        "says 'COMMLOST'",
        "check the cable of ups@",
    ),
    (
        ("apcupsd",),
        field("STATUS", "ONLINE SLAVEDOWN"),
        "status_online",
        "unknown",
        "SLAVEDOWN",
        "send a capture",
    ),
    (NUT, says("battery.runtime", "60"), "runtime_durability", "unmet", "60 s (runtime now", "charge"),
    (
        ("apcupsd",),
        field("TIMELEFT", "0.5 Minutes"),
        "runtime_durability",
        "unmet",
        "30 s (runtime now",
        "charge",
    ),
    (
        NUT,
        edit("DEADTIME 15", "DEADTIME x"),
        "runtime_durability",
        "unknown",
        "unknown silence",
        f"write a plain number for DEADTIME into {UPSMON}",
    ),
    (
        NUT,
        says("battery.runtime.low", "300"),
        "runtime_clean_stop",
        "unmet",
        "300 s",
        "runtime.low (with ignorelb) to ",
    ),
    (NUT, says("battery.runtime.low", ""), "runtime_clean_stop", "unknown", "is not", "ignorelb"),
    (
        NUT,
        says("driver.flag.ignorelb", ""),
        "runtime_clean_stop",
        "unknown",
        "is 900 s, but the UPS itself decides",
        "ignorelb",
    ),
    (
        NUT,
        says("driver.flag.ignorelb", "disabled"),
        "runtime_clean_stop",
        "unknown",
        "is 900 s, but the UPS itself decides",
        "ignorelb",
    ),
    (
        NUT,
        edit("FINALDELAY 5", "FINALDELAY 5s"),
        "runtime_clean_stop",
        "unknown",
        "unknown final_delay",
        f"write a plain number for FINALDELAY into {UPSMON}",
    ),
    (("apcupsd",), edit("MINUTES 15", "MINUTES 3", CONF), "runtime_clean_stop", "unmet", "180 s", "MINUTES"),
    (
        ("apcupsd",),
        edit("MINUTES 15", "MINUTES -1", CONF),
        "runtime_clean_stop",
        "unknown",
        "neither MINUTES",
        "MINUTES",
    ),
    (
        ("apcupsd",),
        edit("KILLDELAY 0", "KILLDELAY 120", CONF),
        "runtime_clean_stop",
        "unmet",
        "KILLDELAY",
        f"set KILLDELAY 0 in {CONF}",
    ),
    (
        ("apcupsd",),
        edit("KILLDELAY 0", "KILLDELAY soon", CONF),
        "runtime_clean_stop",
        "unknown",
        "KILLDELAY is no number",
        f"set KILLDELAY 0 in {CONF}",
    ),
    *(
        (
            ("apcupsd",),
            arrange,
            "runtime_clean_stop",
            "unknown",
            "KILLDELAY that runs is unknown",
            "systemctl restart apcupsd",
        )
        for arrange in (changed_after_the_start, started_at_no_time)
    ),
]
CASES = [(monitor, *row[1:]) for row in TABLE for monitor in row[0]]


@pytest.mark.fact(37)
@pytest.mark.fact(40)
@pytest.mark.parametrize("monitor", WELL)
def test_where_all_is_well_every_condition_is_met(monitor: str) -> None:
    found = observe(WELL[monitor](), STOPS)
    assert [condition.name for condition in found.conditions] == list(conditions.NAMES)
    assert {condition.state for condition in found.conditions} == {"met"}
    assert all(condition.evidence and not fix_of(condition) for condition in found.conditions)


@pytest.mark.fact(40)
@pytest.mark.parametrize(("monitor", "arrange", "name", "state", "evidence", "remedy"), CASES)
def test_each_condition_fails_alone_and_in_its_own_words(
    monitor: str, arrange: Arrange, name: str, state: str, evidence: str, remedy: str
) -> None:
    host = WELL[monitor]()
    arrange(host)
    found = observe(host, STOPS)
    failed = [condition for condition in found.conditions if condition.state != "met"]
    # What is too little of a battery for one flush is too little for apcupsd's shutdown as well.
    both = (monitor, name) == ("apcupsd", "runtime_durability")
    also = [("runtime_clean_stop", "unmet")] if both else []
    assert [(condition.name, condition.state) for condition in failed] == [(name, state), *also]
    assert evidence in failed[0].evidence
    assert remedy in fix_of(failed[0])
    assert fix_of(failed[0])


def test_a_password_in_a_command_of_the_monitor_is_not_in_the_facts() -> None:
    host = nut_28()
    edit(HOOK, '"/usr/bin/curl -u admin:hunter2 https://x"')(host)
    edit("/sbin/shutdown -h +0", "/usr/bin/upscmd -u admin -p hunter2 ups load.off")(host)
    found = collect(host, "2026-11-30T00:00:00Z", STOPS)
    assert {found["settings"][name]["value"] for name in ("notify_command", "shutdown_command")} == {
        "[command not shown: it can contain a secret]"
    }
    assert "hunter2" not in json.dumps(found)


NO_RUNTIMES = ("65535", "65534", "32767", "3932100", "4294967295", "2147483647", "259201", "-1", "1e9", "")


@pytest.mark.parametrize("said", NO_RUNTIMES)
def test_a_number_that_stands_for_no_runtime_is_no_runtime(said: str) -> None:
    """Of nut's dumps: 65535, and 3932100, which is 65535 minutes."""
    host = nut_28()
    host.upsd.variables["rack"]["battery.runtime"] = said
    power = observe(host, STOPS)
    assert power.upses[0].runtime is None
    failed = {one.name: (one.state, one.evidence) for one in power.conditions if one.state != "met"}
    assert {name: state for name, (state, _evidence) in failed.items()} == {
        "runtime_durability": "unknown",
        "runtime_clean_stop": "unknown",
    }
    why = f"battery.runtime is {said!r}, which is no runtime" if said else "the UPS tells no battery.runtime"
    assert all(why in evidence for _state, evidence in failed.values())


@pytest.mark.parametrize("said", NO_RUNTIMES)
def test_a_number_that_stands_for_no_runtime_is_no_limit(said: str) -> None:
    host = nut_28()
    host.upsd.variables["rack"]["battery.runtime.low"] = said
    (failed,) = (one for one in observe(host, STOPS).conditions if one.state != "met")
    assert (failed.name, failed.state) == ("runtime_clean_stop", "unknown")


def test_apcupsd_has_such_numbers_in_minutes() -> None:
    host = WELL["apcupsd"]()
    field("TIMELEFT", "65535.0 Minutes")(host)
    power = observe(host, STOPS)
    assert (power.upses[0].runtime, power.upses[0].runtime_low) == (None, None)
    assert "TIMELEFT is '65535.0 Minutes', which is no runtime" in str(power.conditions)


@pytest.mark.parametrize(("said", "charge"), [("100", 100), ("102", 102), ("255", None), ("65535", None)])
def test_a_charge_is_percent(said: str, charge: float | None) -> None:
    host = nut_28()
    host.upsd.variables["rack"]["battery.charge"] = said
    assert observe(host, STOPS).upses[0].charge == charge


def test_each_condition_has_a_case_of_its_own() -> None:
    failing = {(monitor, row[2]) for row in TABLE for monitor in row[0]}
    assert failing == {(monitor, name) for monitor in ALL for name in conditions.NAMES}


@pytest.mark.parametrize("status", ["OL HE", "OL CHRG ECO"])
def test_high_efficiency_mode_is_on_line_and_named(status: str) -> None:
    host = nut_28()
    host.upsd.variables["rack"]["ups.status"] = status
    found = {one.name: one for one in observe(host, STOPS).conditions}
    assert {one.state for one in found.values()} == {"met"}
    assert f"{status} (high-efficiency mode:" in found["status_online"].evidence


@pytest.mark.parametrize("status", ["HE", "OB HE", "OL LB ECO", "OL BYPASS HE"])
def test_high_efficiency_mode_hides_no_other_word(status: str) -> None:
    host = nut_28()
    host.upsd.variables["rack"]["ups.status"] = status
    (failed,) = (one for one in observe(host, STOPS).conditions if one.state != "met")
    assert (failed.name, failed.state) == ("status_online", "unmet")


CURES = {
    "OB": "restore the power of rack@localhost",
    "LB": "let the battery of rack@localhost charge",
    "FSD": "restore the power of rack@localhost",
    "RB": "replace the battery of rack@localhost",
    "BYPASS": "switch rack@localhost from bypass to normal operation",
    "OFF": "switch rack@localhost on",
    "OVER": "reduce the load of rack@localhost",
    "ALARM": "correct what ups.alarm of rack@localhost names",
    "WAIT": "run again after the driver of rack@localhost has read a status",
    "CAL": "run again after the test of rack@localhost",
    "NOBATT": "connect the battery of rack@localhost",
}


@pytest.mark.fact(37)
@pytest.mark.parametrize("word", BAD.split())
def test_each_word_against_a_ups_is_named(word: str) -> None:
    host = nut_28()
    host.upsd.variables["rack"]["ups.status"] = f"OL CHRG {word}"
    (failed,) = (one for one in observe(host, STOPS).conditions if one.state != "met")
    assert (failed.name, failed.state) == ("status_online", "unmet")
    assert f"({word})" in failed.evidence
    assert fix_of(failed).split(", then")[0] == CURES[word]


@pytest.mark.parametrize(
    ("arrange", "words"),
    [
        (silent_upsd, "Connection refused"),
        (answers("ERR DATA-STALE\n"), "upsd of localhost says DATA-STALE"),
        (answers("ERR DRIVER-NOT-CONNECTED\n"), "upsd of localhost says DRIVER-NOT-CONNECTED"),
        (answers("ERR ACCESS-DENIED\n"), "upsd of localhost says ACCESS-DENIED"),
        (
            answers("VAR rack ups.status OL\n"),
            "observed 'VAR rack ups.status OL', expected BEGIN LIST VAR rack",
        ),
        (answers("BEGIN LIST VAR rack\nups.status OL\nEND LIST VAR rack\n"), "expected VAR rack name"),
        (
            answers('BEGIN LIST VAR rack\nVAR other ups.status "OL"\nEND LIST VAR rack\n'),
            "observed 'VAR other",
        ),
        (answers("BEGIN LIST VAR rack\nEND LIST VAR rack\n"), "its status is empty"),
        (answers("\udce9\n"), "expected BEGIN LIST VAR rack"),
        (edit("rack@localhost", "rack@localhost:0"), "expected a port below 65536"),
    ],
)
def test_a_upsd_that_is_silent_stale_or_lies_makes_unknown_with_what_was_seen(
    arrange: Arrange, words: str
) -> None:
    host = nut_28()
    arrange(host)
    found = {condition.name: condition for condition in observe(host, STOPS).conditions}
    assert words in found["status_online"].evidence
    assert {name for name, condition in found.items() if condition.state == "unknown"} == {
        "driver_real",
        "status_online",
        "runtime_durability",
        "runtime_clean_stop",
    }
    said = {fix_of(condition) for condition in found.values() if condition.state == "unknown"}
    (remedy,) = said
    assert re.fullmatch(
        r"run upsc rack@localhost\S* to see the error, then restart the driver and upsd of that UPS", remedy
    )


@pytest.mark.parametrize(
    ("arrange", "remedy"),
    [
        (lambda host: host.daemons.clear(), "run apcaccess status "),
        (edit("NETSERVER on", "NETSERVER off", CONF), f"set NETSERVER on and NISPORT 3551 in {CONF}"),
        (lambda host: host.nis.fields.pop("STATUS"), "check the cable of "),
    ],
)
def test_an_apcupsd_that_does_not_tell_has_a_fix_for_each_cause(arrange: Arrange, remedy: str) -> None:
    host = with_apcupsd()
    arrange(host)
    (found,) = (one for one in observe(host, STOPS).conditions if one.name == "status_online")
    assert fix_of(found).startswith(remedy)


def test_a_ups_s_name_is_one_word_of_the_command_to_copy() -> None:
    host = nut_28()
    host.edit(UPSMON, "rack@localhost", "r;id@localhost")
    (found,) = (one for one in observe(host, STOPS).conditions if one.name == "status_online")
    assert fix_of(found).startswith("run upsc 'r;id@localhost' to see")


def test_without_a_runtime_no_limit_helps() -> None:
    host = nut_28()
    host.upsd.variables["rack"]["battery.runtime"] = ""
    found = {one.name: fix_of(one) for one in observe(host, STOPS).conditions if one.state != "met"}
    assert found == dict.fromkeys(
        ("runtime_durability", "runtime_clean_stop"),
        "use a UPS that reports its runtime, or set durable_profile: flush",
    )


def test_without_a_ups_one_is_to_be_named() -> None:
    host = nut_28()
    host.files[UPSMON] = re.sub(r"(?m)^MONITOR .*$", "", host.files[UPSMON])
    found = {one.name: fix_of(one) for one in observe(host, STOPS).conditions if one.state != "met"}
    fix = f"add a MONITOR line with a power value for each UPS that feeds this host to {UPSMON}, then restart upsmon"
    assert found == dict.fromkeys(
        ("power_values", "driver_real", "status_online", "runtime_durability", "runtime_clean_stop"), fix
    )


def test_stale_is_a_word_of_its_own() -> None:
    host = nut_28()
    answers("ERR DATA-STALE\n")(host)
    (ups,) = observe(host).upses
    assert (ups.stale, ups.status) == ("yes", ())
    answers("ERR DRIVER-NOT-CONNECTED\n")(host)
    assert observe(host).upses[0].stale == "unknown"


@pytest.mark.parametrize(
    ("arrange", "words"),
    [
        (lambda host: host.daemons.clear(), "Connection refused"),
        (edit("NETSERVER on", "NETSERVER off", CONF), "NETSERVER is off"),
        (lambda host: host.nis.fields.pop("STATUS"), "its status is empty"),
        (lambda host: host.nis.fields.update({"bad line": "x"}), "expected NAME : value"),
    ],
)
def test_an_apcupsd_that_does_not_tell_makes_unknown(arrange: Arrange, words: str) -> None:
    host = with_apcupsd()
    arrange(host)
    (condition,) = (one for one in observe(host, STOPS).conditions if one.name == "status_online")
    assert condition.state == "unknown"
    assert words in condition.evidence


def test_a_monitor_whose_file_cannot_be_read_leaves_nothing_met_but_its_service() -> None:
    for host, path in ((nut_28(), UPSMON), (with_apcupsd(), CONF)):
        unread(path)(host)
        found = {condition.name: condition.state for condition in observe(host, STOPS).conditions}
        met = {name for name, state in found.items() if state == "met"}
        assert met == {"monitor_active", "monitor_enabled", "mode_set"}
        assert set(found.values()) == {"met", "unknown"}


@pytest.mark.fact(37)
def test_of_several_upses_enough_have_to_be_on_line() -> None:
    for status, supplies, state in (("OB", 1, "met"), ("OB", 2, "unmet"), ("OL", 2, "met")):
        host = nut_28()
        second_ups(status, supplies)(host)
        (condition,) = (one for one in observe(host, STOPS).conditions if one.name == "status_online")
        assert condition.state == state
        assert f"b@ups2: {status}" in condition.evidence


def test_a_ups_that_feeds_nothing_here_is_told_and_does_not_count() -> None:
    host = nut_28()
    second_ups("OB LB", 1)(host)
    host.edit(UPSMON, "MONITOR b@ups2 1", "MONITOR b@ups2 0")
    found = observe(host, STOPS)
    assert [(ups.system, ups.user) for ups in found.upses] == [
        ("rack@localhost", "upsmon"),
        ("b@ups2", "u"),
    ]
    assert {condition.state for condition in found.conditions} == {"met"}


def test_the_driver_of_a_ups_with_power_value_0_is_ignored() -> None:
    for driver in ("dummy-ups", "clone"):
        host = nut_28()
        second_ups("OL", 1, driver)(host)
        host.edit(UPSMON, "MONITOR b@ups2 1", "MONITOR b@ups2 0")
        assert {condition.state for condition in observe(host, STOPS).conditions} == {"met"}


def test_a_primary_with_power_value_0_needs_no_power_down_flag() -> None:
    host = nut_28()
    second_ups("OL", 1)(host)
    host.edit(UPSMON, "MONITOR rack@localhost 1", "MONITOR rack@localhost 0")
    host.edit(UPSMON, "POWERDOWNFLAG", "#POWERDOWNFLAG")
    (flag,) = (one for one in observe(host, STOPS).conditions if one.name == "powerdown_flag")
    assert (flag.state, "secondary" in flag.evidence) == ("met", True)


def test_without_a_ups_the_power_is_unknown() -> None:
    host = nut_28()
    host.edit(UPSMON, "MONITOR rack@localhost 1", "MONITOR rack@localhost 0")
    found = {one.name: (one.state, one.evidence) for one in observe(host, STOPS).conditions}
    assert found["status_online"] == ("unknown", "no UPS feeds this host")
    assert found["driver_real"] == ("unknown", "no UPS feeds this host")


@pytest.mark.parametrize("left", ["46.5 Seconds", "46.5 Hours", "46.5", "46.5 minutes"])
def test_a_timeleft_in_another_unit_is_no_runtime(left: str) -> None:
    host = with_apcupsd()
    host.nis.fields["TIMELEFT"] = left
    found = observe(host, STOPS)
    assert found.upses[0].runtime is None
    states = {one.name: one.state for one in found.conditions if one.name.startswith("runtime_")}
    assert set(states.values()) == {"unknown"}


def test_a_made_up_ups_beside_a_real_one_counts_against_both() -> None:
    host = nut_28()
    second_ups("OL", 1, driver="dummy-ups")(host)
    assert [one.name for one in observe(host, STOPS).conditions if one.state != "met"] == ["driver_real"]


@pytest.mark.fact(37)
@pytest.mark.parametrize("word", ["slave", "secondary"])
def test_a_secondary_needs_no_power_down_flag(word: str) -> None:
    host = nut_28()
    host.edit(UPSMON, f"{SECRET} primary", f"{SECRET} {word}")
    host.edit(UPSMON, "POWERDOWNFLAG", "#POWERDOWNFLAG")
    found = observe(host, STOPS)
    assert found.upses[0].type == "secondary"
    (flag,) = (one for one in found.conditions if one.name == "powerdown_flag")
    assert (flag.state, "secondary" in flag.evidence) == ("met", True)


@pytest.mark.parametrize("said", ["usbhid-ups\x1b[2Jall is well", "dummy-ups\r", " ", "x" * 61])
def test_a_driver_with_a_name_that_is_none_is_not_known(said: str) -> None:
    host = nut_28()
    host.upsd.variables["rack"]["driver.name"] = said
    found = observe(host)
    (driver,) = (each for each in found.conditions if each.name == "driver_real")
    assert (driver.state, found.upses[0].driver) == ("unknown", "unknown")
    assert said.strip() == "" or said not in driver.evidence


@pytest.mark.fact(39)
def test_behind_a_network_of_apcupsd_the_driver_at_the_cable_counts() -> None:
    host = with_apcupsd()
    host.edit(CONF, "UPSTYPE usb\nDEVICE", "UPSTYPE net\nDEVICE ups1:3551")
    host.nis.fields["DRIVER"] = "NETWORK UPS Driver"
    assert observe(host).upses[0].test == "unknown"
    far = with_apcupsd().nis
    host.daemons["ups1", 3551] = far
    found = observe(host).upses[0]
    assert (found.type, found.driver, found.test) == ("secondary", "USB UPS Driver", "no")
    far.fields["DRIVER"] = "TEST UPS Driver"
    assert observe(host).upses[0].test == "yes"


@pytest.mark.fact(39)
def test_what_apcupsd_says_is_told_in_the_words_and_seconds_of_all() -> None:
    (ups,) = observe(with_apcupsd()).upses
    assert (ups.name, ups.system, ups.status) == ("rack", "ups@127.0.0.1", ("OL",))
    assert (ups.charge, ups.runtime, ups.runtime_low) == (100.0, 2790.0, 900.0)


@pytest.mark.fact(39)
def test_old_values_of_a_lost_ups_are_not_told() -> None:
    host = with_apcupsd()
    host.nis.fields["STATUS"] = "ONLINE COMMLOST"
    (ups,) = observe(host).upses
    assert (ups.status, ups.stale) == ((), "yes")


@pytest.mark.fact(38)
def test_a_made_up_ups_is_called_so() -> None:
    host = nut_28()
    assert observe(host).upses[0].test == "no"
    host.upsd.variables["rack"]["driver.name"] = "dummy-ups"
    assert observe(host).upses[0].test == "yes"


def test_no_password_is_told() -> None:
    bad = f"MONITOR rack@localhost 1 upsmon {SECRET}\nMONITOR x {SECRET} 1 2 3\nMONITOR y@z 1 u '{SECRET} primary\n"
    for arrange in (lambda host: None, lambda host: host.edit(UPSMON, "MINSUPPLIES 1", bad)):
        for host in (nut_27(), nut_28()):
            arrange(host)
            assert SECRET not in json.dumps(collect(host, "now"))
    host = nut_28()
    answers(f'BEGIN LIST VAR rack\nVAR rack driver.parameter.password "{SECRET}\nEND LIST VAR rack\n')(host)
    assert SECRET not in json.dumps(collect(host, "now"))
