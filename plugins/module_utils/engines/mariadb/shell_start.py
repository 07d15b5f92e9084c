# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that the shell in MariaDB's own unit passes to the server: as in MariaDB 11.8 of Debian 13.

It asks galera_recovery first, which prints where a node of a cluster is to go on, and for any other server nothing.
What another script gives to a server is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...host import units
from ...host.seam import Host
from ...host.units import Unit
from ..next_start import NextStart, not_known

#: The whole command: of the server's words none is anything to the shell but two variables, which it parts at blanks.
_COMMAND = re.compile(
    r"/bin/sh -c set -f; \[ ! -e (?P<recovery>/[\w/.-]+/galera_recovery) \] && VAR= \|\| VAR=`(?P=recovery)`;"
    r" \[ \$\? -eq 0 \] \|\| exit 1;"
    r" exec /[\w/.-]*/(?:mariadbd|mysqld)(?P<arguments>(?: (?:\$(?:MYSQLD_OPTS|_WSREP_NEW_CLUSTER)|[\w=/.,:@+-]+))*) \$VAR",
    re.ASCII,
)
#: What is there for one start only: systemd's environment loses it, or galera_recovery prints it.
_OF_ONE_START = re.compile(r"--wsrep[-_](?:start[-_]position|new[-_]cluster)(?:=.*)?", re.S)


def start(host: Host, unit: Unit, given: NextStart) -> NextStart:
    """Return what a unit's shell gives to the server. Raises Unobservable."""
    found = _COMMAND.fullmatch(" ".join(unit.argv.split()))
    if not found:
        raise not_known(unit)
    return given._replace(words=tuple(units.expanded(host, unit, found["arguments"].split())))


def is_same(words: Sequence[str], coming: Sequence[str]) -> bool:
    """Return whether two command lines of a server are the same except what one start alone is given."""
    own, theirs = ([word for word in line if not _OF_ONE_START.fullmatch(word)] for line in (words, coming))
    return " ".join(own).split() == theirs
