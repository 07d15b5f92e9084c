# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that SUSE's `mysql-systemd-helper start [INSTANCE]` passes: the option file of the instance, and no other.

Rebuilt from public documents, not run. It starts the server with `--defaults-file=/etc/my[INSTANCE].cnf --user= --socket=`.
"""

from __future__ import annotations

import re

from ...host import units
from ...host.seam import Host
from ...host.units import Unit
from .. import next_start
from ..next_start import NextStart

#: Up to SLE 15 SP3, and later.
_HELPERS = ("/usr/lib/mysql/mysql-systemd-helper", "/usr/libexec/mysql/mysql-systemd-helper")
_INSTANCE = re.compile(r"[\w.@-]*", re.ASCII)
#: Text with which a helper sets itself what the option files are assessed for.
_OWN = re.compile(r"flush[-_]log|sync[-_]binlog|doublewrite|no[-_]sync|flush[-_]method")


def start(host: Host, unit: Unit, given: NextStart) -> NextStart:
    """Return what a unit's helper gives to the server. Raises Unobservable."""
    action, *names = given.words or ("",)
    named = units.variables(host, unit, {"INSTANCE"}).get("INSTANCE", "")
    instance = names[0] if names else named
    if (
        unit.program not in _HELPERS
        or action != "start"
        or len(names) > 1
        or not _INSTANCE.fullmatch(instance)
    ):
        raise next_start.not_known(unit)
    next_start.expect_script(host, unit, unit.program, ("--defaults-file", "mysqld"), _OWN)
    return given._replace(words=(f"--defaults-file=/etc/my{instance}.cnf",))
