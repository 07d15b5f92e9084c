# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adaptec's RAID and Microchip's SmartRAID, by the text of arcconf."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...host.observation import UNKNOWN
from . import volume
from .volume import Ask, Volume

DRIVERS = ("aacraid", "smartpqi")
PROGRAMS = ("/usr/Arcconf/arcconf", "/usr/StorMan/arcconf", "/usr/sbin/arcconf")
#: Controllers that are asked: no server has more.
MOST = 16

_FOUND = re.compile(r"^Controllers found: (\d+)\s*$", re.M)
_RULE = re.compile(r"-{20,}")
_LOGICAL = re.compile(r"Logical [Dd]evice number (\d+)")
_DRIVE = re.compile(r"Device #\d+")
_HARD_DRIVE = "Device is a Hard drive"
#: Of the cache now: on or off; and of its setting, whether it asks for a battery.
_ON = {"enabled (write-back)": True, "on": True, "disabled (write-through)": False, "off": False}
_PROTECTED = {
    "enabled (write-back) when protected by battery",
    "enabled (write-back) when protected by battery/zmm",
    "on when protected by battery",
    "on when protected by battery/zmm",
}
_DRIVES = {"Enabled (write-back)": volume.ENABLED, "Disabled (write-through)": volume.DISABLED}
_DRIVE_POLICIES = {"Enabled": volume.ENABLED, "Disabled": volume.DISABLED}
#: Section -> property that has the state of what is behind the cache.
_BACKUP_IN = {
    "Controller Battery Information": "Status",
    "Controller ZMM Information": "Status",
    "Controller Cache Backup Unit Information": "Overall Backup Unit Status",
    "Green Backup Information": "Backup Power Status",
}
_BACKUPS = {
    "optimal": volume.GOOD,
    "zmm optimal": volume.GOOD,
    "ready": volume.GOOD,
    "ok": volume.GOOD,
    "charging": volume.CHARGING,
    "not fully charged": volume.CHARGING,
    "failed": volume.FAILED,
    "not installed": volume.MISSING,
    "zmm not installed": volume.MISSING,
}

_Properties = dict[str, str]


class _Config(NamedTuple):
    """The properties of a controller by section, of its volumes by number, and of its drives."""

    sections: dict[str, _Properties]
    volumes: dict[str, _Properties]
    drives: list[_Properties]


def volumes(ask: Ask) -> list[Volume]:
    """Return the volumes of all controllers. Raises Unobservable."""
    found: list[Volume] = []
    number, last = 1, 1
    while number <= min(last, MOST):
        # Without its log file; a version that knows no such word is not asked otherwise.
        text = ask("getconfig", str(number), "al", "nologs")
        last = controllers(text)
        found += parse(text, number)
        number += 1
    return found


def controllers(text: str) -> int:
    """Return how many controllers an answer says that there are, 0 where it does not."""
    found = _FOUND.search(text)
    return int(found[1][:4]) if found else 0


def parse(text: str, number: int = 1) -> list[Volume]:
    """Return the volumes in what `arcconf getconfig NUMBER al` prints."""
    config = _read(text)
    backup, drives = _backup(config), _drive_caches(config)
    return [
        Volume(
            name=f"controller {number}, logical device {device}",
            id=_id(properties),
            write_policy=_write_policy(config, properties),
            backup=backup,
            drive_caches=drives,
        )
        for device, properties in config.volumes.items()
    ]


def _id(properties: _Properties) -> str:
    return volume.normal_id(
        properties.get("Volume Unique Identifier") or properties.get("Unique Identifier", "")
    )


def _write_policy(config: _Config, properties: _Properties) -> str:
    cache = config.sections.get("Cache Properties", {})
    if "Caching" in properties:
        status, without = (cache.get(key, "") for key in ("Cache Status", "No-Battery Write Cache"))
        return volume.smart_array(properties["Caching"], status, without)
    now = (properties.get("Write-cache mode") or properties.get("Write-cache status", "")).lower()
    setting = properties.get("Write-cache setting", "").lower()
    if _ON.get(now) is False:
        # One that is forced may be off for a while only.
        return (
            UNKNOWN if setting not in _PROTECTED and _ON.get(setting) is not False else volume.WRITE_THROUGH
        )
    if now not in _ON or (setting not in _PROTECTED and not _ON.get(setting)):
        return UNKNOWN
    return volume.WRITE_BACK if setting in _PROTECTED else volume.ALWAYS_WRITE_BACK


def _backup(config: _Config) -> str:
    said = {
        _BACKUPS.get(config.sections[section].get(key, "").lower(), UNKNOWN)
        for section, key in _BACKUP_IN.items()
        if section in config.sections
    }
    return said.pop() if len(said) == 1 else UNKNOWN


def _drive_caches(config: _Config) -> str:
    """Return enabled where any drive of an array caches, disabled where none does, else unknown.

    SmartRAID has a policy for all of them, others say it of each.
    """
    policy = config.sections.get("Physical Drive Write Cache Policy Information", {}).get("Configured Drives")
    if policy is not None:
        return _DRIVE_POLICIES.get(policy, UNKNOWN)
    online = (drive for drive in config.drives if drive.get("State") == "Online")
    said = {_DRIVES.get(drive.get("Write Cache", ""), UNKNOWN) for drive in online}
    return next((word for word in (volume.ENABLED, UNKNOWN, volume.DISABLED) if word in said), UNKNOWN)


def _read(text: str) -> _Config:
    config = _Config({}, {}, [])
    lines = [line.strip() for line in text.splitlines()]
    into: _Properties = {}
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""]):
        device = _LOGICAL.fullmatch(line)
        if _RULE.fullmatch(before) and _RULE.fullmatch(after) and ": " not in line:
            into = config.sections.setdefault(line, {})
        elif device:
            into = config.volumes.setdefault(device[1], {})
        elif _DRIVE.fullmatch(line):
            into = {}
        elif line == _HARD_DRIVE:
            config.drives.append(into)
        else:
            _take(into, line)
    return config


def _take(into: _Properties, line: str) -> None:
    """Take a line's property; '' where two say different things."""
    key, colon, value = (part.strip() for part in line.partition(": "))
    if colon and key:
        into[key] = value if into.get(key, value) == value else ""
