# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A volume as its RAID controller reports it, for all tools, and its behaviour at a power cut.

A tool's module has DRIVERS, PROGRAMS and `volumes`. Values that it does not know are `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...host import device_names
from ...host.observation import UNKNOWN

#: What the controller does with a write: keeps it while its battery or capacitor is good, keeps it in any case, or
#: passes it to the disks at once.
WRITE_BACK, ALWAYS_WRITE_BACK, WRITE_THROUGH = "write_back", "always_write_back", "write_through"
#: The battery or capacitor behind the controller's cache; `charging` also while it learns.
GOOD, CHARGING, FAILED, MISSING = "good", "charging", "failed", "missing"
#: The caches of the disks behind the controller, which no battery of it covers.
ENABLED, DISABLED = "enabled", "disabled"

#: Fixes: settings for the program of its controller.
_THROUGH = "set {} to write through (storcli: set wrcache=wt, ssacli: modify caching=disable)"
_BACK = "set {} to write back with a good battery only (storcli: set wrcache=wb, ssacli: modify nobatterywritecache=disable)"
_DRIVES_OFF = (
    "disable the caches of the disks of {} (storcli: set pdcache=off, ssacli: modify drivewritecache=disable)"
)

NON_VOLATILE, VOLATILE = "non_volatile", "volatile"

#: Runs the tool with these arguments and returns what it prints; with `any_exit` also where it fails. Raises
#: Unobservable.
Ask = Callable[..., str]
_ID = re.compile(r"[0-9a-z]{8,64}")


class Volume(NamedTuple):
    """One volume: its name in the tool, and the WWN or serial number by which a block device is known to be it."""

    name: str
    id: str
    write_policy: str
    backup: str
    drive_caches: str


class Fault(NamedTuple):
    """Why a volume's caches are unknown to survive a power cut, and what to do; `volatile` is that word, or `unknown`."""

    volatile: str
    why: str
    remedy: str


def normal_id(text: str) -> str:
    """Return a WWN or serial number as it is compared, '' for what names nothing."""
    found = text.strip().lower()
    while found.startswith("0x"):
        found = found[2:]
    return found if _ID.fullmatch(found) and not device_names.is_filler(found) else ""


def smart_array(caching: str, status: str, without_battery: str) -> str:
    """Return the write policy of a volume of Smart Array and SmartRAID, from the output of its controller.

    `caching` of the volume, `status` of the controller's cache, `without_battery`: whether it caches without one. A
    cache that is off for a while counts as written through only where it comes on again with a good battery alone.
    """
    caching, status, without_battery = (word.lower() for word in (caching, status, without_battery))
    if caching == "disabled":
        return WRITE_THROUGH
    off = status in ("temporarily disabled", "permanently disabled", "not configured")
    if caching != "enabled" or not (off or status == "ok"):
        return UNKNOWN
    if without_battery == "disabled":
        return WRITE_THROUGH if off else WRITE_BACK
    return ALWAYS_WRITE_BACK if (without_battery, status) == ("enabled", "ok") else UNKNOWN


def is_exposed(raid: Mapping[str, Any] | None) -> bool:
    """Return whether a controller acknowledges writes that a power cut takes from it now."""
    return raid is not None and (
        raid["write_policy"] == ALWAYS_WRITE_BACK and raid["backup"] in (CHARGING, FAILED, MISSING)
    )


def fault(raid: Mapping[str, Any]) -> Fault | None:
    """Return what keeps a volume from surviving a power cut, the worst first; None where it does."""
    policy, backup, drives, volume = (
        raid[key] for key in ("write_policy", "backup", "drive_caches", "volume")
    )
    if is_exposed(raid):
        why = f"its controller writes back whatever becomes of its battery or capacitor, which is {backup}"
        return Fault(VOLATILE, why, f"{_THROUGH.format(volume)}, or replace its battery or capacitor")
    if drives == ENABLED:
        why = (
            "the disks behind its controller cache, and no battery or capacitor of the controller covers them"
        )
        return Fault(VOLATILE, why, _DRIVES_OFF.format(volume))
    found = None if policy == WRITE_THROUGH else _of_cache(policy, backup, volume)
    if found is None and drives != DISABLED:
        why = "it is unknown whether the disks behind its controller cache, and no battery of the controller covers them"
        return Fault(UNKNOWN, why, _DRIVES_OFF.format(volume))
    return found


def _of_cache(policy: str, backup: str, volume: str) -> Fault | None:
    """Return what is wrong with a controller's own cache that is to hold writes."""
    if policy == UNKNOWN:
        why = "it is unknown whether its controller writes back or through"
        return Fault(UNKNOWN, why, _THROUGH.format(volume))
    if backup == UNKNOWN:
        why = "the state of the battery or capacitor behind its controller's cache is unknown"
        return Fault(
            UNKNOWN, why, f"make its controller report the battery or capacitor, or {_THROUGH.format(volume)}"
        )
    if policy == ALWAYS_WRITE_BACK:
        why = "its controller goes on writing back when its battery or capacitor fails or learns"
        return Fault(VOLATILE, why, _BACK.format(volume))
    if backup == GOOD:
        return None
    why = f"its controller writes back, and its battery or capacitor is {backup}"
    fix = (
        "run again when the battery or capacitor has charged"
        if backup == CHARGING
        else f"replace the battery or capacitor, or {_THROUGH.format(volume)}"
    )
    return Fault(VOLATILE, why, fix)
