# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of findings about UPS, monitor and guard. Data: the policy decides which of them a host has."""

from __future__ import annotations

from collections.abc import Iterable

from ..facts.ups import FixFacts
from ..host.printable import command, name
from ..rows import Kind
from .conditions import NAMES

GUARD_FAILED = Kind(
    "risk.guard_failed",
    "at_risk",
    "commits can be lost: the guard could not put all barriers back and flush: {cause}",
    "run harden_db, which turns barriers on and flushes, then read journalctl -u durable-dbhost-guard",
)

#: Condition of the power facts -> what it means that it is unmet.
_UNMET = {
    "monitor_active": "no process watches the UPS",
    "monitor_enabled": "after the next boot no process watches the UPS",
    "mode_set": "the UPS monitor is not started",
    "power_values": "the UPS monitor counts too few UPSes for this host, or needs none of them",
    "shutdown_command": "the UPS monitor does not shut this host down when the battery is low",
    "powerdown_flag": "the UPS stays on until its battery is empty, and this host stays off if the power returns meanwhile",
    "notify_reaches_guard": "the guard learns late that the power failed: barriers stay off meanwhile",
    "driver_real": "a driver that simulates its UPS does not report the power",
    "status_online": "the power may fail before acknowledged commits are on disk",
    "runtime_durability": "the last commits may not be on disk when the battery is empty",
    "runtime_clean_stop": "the engines may be killed, or the power fail, before they stop: they recover at the next start",
}
#: Fix of facts/power_fixes.py -> its sentence. `{quoted[name]}` is a value as a word of a command to copy.
FIXES = {
    "install_monitor": "install and configure NUT (nut-client, nut-server) or apcupsd",
    "allow_systemctl": "make systemctl show work as root, then run again",
    "disable_one": "disable one of {first} and {second} (systemctl disable --now)",
    "start_unit": "run systemctl start {quoted[unit]}, and read its journal",
    "enable_unit": "run systemctl enable {quoted[unit]}",
    "unmask_unit": "run systemctl unmask {quoted[unit]}, then systemctl enable {quoted[unit]}",
    "unmask_unit.runtime": "run systemctl unmask --runtime {quoted[unit]}, then systemctl enable {quoted[unit]}",
    "restart_unit": "run systemctl restart {quoted[unit]}",
    "harden": "meet the other UPS requirements, then run harden_db",
    "correct_file": "correct {path} as the reason states",
    "make_readable": "make {path} readable for root",
    "write_number": "write a plain number for {directive} into {path}",
    "write_mode": "write MODE=netclient, standalone or netserver into {path}",
    "write_configured": "write ISCONFIGURED=yes into {path}",
    "add_monitor": "add a MONITOR line with a power value for each UPS that feeds this host to {path}, then restart upsmon",
    "set_supplies": "set MINSUPPLIES to a number in {path}",
    "raise_supplies": "set MINSUPPLIES to 1 or more in {path}",
    "set_type": "set UPSTYPE and UPSCABLE in {path}",
    "write_master": "write master in place of primary in MONITOR of {path}, then run systemctl restart nut-monitor",
    "set_shutdown_command": "set shutdown_command: /sbin/shutdown -h now in durable_ups, then run harden_db",
    "set_powerdown_flag": "set powerdown_flag: /etc/killpower in durable_ups, then run harden_db",
    "restore_apccontrol": "restore apccontrol from apcupsd's package",
    "end_script": "end {path} with exit 0, so that apccontrol shuts down",
    "make_hooks_readable": "make {path} and the programs in it readable for root",
    "install_hook": "install nut-server (nut on Red Hat and SUSE), and make nutshutdown in {path} executable",
    "install_hook.apcupsd": "install an executable {directory}/apcupsd_shutdown, which runs {scripts}/apccontrol killpower if"
    " {flags}/powerfail exists",
    "zero_kill_delay": "set KILLDELAY 0 in {path}, then restart apcupsd",
    "check_upsd": "run upsc {quoted[system]} to see the error, then restart the driver and upsd of that UPS",
    "check_apcupsd": "run apcaccess status {quoted[address]} to see the error, then restart apcupsd",
    "serve_status": "set NETSERVER on and NISPORT {port} in {path}, then restart apcupsd",
    "check_cable": "check the cable of {system}, then restart apcupsd",
    "send_status": "send a capture with the status {status} (docs/capture.md)",
    "send_status.empty": "send a capture with the status of the UPS (docs/capture.md)",
    "status.OB": "restore the power of {system}",
    "status.LB": "let the battery of {system} charge",
    "status.FSD": "restore the power of {system}, then restart its upsd or apcupsd",
    "status.RB": "replace the battery of {system}",
    "status.BYPASS": "switch {system} from bypass to normal operation",
    "status.OFF": "switch {system} on",
    "status.OVER": "reduce the load of {system}",
    "status.ALARM": "correct what ups.alarm of {system} names",
    "status.WAIT": "run again after the driver of {system} has read a status",
    "status.CAL": "run again after the test of {system}",
    "status.NOBATT": "connect the battery of {system}",
    "use_real_driver": "set driver= in ups.conf to that of the real UPS, or on a host without data attest test_ups for host",
    "use_real_driver.apcupsd": "set UPSTYPE in /etc/apcupsd/apcupsd.conf to that of the real UPS, or on a host without data"
    " attest test_ups for host",
    "monitor_real_driver": "name the UPS of the real driver in MONITOR in place of {system}, then restart upsmon",
    "report_driver": "make {system} report its driver (driver.name of upsd, DRIVER of apcupsd)",
    "report_runtime": "use a UPS that reports its runtime, or set durable_profile: flush",
    "charge_battery": "let the battery charge, or use a larger one",
    "start_earlier": "raise override.battery.runtime.low (with ignorelb) to {seconds} in ups.conf, or MINUTES to {minutes} in"
    " /etc/apcupsd/apcupsd.conf and restart apcupsd, or lower TimeoutStopSec= of the servers, or use a larger battery",
    "start_earlier.unknown_need": "raise override.battery.runtime.low (with ignorelb) to the required seconds in ups.conf, or"
    " MINUTES to the required minutes in /etc/apcupsd/apcupsd.conf and restart apcupsd, or lower TimeoutStopSec= of the"
    " servers, or use a larger battery",
    "report_low_battery": "set ignorelb and override.battery.runtime.low = {seconds} in ups.conf and restart the driver, or set"
    " MINUTES {minutes} in /etc/apcupsd/apcupsd.conf and restart apcupsd",
    "report_low_battery.unknown_need": "set ignorelb and override.battery.runtime.low to the required seconds in ups.conf and"
    " restart the driver, or set MINUTES to the required minutes in /etc/apcupsd/apcupsd.conf and restart apcupsd",
    "limit_stop": "set TimeoutStopSec= of {unit} to a number of seconds in which it stops (systemctl edit {quoted[unit]})",
    "use_own_unit": "run {engine} by {unit} alone, with TimeoutStopSec= set to a number",
    "use_own_unit.none": "run {engine} by a systemd unit alone, with TimeoutStopSec= set to a number",
}


