# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rc.local and cron's @reboot: scripts that run at each boot."""

from __future__ import annotations

import re

from ..host.seam import Host, Unobservable
from . import commands
from .acts import Act
from .files import existing, script, text_of

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
            found += followed(host, text_of(host, path), path, "rc.local")
    for path in (TABLES[0], *existing(host, TABLES[1])):
        found += _of_table(host, text_of(host, path), path, True)
    for path in (path for directory in USERS for path in existing(host, directory)):
        try:
            found += _of_table(host, text_of(host, path), path, False)
        except Unobservable:
            continue  # A directory: of each of the three only one has the tables.
    return found


def followed(host: Host, text: str, path: str, by: str) -> list[Act]:
    """Return what a script does, with the scripts of administrators that it runs."""
    found = commands.of_script(text, path, by)
    for row, line in enumerate(text.split("\n"), 1):
        word = line.strip().split(" ")[0] if line.strip() else ""
        inner = script(host, word) if word.startswith("/") else ""
        if inner:
            found += [
                act._replace(source=f"{act.source}, run by {path} line {row}", is_certain=False)
                for act in commands.of_script(inner, word, by)
            ]
    return found


def parse_table(text: str, has_users: bool) -> list[tuple[int, str]]:
    """Return row and command of each line of a table that runs as the host starts."""
    found = []
    for row, line in enumerate(text.split("\n"), 1):
        command = re.fullmatch(r"\s*@reboot\s+(.*)", line)
        if command:
            found.append((row, command[1].split(None, 1)[-1] if has_users else command[1]))
    return found


def _of_table(host: Host, text: str, path: str, has_users: bool) -> list[Act]:
    found: list[Act] = []
    for row, command in parse_table(text, has_users):
        source = f"{path} line {row}"
        found += [act._replace(source=source) for act in commands.of_script(command, path, "cron")]
        inner = script(host, commands.script_of(command.split()))
        found += [
            act._replace(source=f"{act.source}, run by {source}", is_certain=False)
            for act in commands.of_script(inner, commands.script_of(command.split()), "cron")
        ]
    return found
