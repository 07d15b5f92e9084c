# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries of a running MariaDB or MySQL server over its socket, with its own client.

As root, and so with care: a server may be any user's process. The client reads no option file but
root's own, and that one only for a service of the system, because it holds a password; it hands
over no files, and no program that others than root may change is started. The password is offered only to
the process of that service, and by no authentication that reveals it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from ...host import listener, trusted_path
from ...host.process_context import Place, is_there, resolve
from ...host.processes import FIRST_PERSON
from ...host.seam import Host, Result, Unobservable
from ..instance import Instance
from . import versions

#: root's option file: if it is, its user and password are tried last.
PASSWORDS = "/root/.my.cnf"
_CLIENTS = ("mariadb", "mysql")
#: Authentications that answer a challenge. All others are refused: a server chooses one, and to mysql_clear_password,
#: dialog and caching_sha2_password clients answer with the password, to mysql_old_password with almost its hash.
_AUTHENTICATIONS = "mysql_native_password,client_ed25519"
#: A connection string, the only place where the client takes restricted_auth.
_RESTRICTED = f"localhost;restricted_auth={_AUTHENTICATIONS}"
#: What is in each client that takes it there, since Connector/C 3.3.10: one that knows connection strings alone ignores it,
#: and one that knows neither looks for a host of this name. Clients 10.11.19 and 11.8.9 have both, and refuse; MariaDB's
#: 10.5.23 and MySQL's 9.7.4 have none.
_RESTRICTING = ("restricted-auth", "in connection string (offset")
_PREFIXES = ("/usr", "/usr/local")
#: Where servers are built to put their socket.
_SOCKETS = (
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/run/mysql/mysql.sock",
    "/tmp/mysql.sock",
)
_FIX = "Fix: let root log in without a password: ALTER USER root@localhost IDENTIFIED VIA unix_socket, in MySQL WITH auth_socket"
_DENIED = "Access denied for user"
_NO_PASSWORD = f"Fix: write user and password of root to {PASSWORDS} ([client], mode 0600), or {_FIX[5:]}"
_WRONG_PASSWORD = f"Fix: correct user and password in {PASSWORDS}, or {_FIX[5:]}"
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}
VARIABLES = (
    "aria_log_dir_path",
    "datadir",
    "event_scheduler",
    "general_log_file",
    "group_replication_group_name",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_directories",
    "innodb_doublewrite",
    "innodb_doublewrite_dir",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_log_group_home_dir",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "log_bin",
    "log_bin_basename",
    "log_error",
    "slow_query_log_file",
    "sync_binlog",
    "tmpdir",
    "version",
    "wsrep_on",
    "wsrep_provider",
)
_QUOTED = ", ".join(f"'{name}'" for name in VARIABLES)
QUESTION = (
    f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({_QUOTED});"
    " SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'"
)


class Server(NamedTuple):
    """A server that can be queried: its client, its socket, and the login options to try, best first.

    `withheld`: why root's password is not among them, if root has one.
    """

    client: str
    socket: str
    logins: tuple[tuple[str, ...], ...]
    withheld: str = ""


def server(host: Host, found: Instance, place: Place, uid: str, named: str | None, data: str) -> Server:
    """Return how to ask an instance. `named` is the socket that its options name, or None.

    Raises Unobservable if no socket is found, and if another process listens there.
    """
    main = found.processes[0]
    # A service may have a /tmp of its own.
    root = f"/proc/{main.pid}/root" if place.namespace == "private" else ""
    inside = _socket(host, root, named, data)
    client, path = _client(host, main.exe or ""), root + inside
    # Links were followed inside the other root: an absolute one leads elsewhere here.
    held = listener.proven(host, root + resolve(host, root, inside), main.pid, place.cgroup, place.mounts)
    # Without --skip-password a password of the environment, or of .mylogin.cnf, is offered to any server.
    without = ("--no-defaults", "--user=root", "--skip-password", "--host=localhost", f"--socket={held}")
    if not host.exists(PASSWORDS):
        return Server(client, path, (without,))
    try:
        _expect_service(host, main.exe or "", place, uid)
        _expect_restricting(host, client)
    except Unobservable as error:
        return Server(client, path, (without,), f"{error}. {_FIX}")
    # The command line has the last word over root's file, which may name another host.
    offered = (f"--defaults-file={PASSWORDS}", f"--host={_RESTRICTED}", f"--socket={held}")
    return Server(client, path, (without, offered))


def ask(host: Host, server: Server) -> tuple[list[str], dict[str, str]]:
    """Return the command that a server lets in, and {name in small letters: value} of its variables.

    Raises Unobservable.
    """
    argv, output = _execute(host, server, QUESTION)
    pairs = (line.split("\t") for line in output.split("\n") if line)
    found = {pair[0].lower(): _unescaped(pair[1]) for pair in pairs if len(pair) == 2}
    if "datadir" not in found or "version" not in found:
        raise Unobservable(f"{server.socket}: the server's answer is not understood")
    return argv, found


