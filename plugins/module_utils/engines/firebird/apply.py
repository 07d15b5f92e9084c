# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firebird layer: forced writes of databases that no process has open.

gfix does not refuse a database that others have open with Classic or SuperClassic: it changes the
header, and they go on writing as they did. So who has it open is looked up first, and again after.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Optional

from ...enforce import originals
from ...enforce.arguments import Arguments
from ...enforce.change import Change, each, expect_some, verify
from ...host import confined, named_by, our_paths, stranger
from ...host.observation import UNKNOWN
from ...host.printable import command
from ...host.processes import Processes
from ...host.seam import ChangeFailed, CommandFailed, Host, Unobservable
from . import login, tools
from .databases import Database, collect
from .files import Files
from .header import Header, next_file
from .observe import PROGRAMS

#: {database: the word before the first change, and when it was created}
ORIGINALS = our_paths.ORIGINALS_FIREBIRD
_WORDS = {"on": "sync", "off": "async"}
#: What gfix prints for a login that the server refuses.
_NO_LOGIN = "user name and password are not defined"
#: Files of one database that are followed: it may be split over several.
_MOST_FILES = 100
_ROOTS = (
    "observed root as its owner; expected the user of the server, as whom gfix would run: as root it leaves lock files"
    " that shut the server out; chown it, or give a password, so that the server does it"
)
#: {user: the directories where servers of his keep their locks}, None for the usual one
Locks = dict[str, set[Optional[str]]]

_TARGET = {
    "database": {"type": "str"},
    "directory": {"type": "str"},
    "forced_writes": {"type": "str", "choices": ["on", "off"], "required": True},
}
_ACCESS = {
    "user": {"type": "str", "default": "SYSDBA"},
    "password": {"type": "str", "no_log": True},
    "server": {"type": "str", "default": "localhost"},
}
ARGUMENTS = Arguments(_TARGET, shared=_ACCESS)


class Target(NamedTuple):
    """A database, or a directory whose databases are all meant, and the word wanted of them."""

    path: str
    is_directory: bool
    forced_writes: str


def target_of(row: dict[str, Any]) -> Target:
    """Return a target of what the module, or a plan, says of it."""
    path, directory = row.get("database"), row.get("directory")
    if bool(path) == bool(directory) or not str(path or directory).startswith("/"):
        raise ChangeFailed(
            f"observed database {path!r} and directory {directory!r}; expected one of them, and that an absolute path"
        )
    return Target(str(path or directory), bool(directory), str(row["forced_writes"]))


class Access(NamedTuple):
    """How gfix gets at a database: itself as the owner of its file, or by the server with a password."""

    user: str
    password: str | None
    server: str


class Work(NamedTuple):
    """What there is to do, and what is left as it is because it is in use.

    `failures`: {path: why it stays as it is}; `wanted`: {database: word}.
    """

    changes: tuple[Change, ...]
    databases: dict[str, Database]
    access: Access
    warnings: tuple[str, ...]
    failures: dict[str, str]
    wanted: dict[str, str]


class Release(NamedTuple):
    """What release changes, what it leaves, and the originals that stay for a later one."""

    changes: tuple[Change, ...]
    databases: dict[str, Database]
    access: Access
    warnings: tuple[str, ...]
    stored: dict[str, str]


@named_by.by_others
def plan(
    host: Host,
    targets: list[Target],
    user: str = "SYSDBA",
    password: str | None = None,
    server: str = "localhost",
) -> Work:
    """Return the work that sets the databases to their values; reads only.

    A database in use is left as it is, with a warning. One that is not there, cannot be read, or takes
    no change is a separate failure. Raises ChangeFailed, before anything changes, for targets that
    contradict each other.
    """
    wanted, failures = _wanted(host, targets)
    return _plan(host, wanted, failures, Access(user, password or None, server))


