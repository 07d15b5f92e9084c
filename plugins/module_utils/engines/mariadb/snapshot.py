# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The snapshot of one MariaDB or MySQL server: its version, its start, its responses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ...host import confined, units
from ...host.observation import UNKNOWN, Because, why_of
from ...host.process_context import Place
from ...host.processes import FIRST_PERSON, argv_of, variables
from ...host.seam import Host, Unobservable
from ..instance import Instance
from ..managers import PACEMAKER_UNITS
from . import client, my_cnf, options, server_help, versions

#: Where packages put data and programs.
DATA = "/var/lib/mysql"
BINARIES = ("/usr/sbin/mariadbd", "/usr/sbin/mysqld", "/usr/libexec/mysqld", "/usr/libexec/mariadbd")
#: Options of a unit that decide what a server reads, or the settings themselves.
_DECISIVE = re.compile(r"--\S*(defaults|innodb|sync|log[-_]bin|datadir)", re.I)
_OPTION = re.compile(r"--([^\s=;]+)")
_ONE_FILE = re.compile(r"--defaults-file=/[\w./@-]+", re.ASCII)
_DECIDED = (
    versions.LOG,
    versions.BINLOG,
    versions.DOUBLEWRITE,
    versions.METHOD,
    versions.LOG_BIN,
    versions.NO_SYNC,
    "datadir",
)
#: A version that reads all the groups which do not name one.
_ANY = (10, 4, 6)


class Snapshot(NamedTuple):
    """What was read of one instance.

    `answers`: what the running server says of its variables, none if `silence` has the reason why it says
    nothing; `socket` is where it was queried, `client` the command that it lets in, without a statement;
    `started` and `files`: how it was started, and its option files, None if `reason` has the cause why that is
    not known; `stated`: what its program says that it would start with; `apart`: why it is no service of the
    system, '' for one that is: root's option files are for services.
    """

    version: versions.Release | None
    version_source: str
    reason: str | None
    started: options.Start | None
    files: options.Files
    data: str
    socket: str = ""
    client: tuple[str, ...] = ()
    answers: Mapping[str, str] = MappingProxyType({})
    silence: Because | str | None = None
    stated: options.Stated = options.Stated()
    apart: str = ""

    def reading(self) -> options.Reading:
        """Return what decides what it will start with. Raises Unobservable."""
        if self.started is None or self.version is None:
            raise Unobservable(self.reason or "its version is unknown")
        found = options.effective(self.files, self.started, self.version)
        return options.Reading(self.version, self.started, found, self.stated)


def examine(host: Host, found: Instance, place: Place | None) -> Snapshot:
    """Return the snapshot of an instance, without any login or with root's own. Nothing here raises
    Unobservable: what is unknown has a reason."""
    root = place.root if place else ""
    data = found.directories[0] if found.directories else DATA
    user = _user(host, found)
    snapshot = Snapshot(None, "none", None, None, options.Files(host, root, user), data)
    snapshot = snapshot._replace(apart=_apart(host, found, place, user))
    try:
        started = _start(host, found)
        snapshot = snapshot._replace(started=started)
    except Unobservable as error:
        snapshot = snapshot._replace(reason=str(error))
    # Option files have the socket; the version decides which groups count; the server reports the version. Those
    # groups that every version reads are enough.
    snapshot = _ask(host, found, place, snapshot, user)
    if snapshot.version is None:
        snapshot = _with_version(host, found, place, snapshot, user)
    return snapshot._replace(stated=_stated(host, found, place, snapshot, user))


