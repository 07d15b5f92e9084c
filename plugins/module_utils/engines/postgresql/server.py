# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A running PostgreSQL server: queried through psql, as the user that the server runs as.

The login is that of its socket (peer), at which only a process of that user may listen: no password is known here, and
none is offered. With -X, psql loads nothing of that user's; one that root alone can change is enough, for it knows all
servers since 9.2.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypedDict, cast

from ...facts.classes import SettingFixFacts
from ...facts.engine_fixes import FORMS
from ...host import bounded_read, bounds, confined, json_text, trusted_path
from ...host.process_context import is_there
from ...host.processes import DELETED
from ...host.seam import CHANGE_TIMEOUT, ChangeFailed, Host, Result, Unobservable
from .. import fixes
from .cluster import VALUES

#: Where packages put programs of each version: Debian's, the PostgreSQL project's for Red Hat and SUSE.
_VERSIONS = (
    ("/usr/lib/postgresql", "", "/bin"),
    ("/usr", "pgsql-", "/bin"),
    ("/usr/lib", "postgresql", "/bin"),
)
_SYSTEMS_PSQL = "/usr/bin/psql"
_PID_FILE = "postmaster.pid"
#: What psql 15 and earlier print before their error if they cannot return to a directory.
_NO_DIRECTORY = "could not change directory to "
#: How a server refuses a login by pg_hba.conf: auth.c, and libpq without a password.
_REFUSED = re.compile(
    r"authentication failed for user|no pg_hba\.conf entry|pg_hba\.conf rejects|no password supplied"
)
#: A path at which nothing is, and root alone can put something. psql complains of /dev/null.
_NO_FILE = "/nonexistent"
#: Its lines, from 1: miscadmin.h of PostgreSQL 10 to 17.
_PORT_LINE, _SOCKET_LINE = 4, 5
#: Names are looked up if nobody but the superuser can put functions of his own.
_PATH = "SET search_path = pg_catalog, pg_temp"
#: Sources of a value that hold for the session that asks, and not for the server.
SESSION = ("global", "database", "user", "database user", "client", "session", "interactive")
_NAMES = ", ".join(f"'{name}'" for name in VALUES)
#: `busy`: sessions whose statement began before the configuration was loaded last: such a one goes
#: on with the settings that it had. A replica's sender is one long statement, and commits nothing. Without track_activities
#: (`disabled`) the server does not report statements, so a session from before counts.
_SQL = f"""
SELECT json_build_object(
  'version', current_setting('server_version'),
  'config', (SELECT setting FROM pg_settings WHERE name = 'config_file'),
  'settings', (SELECT json_object_agg(name, json_build_object(
      'value', setting, 'source', source, 'file', sourcefile, 'line', sourceline))
    FROM pg_settings WHERE name IN ({_NAMES})),
  'superuser', (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
  'replica', pg_is_in_recovery(),
  'alter_system', coalesce(current_setting('allow_alter_system', true), 'on'),
  'now', extract(epoch FROM clock_timestamp())::float8,
  'sessions', (SELECT coalesce(json_agg(one), '[]') FROM (
    SELECT usename AS role, datname AS database, extract(epoch FROM min(backend_start))::float8 AS began
    FROM pg_stat_activity WHERE usename IS NOT NULL AND datname IS NOT NULL AND pid <> pg_backend_pid()
    GROUP BY usename, datname) AS one),
  'pending', (SELECT coalesce(json_agg(name ORDER BY name), '[]') FROM pg_settings WHERE pending_restart),
  'overrides', (SELECT coalesce(json_agg(json_build_object(
      'role', CASE WHEN setrole <> 0 THEN coalesce(rolname, setrole::text) END,
      'database', CASE WHEN setdatabase <> 0 THEN coalesce(datname, setdatabase::text) END,
      'config', setconfig) ORDER BY setdatabase, setrole), '[]')
    FROM pg_db_role_setting LEFT JOIN pg_roles ON pg_roles.oid = setrole
      LEFT JOIN pg_database ON pg_database.oid = setdatabase),
  'busy', (SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type <> 'walsender'
    AND (state IN ('active', 'fastpath function call') AND query_start < pg_conf_load_time() + interval '1 second'
      OR state = 'disabled' AND backend_start < pg_conf_load_time() + interval '1 second')))
"""
_NAMES_SQL = """
SELECT json_build_object('roles', (SELECT json_agg(rolname) FROM pg_roles),
  'databases', (SELECT json_agg(datname) FROM pg_database))
"""


