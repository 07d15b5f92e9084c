# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HPE's Smart Array and SmartRAID, by the text of ssacli."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...host.observation import UNKNOWN
from . import volume
from .volume import Ask, Volume

DRIVERS = ("hpsa", "smartpqi")
PROGRAMS = ("/usr/sbin/ssacli", "/opt/smartstorageadmin/ssacli/bin/ssacli")
QUESTION = ("ctrl", "all", "show", "config", "detail")

_CONTROLLER = re.compile(r"\S.* in Slot (\w+)(?: .*)?")
_LOGICAL_DRIVE = re.compile(r"Logical Drive: (\d+)")
#: Releases differ in capitals: values are compared in small letters.
_BACKUPS = {
    "ok": volume.GOOD,
    "recharging": volume.CHARGING,
    "charging": volume.CHARGING,
    "not fully charged": volume.CHARGING,
    "not present": volume.MISSING,
    "missing": volume.MISSING,
}
_DRIVES = {"enabled": volume.ENABLED, "disabled": volume.DISABLED}
#: The policy of disks in arrays, by older and newer versions.
_DRIVE_POLICIES = ("Drive Write Cache", "Configured Drive Write Cache Policy")


class _Node(NamedTuple):
    """A line, and those below it that are further in."""

    line: str
    below: list[_Node]


def volumes(ask: Ask) -> list[Volume]:
    """Return the volumes of all controllers. Raises Unobservable."""
    return parse(ask(*QUESTION))


def parse(text: str) -> list[Volume]:
    """Return the volumes in what `ssacli ctrl all show config detail` prints."""
    found = []
    for top in _tree(text).below:
        slot = _CONTROLLER.fullmatch(top.line)
        if slot:
            controller = _properties(top)
            found += [
                _volume(slot[1], number[1], controller, _properties(node))
                for node in _all(top)
                for number in [_LOGICAL_DRIVE.fullmatch(node.line)]
                if number
            ]
    return found


def _volume(slot: str, number: str, controller: dict[str, str], drive: dict[str, str]) -> Volume:
    policies = {controller[key].lower() for key in _DRIVE_POLICIES if key in controller}
    return Volume(
        name=f"controller in slot {slot}, logical drive {number}",
        id=volume.normal_id(drive.get("Unique Identifier", "")),
        write_policy=_write_policy(controller, drive),
        backup=_backup(controller),
        drive_caches=_DRIVES.get(policies.pop(), UNKNOWN) if len(policies) == 1 else UNKNOWN,
    )


def _write_policy(controller: dict[str, str], drive: dict[str, str]) -> str:
    status, without = (controller.get(key, "") for key in ("Cache Status", "No-Battery Write Cache"))
    return volume.smart_array(drive.get("Caching", ""), status, without)


def _backup(controller: dict[str, str]) -> str:
    if controller.get("Battery/Capacitor Count") == "0":
        return volume.MISSING
    reported = controller.get("Battery/Capacitor Status", "").lower()
    return volume.FAILED if reported.startswith("failed") else _BACKUPS.get(reported, UNKNOWN)


def _tree(text: str) -> _Node:
    """Return the lines by how far they are in: those directly below one are its properties and parts."""
    top = _Node("", [])
    open_lines = [(-1, top)]
    for line in text.expandtabs().splitlines():
        reported = line.strip()
        if reported:
            indent = len(line) - len(line.lstrip())
            while open_lines[-1][0] >= indent:
                open_lines.pop()
            node = _Node(reported, [])
            open_lines[-1][1].below.append(node)
            open_lines.append((indent, node))
    return top


def _all(node: _Node) -> Iterator[_Node]:
    left = [node]
    while left:
        each = left.pop()
        yield each
        left += reversed(each.below)


def _properties(node: _Node) -> dict[str, str]:
    """Return {name: value} of the lines directly below one; '' where two say different things."""
    found: dict[str, str] = {}
    for each in node.below:
        key, colon, value = each.line.partition(": ")
        if colon:
            value = value.strip()
            found[key] = value if found.get(key, value) == value else ""
    return found
