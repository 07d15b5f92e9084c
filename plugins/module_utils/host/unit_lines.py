# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of systemd units, with file and line number, and the administrators' units that a boot can start."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

from . import units
from .seam import Host
from .system_conf import Line, drop_ins, names_in, parse, text_of
from .unit_names import KINDS, SECTIONS, STARTS, askers, scopes, template, with_kind

#: Where administrators keep units. Packages keep theirs elsewhere.
_ADMINISTRATORS = ("/etc/systemd/system", "/usr/local/lib/systemd/system")
_PACKAGED = ("/usr/lib/", "/lib/")
#: Lists of which an empty assignment takes back all before it.
_LISTS = re.compile(r"Exec\w+|Environment|EnvironmentFile|UnsetEnvironment|PassEnvironment")
_ASKS = ("Wants", "Requires", "BindsTo", "Upholds", "Unit", "OnSuccess", "OnFailure", "Requisite", "Sockets")


def lines(host: Host, names: Iterable[str]) -> list[Line]:
    """Return the lines of a service or socket that count, its drop-ins included; `names`: its own and its aliases'.

    Raises Unobservable.
    """
    names = list(names)
    files = dict.fromkeys(name for given in names for name in (given, template(given)))
    mains = (f"{base}/{name}" for name in files for base in units.DIRECTORIES)
    main = next((path for path in mains if host.exists(path)), None)
    every = dict.fromkeys(scope for name in names for scope in scopes(name))
    # Those of a type come after those of all names.
    ordered = sorted(every, key=lambda scope: "." not in scope)
    directories = [f"{base}/{scope}.d" for scope in ordered for base in units.DIRECTORIES]
    section = SECTIONS.get(names[0].rpartition(".")[2], "Service")
    found: list[Line] = []
    for path in [*([main] if main else []), *drop_ins(host, directories)]:
        for line in parse(text_of(host, path), path):
            if line.section != section:
                continue
            if not line.value and _LISTS.fullmatch(line.key):
                found = [each for each in found if each.key != line.key]
            else:
                found.append(line)
    return found


def of_administrators(host: Host, started: Iterable[str] = ()) -> list[str]:
    """Return the services and sockets that an administrator wrote or changed, and that a boot can start. Raises Unobservable.

    `started`: units that something else than a unit starts, with `*` for a part that is unknown.
    """
    wanted, texts = {*_wanted(host), *started}, []
    own: list[str] = []
    named: list[str] = []
    for base in _ADMINISTRATORS:
        for entry in host.names(base) if host.exists(base) else ():
            path = f"{base}/{entry}"
            if entry.endswith(".d"):
                texts += [(entry[: -len(".d")], text_of(host, each)) for each in _drop_ins(host, path)]
            if entry.endswith((".service.d", ".socket.d")):
                own.append(entry[: -len(".d")])
            elif entry.rpartition(".")[2] in KINDS and not _is_packaged(host, path):
                texts.append((entry, text_of(host, path)))
                named.append(entry)
    own += [name for name in named if name.rpartition(".")[2] in SECTIONS]
    for name, text in texts:
        wanted |= _named_in(text, name)
    # A drop-in of a packaged unit counts whether or not that unit starts: its links may be anywhere. A template starts nothing.
    changed = {name for name in own if name not in named and "@." not in name}
    return [name for name in dict.fromkeys(own) if name in changed or _is_wanted(name, wanted)]


def _drop_ins(host: Host, directory: str) -> list[str]:
    files = names_in(host, directory) if host.exists(directory) else []
    return [f"{directory}/{name}" for name in files if name.endswith(".conf")]


def _named_in(text: str, unit: str) -> set[str]:
    """Return the other units that a unit's text requires, or starts by systemctl."""
    values = (line.value for line in parse(text, unit) if line.key in _ASKS or "systemctl" in line.value)
    return {each for value in values for each in map(with_kind, value.split())} - {unit}


def _is_wanted(name: str, wanted: set[str]) -> bool:
    units = askers(name)
    return any(fnmatch.fnmatchcase(unit, template(each)) for each in wanted for unit in units)


def _wanted(host: Host) -> Iterable[str]:
    for base in units.DIRECTORIES:
        for entry in host.names(base) if host.exists(base) else ():
            if entry.endswith(STARTS):
                yield from host.names(f"{base}/{entry}")


def _is_packaged(host: Host, path: str) -> bool:
    real = host.resolve(path)
    return real == "/dev/null" or real.startswith(_PACKAGED)
