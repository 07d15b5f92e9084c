# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DELAYED_DURABILITY of SQL Server's databases, queried with a login of the administrator's. Not run on a real SQL Server.

Any user can listen at port 1433 while the server does not. So sqlcmd sends the password only over TLS with a certificate
that the host's certificate authorities confirm for the host's name: sqlcmd 18 checks it unless -C is given. The login
needs CONNECT SQL and VIEW ANY DATABASE, nothing else. Without the latter sys.databases shows it only master, tempdb and its
own databases. Only counts are read, no names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...host import our_paths, stranger, trusted_path
from ...host.observation import UNKNOWN, Observation, caused, unknown, unread
from ...host.seam import Host, Unobservable
from ...host.textfile import Line

#: Two lines: the name of the login, and its password.
LOGIN = f"{our_paths.CONFIGURED}/mssql-login"
SOURCE = "sys.databases"
PROGRAM = "/opt/mssql-tools18/bin/sqlcmd"
_DEFAULT_PORT = "1433"
_QUERY = (
    "SET NOCOUNT ON; SELECT 'VISIBLE', HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DATABASE');"
    " SELECT delayed_durability_desc, COUNT(*) FROM sys.databases GROUP BY delayed_durability_desc"
)
_SECONDS = 10
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,127}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
#: Whether the login can see all databases: the first row.
_VISIBLE = re.compile(r"VISIBLE\|(0|1|NULL)")
_ROW = re.compile(r"(DISABLED|ALLOWED|FORCED)\|[1-9][0-9]{0,4}")
#: The weakest of a server's databases counts.
_WEAKEST = ("FORCED", "ALLOWED", "DISABLED")


class Login(NamedTuple):
    """A login of the server."""

    name: str
    password: str


def delayed_durability(host: Host, lines: Sequence[Line] | None, is_local: bool) -> Observation:
    """Return forced, allowed or disabled: the weakest value of a running server's databases.

    If the login cannot see all databases, it is unknown, unless one that it can see has the weakest of all values.
    `lines` are those of mssql.conf; `is_local`: the server runs, and in no container.
    """
    if not is_local or not host.exists(LOGIN):
        return caused(UNKNOWN, SOURCE, "never_queried")
    try:
        login = _login(host)
        result = host.run_with_secret(
            _command(host, login.name, lines), {"SQLCMDPASSWORD": login.password}, _SECONDS + 5
        )
    except Unobservable as error:
        return unread(SOURCE, error)
    visible, *found = [line.strip() for line in result.stdout.splitlines() if line.strip()] or [""]
    if result.rc != 0 or not _VISIBLE.fullmatch(visible) or not found or not all(map(_ROW.fullmatch, found)):
        output = " ".join((result.stderr or result.stdout).split())[:300]
        return unknown(SOURCE, f"{PROGRAM} exits {result.rc}: {output}")
    values = {line.partition("|")[0] for line in found}
    weakest = next(value for value in _WEAKEST if value in values)
    if visible != "VISIBLE|1" and weakest != _WEAKEST[0]:
        return caused(UNKNOWN, SOURCE, "databases_hidden")
    return Observation(weakest.lower(), SOURCE)


def _login(host: Host) -> Login:
    """Return the login of the file that root alone may read and change. Raises Unobservable without its content."""
    weak = trusted_path.weakness(host, LOGIN)
    if weak or host.mode(LOGIN) & 0o077:
        why = weak or f"{LOGIN} has mode {host.mode(LOGIN):04o}"
        raise Unobservable(
            f"{why}, expected a file that root alone may read and change: chown root:root and chmod 600 it"
        )
    lines = host.read(LOGIN).splitlines()
    if len(lines) != 2 or not _NAME.fullmatch(lines[0]) or not lines[1].isprintable() or not lines[1]:
        raise Unobservable(f"{LOGIN}: expected two lines, the name of a login and its password")
    return Login(*lines)


def _command(host: Host, name: str, lines: Sequence[Line] | None) -> list[str]:
    """Return the command that queries the server. Raises Unobservable."""
    server = host.read("/proc/sys/kernel/hostname").strip()
    if not _HOST.fullmatch(server):
        raise Unobservable("the host's name is not one that a certificate can confirm")
    ports = {
        line.value
        for line in lines or ()
        if (line.section, line.name) == ("network", "tcpport") and line.value
    }
    port = ports.pop() if len(ports) == 1 else "" if ports else _DEFAULT_PORT
    if lines is None or not re.fullmatch(r"[1-9][0-9]{0,4}", port):
        raise Unobservable("network.tcpport of mssql.conf is not one number")
    options = ("-Nm", "-l", str(_SECONDS), "-t", str(_SECONDS), "-h", "-1", "-W", "-s", "|", "-Q", _QUERY)
    return stranger.command(host, [PROGRAM, "-S", f"tcp:{server},{port}", "-U", name, *options], "sqlcmd")
