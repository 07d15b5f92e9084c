# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`durable_ups` of the inventory: how long, how much to spare, and what the monitor is to be set to.

The password of the monitor's line never comes here. No message shows a value that might be one: people
put things in the wrong place.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..profiles import BadInput
from ..ups import shutdown_commands
from ..ups.conditions import UNMET

#: Seconds, where nobody asks for others.
_QUIET = 300
#: Number -> its bounds, in seconds.
_SECONDS = {
    "quiet": (10, 86_400),
    "margin": (0, 86_400),
    "final_delay": (0, 3_600),
    "host_sync": (0, 3_600),
}
_TEXTS = ("shutdown_command", "powerdown_flag")
_MONITOR = {
    "system": "ups@host",
    "power_value": "a number of power supplies",
    "user": "text",
    "type": "primary or secondary",
}
KEYS = (*_SECONDS, *_TEXTS, "monitor")
_TYPES = ("primary", "secondary")
_LINE = re.compile(r"/[\x20-\x7e]*")
_SYSTEM = re.compile(r"[\x21-\x7e]+@[\x21-\x7e]+")
_USER = re.compile(r"[\x21-\x7e]+")


class Asked(NamedTuple):
    """What a host's owner asks for.

    `quiet`: seconds for which all must have been well before barriers go off. `settings`: {setting of the
    monitor: value}, only those that were named; the value of `monitor` is its line's words by name, without
    the password. The margin is the power facts' to add to each budget.
    """

    quiet: int
    settings: dict[str, Any]


def read(value: Any) -> Asked:
    """Return what `durable_ups` asks for. Raises BadInput."""
    given = {} if value is None else value
    if not isinstance(given, dict):
        raise BadInput(f"durable_ups: seen {_kind(given)}; wanted a mapping of {', '.join(KEYS)}")
    extra = sorted(map(str, set(given) - set(KEYS)))
    if extra:
        raise BadInput(f"durable_ups: seen {', '.join(extra)}; wanted only {', '.join(KEYS)}")
    for name, (least, most) in _SECONDS.items():
        if name in given and not _is_within(given[name], least, most):
            raise BadInput(
                f"durable_ups: {name}: seen {given[name]!r}; wanted seconds as a number, {least} to {most}"
            )
    for name in _TEXTS:
        if name in given and not _is_text(_LINE, given[name]):
            raise BadInput(f"durable_ups: {name}: seen {given[name]!r}; wanted one line that begins with /")
    _check_command(given.get("shutdown_command"))
    settings = {name: given[name] for name in KEYS if name in given and name not in ("quiet", "margin")}
    if "monitor" in given:
        _check_monitor(given["monitor"])
    return Asked(given.get("quiet", _QUIET), settings)


def _check_command(command: Any) -> None:
    """Raise BadInput for a command that is known not to shut down at once. The facts report an unknown one."""
    found = shutdown_commands.of_line(command) if command else None
    if found and found.state == UNMET:
        raise BadInput(
            f"durable_ups: shutdown_command: {command!r} does not shut this host down at once: {found.why}."
            " Fix: use /sbin/shutdown -h now"
        )


def _check_monitor(line: Any) -> None:
    if not isinstance(line, dict) or set(line) != set(_MONITOR):
        seen = ", ".join(sorted(map(str, line))) if isinstance(line, dict) else _kind(line)
        raise BadInput(
            f"durable_ups: monitor: seen {seen}; wanted exactly password and {', '.join(_MONITOR)}"
            " (the password is left out of what is seen here)"
        )
    fits = {
        "system": _is_text(_SYSTEM, line["system"]),
        "power_value": _is_within(line["power_value"], 0, 1_000),
        "user": _is_text(_USER, line["user"]),
        "type": line["type"] in _TYPES,
    }
    for name, does in fits.items():
        if not does:
            raise BadInput(f"durable_ups: monitor: {name}: seen {line[name]!r}; wanted {_MONITOR[name]}")


def _is_within(value: Any, least: int, most: int) -> bool:
    # True is 1 to Python.
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_text(form: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
