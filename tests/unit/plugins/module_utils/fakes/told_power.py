# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""durable_power, written by hand in the shape of the facts, and what an inventory says beside it."""

from __future__ import annotations

from typing import Any

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.ups import CONDITIONS
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.lease import Lease, Leased

from .runs import NOW, attested
from .small_host import BOOT_ID

HOOK = "/usr/local/lib/durable-dbhost/bin/ups-notify"
#: The words that profile ups stands on, on bare metal.
WORDS = (attested("ups_rehearsed"), attested("plug_pulled"))
#: A lease as it is issued for /srv/pgdata on the word of WORDS, and as the facts tell it.
LEASE = {
    "mounts": ["/srv/pgdata"],
    "issued": "2026-01-01",
    "expires": "2026-06-30",
    "quiet": 300,
    "needed": {"durability": 66.0, "clean_stop": 150.0},
    "test_ups": False,
    "units": [],
}


def guard(state: str = "absent", reason: str = "there is no lease", **changes: Any) -> dict[str, Any]:
    """Return what is told of the guard."""
    return {
        "state": state,
        "reason": reason,
        "since": None,
        "quiet": None,
        "lease": None,
        "mounts": [],
        **changes,
    }


def leased(state: str = "loose", reason: str = "all is well", **changes: Any) -> dict[str, Any]:
    """Return what is told of a guard with a lease, some of its terms changed."""
    return guard(
        state,
        reason,
        since="2026-01-31T11:00:00Z",
        lease={**LEASE, **changes},
        mounts=[{"target": "/srv/pgdata", "barrier": "off" if state == "loose" else "on"}],
    )


def lease_of(target: str) -> str:
    """Return a lease for one mount point, as it lies on a host."""
    mount = Leased(target, "0f3c1b9a-55f3-4c1e-9a52-3f4c0a8e7d10")
    return Lease((mount,), "2026-01-01", "2026-06-30", 300, dict(LEASE["needed"]), False, ()).render()


def seen(value: Any, source: str = "/etc/nut/upsmon.conf") -> dict[str, Any]:
    """Return an observation."""
    return {"value": value, "source": source, "reason": None}


def budget(available: float, *terms: tuple[str, float]) -> dict[str, Any]:
    """Return a budget that is met."""
    return {
        "needed": sum(seconds for _name, seconds in terms),
        "available": available,
        "state": "met",
        "terms": [{"name": name, "seconds": seconds, "source": "told"} for name, seconds in terms],
    }


def condition(name: str, state: str = "met", **changes: Any) -> dict[str, Any]:
    """Return one condition; one that does not hold says so in words of its own."""
    fixes = [{"fix": "start_unit", "parameters": {"unit": name}}] if state != "met" else []
    return {
        "name": name,
        "target": "host",
        "state": state,
        "evidence": f"saw {name}",
        "fixes": fixes,
        **changes,
    }


def power(*but: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return facts of a UPS that is all right, with these conditions instead of those that are met."""
    by_name = {name: condition(name) for name in CONDITIONS}
    by_name.update({each["name"]: each for each in but})
    return {
        "boot_id": BOOT_ID,
        "time": NOW,
        "kernel": "6.1.0",
        "monitor": "nut",
        "unit": "nut-monitor.service",
        "mode": "standalone",
        "upses": [
            {
                "name": "rack",
                "system": "rack@localhost",
                "driver": "usbhid-ups",
                "power_value": 1,
                "user": "upsmon",
                "type": "primary",
                "status": ["OL", "CHRG"],
                "charge": 100.0,
                "runtime": 3600.0,
                "runtime_low": 300.0,
                "stale": "no",
                "test": "no",
                "logins": 1,
                "reason": None,
            }
        ],
        "timing": {"pollfreq": 5.0, "finaldelay": 5.0, "hostsync": 15.0},
        "budget": {
            "durability": budget(3600.0, ("poll", 5.0), ("notify", 1.0), ("margin", 60.0)),
            "clean_stop": budget(300.0, ("stop of postgresql.service", 90.0), ("margin", 60.0)),
        },
        "conditions": list(by_name.values()),
        "guard": guard(),
        "settings": {
            "shutdown_command": seen("/sbin/shutdown -h +0"),
            "powerdown_flag": seen("/etc/killpower"),
            "notify_command": seen(HOOK),
            "notify_flags": seen("exec"),
        },
        "evidence": {"monitor": seen("nut", "systemctl show")},
        **changes,
    }


def without_notify() -> dict[str, Any]:
    """Return facts of a UPS that is all right except nobody being told of its events."""
    found = power(condition("notify_reaches_guard", "unmet"))
    found["settings"].update(notify_command=seen(""), notify_flags=seen("without EXEC: ONBATT LOWBATT"))
    return found