def _plan(host: Host, wanted: dict[str, str], failures: dict[str, str], access: Access) -> Work:
    try:
        found = {database.path: database for database in collect(host, "", [], wanted)}
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    changes, warnings = [], []
    for path, word in wanted.items():
        database = found.get(path)
        try:
            if database is None:
                raise ChangeFailed(
                    f"{path}: observed a part or a shadow of a database; expected its first file"
                )
            if database.forced_writes == word:
                warnings += _left_behind(database, word)
            elif _is_to_change(database, word, bool(access.password)):
                changes.append(Change(path, "forced_writes", "persisted", database.forced_writes, word))
            else:
                warnings.append(
                    f"{path}: forced writes are {database.forced_writes}, expected {word}: {_why(database)}"
                )
        except ChangeFailed as error:
            failures[path] = str(error)
    expect_some(changes, failures)
    return Work(tuple(changes), found, access, tuple(warnings), failures, wanted)


@named_by.by_others
def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read it back. Raises ChangeFailed."""
    stored = originals.load(host, ORIGINALS)
    for change in work.changes:
        header = work.databases[change.target].header
        created = header.created if header else ""
        # Of a database that was restored or made again since, the stored original is another one's.
        if stored.get(change.target, "").partition(" ")[2] != created:
            stored[change.target] = f"{change.before} {created}"
    originals.save(host, stored, ORIGINALS)
    _change_all(host, work.changes, work.databases, work.access)
    done = {path: word for path, word in work.wanted.items() if path not in work.failures}
    verify(_plan(host, done, {}, work.access).changes)


@named_by.by_others
def plan_release(
    host: Host, user: str = "SYSDBA", password: str | None = None, server: str = "localhost"
) -> Release:
    """Return what release changes; reads only. Raises ChangeFailed.

    A database that is gone, or was restored or made again since, is forgotten; one in use is left.
    """
    stored = originals.load(host, ORIGINALS)
    found = {database.path: database for database in collect(host, "", stored, ())}
    changes, warnings, left = [], [], {}
    for path, record in stored.items():
        word, _blank, created = record.partition(" ")
        database = found.get(path)
        header: Header | None = database.header if database else None
        if database is None or (header and (header.created != created or header.forced_writes == word)):
            changes.append(Change(path, "originals", "persisted", word, "forgotten"))
        elif header and _is_free(database):
            changes.append(Change(path, "forced_writes", "persisted", header.forced_writes, word))
        else:
            left[path] = record
            warnings.append(f"{path}: forced writes stay {database.forced_writes}: {_why(database)}")
    return Release(tuple(changes), found, Access(user, password or None, server), tuple(warnings), left)


@named_by.by_others
def apply_release(host: Host, work: Release) -> None:
    """Put the originals back, and forget them. Raises ChangeFailed."""
    wanted = [change for change in work.changes if change.setting == "forced_writes"]
    _change_all(host, wanted, work.databases, work.access)
    originals.save(host, work.stored, ORIGINALS)


def _wanted(host: Host, targets: Iterable[Target]) -> tuple[dict[str, str], dict[str, str]]:
    """Return {database: word}, links followed, and {path: why it cannot be examined}. Raises ChangeFailed."""
    wanted: dict[str, str] = {}
    failures: dict[str, str] = {}
    for target in targets:
        try:
            paths = _paths(host, target)
        except Unobservable as error:
            failures[target.path] = str(error)
            continue
        for path in paths:
            if wanted.setdefault(path, target.forced_writes) != target.forced_writes:
                raise ChangeFailed(f"{path}: observed forced writes on and off; expected one of them")
    return wanted, failures


def _paths(host: Host, target: Target) -> list[str]:
    """Return the databases that a target means. Raises Unobservable."""
    where = host.locate(target.path)
    if where.status is None:
        raise Unobservable(f"{target.path}: nothing is there; expected a Firebird database; run again")
    path = where.path
    if not target.is_directory:
        return [path]
    return [database.path for database in collect(host, "", Files(host).search(path), ())]


def _is_free(database: Database) -> bool:
    return (database.in_use, database.mode) == ("no", "read_write")


def _is_to_change(database: Database, word: str, has_password: bool) -> bool:
    """Return whether a database can be changed now, False while it is in use or nothing writes to it.

    Raises ChangeFailed if something must be fixed first.
    """
    if _is_free(database) and database.forced_writes != UNKNOWN:
        if database.status and database.status.user == 0 and not has_password:
            raise ChangeFailed(f"{database.path}: {_ROOTS}")
        return True
    if database.in_use == "yes" or database.mode == "read_only":
        return False
    raise ChangeFailed(
        f"{database.path}: forced writes: observed {database.forced_writes}, expected {word}: {_why(database)}"
    )


def _why(database: Database) -> str:
    if database.mode == "shutdown":
        return (
            f"it is shut down; bring it online ({command('gfix', '-online', database.path)}), and run again"
        )
    if database.mode == "read_only":
        return "it is read-only: nothing writes to it, and its header cannot be changed"
    if database.in_use == "yes" and database.mode != "backup":
        return "a process has it open; run again when none has"
    return f"{database.reason}; correct that, or run again later"


def _left_behind(database: Database, word: str) -> list[str]:
    if database.running in (word, "closed", UNKNOWN):
        return []
    return [
        f"{database.path}: forced writes are {word} in its header, and {database.running} for those who have it"
        " open, until they detach"
    ]


def _change_all(
    host: Host, changes: Iterable[Change], databases: dict[str, Database], access: Access
) -> None:
    wanted = {change.target: change.after for change in changes}
    locks = _lock_directories(host) if wanted else {}
    each(wanted, lambda path: _change(host, databases[path], wanted[path], access, locks))


def _change(host: Host, database: Database, word: str, access: Access, locks: Locks) -> None:
    """Change one database. Older commits are on disk before the header says that all are."""
    files = _files_of(host, database.path)
    if word == "on":
        _flush(host, files)
    _gfix(host, database, word, access, locks)
    if word == "on":
        _flush(host, files)
    after = next(iter(collect(host, "", [], [database.path])), None)
    if after is None:
        raise ChangeFailed(f"{database.path}: not the first file of a database any more; run again")
    if after.forced_writes != word:
        # gfix can end well all the same, and release forgets what was there before.
        raise ChangeFailed(
            f"{database.path}: observed forced writes {after.forced_writes} in its header after gfix, expected {word}: gfix did"
            " not change it. Fix: run again"
        )
    if after.running not in ("closed", word):
        raise ChangeFailed(
            f"{database.path}: a process opened it meanwhile, and writes with forced writes {after.running} until it"
            f" detaches; expected {word}"
        )


def _gfix(host: Host, database: Database, word: str, access: Access, locks: Locks) -> None:
    header, status = database.header, database.status
    if header is None or status is None:
        raise ChangeFailed(f"{database.path}: its header cannot be read; expected ODS 12 or 13")
    environment = {"ISC_USER": access.user, **_version(host, header)}
    argv = ["-write", _WORDS[word]]
    try:
        if status.user == 0:
            raise ChangeFailed(f"{database.path}: {_ROOTS}")
        own = {**environment, **_lock(locks.get(str(status.user), {None}), database.path)}
        host.change(_as_user(host, status.user, [_tool(host), *argv, database.path]), environment=own)
    except ChangeFailed as error:
        if not access.password:
            raise ChangeFailed(
                f"{error}; it ran as user {status.user}, who owns the file; give the password of {access.user}, so that"
                " the server does it"
            ) from error
        try:
            _by_server(host, database, argv, access, environment)
        except ChangeFailed as second:
            raise ChangeFailed(f"{error}; and by the server: {second}") from second


def _by_server(
    host: Host, database: Database, argv: list[str], access: Access, environment: dict[str, str]
) -> None:
    """Let the server change a database. What listens there instead of it learns nothing. Raises ChangeFailed."""

    def as_stranger(command: list[str]) -> list[str]:
        return _as_stranger(host, command)

    version = environment.get("FIREBIRD_VERSION")
    # Whoever may change it reads the password.
    tool = login.program(
        host, [f"/usr/lib/firebird/{version}/bin/gfix"] if version else tools.GFIX, as_stranger
    )
    with login.srp_alone(host) as variables:
        given = {**environment, **variables, "ISC_PASSWORD": str(access.password)}
        remote = as_stranger([tool, *argv, f"{access.server}:{database.path}"])
        try:
            host.change(remote, environment=given)
        except CommandFailed as error:
            if _NO_LOGIN not in error.text:
                raise
            raise ChangeFailed(
                f"{error}. gfix logs in by Srp alone, because Legacy_Auth shows a hash of the password. Fix: create"
                f" {access.user} with USING PLUGIN Srp, and have Srp in the server's AuthServer"
            ) from error


def _as_user(host: Host, user: int, argv: list[str]) -> list[str]:
    try:
        return confined.command(host, confined.account(host, user), argv)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def _tool(host: Host) -> str:
    """Return gfix. Raises ChangeFailed for one that others than root may change."""
    try:
        return tools.choose(host, tools.GFIX)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def _as_stranger(host: Host, argv: list[str]) -> list[str]:
    """Return the command that runs as a user without an account or process. Raises ChangeFailed."""
    try:
        return stranger.command(host, argv, "gfix")
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def _version(host: Host, header: Header) -> dict[str, str]:
    """Return the options that select one Firebird for Debian's tools, if there are several."""
    version = {"12": "3.0", "13": "4.0"}[header.ods.partition(".")[0]]
    return {"FIREBIRD_VERSION": version} if host.exists(f"/usr/lib/firebird/{version}/bin/gfix") else {}


