# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variable FIREBIRD that Firebird's SysV script for SUSE passes to the guardian, and so to the server.

Rebuilt from public sources, not run: the script exports FIREBIRD and starts fbguard.
"""

from __future__ import annotations

import re

from ...host.seam import Host
from ...host.units import Unit
from .. import next_start
from ..next_start import NextStart

_SCRIPT = "/etc/init.d/firebird"
#: The script reads it first: what this file exports reaches the server.
_SYSCONFIG = "/etc/sysconfig/firebird"
_HOME = "FIREBIRD"
_ASSIGNED = re.compile(rf"\b{_HOME}=")
_LITERAL = re.compile(rf"{_HOME}=(?P<path>/[\w./-]*)", re.ASCII)
_EXPORTED = re.compile(rf"export\s(?:.*\s)?{_HOME}")
#: Commands that change databases, and libraries that make fsync do nothing.
_OWN = re.compile(r"gfix|isql|PRELOAD|eatmydata")


def start(host: Host, unit: Unit, given: NextStart) -> NextStart:
    """Return what the script of a unit gives to the server. Raises Unobservable."""
    if given.words != ("start",):
        raise next_start.not_known(unit)
    next_start.expect_script(host, unit, _SCRIPT, ("fbguard",), _OWN)
    commands = [*next_start.commands_of(host, _SYSCONFIG), *next_start.commands_of(host, _SCRIPT)]
    homes = [_LITERAL.fullmatch(line) for line in commands if _ASSIGNED.search(line)]
    is_exported = any(map(_EXPORTED.fullmatch, commands))
    if any(map(_OWN.search, commands)) or None in homes or len(homes) != is_exported:
        raise next_start.not_known(unit)
    moved = next((home["path"] for home in homes if home), None)
    return NextStart((), {_HOME: moved} if moved else given.variables)
