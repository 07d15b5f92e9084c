# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sysfsutils: /etc/sysfs.conf and /etc/sysfs.d, which its service writes below /sys at boot."""

from __future__ import annotations

import posixpath

from ..host.boot_files import existing, text_of
from ..host.seam import Host
from .acts import Act
from .starts import Starts

BY = "sysfs.conf"
#: Debian's package has a SysV script and no unit; others have a unit. Without the package nothing reads the files.
_SCRIPT, _UNITS = "sysfsutils", ("sysfsutils.service",)


def collect(host: Host, starts: Starts) -> list[Act]:
    """Return what the files write, if a boot runs what reads them. Raises Unobservable."""
    paths = ["/etc/sysfs.conf", *existing(host, "/etc/sysfs.d", ".conf")]
    found = [act for path in paths for act in parse(text_of(host, path), path)]
    if any(posixpath.basename(each.path) == _SCRIPT for each in (starts.scripts if found else ())):
        return found
    return starts.of_unit(found, _UNITS)


def parse(text: str, path: str) -> list[Act]:
    """Return what one file writes: `block/sda/queue/scheduler = none`."""
    found = []
    for row, raw in enumerate(text.split("\n"), 1):
        line = raw.partition("#")[0]
        key, equals, value = (part.strip() for part in line.partition("="))
        # `mode` and `owner` before a key set rights.
        if equals and key and " " not in key:
            found.append(Act(BY, f"{path} line {row}", "write", (f"/sys/{key.removeprefix('/sys/')}", value)))
    return found
