# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TuneD: the settings of its active profile at each start.

Profiles are read and merged as TuneD 2.20 does it (tuned.conf(5), and its profiles/loader.py and merger.py).
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import cast

# pylint: disable-next=unused-import
from ..facts.classes import CauseFacts, TunedFacts
from ..host import bounds, read_budget
from ..host.observation import UNKNOWN, Undecided, because_of
from ..host.seam import Host, Unobservable
from ..host.textfile import Read
from . import programs
from .acts import Act

_ACTIVE = "/etc/tuned/active_profile"
#: Profiles that are loaded after the active ones.
_AFTER = "/etc/tuned/post_loaded_profile"
#: It acts when it runs now, or will at the next boot.
_RUNS = "/run/tuned/tuned.pid"
_UNITS = (
    "/etc/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
_UNIT = "tuned.service"
#: Where profiles lie, the strongest first; newer versions have a directory more.
_DIRECTORIES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
_KEYS = ("elevator", "readahead")
_YES = ("1", "true", "True")
#: Values of disable_barriers with which barriers stay.
_NO = ("", "0", "false", "no", "n", "off")
_GLOB = re.compile(r"[*?\[]")
_COMMA = re.compile(r"\s*[,;]\s*")
#: "4096", "8192 s" (sectors), and after a sign only where that is more, or less, than what is there.
_READAHEAD = re.compile(r"([<>]?)\s*(\d{1,9})\s*(s?)", re.ASCII)

#: A section, which TuneD calls a unit: its options, with `type` and `enabled`.
_Unit = dict[str, str]
#: {(section, option): file and line that set it}
_Sources = dict[tuple[str, str], str]
BY = "TuneD"


def read(host: Host) -> TunedFacts:
    """Return {profile, sets, cause} of the active profile; profile is None if TuneD does not act.

    `sets` is {elevator: ..., readahead: ...}, as far as its disk sections set them, for any disks.
    """
    if not _acts(host):
        return {"profile": None, "sets": {}, "cause": None}
    try:
        names, units, _sources = _loaded(host)
    except (Unobservable, configparser.Error) as error:
        return {"profile": UNKNOWN, "sets": {}, "cause": cast("CauseFacts", because_of(error).as_dict())}
    sets: dict[str, str] = {}
    for unit in units.values():
        if unit["type"] == "disk":
            sets.update({key: unit[key] for key in _KEYS if unit.get(key)})
    return {"profile": " ".join(names), "sets": sets, "cause": None}


def collect(host: Host, disks: Mapping[str, Mapping[str, str]]) -> list[Act]:
    """Return what TuneD does at its next start; `disks`: properties of udev by kernel name. Raises Unobservable."""
    if not _acts(host):
        return []
    try:
        _names, units, sources = _loaded(host)
    except configparser.Error as error:
        raise Unobservable(str(error)) from error
    # What started one that nothing starts at boot may do so again: D-Bus, or an administrator.
    is_wanted = any(_is_wanted(host, directory) for directory in _UNITS)
    acts = [act for name, unit in units.items() for act in _acts_of(host, name, unit, sources, disks)]
    return [act._replace(is_certain=act.is_certain and is_wanted) for act in acts]


def _acts(host: Host) -> bool:
    """Return whether TuneD acts now or at the next boot."""
    if not host.exists(_ACTIVE) or host.resolve(f"{_UNITS[0]}/{_UNIT}") == "/dev/null":
        return False
    return host.exists(_RUNS) or any(_is_wanted(host, directory) for directory in _UNITS)


def _is_wanted(host: Host, directory: str) -> bool:
    names = host.names(directory) if host.exists(directory) else []
    return any(
        host.exists(f"{directory}/{name}/{_UNIT}") for name in names if name.endswith((".wants", ".requires"))
    )


def _loaded(host: Host) -> tuple[list[str], dict[str, _Unit], _Sources]:
    """Return names of the active profiles, and their enabled sections. Raises Unobservable, configparser.Error."""
    units: dict[str, _Unit] = {}
    sources: _Sources = {}
    loaded: set[str] = set()
    text = read_budget.within(host, host.read)
    names = (text(_ACTIVE) or "").split()
    after = (text(_AFTER) or "").split() if host.exists(_AFTER) else []
    for name in [*_few(names, _ACTIVE), *_few(after, _AFTER)]:
        _load(host, text, name, units, loaded, sources)
    return names, {name: unit for name, unit in units.items() if unit["enabled"] in _YES}, sources


def _acts_of(
    host: Host, name: str, unit: _Unit, sources: _Sources, disks: Mapping[str, Mapping[str, str]]
) -> list[Act]:
    """Return what one section does. A variable in a value is left to TuneD: the result is unknown."""
    found: list[Act] = []
    kind = unit["type"]
    for key, value in unit.items():
        source = sources.get((name, key), f"the active profile, section {name}")
        certain = "${" not in value
        if kind == "disk" and key in _KEYS:
            attribute = {"elevator": "queue/scheduler", "readahead": "queue/read_ahead_kb"}[key]
            for disk in (each for each, properties in disks.items() if _is_of(unit, each, properties)):
                path = f"/sys/block/{disk}/{attribute}"
                found.append(
                    Act(BY, source, "write", (path, _plain(key, value)), certain, _is_resolved(unit))
                )
        elif kind == "sysfs" and key.startswith("/sys/"):
            found.append(Act(BY, source, "write", (key, value), certain))
        elif kind == "mounts" and key == "disable_barriers" and value.lower() not in _NO:
            found.append(Act(BY, source, "barriers", (value.lower(),), certain))
        elif kind == "bootloader" and key.startswith("cmdline") and "rootflags=" in value:
            flags = value.partition("rootflags=")[2].split()[:1]
            found.append(Act(BY, source, "options", ("/", *flags), False))
        elif kind == "script" and key == "script" and value:
            found += _of_script(host, value, source)
    return found


def _of_script(host: Host, value: str, source: str) -> list[Act]:
    """Return what a script of a profile does: TuneD runs it with an argument, on which it depends."""
    directory = source.rpartition("/")[0]
    path = value.replace("${i:PROFILE_DIR}", directory)
    path = path if path.startswith("/") else f"{directory}/{path}"
    return [act._replace(is_certain=False) for act in programs.of_shell(host, host.read(path), path, BY)]


def _is_of(unit: _Unit, disk: str, properties: Mapping[str, str]) -> bool:
    """Return whether a section is about a disk: tuned.conf(5), devices and devices_udev_regex."""
    regex = unit.get("devices_udev_regex")
    if regex:
        try:
            reported = "".join(f"{key}={value}\n" for key, value in sorted(properties.items()))
            return re.search(regex, reported, re.M) is not None
        except re.error:
            return False
    words = [word for word in _COMMA.split(unit.get("devices", "").strip()) if word]
    refused = [word[1:] for word in words if word.startswith("!")]
    taken = [word for word in words if not word.startswith("!")] or ["*"]
    return any(fnmatchcase(disk, word) for word in taken) and not any(
        fnmatchcase(disk, word) for word in refused
    )


def _is_resolved(unit: _Unit) -> bool:
    """Return whether a section names no disk by its whole kernel name, which another disk may have at the next boot."""
    words = _COMMA.split(unit.get("devices", "").strip())
    return bool(unit.get("devices_udev_regex")) or not any(word and not _GLOB.search(word) for word in words)


def _plain(key: str, value: str) -> str:
    """Return what is written for an option: of sectors half as many KiB."""
    found = _READAHEAD.fullmatch(value.strip()) if key == "readahead" else None
    if not found:
        return value
    sign, number, sectors = found.groups()
    return f"{sign}{int(number) // 2 if sectors else int(number)}"


def _load(
    host: Host, text: Read, name: str, units: dict[str, _Unit], loaded: set[str], sources: _Sources
) -> None:
    """Merge a profile into others, after those that it includes. Raises Unobservable, configparser.Error.

    One that was loaded already is passed over; the next of that name may be in a weaker directory.
    """
    paths = [f"{directory}/{name.lstrip('-')}/tuned.conf" for directory in _DIRECTORIES]
    there = [path for path in paths if host.exists(path)]
    path = next((path for path in there if path not in loaded), None)
    if "/" in name or not (there or name.startswith("-")):
        raise Undecided("no_tuned_profile", profile=name)
    if path is None:
        return
    loaded.add(path)
    parser = configparser.RawConfigParser(
        delimiters=("=",), inline_comment_prefixes=("#",), strict=False, allow_no_value=True
    )
    parser.optionxform = str  # type: ignore[assignment]
    content = text(path) or ""
    parser.read_string(content, path)
    included = _COMMA.split((parser.get("main", "include", fallback="") or "").strip())
    for other in filter(None, _few(included, path)):
        _load(host, text, other, units, loaded, sources)
    for section in parser.sections():
        _merge(units, section, {key: value or "" for key, value in parser.items(section)})
    sources.update(_rows(content, path))


def _rows(text: str, path: str) -> _Sources:
    """Return where a file sets each option."""
    section, found = "", {}
    for row, line in enumerate(text.split("\n"), 1):
        head = re.match(r"\[([^\]]+)\]", line)
        if head:
            section = head[1]
        key, equals, _value = line.partition("=")
        if equals and not line.startswith(("#", " ", "\t")):
            found[section, key.strip()] = f"{path} line {row}"
    return found


def _few(names: list[str], path: str) -> list[str]:
    """Return names of profiles. Raises Unobservable for too many."""
    if len(names) > bounds.PROFILES:
        raise Undecided("many_tuned_profiles", path=path, observed=str(len(names)), most=str(bounds.PROFILES))
    return names


def _merge(units: dict[str, _Unit], name: str, options: _Unit) -> None:
    """Put a section over the one of that name."""
    below = {} if options.get("replace") in _YES else units.get(name, {})
    dropped = _COMMA.split(options.get("drop", ""))
    persisted = {key: value for key, value in below.items() if key not in dropped}
    units[name] = {**persisted, "type": name, "enabled": "1", **options}