def _files_of(host: Host, path: str) -> list[str]:
    """Return the paths of all files of a database."""
    reader, found = Files(host), [path]
    with named_by.one(host, named_by.UNKNOWN_USER):
        while len(found) < _MOST_FILES:
            beginning = reader.beginning(found[-1])
            following = next_file(beginning.page)
            # The owner of a file names the next one.
            if beginning.status:
                named_by.owned(host, beginning.status)
            if not following or reader.beginning(following).reason or following in found:
                break
            found.append(following)
    return found


def _flush(host: Host, files: list[str]) -> None:
    """Bring all that was written to a database's files onto the disks, and what names them."""
    for path in files:
        host.sync(path)
        host.sync(path, whole=True)


def _lock_directories(host: Host) -> Locks:
    """Return where the servers that run here keep their locks. Raises ChangeFailed.

    gfix finds other processes only by the same locks. Each user's are separate: no user can lead another's
    gfix elsewhere by running a server.
    """
    found: Locks = {}
    try:
        processes = Processes(host)
        ours = host.link("/proc/self/ns/mnt")
        for main in processes.mains(PROGRAMS):
            if host.link(f"/proc/{main.pid}/ns/mnt") == ours:
                directory = processes.environment(main, ["FIREBIRD_LOCK"]).get("FIREBIRD_LOCK")
                found.setdefault(processes.user(main), set()).add(directory)
    except Unobservable as error:
        raise ChangeFailed(f"the lock directory of Firebird's servers is unknown: {error}") from error
    return found


def _lock(found: set[str | None], path: str) -> dict[str, str]:
    """Return the variable that leads gfix to a server's locks. Raises ChangeFailed where servers differ."""
    if len(found) > 1:
        raise ChangeFailed(
            f"{path}: observed servers with different FIREBIRD_LOCK ({', '.join(sorted(map(str, found)))}); expected one for"
            " all; run gfix by hand with that of the database's server"
        )
    (directory,) = found
    return {"FIREBIRD_LOCK": directory} if directory else {}
