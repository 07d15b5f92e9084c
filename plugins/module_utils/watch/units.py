# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd units of the watch."""

from __future__ import annotations

import re

from ..host.our_paths import WATCH_INPUTS, WATCH_PROGRAM, WATCH_SERVICE
from ..host.seam import ChangeFailed

#: As the modules run: no settings of the environment, no packages that were added to the interpreter.
OPTIONS = "-I -S"
#: Of systemd.time(7); systemd itself says whether it understands them.
_CALENDAR = re.compile(r"[A-Za-z0-9*:,./~ -]{1,200}", re.ASCII)

_SERVICE = """\
# Managed by durable.dbhost. playbooks/release_db.yml takes it away.
[Unit]
Description=Look whether this host keeps acknowledged commits over a power cut
ConditionPathExists={inputs}

[Service]
Type=oneshot
ExecStart={python} {options} {program}
TimeoutStartSec=15min
Nice=10
IOSchedulingClass=idle
MemoryMax=512M
RestrictRealtime=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
"""

_TIMER = """\
# Managed by durable.dbhost. playbooks/release_db.yml takes it away.
[Unit]
Description=Look regularly whether this host keeps acknowledged commits over a power cut

[Timer]
Unit={service}
OnCalendar={calendar}
OnBootSec=5min
RandomizedDelaySec=2min
Persistent=true

[Install]
WantedBy=timers.target
"""


def service(python: str) -> str:
    """Return the service's text; `python` is the interpreter that runs the program."""
    return _SERVICE.format(inputs=WATCH_INPUTS, python=python, options=OPTIONS, program=WATCH_PROGRAM)


def timer(calendar: str) -> str:
    """Return the timer's text. Raises ChangeFailed for what cannot be a calendar event."""
    if not _CALENDAR.fullmatch(calendar):
        raise ChangeFailed(
            f"calendar: observed {calendar!r}; expected one of systemd.time(7), as hourly or *:0/15"
        )
    return _TIMER.format(service=WATCH_SERVICE, calendar=calendar)
