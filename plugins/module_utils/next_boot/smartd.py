# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""smartd.conf(5): smartd sets the write cache and read-ahead of disks as it starts."""

from __future__ import annotations

import re
import shlex

from ..host.boot_files import text_of
from ..host.seam import Host
from .acts import Act
from .starts import Starts

BY = "smartd"
PATHS = ("/etc/smartd.conf", "/etc/smartmontools/smartd.conf")
_UNITS = ("smartd.service", "smartmontools.service")
#: Distributions read its options from one of these; `-c` names another file.
_OPTIONS = ("/etc/default/smartmontools", "/etc/sysconfig/smartmontools")
_CONFIG = re.compile(r"^[^#\n]*(?:\s|[\"'=])(?:-c\s*|--configfile[=\s]\s*)(/[^\s\"']+)", re.M)
_CACHE = re.compile(r"wcache,(on|off)")


def collect(host: Host, starts: Starts) -> list[Act]:
    """Return what smartd sets, if it starts at boot. Raises Unobservable."""
    named = (path for file in _OPTIONS for path in _CONFIG.findall(text_of(host, file)))
    texts = [(path, text_of(host, path)) for path in dict.fromkeys((*PATHS, *named))]
    found = [act for path, text in texts for act in parse(text, path)]
    return starts.of_unit(found, _UNITS)


def parse(text: str, path: str) -> list[Act]:
    """Return what a file sets. DEFAULT is for the lines below; lines below DEVICESCAN are not read."""
    found = []
    default = ""
    for row, line in _logical(text):
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if not words:
            continue
        state = _CACHE.search(" ".join(words[1:]))
        if words[0] == "DEFAULT":
            default = state[1] if state else ""
            continue
        word = state[1] if state else default
        device = "/dev/*" if words[0] == "DEVICESCAN" else words[0]
        if word:
            command = ("hdparm", f"-W{1 if word == 'on' else 0}", device)
            found.append(Act(BY, f"{path} line {row}", "command", command))
        if words[0] == "DEVICESCAN":
            break
    return found


def _logical(text: str) -> list[tuple[int, str]]:
    found, started, first = [], "", 0
    for row, raw in enumerate(text.split("\n"), 1):
        line = raw.partition("#")[0]
        first = first if started else row
        started += line.rstrip("\\")
        if not line.endswith("\\"):
            found.append((first, started))
            started = ""
    return found
