# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MariaDB and MySQL: where their instances are."""

from __future__ import annotations

import re

from ..host import Host
from ..observation import unknown
from .instance import Instance, of_mains
from .places import Places, look
from .processes import Process, Processes

NAME = "mariadb"
#: mysqld_safe and mariadbd-safe start a server, and are none.
PROGRAMS = ("mariadbd", "mysqld", "mysqld-debug")
UNITS = re.compile(r"(rh-[^/]*-)?(mariadb|mysqld?)(@.+)?\.service")
#: Where servers look for options, the first first.
_CONFIGS = ("/etc/my.cnf", "/etc/mysql/my.cnf")
_DATA = "/var/lib/mysql"
_BINARIES = ("/usr/sbin/mariadbd", "/usr/sbin/mysqld", "/usr/libexec/mysqld", "/usr/libexec/mariadbd")


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the instances that run."""
    places, mains = Places(host), processes.mains(PROGRAMS)
    return of_mains(NAME, processes, mains, lambda main: _instance(processes, places, main))


def installed(host: Host, units: list[str]) -> list[Instance]:
    """Return the instances that could be started, whether or not they run."""
    names: list[str | None] = [*units]
    if not names and any(host.exists(path) for path in _BINARIES):
        names = [None]
    config = next((path for path in _CONFIGS if host.exists(path)), None)
    only = len(names) == 1
    return [
        Instance(NAME, NAME if only or not unit else unit, config=config, unit=unit, flavour="unknown")
        for unit in names
    ]


def _instance(processes: Processes, places: Places, main: Process) -> Instance:
    argv = processes.argv(main)
    # A server's working directory is its data directory.
    data = processes.directory(main)
    said = _option(argv, "defaults-file") or _option(argv, "defaults-extra-file")
    found = Instance(
        engine=NAME,
        name=NAME if data == _DATA else data,
        processes=processes.family(main, PROGRAMS),
        directories=(data,),
        # Before 10.5 MariaDB's server was called mysqld as well.
        flavour="mariadb" if main.program == "mariadbd" else "unknown",
    )
    if said and not said.startswith("/"):
        why = unknown(f"/proc/{main.pid}/cmdline", f"{said}: from where it was started is not known")
        return found._replace(evidence=(("config", why),))
    root = places.of(main).root
    there = (path for path in _CONFIGS if look(places.host, root + path))
    config = said or next(there, None)
    if config is None:
        why = unknown(", ".join(_CONFIGS), "none of them is there: it runs with its defaults")
        return found._replace(evidence=(("config", why),))
    return found._replace(config=config)


def _option(argv: list[str], name: str) -> str | None:
    """Return the value of one of the options that name files of options: one word, at the beginning."""
    prefix = f"--{name}="
    return next((word[len(prefix) :] for word in argv[1:] if word.startswith(prefix)), None)
