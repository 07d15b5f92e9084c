# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TuneD, which may own I/O schedulers and readahead: what its active profile sets.

Profiles are read and merged as TuneD 2.20 does it (tuned.conf(5), and its profiles/loader.py and merger.py).
"""

from __future__ import annotations

import configparser
import re
from typing import Any

from ..host import bounds, read_budget
from ..host.seam import Host, Unobservable
from ..host.textfile import Read

_ACTIVE = "/etc/tuned/active_profile"
#: Profiles that are loaded after the active ones.
_AFTER = "/etc/tuned/post_loaded_profile"
#: It acts when it runs now, or will at the next boot.
_SIGNS = ("/run/tuned/tuned.pid", "/etc/systemd/system/multi-user.target.wants/tuned.service")
#: Where profiles lie, the strongest first; newer versions have a directory more.
_DIRECTORIES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
_KEYS = ("elevator", "readahead")
_YES = ("1", "true", "True")
_COMMA = re.compile(r"\s*[,;]\s*")
#: "4096", "8192 s" (sectors), and after a sign only where that is more, or less, than what is there.
_READAHEAD = re.compile(r"([<>]?)\s*(\d{1,9})\s*(s?)", re.ASCII)

#: A section, which TuneD calls a unit: its options, with `type` and `enabled`.
_Unit = dict[str, str]


def read(host: Host) -> dict[str, Any]:
    """Return {profile, sets, error} of the active profile; profile is None where TuneD does not act.

    `sets` is {elevator: ..., readahead: ...}, as far as its disk sections say so, for whichever disks.
    """
    if not any(host.exists(sign) for sign in _SIGNS) or not host.exists(_ACTIVE):
        return {"profile": None, "sets": {}, "error": None}
    units: dict[str, _Unit] = {}
    loaded: set[str] = set()
    text = read_budget.within(host, host.read)
    try:
        names = (text(_ACTIVE) or "").split()
        after = (text(_AFTER) or "").split() if host.exists(_AFTER) else []
        for name in [*_few(names, _ACTIVE), *_few(after, _AFTER)]:
            _load(host, text, name, units, loaded)
    except (Unobservable, configparser.Error) as error:
        return {"profile": "unknown", "sets": {}, "error": str(error)}
    sets: dict[str, str] = {}
    for unit in units.values():
        if unit["type"] == "disk" and unit["enabled"] in _YES:
            sets.update({key: unit[key] for key in _KEYS if unit.get(key)})
    return {"profile": " ".join(names), "sets": sets, "error": None}


def makes_of(option: str, said: str, value: str) -> str:
    """Return what TuneD makes of a disk's `value` when it starts, if its profile `said` that of the option."""
    found = _READAHEAD.fullmatch(said.strip()) if option == "readahead" and value.isdigit() else None
    if not found:
        return said
    sign, number, sectors = found.groups()
    wanted = int(number) // 2 if sectors else int(number)
    if sign:
        wanted = (max if sign == ">" else min)(wanted, int(value))
    return str(wanted)


def _load(host: Host, text: Read, name: str, units: dict[str, _Unit], loaded: set[str]) -> None:
    """Merge a profile into others, after those that it includes. Raises Unobservable, configparser.Error.

    One that was loaded already is passed over; the next of that name may lie in a weaker directory.
    """
    paths = [f"{directory}/{name.lstrip('-')}/tuned.conf" for directory in _DIRECTORIES]
    there = [path for path in paths if host.exists(path)]
    path = next((path for path in there if path not in loaded), None)
    if "/" in name or not (there or name.startswith("-")):
        raise Unobservable(f"TuneD's profile {name!r} is not there")
    if path is None:
        return
    loaded.add(path)
    parser = configparser.RawConfigParser(
        delimiters=("=",), inline_comment_prefixes=("#",), strict=False, allow_no_value=True
    )
    parser.read_string(text(path) or "", path)
    included = _COMMA.split((parser.get("main", "include", fallback="") or "").strip())
    for other in filter(None, _few(included, path)):
        _load(host, text, other, units, loaded)
    for section in parser.sections():
        _merge(units, section, {key: value or "" for key, value in parser.items(section)})


def _few(names: list[str], path: str) -> list[str]:
    """Return names of profiles. Raises Unobservable for more than anybody has."""
    if len(names) > bounds.PROFILES:
        raise Unobservable(
            f"{path}: seen {len(names)} names of profiles; wanted at most {bounds.PROFILES}: see who wrote that"
        )
    return names


def _merge(units: dict[str, _Unit], name: str, options: _Unit) -> None:
    """Put a section over the one of that name."""
    below = {} if options.get("replace") in _YES else units.get(name, {})
    dropped = _COMMA.split(options.get("drop", ""))
    kept = {key: value for key, value in below.items() if key not in dropped}
    units[name] = {**kept, "type": name, "enabled": "1", **options}
