# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SQL Server on Linux: where its instance is."""

from __future__ import annotations

import posixpath
import re

from ..host import Host
from .instance import Instance, of_mains
from .processes import Process, Processes

NAME = "mssql"
PROGRAMS = ("sqlservr",)
UNITS = re.compile(r"mssql-server(@.+)?\.service")
#: Configuration, system databases and logs of every instance; databases may lie elsewhere.
HOME = "/var/opt/mssql"
CONFIG = f"{HOME}/mssql.conf"
_PROGRAM = "/opt/mssql/bin/sqlservr"
#: Environment variables that go before mssql.conf: those that name directories, and files.
_DIRECTORIES = ("MSSQL_BACKUP_DIR", "MSSQL_DATA_DIR", "MSSQL_DUMP_DIR", "MSSQL_LOG_DIR")
_FILES = ("MSSQL_MASTER_DATA_FILE", "MSSQL_MASTER_LOG_FILE")


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the instances that run. The parent watches; its child does the work."""
    return of_mains(NAME, processes, processes.mains(PROGRAMS), lambda main: _instance(processes, main))


def installed(host: Host, units: list[str]) -> list[Instance]:
    """Return the instance that could be started, whether or not it runs. `units`: those of UNITS."""
    names: list[str | None] = [*units]
    if not names and host.exists(_PROGRAM):
        names = [None]
    return [Instance(NAME, NAME, config=CONFIG, directories=(HOME,), unit=unit) for unit in names]


def _instance(processes: Processes, main: Process) -> Instance:
    said = processes.environment(main, (*_DIRECTORIES, *_FILES))
    named = [said[name] for name in _DIRECTORIES if name in said]
    named += [posixpath.dirname(said[name]) for name in _FILES if name in said]
    directories = dict.fromkeys([HOME, *(path for path in named if path.startswith("/"))])
    return Instance(
        NAME, NAME, processes.family(main, PROGRAMS), config=CONFIG, directories=tuple(directories)
    )
