# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the program of a MariaDB or MySQL server says that it would start with: `--help --verbose`.

A second opinion on its option files, from the one that reads them. Only a program that nobody but root
can change is run, as the user of the server and never as root, with the server's own arguments: it
can do nothing that this user could not. With its data directory at / it writes nothing; seen with
MariaDB 10.5, 10.11 and 11.8, and MySQL 9.7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...host import trusted_path
from ...host.seam import Host, Unobservable
from . import my_cnf, versions
from .options import Stated

#: Rows of the answer that it need not have.
_MAY_LACK = ("wsrep_on", "innodb_dedicated_server", "persisted_globals_load")
_QUESTION = ("--datadir=/", "--help", "--verbose")
_TABLE = re.compile(r"^Variables \(--.*\n.*\n-+ -+$", re.M)
#: Said of options behind which it has read no more, and without InnoDB.
_BROKEN = "Parsing options for plugin 'InnoDB' failed"
#: What has MySQL answer to nobody.
_DAEMON = ("--daemonize", "-D")


def ask(
    host: Host,
    program: str,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    user: Sequence[str],
    version: versions.Release,
) -> Stated:
    """Return what a program would start with. `user`: the numbers of its user, its group, and further groups.

    It is not asked where that is not known, or root, or where others than root may change the program.
    """
    if not user or user[0] == "0":
        return Stated()
    try:
        trusted_path.expect_program(host, program)
    except Unobservable:
        return Stated()
    source = f"{program} --help --verbose"
    try:
        result = host.run([*_as(user), *_with(variables), program, *_plain(arguments), *_QUESTION])
    except Unobservable:
        # Its own words would show all arguments.
        return Stated({}, source, f"{source}: no answer in time, or a longer one than it has to give")
    if _BROKEN in result.stderr:
        return Stated({}, source, f"{source}: InnoDB cannot start with these options; mend them")
    return _stated(source, result.rc, result.stdout, version)


def _as(user: Sequence[str]) -> list[str]:
    groups = f"--groups={','.join(user[2:])}" if user[2:] else "--clear-groups"
    return ["setpriv", f"--reuid={user[0]}", f"--regid={user[1]}", groups, "--"]


def _with(variables: Mapping[str, str]) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in sorted(variables.items()))]


def _plain(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without those behind which it would read no more options, or answer to nobody."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [word for word in arguments[:end] if word not in _DAEMON]


def _stated(source: str, code: int, answer: str, version: versions.Release) -> Stated:
    wanted = [name for name in versions.names(version) if name != versions.REDO]
    wanted += [versions.NO_SYNC] if version.is_mariadb else []
    table = _TABLE.search(answer)
    rows = answer[table.end() :] if table else ""
    values = {}
    for name in (*wanted, *_MAY_LACK):
        # A value may have newlines in it, and look like another row.
        found = re.findall(rf"^{name.replace('_', '-')} +(.*)$", rows, re.M)
        if len(found) == 1:
            values.update(_value(name, found[0]))
        elif found or name in wanted:
            return Stated({}, source, f"{source}: exit {code}, and {len(found)} values of {name}; wanted one")
    return Stated(values, source)


def _value(name: str, shown: str) -> dict[str, str]:
    """Return {name: value}, as an option file would say it; {} for one that says two things."""
    if name == versions.LOG_BIN and shown == "0":
        return {}  # Switched off, or files of that name.
    if shown == "(No default value)":
        return {name: "0" if name == versions.LOG_BIN else ""}
    return {name: my_cnf.option(name, shown)[1] or ""}
