# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firebird: its instances and their databases."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from ...host import bounds, confined
from ...host.observation import Observation, unknown
from ...host.process_context import Place, Places, is_there
from ...host.processes import Process, Processes, user_of
from ...host.seam import Host, Unobservable
from ..instance import Instance, Observed, of_mains
from ..next_start import Wrapper
from . import databases as firebird_databases
from . import gfix_lines, sysv_script
from . import setup as firebird_setup
from .files import Files

NAME = "firebird"
#: The guardian (fbguard) starts a server, and is none.
PROGRAMS = ("firebird", "fbserver", "fb_smp_server", "fb_inet_server")
UNITS = re.compile(r"firebird[^/]*\.service")
#: Environment variables that decide what it reads at its start.
VARIABLES = ("FIREBIRD",)
#: The guardian hands on its environment, and no option that decides.
WRAPPERS = {
    "fbguard": Wrapper(lambda _host, _unit, given: given._replace(words=()), lambda _words, _coming: True),
    "firebird": Wrapper(sysv_script.start, lambda _words, _coming: True),
}
_CONFIG = "firebird.conf"
_OPT, _ETC = "/opt/firebird", "/etc/firebird"
#: As whom packages and the vendor let a server run.
_ACCOUNT = "firebird"
_VERSION = re.compile(r"version \S*?V([0-9]+(?:\.[0-9]+)+)")
_PACKAGED = re.compile(r"/usr/(?:lib|lib64|libexec|sbin)/(?:[^/]+/)*(?:firebird|fbserver|fb_inet_server)")
#: Debian starts Firebird 4 and later with the variable FIREBIRD set to such a directory, by version.
_DEBIAN_HOME = re.compile(r"/usr/lib/(?:[^/]+/)?firebird/([0-9.]+)/?")
_UNIT_VERSION = re.compile(r"firebird([0-9]+\.[0-9]+)\b")
_BINARIES = (f"{_OPT}/bin/firebird", f"{_OPT}/bin/fbserver", "/usr/sbin/firebird", "/usr/sbin/fbserver")
#: What commands of other components make of its databases at its next start.
databases_after = gfix_lines.after


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the instances that run. Of Classic, with a process for each client, they are one."""
    places, mains = Places(host), processes.mains(PROGRAMS)
    found = of_mains(NAME, processes, mains, lambda main: _instance(processes, places, main), bounds.CLIENTS)
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
        version = _UNIT_VERSION.match(unit or "")
        home = (
            f"/usr/lib/firebird/{version[1]}" if version else _OPT if host.exists(f"{_OPT}/{_CONFIG}") else ""
        )
        config, why = _config(host, "", {}, home)
        evidence = (("config", why),) if why else ()
        name = unit if unit and len(names) > 1 else NAME
        found.append(Instance(NAME, name, config=config, unit=unit, evidence=evidence))
    return found


def observe(host: Host, found: Instance, place: Place | None) -> Observed:
    """Return its version, its databases, and what its configuration says of writes."""
    root = place.root if place else ""
    setup = firebird_setup.read(host, root, found.config)
    unread = dict(setup.unread)
    searched = (*setup.directories, *found.directories)
    paths, named = _search(host, root, searched, unread), _aliases(host, root, setup.aliases, unread)
    opened = sorted({file.path for file in found.opened})
    if len(opened) > bounds.DATABASES:
        unread["its open files"] = (
            f"observed {len(opened)}; expected at most {bounds.DATABASES}: the others were not examined"
        )
    opened = opened[: bounds.DATABASES]
    databases = firebird_databases.collect(host, root, {*paths, *opened}, named, found.opened)
    beside = set(_beside(host, root, [one.path for one in databases if one.header], unread))
    beside -= {*paths, *opened, *named}
    databases += firebird_databases.collect(host, root, beside, (), found.opened)
    databases.sort(key=lambda one: one.path)
    databases += [firebird_databases.unread(what, why) for what, why in unread.items()]
    return Observed(
        version=_version(host, found, root),
        settings=setup.settings,
        directories=tuple(dict.fromkeys(posixpath.dirname(one.path) for one in databases if one.header)),
        databases=tuple(one.as_dict() for one in databases),
    )


def _search(host: Host, root: str, directories: Iterable[str], unread: dict[str, str]) -> list[str]:
    """Return the files in directories, links in their names followed; add to `unread` what cannot be read."""
    found: dict[str, list[str]] = {}
    for directory in dict.fromkeys(directories):
        try:
            where = host.locate(directory, root)
            if where.status and not any(where.path.startswith(f"{known}/") for known in found):
                found[where.path] = Files(host, root).search(where.path)
        except Unobservable as error:
            unread[directory] = str(error)
    return [path for paths in found.values() for path in paths]


def _beside(host: Host, root: str, known: Iterable[str], unread: dict[str, str]) -> list[str]:
    """Return the files next to known databases that are large enough for one: no process and no alias has to name them.

    Of a directory with very many files only those that are called as databases are; add to `unread` what cannot be read.
    """
    found: list[str] = []
    for directory in dict.fromkeys(posixpath.dirname(path) for path in known):
        if len(found) > bounds.DATABASES:
            unread[directory] = (
                f"more than {bounds.DATABASES} files are next to databases: the others were not read"
            )
            continue
        try:
            found += Files(host, root).neighbours(directory)
        except Unobservable as error:
            unread[directory] = str(error)
    return found


def _aliases(host: Host, root: str, aliases: Iterable[str], unread: dict[str, str]) -> list[str]:
    """Return where aliases lead, without those that lead to nothing."""
    found = []
    for path in aliases:
        try:
            where = host.locate(path, root)
            if where.status:
                found.append(where.path)
        except Unobservable as error:
            unread[path] = str(error)
    return found


def _version(host: Host, found: Instance, root: str) -> Observation:
    """Return the version that the program reports. It runs as the server's user, and not for a server of root.

    Only where packages and the vendor put it: any user can call a program so.
    """
    exe = found.processes[0].exe if found.processes else None
    if root:
        return unknown("firebird -z", "in a container: ask it there")
    trusted = [path for path in _BINARIES if host.exists(path)]
    if exe and (exe in trusted or _PACKAGED.fullmatch(exe)):
        trusted = [exe]
    if not trusted or (exe and exe != trusted[0]):
        return unknown("firebird -z", f"{exe or 'the program'} is not where packages put it, and is not run")
    try:
        user = int(user_of(host, found.processes[0].pid)) if found.processes else _ACCOUNT
        answer = host.run(confined.command(host, confined.account(host, user), [trusted[0], "-z"]))
    except Unobservable as error:
        return unknown(f"{trusted[0]} -z", str(error))
    version = _VERSION.search(answer.stdout + answer.stderr)
    if not version:
        return unknown(f"{trusted[0]} -z", f"exit {answer.rc}, and no version in what it says")
    return Observation(version[1], f"{trusted[0]} -z")


def _instance(processes: Processes, places: Places, main: Process) -> Instance:
    environment = processes.environment(main, ["FIREBIRD"])
    home = posixpath.dirname(posixpath.dirname(processes.program(main)))
    config, why = _config(places.host, places.of(main).root, environment, home)
    moved = environment.get("FIREBIRD") or _ETC
    return Instance(
        engine=NAME,
        name=NAME if moved == _ETC or _DEBIAN_HOME.fullmatch(moved) else moved,
        processes=processes.family(main, PROGRAMS),
        config=config,
        evidence=(("config", why),) if why else (),
    )


def _config(
    host: Host, root: str, environment: dict[str, str], home: str
) -> tuple[str | None, Observation | None]:
    """Return the path of firebird.conf, or None and why.

    It is in the root directory of the installation, which the variable FIREBIRD moves; Debian has
    it in /etc, by version.
    """
    debian = _DEBIAN_HOME.fullmatch(environment.get("FIREBIRD") or home)
    if debian and is_there(host, f"{_ETC}/{debian[1]}/{_CONFIG}", root):
        return f"{_ETC}/{debian[1]}/{_CONFIG}", None
    if environment.get("FIREBIRD"):
        return f"{environment['FIREBIRD'].rstrip('/')}/{_CONFIG}", None
    if home and is_there(host, f"{home}/{_CONFIG}", root):
        return f"{home}/{_CONFIG}", None
    try:
        names = host.list_names(_ETC, root) or []
    except Unobservable as error:
        return None, unknown(_ETC, str(error))
    paths = [f"{_ETC}/{_CONFIG}"] if _CONFIG in names else []
    paths += [
        f"{_ETC}/{name}/{_CONFIG}" for name in names if is_there(host, f"{_ETC}/{name}/{_CONFIG}", root)
    ]
    if len(paths) == 1:
        return paths[0], None
    observed = f"observed {', '.join(paths)}" if paths else f"no {_CONFIG} in {home or _OPT} nor below {_ETC}"
    return None, unknown(_ETC, f"{observed}; expected one")


def _is_for_one_client(processes: Processes, main: Process) -> bool:
    """Return whether inetd or a socket unit has started a process for one connection: `-i` in its arguments."""
    if main.program == "fb_inet_server":
        return True
    try:
        return "-i" in processes.argv(main)[1:]
    except Unobservable:
        return False
