# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration and state of a monitor, in the same form for NUT and apcupsd."""

from __future__ import annotations

from typing import NamedTuple

from ..host.observation import UNKNOWN, Observation
from ..host.seam import Host, Unobservable
from ..host.secret_words import without_secret
from . import shutdown_commands
from .budget import Available, Term
from .conditions import MET, UNMET, Condition, met, unknown, unmet
from .device import Ups
from .fixes import fix

#: Where systemd runs programs when nothing else runs any more: systemd-shutdown(8).
SHUTDOWN_HOOKS = ("/usr/lib/systemd/system-shutdown", "/lib/systemd/system-shutdown")

#: The fix if it is unknown whether there is one.
READABLE = fix("make_hooks_readable", path=SHUTDOWN_HOOKS[0])


class Snapshot(NamedTuple):
    """All that was read of one monitor, before it is assessed.

    `detection` is from the failure to the monitor's word, `shutdown` from the low battery to the command
    that stops the machine; `path` is its configuration; `cut` is when the monitor has the UPS switch off, if
    before its battery is empty. `conditions` are those of the configuration. `supplies` are the power values that this host
    needs, None where unknown. `timing` is {name: seconds, None where unknown}.
    """

    mode: str
    upses: tuple[Ups, ...]
    supplies: int | None
    timing: dict[str, float | None]
    settings: dict[str, Observation]
    conditions: tuple[Condition, ...]
    detection: tuple[Term, ...]
    shutdown: tuple[Term, ...]
    path: str
    cut: Available | None = None
    evidence: dict[str, Observation] = {}  # noqa: RUF012


def shutdown_command(host: Host, command: Observation, file: str) -> Condition:
    """Return whether there is a command that shuts this host down at once. A rehearsal alone shows that it does."""
    name = "shutdown_command"
    fixes = fix("set_shutdown_command")
    if command.reason:
        return unknown(name, file, command.reason, fixes)
    if not command.value.strip():
        return unmet(name, file, f"{file}: no SHUTDOWNCMD", fixes)
    observed = f"SHUTDOWNCMD is {without_secret(command.value)!r}"
    program = command.value.split()[0]
    if program.startswith("/") and not host.exists(program):
        return unmet(name, file, f"{observed}, and {program} is not there", fixes)
    found = shutdown_commands.of_line(command.value)
    if found.state == MET:
        return met(name, file, observed)
    if found.state == UNMET:
        return unmet(name, file, f"{observed}: {found.why}", fixes)
    return unknown(name, file, f"{observed}: {found.why}", fixes)


def shutdown_delay(command: str) -> Term:
    """Return how long the command waits before it shuts down. One that is not understood is shutdown_command's to report."""
    found = shutdown_commands.of_line(command)
    if found.state == UNKNOWN:
        return Term("shutdown_delay", 0, "no wait that can be read from the command")
    return Term("shutdown_delay", found.seconds, found.why or "the command shuts down at once")


def hook(host: Host, prefix: str) -> str:
    """Return the program that switches the UPS off at the end of a shutdown, '' if there is none.

    Raises Unobservable.
    """
    for directory in SHUTDOWN_HOOKS:
        try:
            names = host.names(directory)
        except Unobservable:
            continue
        for name in names:
            path = f"{directory}/{name}"
            if name.startswith(prefix) and host.mode(path) & 0o111:
                return path
    return ""
