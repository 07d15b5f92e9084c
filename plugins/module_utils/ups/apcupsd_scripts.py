# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the power layer to apcupsd's event scripts.

apccontrol(8) runs an executable next to apcupsd.conf that is called as the event, then does what it does
by default, unless that script ends with 99. An existing script is stored elsewhere, and ours runs it.
"""

from __future__ import annotations

import shlex

from ..host.our_paths import CHAINED_SCRIPTS, HOOK

#: Events at which the guard has to look. Not those in which apccontrol itself shuts down, or kills the
#: power: nothing of ours stands in the way there.
EVENTS = (
    "powerout",
    "onbattery",
    "offbattery",
    "mainsback",
    "failing",
    "timeout",
    "loadlimit",
    "runlimit",
    "commfailure",
    "commok",
    "battdetach",
    "battattach",
    "changeme",
)
MODE = 0o755
_MARK = "# Managed by durable.dbhost. playbooks/release_db.yml puts back what was there."
#: Seconds after which an event goes on without the guard.
_LIMIT = 5


def script(event: str, command: str = HOOK) -> str:
    """Return our script of an event, which runs the command, then what was there before. The command is one word."""
    program = shlex.quote(command)
    return f"""\
#!/bin/sh
{_MARK}
NOTIFYTYPE={event} timeout {_LIMIT} {program} "$@" || :
if [ -x {CHAINED_SCRIPTS}/{event} ]; then
    exec {CHAINED_SCRIPTS}/{event} "$@"
fi
exit 0
"""


def is_ours(text: str) -> bool:
    """Return whether a script is one of ours."""
    return _MARK in text.split("\n")
