# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts of System V's init that a boot runs through systemd-sysv-generator(8)."""

from __future__ import annotations

import re

from ..host import units
from ..host.seam import Host

BY = "SysV script"
_SCRIPTS = ("/etc/init.d", "/etc/rc.d/init.d")
_LINKS = tuple(f"{base}/rc{level}.d" for base in ("/etc", "/etc/rc.d") for level in "2345S")
_START = re.compile(r"S\d\d(?P<name>.+)")
_EXECUTABLE = 0o111


def paths(host: Host) -> list[str]:
    """Return the scripts that a boot runs: executable, linked in a run level, and without a native unit. Raises Unobservable."""
    links = (name for base in _LINKS for name in (host.names(base) if host.exists(base) else ()))
    started = (_START.fullmatch(name) for name in links)
    found = {each["name"]: "" for each in started if each and not _has_unit(host, each["name"])}
    for name in found:
        scripts = (f"{base}/{name}" for base in _SCRIPTS)
        # A link may have outlived its script.
        there = (path for path in scripts if host.exists(host.resolve(path)))
        found[name] = next((path for path in there if host.mode(path) & _EXECUTABLE), "")
    return [path for path in found.values() if path]


def _has_unit(host: Host, name: str) -> bool:
    """Tell whether a file that outlives a boot has the script's unit: its own, an alias or a mask."""
    unit = f"{name[: -len('.sh')] if name.endswith('.sh') else name}.service"
    return any(host.exists(f"{base}/{unit}") for base in units.DIRECTORIES if not base.startswith("/run/"))
