# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""tmpfiles.d(5): files below /sys to which systemd-tmpfiles writes at boot."""

from __future__ import annotations

import posixpath
import shlex

from ..host.seam import Host
from .acts import Act
from .files import existing

BY = "tmpfiles.d"
#: The strongest first. A file in one hides those of its name in the others.
DIRECTORIES = ("/etc/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")
#: Types that write a line's argument to a file that is there.
_WRITES = ("w", "f", "F")


def collect(host: Host) -> list[Act]:
    """Return what the files write. Raises Unobservable."""
    found: dict[str, str] = {}
    for directory in DIRECTORIES:
        for path in existing(host, directory, ".conf"):
            found.setdefault(posixpath.basename(path), path)
    acts: list[Act] = []
    for name in sorted(found):
        if host.resolve(found[name]) != "/dev/null":
            acts += parse(host.read(found[name]), found[name])
    return acts


def parse(text: str, path: str) -> list[Act]:
    """Return what one file writes. `f` writes only to a new file, so to none in /sys."""
    found = []
    for row, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#") or "/sys/" not in line:
            continue
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        # What stands behind the sixth word is part of the argument.
        if (
            len(words) < 7
            or words[0].rstrip("+!-=~^$")[:1] not in _WRITES
            or (words[0].startswith("f") and "+" not in words[0])
        ):
            continue
        target, value = words[1], " ".join(words[6:])
        certain = "%" not in f"{target}{value}".replace("%%", "")
        found.append(Act(BY, f"{path} line {row}", "write", (target, value.replace("%%", "%")), certain))
    return found
