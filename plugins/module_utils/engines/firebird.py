# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firebird: where its instances are."""

from __future__ import annotations

import posixpath
import re

from ..host import Host, Unobservable
from ..observation import Observation, unknown
from .instance import Instance, of_mains
from .places import Places, look
from .processes import Process, Processes

NAME = "firebird"
#: The guardian (fbguard) starts a server, and is none.
PROGRAMS = ("firebird", "fbserver", "fb_smp_server", "fb_inet_server")
UNITS = re.compile(r"firebird[^/]*\.service")
_CONFIG = "firebird.conf"
_OPT, _ETC = "/opt/firebird", "/etc/firebird"
_BINARIES = (f"{_OPT}/bin/firebird", f"{_OPT}/bin/fbserver", "/usr/sbin/firebird", "/usr/sbin/fbserver")


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the instances that run. Of Classic, with a process for each client, they are one."""
    places, mains = Places(host), processes.mains(PROGRAMS)
    found = of_mains(NAME, processes, mains, lambda main: _instance(processes, places, main))
    merged: dict[tuple[str | None, str | None], Instance] = {}
    rest = []
    for instance in found:
        main = instance.processes[0]
        if _is_for_one_client(processes, main):
            key = (main.exe, instance.config)
            first = merged.setdefault(key, instance)
            if first is not instance:
                merged[key] = first._replace(processes=(*first.processes, *instance.processes))
        else:
            rest.append(instance)
    return [*rest, *merged.values()]


def installed(host: Host, units: list[str]) -> list[Instance]:
    """Return the instances that could be started, whether or not they run."""
    names: list[str | None] = [*units]
    if not names and any(host.exists(path) for path in _BINARIES):
        names = [None]
    found = []
    for unit in names:
        config, why = _config(host, "", {}, _OPT if host.exists(f"{_OPT}/{_CONFIG}") else "")
        evidence = (("config", why),) if why else ()
        name = unit if unit and len(names) > 1 else NAME
        found.append(Instance(NAME, name, config=config, unit=unit, evidence=evidence))
    return found


def _instance(processes: Processes, places: Places, main: Process) -> Instance:
    said = processes.environment(main, ["FIREBIRD"])
    home = posixpath.dirname(posixpath.dirname(processes.program(main)))
    config, why = _config(places.host, places.of(main).root, said, home)
    return Instance(
        engine=NAME,
        name=said.get("FIREBIRD") or NAME,
        processes=processes.family(main, PROGRAMS),
        config=config,
        evidence=(("config", why),) if why else (),
    )


def _config(
    host: Host, root: str, environment: dict[str, str], home: str
) -> tuple[str | None, Observation | None]:
    """Return the path of firebird.conf, or None and why.

    It lies in the root directory of the installation, which the variable FIREBIRD moves; Debian has
    it in /etc, by version.
    """
    if environment.get("FIREBIRD"):
        return f"{environment['FIREBIRD'].rstrip('/')}/{_CONFIG}", None
    if home and look(host, f"{root}{home}/{_CONFIG}"):
        return f"{home}/{_CONFIG}", None
    try:
        names = host.names(root + _ETC) if look(host, root + _ETC) else []
    except Unobservable as error:
        return None, unknown(_ETC, str(error))
    paths = [f"{_ETC}/{_CONFIG}"] if _CONFIG in names else []
    paths += [f"{_ETC}/{name}/{_CONFIG}" for name in names if look(host, f"{root}{_ETC}/{name}/{_CONFIG}")]
    if len(paths) == 1:
        return paths[0], None
    seen = f"seen {', '.join(paths)}" if paths else f"no {_CONFIG} in {home or _OPT} nor below {_ETC}"
    return None, unknown(_ETC, f"{seen}; wanted one")


def _is_for_one_client(processes: Processes, main: Process) -> bool:
    """Tell whether inetd or a socket unit has started a process for one connection: `-i` in its arguments."""
    if main.program == "fb_inet_server":
        return True
    try:
        return "-i" in processes.argv(main)[1:]
    except Unobservable:
        return False
