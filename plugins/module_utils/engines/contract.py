# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface of an engine, and the modules that implement it. Only this file and the catalogue name all engines.

Each has a folder. `rules.py` assesses, with a `JUDGE` (judges.py). `apply.py` sets, for its module. `observe.py` has
- NAME; PROGRAMS, base names of what runs as its server; UNITS, a pattern of names of its systemd services; VARIABLES of the
  environment that decide what it reads at its start; WRAPPERS, where there are any: programs that a unit starts in its stead, and
  what they give to it (next_start.py);
- find(host, processes) -> list[Instance]: those that run; installed(host, units) -> list[Instance]: those that could be
  started, whether or not they run, `units` being those of its that there are. Both raise Unobservable;
- reads(text, observed) -> [Change], if an engine has it: what a command of another component sets of its settings (others.py);
  without it the names of its settings are found; databases_after(databases, texts), if it has one: its databases as they are
  after such commands;
- observe(host, found, place) -> Observed: what one says of its settings, now and at its next start; `place` is None for a
  stopped one.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from ..host.seam import Host
from .faircom import observe as faircom
from .firebird import observe as firebird
from .instance import Instance
from .mariadb import observe as mariadb
from .mssql import observe as mssql
from .postgresql import observe as postgresql


class Engine(NamedTuple):
    """One engine: its side on the host, and whether something else than its unit may start an instance at boot."""

    observer: ModuleType
    may_start: Callable[[Host, Instance], bool] = lambda _host, _found: False


#: By name, in the order in which they are searched for.
ENGINES: dict[str, Engine] = {
    mssql.NAME: Engine(mssql),
    faircom.NAME: Engine(faircom),
    firebird.NAME: Engine(firebird),
    postgresql.NAME: Engine(postgresql, postgresql.is_started_by_debian),
    mariadb.NAME: Engine(mariadb),
}
