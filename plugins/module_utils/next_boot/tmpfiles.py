# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""tmpfiles.d(5): files below /sys to which systemd-tmpfiles writes at boot."""

from __future__ import annotations

from collections.abc import Iterable

from ..host import tmpfiles_d
from ..host.seam import Host
from .acts import Act

BY = "tmpfiles.d"


def collect(host: Host) -> list[Act]:
    """Return what the files write. Raises Unobservable."""
    return written(tmpfiles_d.collect(host))


def written(lines: Iterable[tmpfiles_d.Line]) -> list[Act]:
    """Return what lines write below /sys. Without `+`, `f` writes only to a new file, so to none there."""
    found = []
    for line in lines:
        writes = line.letter in ("w", "F") or (line.letter == "f" and line.has_plus)
        if not writes or not line.argument or not line.path.startswith("/sys/"):
            continue
        certain = "%" not in f"{line.path}{line.argument}".replace("%%", "")
        words = (line.path.replace("%%", "%"), line.content.replace("%%", "%").strip())
        found.append(Act(BY, line.source, "write", words, certain))
    return found