class Shown(TypedDict):
    """A setting in pg_settings. The server can report any values."""

    value: object
    source: object
    file: object
    line: object


class Session(TypedDict):
    """The oldest session of a role in a database; `began` in seconds since 1970."""

    role: str
    database: str
    began: float


class Configured(TypedDict):
    """The settings of a role or database, each `name=value`; None is all of them."""

    role: str | None
    database: str | None
    config: list[str]


class Answer(TypedDict):
    """The answer of a server to _SQL, in the requested form."""

    version: str
    config: str | None
    settings: dict[str, Shown]
    superuser: bool
    replica: bool
    alter_system: str
    now: float
    sessions: list[Session]
    pending: list[str]
    overrides: list[Configured]
    busy: int


class Login(NamedTuple):
    """How a server is queried: as which user, by name and number, with which client, where its data and programs are."""

    user: str
    uid: int
    programs: str
    data: str
    psql: str


class NoAnswer(Unobservable):
    """A server that does not answer; `fix`: what an administrator does about it."""

    def __init__(self, text: str, fix: SettingFixFacts) -> None:
        super().__init__(text)
        self.fix = fix


def login(host: Host, pid: int, data: str) -> Login:
    """Return how to ask the server whose postmaster this is. Raises Unobservable."""
    status = host.read(f"/proc/{pid}/status")
    uid = re.search(r"^Uid:\s+\d+\s+(\d+)", status, re.M)
    if not uid:
        raise Unobservable(f"/proc/{pid}/status: names no user")
    if int(uid[1]) == 0:
        raise Unobservable(f"process {pid} runs as root, as which PostgreSQL refuses to run: it is not asked")
    exe = host.link(f"/proc/{pid}/exe")
    exe = exe[: -len(DELETED)] if exe.endswith(DELETED) else exe
    programs = posixpath.dirname(exe)
    return Login(user_name(host, uid[1]), int(uid[1]), programs, data, _psql(host, programs))


def _psql(host: Host, programs: str) -> str:
    """Return the psql of a server's version, else the newest of the system's, that root alone can change.

    The server's own directory may be its user's, or another user's by now. Raises Unobservable.
    """
    why, weak = "", ""
    for path in _psqls(host, programs):
        try:
            if is_there(host, path):
                trusted_path.expect_program(host, path)
                return path
        except Unobservable as error:
            why, weak = why or str(error), weak or path
    if why:
        raise NoAnswer(f"{why}, or install the system's psql", fixes.fix("trust_psql", path=weak))
    raise NoAnswer("psql is not installed. Fix: install PostgreSQL's client", fixes.fix("install_psql"))


def _psqls(host: Host, programs: str) -> Iterator[str]:
    """Yield where psql may be: in the directory of the server, then where packages put it, the newest version first."""
    yield posixpath.join(programs, "psql")
    for directory, before, after in _VERSIONS:
        names = host.list_names(directory) or []
        found = [name for name in names if re.fullmatch(rf"{before}[0-9]{{1,2}}", name, re.ASCII)]
        for name in sorted(found, key=lambda name: int(name[len(before) :]), reverse=True):
            yield f"{directory}/{name}{after}/psql"
    # Debian's is a script that chooses one by the user's files.
    with contextlib.suppress(Unobservable):
        if posixpath.basename(host.locate(_SYSTEMS_PSQL).path) == "psql":
            yield _SYSTEMS_PSQL


def user_name(host: Host, uid: str) -> str:
    """Return the name of a user by number. Raises Unobservable."""
    result = host.run(["getent", "passwd", uid])
    name = result.stdout.partition(":")[0]
    if result.rc != 0 or not name:
        raise Unobservable(f"user {uid} has no name: getent passwd finds none")
    return name


def ask(host: Host, login: Login, pid: int | None = None) -> Answer:
    """Return what a server says of itself; `pid` is its postmaster, where that must be the same.

    Raises Unobservable, with the server's own reason where it refuses.
    """
    found = _json(host, login, _SQL, pid)
    # The server is its user's, who can have it answer anything.
    if not _is_answer(found):
        raise Unobservable(f"psql as {login.user}: its answer is not of the requested form")
    return cast("Answer", found)


def names(host: Host, login: Login) -> tuple[set[str], set[str]]:
    """Return the names of a server's roles and databases. Raises Unobservable."""
    found = _json(host, login, _NAMES_SQL)
    if not (_are_texts(found.get("roles")) and _are_texts(found.get("databases"))):
        raise Unobservable(f"psql as {login.user}: its answer is not of the requested form")
    return set(found["roles"]), set(found["databases"])


