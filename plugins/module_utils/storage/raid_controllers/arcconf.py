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
# Releases differ in capitals: names and values are compared in small letters.
_LOGICAL = re.compile(r"logical device number (\d+)", re.I)
_DRIVE = re.compile(r"device #\d+", re.I)
_HARD_DRIVE = "device is a hard drive"
#: Of the cache now: on or off; and of its setting, whether it asks for a battery. `Enabled` asks for none.
_ON = {
    "enabled (write-back)": True,
    "enabled": True,
    "on": True,
    "disabled (write-through)": False,
    "disabled": False,
    "off": False,
    # A controller without memory for writes.
    "not supported": False,
}
_PROTECTED = re.compile(r"(?:on|enabled|enabled \(write-back\)) when protected by battery(?:/zmm)?")
_DRIVES = {"enabled (write-back)": volume.ENABLED, "disabled (write-through)": volume.DISABLED}
_DRIVE_POLICIES = {"enabled": volume.ENABLED, "disabled": volume.DISABLED}
#: Section -> property that has the state of what is behind the cache.
_BACKUP_IN = {
    "controller battery information": "status",
    "controller zmm information": "status",
    "controller cache backup unit information": "overall backup unit status",
    "green backup information": "backup power status",
}
_BACKUPS = {
    "optimal": volume.GOOD,
    "ready": volume.GOOD,
    "ok": volume.GOOD,
    "charging": volume.CHARGING,
    "recharging": volume.CHARGING,
    "reconditioning": volume.CHARGING,
    "not fully charged": volume.CHARGING,
    "failed": volume.FAILED,
    "fatal": volume.FAILED,
    "degraded": volume.FAILED,
    "not ready": volume.FAILED,
    "not installed": volume.MISSING,
    "not present": volume.MISSING,
    "not supported": volume.MISSING,
    "absent": volume.MISSING,
    "missing": volume.MISSING,
}
_ZMM = "zmm "

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
        properties.get("volume unique identifier") or properties.get("unique identifier", "")
    )


def _write_policy(config: _Config, properties: _Properties) -> str:
    cache = config.sections.get("cache properties", {})
    if "caching" in properties:
        status, without = (cache.get(key, "") for key in ("cache status", "no-battery write cache"))
        return volume.smart_array(properties["caching"], status, without)
    now = (properties.get("write-cache mode") or properties.get("write-cache status", "")).lower()
    setting = properties.get("write-cache setting", now if now == "not supported" else "").lower()
    is_protected = _PROTECTED.fullmatch(setting) is not None
    if _ON.get(now) is False:
        # One that is forced may be off for a while only.
        return volume.WRITE_THROUGH if is_protected or _ON.get(setting) is False else UNKNOWN
    if now not in _ON or not (is_protected or _ON.get(setting)):
        return UNKNOWN
    return volume.WRITE_BACK if is_protected else volume.ALWAYS_WRITE_BACK


def _backup(config: _Config) -> str:
    said = {
        _BACKUPS.get(_without_zmm(config.sections[section].get(key, "").lower()), UNKNOWN)
        for section, key in _BACKUP_IN.items()
        if section in config.sections
    }
    return said.pop() if len(said) == 1 else UNKNOWN


def _without_zmm(said: str) -> str:
    return said[len(_ZMM) :] if said.startswith(_ZMM) else said


def _drive_caches(config: _Config) -> str:
    """Return enabled if any drive of an array caches, disabled if no drive does, else unknown.

    SmartRAID has a policy for all of them, others say it of each.
    """
    policy = config.sections.get("physical drive write cache policy information", {}).get("configured drives")
    if policy is not None:
        return _DRIVE_POLICIES.get(policy.lower(), UNKNOWN)
    online = (drive for drive in config.drives if drive.get("state", "").lower() == "online")
    said = {_DRIVES.get(drive.get("write cache", "").lower(), UNKNOWN) for drive in online}
    return next((word for word in (volume.ENABLED, UNKNOWN, volume.DISABLED) if word in said), UNKNOWN)


def _read(text: str) -> _Config:
    config = _Config({}, {}, [])
    lines = [line.strip() for line in text.splitlines()]
    into: _Properties = {}
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""]):
        device = _LOGICAL.fullmatch(line)
        if _RULE.fullmatch(before) and _RULE.fullmatch(after) and ": " not in line:
            into = config.sections.setdefault(line.lower(), {})
        elif device:
            into = config.volumes.setdefault(device[1], {})
        elif _DRIVE.fullmatch(line):
            into = {}
        elif line.lower() == _HARD_DRIVE:
            config.drives.append(into)
        else:
            _take(into, line)
    return config


def _take(into: _Properties, line: str) -> None:
    """Take a line's property, its name in small letters; '' where two say different things."""
    key, colon, value = (part.strip() for part in line.partition(": "))
    key = key.lower()
    if colon and key:
        into[key] = value if into.get(key, value) == value else ""
