# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FairCom DB (c-tree): where its instances are."""

from __future__ import annotations

import posixpath
import re

from ..host import Host
from ..observation import unknown
from ..paths import normal
from .instance import Instance, of_mains
from .places import Places, look
from .processes import Process, Processes

NAME = "faircom"
PROGRAMS = ("faircom", "ctreesql", "ctsrvr", "ctreeace")
UNITS = re.compile(r"(faircom|ctree|ctsrvr)[^/]*\.service")
_CONFIG = "ctsrvr.cfg"
#: The keyword on the command line, and the environment variable, that name another file.
_KEYWORD, _VARIABLE = "CTSRVR_CFG", "FCSRVR_CFG"
_DATA = "LOCAL_DIRECTORY"


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the instances that run. Several may run one program with a configuration each."""
    places, mains = Places(host), processes.mains(PROGRAMS)
    return of_mains(NAME, processes, mains, lambda main: _instance(processes, places, main))


def installed(host: Host, units: list[str]) -> list[Instance]:
    """Return an instance for each unit; where its files are only its unit tells."""
    why = unknown("systemd", "it does not run, and where its configuration lies is not known")
    return [Instance(NAME, unit, unit=unit, evidence=(("config", why),)) for unit in units]


def base(program: str) -> str:
    """Return the directory of an installation, above `server`, `config` and `data`."""
    directory = posixpath.dirname(program)
    return posixpath.dirname(directory) if posixpath.basename(directory) == "server" else directory


def _instance(processes: Processes, places: Places, main: Process) -> Instance:
    argv, cwd = processes.argv(main), processes.directory(main)
    said = _keyword(argv, _KEYWORD) or processes.environment(main, [_VARIABLE]).get(_VARIABLE)
    data = _keyword(argv, _DATA)
    home = base(processes.program(main))
    found = Instance(
        engine=NAME,
        name=home,
        processes=processes.family(main, PROGRAMS),
        directories=(_from(cwd, data) if data else cwd,),
    )
    if said:
        path = _from(cwd, said)
        return found._replace(name=path, config=path)
    # As the documentation has it: the directory of configurations, then the one where it runs.
    for path in dict.fromkeys((f"{home}/config/{_CONFIG}", f"{cwd}/{_CONFIG}")):
        if look(places.host, places.of(main).root + path):
            return found._replace(config=path)
    why = unknown(home, f"no {_CONFIG} in {home}/config nor in {cwd}: it runs with its defaults")
    return found._replace(evidence=(("config", why),))


def _keyword(argv: list[str], keyword: str) -> str | None:
    """Return the word behind a keyword on the command line; keywords have no case."""
    words = [word.upper() for word in argv]
    where = words.index(keyword) + 1 if keyword in words else len(words)
    return argv[where] if where < len(argv) else None


def _from(cwd: str, path: str) -> str:
    return normal(posixpath.join(cwd, path))