def events(host: Host, argv: Sequence[str], names: Sequence[str]) -> int:
    """Return how many events are enabled whose statements name one of these variables. Raises Unobservable."""
    sql = (
        "SELECT COUNT(*) FROM information_schema.EVENTS WHERE STATUS = 'ENABLED'"
        f" AND EVENT_DEFINITION REGEXP '{'|'.join(names)}'"
    )
    result = host.run(statements(argv, [sql]))
    if result.rc != 0 or not re.fullmatch(r"\d{1,9}\n?", result.stdout, re.ASCII):
        raise Unobservable(f"information_schema.EVENTS: {_why(result)}")
    return int(result.stdout)


def statements(argv: Sequence[str], sql: Sequence[str]) -> list[str]:
    """Return the command that executes statements, as far as the first that fails."""
    return [*argv, f"--execute={'; '.join(sql)}"]


def expect_same(host: Host, root: str, found: Instance, server: Server, data: str) -> None:
    """Raise Unobservable where the server at a socket has another data directory than the instance."""
    known = found.directories[0] if found.directories else None
    if known and resolve(host, root, data) != resolve(host, root, known):
        raise Unobservable(
            f"{server.socket}: the server there keeps its data in {data}, this one in {known}: it is another one"
        )


def _execute(host: Host, server: Server, sql: str) -> tuple[list[str], str]:
    """Execute what only reads. Return the arguments but the statement that were let in, and the output.

    Raises Unobservable.
    """
    why = ""
    for login in server.logins:
        argv = _argv(server, login)
        try:
            result = host.run(statements(argv, [sql]))
        except Unobservable:
            raise Unobservable(f"{server.socket}: {server.client} gets no answer in time") from None
        if result.rc == 0:
            return argv, result.stdout
        why = _why(result)
    if _DENIED in why and not server.withheld:
        why = f"{why}. {_WRONG_PASSWORD if len(server.logins) > 1 else _NO_PASSWORD}"
    withheld = f"; the password in {PASSWORDS} is not offered: {server.withheld}" if server.withheld else ""
    raise Unobservable(f"{server.socket}: {why}{withheld}")


def _argv(server: Server, login: tuple[str, ...]) -> list[str]:
    return [
        server.client,
        *login,
        "--protocol=socket",
        "--connect-timeout=5",
        "--local-infile=0",
        "--batch",
        "--skip-column-names",
    ]


def _expect_service(host: Host, program: str, place: Place, uid: str) -> None:
    """Raise Unobservable unless a server is one of the system's services, with a program that only root can change."""
    is_service = place.cgroup.startswith("/system.slice/") and versions.UNITS.fullmatch(place.unit or "")
    if not (is_service and uid.isdigit() and int(uid) < FIRST_PERSON):
        raise Unobservable(
            f"the server is no service of the system (control group {place.cgroup}, user {uid})"
        )
    trusted_path.expect_program(host, program)


def _expect_restricting(host: Host, client: str) -> None:
    """Raise Unobservable for a client that answers each authentication that a server requests."""
    result = host.run(["grep", "-aoF", *(f"--regexp={text}" for text in _RESTRICTING), "--", client])
    if not set(_RESTRICTING) <= set(result.stdout.split("\n")):
        raise Unobservable(f"{client} cannot refuse an authentication that reveals it")


def _client(host: Host, program: str) -> str:
    """Return the client that came with a server, or the system's, the first that only root can change.

    Raises Unobservable.
    """
    own = [posixpath.dirname(posixpath.dirname(program))] if program.startswith("/") else []
    paths = [f"{prefix.rstrip('/')}/bin/{name}" for prefix in (*own, *_PREFIXES) for name in _CLIENTS]
    why = ""
    for path in paths:
        if is_there(host, path):
            try:
                trusted_path.expect_program(host, path)
                return path
            except Unobservable as error:
                why = why or str(error)
    if why:
        raise Unobservable(why)
    raise Unobservable(f"no client is installed: expected one of {', '.join(dict.fromkeys(paths))}")


def _why(result: Result) -> str:
    text = " ".join(result.stderr.split())
    return text[:300] or f"its client ended with exit code {result.rc}"


def _socket(host: Host, root: str, named: str | None, data: str) -> str:
    places = [posixpath.join(data, named)] if named else [*_SOCKETS, f"{data.rstrip('/')}/mysql.sock"]
    for path in places:
        if is_there(host, path, root):
            return path
    raise Unobservable(f"no socket of it at {', '.join(places)}")


def _unescaped(value: str) -> str:
    r"""Return a value as it is: with --batch, the client writes \n, \t, \0 and \\."""
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), value, flags=re.S)
