# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TuneD, which may own I/O schedulers and readahead: what its active profile sets."""

from __future__ import annotations

import configparser
from typing import Any

from ..host.seam import Host, Unobservable

_ACTIVE = "/etc/tuned/active_profile"
#: It acts when it runs now, or will at the next boot.
_SIGNS = ("/run/tuned/tuned.pid", "/etc/systemd/system/multi-user.target.wants/tuned.service")
#: Where profiles lie, the strongest first; newer versions have a directory more.
_DIRECTORIES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
_KEYS = ("elevator", "readahead")


def read(host: Host) -> dict[str, Any]:
    """Return {profile, sets, error} of the active profile; profile is None where TuneD does not act.

    `sets` is {elevator: ..., readahead: ...}, as far as its disk sections say so.
    """
    if not any(host.exists(sign) for sign in _SIGNS) or not host.exists(_ACTIVE):
        return {"profile": None, "sets": {}, "error": None}
    try:
        names = host.read(_ACTIVE).split()
        sets: dict[str, str] = {}
        known: dict[str, dict[str, str]] = {}
        for name in names:
            sets.update(_sets(host, name, (), known))
    except (Unobservable, configparser.Error) as error:
        return {"profile": "unknown", "sets": {}, "error": str(error)}
    return {"profile": " ".join(names), "sets": sets, "error": None}


def _sets(host: Host, name: str, above: tuple[str, ...], known: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return what a profile and those that it includes set; the including one wins.

    `known` are those that were read: profiles that include each other twice would be read thousands of times.
    """
    if name in known:
        return known[name]
    paths = [f"{directory}/{name}/tuned.conf" for directory in _DIRECTORIES]
    path = next((path for path in paths if host.exists(path)), None)
    if "/" in name or name in above or path is None:
        raise Unobservable(f"TuneD's profile {name!r} is not there")
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.read_string(host.read(path), path)
    found: dict[str, str] = {}
    for other in (parser.get("main", "include", fallback="") or "").replace(",", " ").split():
        found.update(_sets(host, other, (*above, name), known))
    for section in parser.sections():
        if parser.get(section, "type", fallback=section) == "disk":
            found.update({key: value for key, value in parser.items(section) if key in _KEYS and value})
    known[name] = found
    return found
