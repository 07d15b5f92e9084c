# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""udisks2: the configuration of single drives, which udisksd applies as a drive appears."""

from __future__ import annotations

import posixpath
import re

from ..host.boot_files import existing, text_of
from ..host.seam import Host
from .acts import Act, Device

BY = "udisks2"
DIRECTORY = "/etc/udisks2"
_PROGRAMS = ("/usr/libexec/udisks2/udisksd", "/usr/lib/udisks2/udisksd", "/usr/libexec/udisksd")


def collect(host: Host, devices: list[Device]) -> list[Act]:
    """Return what udisksd sets. Raises Unobservable."""
    if not any(host.exists(path) for path in _PROGRAMS):
        return []
    return [
        act
        for path in existing(host, DIRECTORY, ".conf")
        for act in parse(text_of(host, path), path, devices)
    ]


def parse(text: str, path: str, devices: list[Device]) -> list[Act]:
    """Return what a file sets: its name ends in the serial number of the drive (udisks(8))."""
    stem = posixpath.basename(path)[: -len(".conf")]
    found = []
    for row, line in enumerate(text.split("\n"), 1):
        state = re.fullmatch(r"\s*WriteCacheEnabled\s*=\s*(true|false|1|0)\s*", line)
        for device in devices if state else ():
            if device.serial and stem.endswith(device.serial):
                command = (
                    "hdparm",
                    f"-W{1 if state and state[1] in ('true', '1') else 0}",
                    f"/dev/{device.name}",
                )
                found.append(Act(BY, f"{path} line {row}", "command", command, is_resolved=True))
    return found
