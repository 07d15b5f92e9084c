# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a monitor's configuration and daemons say, in the same form for NUT and apcupsd."""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import NamedTuple

from ..host.observation import Observation
from ..host.seam import Host, Unobservable
from .budget import Available, Term
from .conditions import Condition, met, unknown, unmet
from .device import Ups

#: Where systemd runs programs when nothing else runs any more: systemd-shutdown(8).
SHUTDOWN_HOOKS = ("/usr/lib/systemd/system-shutdown", "/lib/systemd/system-shutdown")
#: Commands that end nothing.
_IDLE = ("true", "false", ":", "echo", "printf", "exit", "logger", "wall", "sleep")
_DELAY = re.compile(r"\+(\d{1,6})", re.ASCII)


class Sight(NamedTuple):
    """All that was seen of one monitor, before it is judged.

    `detection` is from the failure to the monitor's word, `shutdown` from the low battery to the command
    that stops the machine; `cut` is when the monitor has the UPS switch off, if before its battery is
    empty. `conditions` are those of the configuration. `supplies` are the power values that this host
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
    cut: Available | None = None
    evidence: dict[str, Observation] = {}  # noqa: RUF012


def shutdown_command(host: Host, command: Observation, file: str) -> Condition:
    """Tell whether there is a command that may shut this host down. A rehearsal alone shows that it does."""
    name = "shutdown_command"
    why = "the monitor does not shut this host down when the battery is low"
    remedy = f'in {file}: SHUTDOWNCMD "/sbin/shutdown -h now"'
    if command.reason:
        return unknown(name, file, command.reason, remedy)
    words = _words(command.value)
    if not words:
        return unmet(name, file, f"{file}: no SHUTDOWNCMD", why, remedy)
    program = words[0]
    if posixpath.basename(program) in _IDLE:
        return unmet(name, file, f"SHUTDOWNCMD is {command.value!r}", why, remedy)
    if program.startswith("/") and not host.exists(program):
        return unmet(name, file, f"SHUTDOWNCMD is {command.value!r}, and {program} is not there", why, remedy)
    return met(name, file, f"SHUTDOWNCMD is {command.value!r}")


def shutdown_delay(command: str) -> Term:
    """Return how long shutdown(8) waits by itself; what another program does is for a rehearsal to show."""
    name, words = "shutdown_delay", _words(command)
    if not words or posixpath.basename(words[0]) != "shutdown":
        return Term(name, 0, "no wait that can be read from the command")
    times = [word for word in words[1:] if word == "now" or word[0] in "+0123456789"]
    said = times[0] if times else "+1"
    delay = _DELAY.fullmatch(said)
    if said == "now" or delay:
        source = f"shutdown {said}" if times else "shutdown without a time waits a minute"
        return Term(name, float(delay[1]) * 60 if delay else 0, source)
    return Term(name, None, f"shutdown at {said}: not a time from now on")


def hook(host: Host, prefix: str) -> str:
    """Return the program that switches the UPS off at the end of a shutdown, '' where there is none.

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


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
