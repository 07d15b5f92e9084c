# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data directory and options that SUSE's `postgresql-script start` passes, from /etc/sysconfig/postgresql.

Rebuilt from public documents, not run: postgresql-README.SUSE, and settings of POSTGRES_DATADIR and POSTGRES_OPTIONS.
"""

from __future__ import annotations

import re

from ...host import bounded_read, named_by, units
from ...host.paths import normal
from ...host.seam import Host, Unobservable
from ...host.textfile import Malformed, without_content
from ...host.units import Unit
from .. import next_start
from ..next_start import NextStart
from . import pg_ctl

SCRIPT = "/usr/share/postgresql/postgresql-script"
_SYSCONFIG = "/etc/sysconfig/postgresql"
_DATA, _OPTIONS = "POSTGRES_DATADIR", "POSTGRES_OPTIONS"
_DEFAULT = "~postgres/data"
#: Text with which a script sets itself what the files are assessed for.
_OWN = re.compile(
    r"fsync|full_page_writes|synchronous_commit|wal_sync_method|data_sync_retry|config_file|\s-F\b"
)


def start(host: Host, unit: Unit, given: NextStart) -> NextStart:
    """Return what a unit's postgresql-script gives to the postmaster. Raises Unobservable."""
    if given.words != ("start",):
        raise next_start.not_known(unit)
    next_start.expect_script(host, unit, SCRIPT, (_DATA, _OPTIONS), _OWN)
    variables = _variables(host, unit)
    try:
        options = pg_ctl.shell_words(variables.get(_OPTIONS, ""), _SYSCONFIG)
    except Malformed as error:
        raise Unobservable(without_content(error)) from None
    return NextStart(("-D", _directory(host, variables.get(_DATA) or _DEFAULT), *options), {"PGDATA": None})


def data(host: Host, unit: str) -> str:
    """Return the data directory of a unit that starts the script. Raises Unobservable."""
    found, why = units.show(host, [unit], starts=True)
    if unit not in found:
        raise Unobservable(why or f"systemd does not know {unit}")
    return _directory(host, _variables(host, found[unit]).get(_DATA) or _DEFAULT)


def _variables(host: Host, unit: Unit) -> dict[str, str]:
    """Return what the script reads: its unit's environment, over which it reads its file again."""
    if unit.stale:
        raise Unobservable(
            f"{unit.name}: its file has changed since systemd read it. Fix: run systemctl daemon-reload, then run again"
        )
    with_file = unit._replace(files=(*unit.files, _SYSCONFIG))
    found = units.variables(host, with_file, {_DATA, _OPTIONS, "LD_PRELOAD"})
    units.expect_flushing(unit.name, found.get("LD_PRELOAD", ""))
    return found


def _directory(host: Host, path: str) -> str:
    """Return the directory that a value names; `~postgres` and `~` are the home of postgres. Raises Unobservable."""
    home = re.match(r"~(?:postgres)?(?=/|$)", path)
    if home:
        with named_by.one(host, None):
            lines = (bounded_read.read(host, "/etc/passwd") or "").split("\n")
        homes = [line.split(":")[5] for line in lines if re.match(r"postgres:(?:[^:]*:){4}/", line)]
        path = (homes[0] if homes else "") + path[home.end() :]
    if not path.startswith("/"):
        raise Unobservable(
            f"{_SYSCONFIG}: {_DATA} is {path!r}, expected an absolute path. Fix: write the path of the data directory"
        )
    return normal(path)