def _json(host: Host, login: Login, question: str, pid: int | None = None) -> dict[str, Any]:
    result = host.run([*command(host, login, pid), "-c", _PATH, "-c", question])
    if result.rc != 0:
        text, is_peer = f"psql as {login.user}: {_why(result, login)}", _REFUSED.search(result.stderr)
        if is_peer and FORMS["user"].fullmatch(login.user):
            raise NoAnswer(text, fixes.fix("allow_peer", user=login.user))
        raise Unobservable(text)
    if len(result.stdout) > bounds.FILE:
        raise Unobservable(
            f"psql as {login.user}: observed an answer of {len(result.stdout)} letters; expected {bounds.FILE}"
        )
    try:
        found = json_text.loads(result.stdout)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unobservable(f"psql as {login.user}: its answer is not of the requested form")
    return found


def _why(result: Result, login: Login) -> str:
    """Return the error of psql in one line, with the fix for a refused login."""
    lines = (line for line in result.stderr.splitlines() if not line.startswith(_NO_DIRECTORY))
    text = " ".join(" ".join(lines).split())[:300] or f"exit {result.rc}"
    if _REFUSED.search(text):
        line = f"local postgres {login.user} peer"
        return f"{text}. Fix: make {line!r} the first line of pg_hba.conf, reload the server, then run again"
    return text


def _is_answer(found: Mapping[str, Any]) -> bool:
    """Return whether an answer has the requested form, text for text."""
    settings, overrides = found.get("settings"), found.get("overrides")
    return (
        isinstance(found.get("version"), str)
        and isinstance(found.get("config"), (str, type(None)))
        and isinstance(found.get("busy"), int)
        and all(isinstance(found.get(name), bool) for name in ("superuser", "replica"))
        and isinstance(found.get("alter_system"), str)
        and isinstance(found.get("now"), (int, float))
        and _are_rows(found.get("sessions"), {"role": str, "database": str, "began": (int, float)})
        and isinstance(settings, dict)
        and all(
            isinstance(row, dict) and {"value", "source", "file", "line"} <= set(row)
            for row in settings.values()
        )
        and _are_texts(found.get("pending"))
        and isinstance(overrides, list)
        and all(
            isinstance(row, dict)
            and all(isinstance(row.get(name, 0), (str, type(None))) for name in ("role", "database"))
            and _are_texts(row.get("config"))
            for row in overrides
        )
    )


def _are_rows(found: Any, fields: Mapping[str, type | tuple[type, ...]]) -> bool:
    return isinstance(found, list) and all(
        isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in fields.items())
        for row in found
    )


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(text, str) for text in found)


def tell(host: Host, login: Login, statement: str, timeout: float = CHANGE_TIMEOUT) -> None:
    """Have a server execute one statement, whatever its login's own transactions may. Raises ChangeFailed."""
    try:
        argv = [*command(host, login), "-c", "SET default_transaction_read_only = off", "-c", statement]
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    host.change(argv, timeout)


def command(host: Host, login: Login, pid: int | None = None) -> list[str]:
    """Return the command that takes `-c` and a statement. Raises Unobservable."""
    path = posixpath.join(login.data, _PID_FILE)
    text = bounded_read.read(host, path)
    if text is None:
        raise Unobservable(f"{path} is not there: it does not run, or not from there")
    lines = text.split("\n")
    if len(lines) < _SOCKET_LINE or (pid is not None and lines[0].strip() != str(pid)):
        raise Unobservable(f"{path}: names no port and socket of this server (yet): it starts or ends")
    port, socket = lines[_PORT_LINE - 1].strip(), lines[_SOCKET_LINE - 1]
    if not socket.startswith(("/", "@")) or not (port.isascii() and port.isdigit()):
        raise Unobservable(f"{path}: names no unix socket: unix_socket_directories is empty")
    if "," in socket:
        # libpq takes what follows for another host, on the network, from which a server may be cut off.
        raise NoAnswer(
            f"{path}: its socket {socket!r} has a comma. Fix: unix_socket_directories without one",
            fixes.fix("rename_socket"),
        )
    psql = [login.psql, "-XAtqw", "-v", "ON_ERROR_STOP=1", "-h", socket, "-p", port, "-d", "postgres"]
    # In a directory such as /tmp, another user's process may listen: libpq asks the kernel whose it is before it sends a
    # word, and no password of ~/.pgpass is offered.
    variables = {"PGREQUIREPEER": login.user, "PGPASSFILE": _NO_FILE}
    return confined.command(host, confined.account(host, login.uid), psql, variables)
