# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rc.local, SysV scripts and cron's @reboot: scripts that run at each boot."""

from __future__ import annotations

import re

from ..host.seam import Host, Unobservable
from . import programs, unit_files
from .acts import Act
from .files import existing, text_of

RC_LOCAL = ("/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local", "/etc/init.d/after.local")
#: Tables with a column of users, and the directories of the tables of users.
TABLES, USERS = (
    ("/etc/crontab", "/etc/cron.d"),
    ("/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/spool/cron"),
)


def collect(host: Host) -> list[Act]:
    """Return what rc.local, if it can be executed, and cron's tables do. Raises Unobservable."""
    found: list[Act] = []
    for path in RC_LOCAL:
        if host.exists(path) and host.mode(path) & 0o111:
            found += programs.of_shell(host, text_of(host, path), path, "rc.local")
    for path in (TABLES[0], *existing(host, TABLES[1])):
        found += _of_table(host, text_of(host, path), path, True)
    for path in (path for directory in USERS for path in existing(host, directory)):
        try:
            found += _of_table(host, text_of(host, path), path, False)
        except Unobservable:
            continue  # A directory: of each of the three only one has the tables.
    return found + _of_sysv(host)


def parse_table(text: str, has_users: bool) -> list[tuple[int, str]]:
    """Return row and command of each line of a table that runs as the host starts."""
    found = []
    for row, line in enumerate(text.split("\n"), 1):
        command = re.fullmatch(r"\s*@reboot\s+(.*)", line)
        if command:
            found.append((row, command[1].split(None, 1)[-1] if has_users else command[1]))
    return found


def _of_table(host: Host, text: str, path: str, has_users: bool) -> list[Act]:
    return [
        act
        for row, command in parse_table(text, has_users)
        for act in programs.of_shell(host, command, f"{path} line {row}", "cron", 0)
    ]


def _of_sysv(host: Host) -> list[Act]:
    """Return what SysV scripts do that a boot starts: those without a unit of their name."""
    names = {
        found["name"]: f"{directory}/{entry}"
        for directory in (f"/etc/rc{level}.d" for level in "S2345")
        for entry in (host.names(directory) if host.exists(directory) else ())
        for found in [re.fullmatch(r"S\d\d(?P<name>.+)", entry)]
        if found
    }
    found: list[Act] = []
    for name, link in sorted(names.items()):
        if not unit_files.find(host, f"{name}.service"):
            path = host.resolve(link)
            # Most are of packages, and so is what they run.
            found += programs.of_shell(host, text_of(host, path), path, "SysV script", packaged=False)
    return found
