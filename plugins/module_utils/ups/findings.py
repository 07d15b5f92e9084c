# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of findings about UPS, monitor and guard. Data: the policy decides which of them a host has."""

from __future__ import annotations

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