def fix_text(fixes: Iterable[FixFacts]) -> str:
    """Return the sentence of a condition's fixes, '' for none."""
    return ", and ".join(
        FIXES[each["fix"]].format(
            **{key: name(value) for key, value in each["parameters"].items()},
            quoted={key: command(value) for key, value in each["parameters"].items()},
        )
        for each in fixes
    )


#: Condition of the power facts -> its finding.
CONDITIONS = {name: Kind(f"requirement.{name}", "blocked", _UNMET[name], "{cure}") for name in NAMES}
#: One whose state is unknown.
CONDITION_UNKNOWN = Kind("requirement.power_condition_unknown", "blocked", "unknown: {cause}", "{cure}")
POWER_UNKNOWN = Kind(
    "requirement.power_known", "blocked", "{cause}", "correct what the reason names, then run again"
)
POWER_NOT_ASKED = Kind(
    "requirement.power_not_asked", "blocked", "{cause}", "collect them with durable.dbhost.power_facts"
)
#: Claim -> its finding, on a host for which it is not attested.
NOT_ATTESTED = {
    "ups_rehearsed": Kind(
        "requirement.ups_rehearsed",
        "blocked",
        "no attestation confirms that the UPS brings this host down cleanly before its battery is empty",
        "rehearse it with durable.dbhost.test_shutdown, which writes the attestation ups_rehearsed",
    ),
    "plug_pulled": Kind(
        "requirement.plug_pulled",
        "blocked",
        "no attestation confirms that this host kept its commits when its plug was pulled",
        "pull it with durable.dbhost.pull_the_plug, which writes the attestation plug_pulled",
    ),
    "virtual_host_power": Kind(
        "requirement.virtual_host_power",
        "blocked",
        "a guest sees neither the power of the machine below, nor whether its flushes are honoured",
        "check with the hypervisor's administrator that the same UPS feeds it and that it honours flushes, then attest"
        " virtual_host_power for host",
    ),
}

NOTHING_FREE = Kind(
    "note.no_barriers_to_take",
    "note",
    "no managed mount can run without barriers: profile flush gives the same result without a UPS",
)

#: Layer -> the settings of its rows: the finding of one that is not as wanted is setting.LAYER.SETTING.
SETTINGS = {
    "power": (
        *("notify_command", "notify_flags", "monitor", "final_delay", "host_sync"),
        *("shutdown_command", "powerdown_flag"),
    ),
    "power_guard": ("lease", "barrier"),
}
KINDS = (
    GUARD_FAILED,
    *CONDITIONS.values(),
    CONDITION_UNKNOWN,
    POWER_UNKNOWN,
    POWER_NOT_ASKED,
    *NOT_ATTESTED.values(),
    NOTHING_FREE,
)