def _apart(host: Host, found: Instance, place: Place | None, user: Sequence[str]) -> str:
    """Return why a server is no service of the system, '' for one that is, and for a stopped one: root installed that."""
    if place is None or not found.processes:
        return ""
    if not user:
        return "its user cannot be read"
    if int(user[0]) >= FIRST_PERSON:
        return f"it runs as user {user[0]}, and users from {FIRST_PERSON} on are persons"
    if not place.unit:
        return "no service of the system runs it"
    if versions.UNITS.fullmatch(place.unit) or place.unit in PACEMAKER_UNITS:
        return ""
    # A unit of any other name may be the server's, or one in which another program started it.
    shown, why = units.show(host, [place.unit])
    unit, main = shown.get(place.unit), found.processes[0]
    if unit is None:
        return f"systemd does not report the main process of {place.unit} ({why or 'unit not found'})"
    return (
        "" if unit.main in (main.pid, main.ppid) and unit.main > 1 else f"{place.unit} starts another program"
    )


def _stated(
    host: Host, found: Instance, place: Place | None, snapshot: Snapshot, user: Sequence[str]
) -> options.Stated:
    """Return what the program of a server says, nothing of one in a container: that is not run here."""
    if snapshot.version is None or snapshot.started is None or _is_elsewhere(place):
        return options.Stated()
    user = _as_whom(host, found, user)
    if not found.processes:
        words, named = _file_alone(found), _variables(host, found)
        return server_help.ask(host, _program(host, found), words, named, user, snapshot.version)
    try:
        pid = found.processes[0].pid
        arguments, environment = argv_of(host, pid)[1:], variables(host, pid, options.VARIABLES)
    except Unobservable:
        return options.Stated()
    return server_help.ask(host, _program(host, found), arguments, environment, user, snapshot.version)


def _is_elsewhere(place: Place | None) -> bool:
    return place is not None and bool(place.root or place.namespace in ("container", UNKNOWN))


def _as_whom(host: Host, found: Instance, user: Sequence[str]) -> Sequence[str]:
    """Return the numbers of the user and groups as whom a server's program runs: those of a stopped one are its account's."""
    return user if found.processes else _account(host)[2:4]


def _ask(
    host: Host, found: Instance, place: Place | None, snapshot: Snapshot, user: Sequence[str]
) -> Snapshot:
    if not found.processes or place is None:
        return snapshot._replace(silence=Because("stopped"))
    if place.root or place.namespace == "container":
        return snapshot._replace(silence=Because("in_container"))
    try:
        server = client.server(
            host, found, place, (user or ("",))[0], _socket(snapshot, found), snapshot.data
        )
        argv, answers = client.ask(host, server)
        client.expect_same(host, place.root, found, server, answers["datadir"])
    except Unobservable as error:
        return snapshot._replace(silence=why_of(error))
    return snapshot._replace(
        version=versions.release(answers["version"]),
        version_source=server.socket,
        socket=server.socket,
        client=tuple(argv),
        answers=answers,
        data=answers["datadir"],
    )


def _socket(snapshot: Snapshot, found: Instance) -> str | None:
    """Return the socket that options name, as far as they are understood."""
    if snapshot.started is None:
        return None
    # A version of which all groups are read that do not name another one.
    version = versions.Release(found.flavour if found.flavour == "mysql" else "mariadb", "10.4.6", _ANY)
    try:
        found_in = options.effective(snapshot.files, snapshot.started, version)
        last = options.last_value("socket", options.Reading(version, snapshot.started, found_in))
    except Unobservable:
        return None
    return last[0] if last else None


def _with_version(
    host: Host, found: Instance, place: Place | None, snapshot: Snapshot, user: Sequence[str]
) -> Snapshot:
    """Return the snapshot with the version that the program prints, or a container's environment."""
    try:
        if _is_elsewhere(place):
            text, source = _image_version(host, found)
        else:
            text, source = _program_version(host, found, _as_whom(host, found, user))
    except Unobservable as error:
        return snapshot._replace(version_source="none", reason=snapshot.reason or str(error))
    version = versions.release(text)
    if version is None:
        return snapshot._replace(reason=snapshot.reason or f"{source}: tells no version")
    return snapshot._replace(version=version, version_source=source)


