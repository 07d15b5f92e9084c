# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hdparm.conf(5), which Debian's udev rule of hdparm applies to each new disk."""

from __future__ import annotations

import re

from ..host.boot_files import text_of
from ..host.seam import Host
from .acts import Act

BY = "hdparm.conf"
PATH = "/etc/hdparm.conf"
_OPTIONS = {"write_cache": "-W", "read_ahead_sect": "-a"}
_VALUES = {"on": "1", "off": "0"}


def collect(host: Host) -> list[Act]:
    """Return what the file sets. Raises Unobservable."""
    return parse(text_of(host, PATH), PATH)


def parse(text: str, path: str) -> list[Act]:
    """Return what the file sets: of each block `DEVICE { ... }`, and of `command_line { ... }`; elsewhere for all disks."""
    found = []
    device = "/dev/*"
    for row, raw in enumerate(text.split("\n"), 1):
        line = raw.partition("#")[0].strip()
        source = f"{path} line {row}"
        head = re.match(r"(\S+)\s*\{", line)
        if head:
            device = head[1]
            line = line[head.end() :].strip()
        for part in line.rstrip("}").split(";"):
            found += _of_part(part.strip(), device, source)
        if line.endswith("}"):
            device = "/dev/*"
    return found


def _of_part(part: str, device: str, source: str) -> list[Act]:
    if device == "command_line" and part.startswith("hdparm"):
        return [Act(BY, source, "command", tuple(part.split()))]
    key, _equals, value = (word.strip() for word in part.partition("="))
    if key not in _OPTIONS or not value:
        return []
    word = _VALUES.get(value, value)
    return [Act(BY, source, "command", ("hdparm", f"{_OPTIONS[key]}{word}", device))]
