# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's files that survive a boot: units, masks, drop-ins, requirements, generators, the default target."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from ..host import system_conf, unit_names
from ..host.seam import Host, Unobservable

#: Directories of units that outlive a boot, the strongest first (systemd.unit(5)).
DIRECTORIES = (
    "/etc/systemd/system.control",
    "/etc/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
#: Directories in which only packages of the distribution have files.
PACKAGED = ("/usr/lib/", "/lib/")
#: Directories of generators that outlive a boot, the strongest first (systemd.generator(7)).
GENERATORS = (
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
    "/lib/systemd/system-generators",
)
#: Without these units a unit does not start.
NEEDS = ("Requires", "Requisite", "BindsTo")
_EXECUTABLE = 0o111


class Requirement(NamedTuple):
    """A unit that another one requires: the file that says so, and its place (that file, of a drop-in with the line)."""

    unit: str
    path: str
    source: str


class Generator(NamedTuple):
    """A program that makes units at each boot; `masks`: it keeps the one of the same name in a weaker directory from it."""

    path: str
    masks: str
    is_masked: bool = False


def mask(host: Host, name: str) -> str:
    """Return the path that masks a unit: a link to /dev/null or an empty file; '' if none does. Raises Unobservable."""
    path = find(host, name)
    return path if path and is_mask(host, path) else ""


def find(host: Host, name: str) -> str:
    """Return the path of a unit's strongest file, '' without one."""
    paths = (f"{directory}/{name}" for directory in DIRECTORIES)
    return next(filter(host.exists, paths), "")


def is_mask(host: Host, path: str) -> bool:
    """Return whether a file that is there masks what has its name. Raises Unobservable."""
    real = host.resolve(path)
    if real == "/dev/null" or path.startswith(PACKAGED):
        return real == "/dev/null"  # No package has an empty file for a unit.
    # A link that leads to nothing is no mask.
    return host.exists(real) and not host.read(path)


def drop_ins(host: Host, name: str) -> list[str]:
    """Return the drop-ins of a unit in the order in which systemd reads them, without those that are masked.

    Raises Unobservable.
    """
    directories = [f"{base}/{scope}.d" for scope in unit_names.scopes(name) for base in DIRECTORIES]
    return system_conf.drop_ins(host, directories)


def _of_drop_ins(host: Host, name: str) -> Iterator[tuple[str, system_conf.Line]]:
    """Yield what the drop-ins of a unit set in its section [Unit], each with its path. Raises Unobservable."""
    for path in drop_ins(host, name):
        for line in system_conf.parse(host.read(path), path):
            if line.section == "Unit":
                yield path, line


def required_by(host: Host, name: str) -> list[Requirement]:
    """Return the units that a unit requires by links and drop-ins. Raises Unobservable."""
    found: dict[str, Requirement] = {}
    for directory in (f"{base}/{name}.requires" for base in DIRECTORIES):
        for each in host.names(directory) if host.exists(directory) else ():
            if _is_link(host, f"{directory}/{each}"):
                path = f"{directory}/{each}"
                found.setdefault(each, Requirement(each, path, path))
    for path, line in _of_drop_ins(host, name):
        key, value = line.key, line.value
        if key in NEEDS:
            for each in value.split():
                found.setdefault(each, Requirement(each, path, line.source))
    return list(found.values())


def conditions(host: Host, name: str) -> list[tuple[str, str]]:
    """Return the conditions that drop-ins give a unit, each with file and line: if one fails, the unit does not start.

    Raises Unobservable.
    """
    return [
        (f"{key}={value}", source)
        for _path, (_section, key, value, source) in _of_drop_ins(host, name)
        if key.startswith(("Condition", "Assert")) and value
    ]


def generators(host: Host) -> list[Generator]:
    """Return the generators of a boot that no package has in its own directory, with those that are masked.

    Raises Unobservable.
    """
    found: dict[str, Generator] = {}
    for directory in GENERATORS:
        for name in host.names(directory) if host.exists(directory) else ():
            path = f"{directory}/{name}"
            if directory.startswith(PACKAGED):
                if name in found and not found[name].masks:
                    found[name] = found[name]._replace(masks=path)
            elif name not in found and _runs(host, path):
                found[name] = Generator(path, "", is_mask(host, path))
    return list(found.values())


def default_target(host: Host) -> tuple[str, str]:
    """Return the unit that a boot starts, and the path that says so; ('', '') if nothing does."""
    path = find(host, "default.target")
    return (posixpath.basename(host.resolve(path)), path) if path else ("", "")


def _runs(host: Host, path: str) -> bool:
    """Return whether a file in a directory of generators counts: it can be executed, or masks another."""
    try:
        return is_mask(host, path) or bool(host.mode(path) & _EXECUTABLE)
    except Unobservable:
        # One that cannot be read may run; a link to nothing does not.
        return host.exists(host.resolve(path))


def _is_link(host: Host, path: str) -> bool:
    """Return whether systemd takes an entry of a directory of requirements: a link, but one to /dev/null or an empty file."""
    try:
        host.link(path)
        return not is_mask(host, path)
    except Unobservable:
        return False