def _program_version(host: Host, found: Instance, user: Sequence[str]) -> tuple[str, str]:
    path = _program(host, found)
    argv = confined.command(host, confined.of_numbers(user), [path, "--no-defaults", "--version"])
    result = host.run(argv)
    if result.rc != 0:
        raise Unobservable(f"{path} --version: exit {result.rc}")
    return result.stdout, f"{path} --version"


def _program(host: Host, found: Instance) -> str:
    running = found.processes[0].exe if found.processes else None
    return running or next((path for path in BINARIES if host.exists(path)), "")


def _image_version(host: Host, found: Instance) -> tuple[str, str]:
    """Images of MariaDB and MySQL tell their version in the environment."""
    pid = found.processes[0].pid
    environment = variables(host, pid, ["MARIADB_VERSION", "MYSQL_VERSION"])
    source = f"/proc/{pid}/environ"
    if environment.get("MARIADB_VERSION"):
        return f"{environment['MARIADB_VERSION'].rpartition(':')[2]} MariaDB", source
    if environment.get("MYSQL_VERSION"):
        return environment["MYSQL_VERSION"], source
    raise Unobservable(f"{source}: names no version, and in a container its program is not run")


def _start(host: Host, found: Instance) -> options.Start:
    if not found.processes:
        return _start_of_unit(host, found)
    main = found.processes[0]
    environment = variables(host, main.pid, options.VARIABLES)
    return options.start(argv_of(host, main.pid), environment, main.exe or "")


def _start_of_unit(host: Host, found: Instance) -> options.Start:
    """Return how a stopped one would be started. Raises Unobservable where its unit has its own options."""
    if found.unit and found.begins is None:
        raise Unobservable(f"{found.unit}: systemd does not tell how it starts it")
    words = _file_alone(found)
    started = options.start(["mysqld", *words], _variables(host, found))
    if found.begins and not words and _decides(" ".join(found.begins.words)):
        raise Unobservable(f"{found.unit} has options in its unit: start it, then run again")
    return started


def _file_alone(found: Instance) -> list[str]:
    """Return the option that names the only file that a stopped one will read, [] if its start has others as well."""
    words = found.begins.words if found.begins else ()
    return list(words) if len(words) == 1 and _ONE_FILE.fullmatch(words[0]) else []


def _variables(host: Host, found: Instance) -> dict[str, str]:
    """Return the variables that decide what a stopped one will read: its unit's, and the home of its user."""
    account = _account(host)
    variables_of_start = found.begins.variables if found.begins else {}
    return {
        **({"HOME": account[5]} if account else {}),
        **{name: value for name, value in variables_of_start.items() if value is not None},
    }


def _decides(command: str) -> bool:
    """Return whether a command has options that decide, by whatever name."""
    names = [my_cnf.option(name, None)[0] for name in _OPTION.findall(command)]
    may = (my_cnf.may_mean(name, decided) for name in names for decided in _DECIDED)
    return bool(_DECISIVE.search(command)) or any(may)


def _account(host: Host) -> list[str]:
    """Return the fields in passwd(5) of the user as which packages run the server, or []."""
    try:
        lines = host.read("/etc/passwd").split("\n")
    except Unobservable:
        return []
    fields = next((line.split(":") for line in lines if line.startswith("mysql:")), [])
    return fields if len(fields) > 5 else []


def _user(host: Host, found: Instance) -> tuple[str, ...]:
    """Return the numbers of the user and the groups as whom a server reads, () where not known."""
    if not found.processes:
        return ()
    try:
        text = host.read(f"/proc/{found.processes[0].pid}/status")
    except Unobservable:
        return ()
    lines = {line.partition(":")[0]: line.partition(":")[2].split() for line in text.split("\n")}
    uid, gid = lines.get("Uid", []), lines.get("Gid", [])
    return (uid[1], gid[1], *lines.get("Groups", [])) if len(uid) > 1 and len(gid) > 1 else ()
