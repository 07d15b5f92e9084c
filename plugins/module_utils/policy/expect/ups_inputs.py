# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`durable_ups` of the inventory: times, margin, and the settings of the monitor.

The password of the monitor's line is not passed here, only whether it is set. No message shows a value that may be a misplaced
password.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ...host.secret_words import without_secret
from ...profiles import BadInput, Refusal, gathered, near
from ...ups import shutdown_commands
from ...ups.conditions import UNMET

#: Seconds by default.
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
#: The password is not passed here: its own variable is read when the line is written.
_FIELDS = f"exactly password and {', '.join(_MONITOR)}"
KEYS = (*_SECONDS, *_TEXTS, "monitor")
_TYPES = ("primary", "secondary")
#: Messages for a value that may be a password.
_KINDS = ((str, "text"), (bool, "a boolean"), ((int, float), "a number"), ((list, tuple), "a list"))
_LINE = re.compile(r"/[\x20-\x7e]*")
_SYSTEM = re.compile(r"[\x21-\x7e]+@[\x21-\x7e]+")
_USER = re.compile(r"[\x21-\x7e]+")


class Requested(NamedTuple):
    """The requested settings of `durable_ups`.

    `quiet`: seconds of a healthy UPS before barriers are disabled. `settings`: {setting of the
    monitor: value}, only named ones; the value of `monitor` has the fields of its line without
    the password. The power facts add the margin to each budget.
    """

    quiet: int
    settings: dict[str, Any]


def read(value: Any) -> Requested:
    """Return the requests of `durable_ups`. Raises BadInput."""
    given = {} if value is None else value
    if not isinstance(given, dict):
        raise BadInput(f"durable_ups: observed {_kind(given)}; expected a mapping of {', '.join(KEYS)}")
    gathered(functools.partial(_check, name, found) for name, found in given.items())
    settings = {name: given[name] for name in KEYS if name in given and name not in ("quiet", "margin")}
    if "monitor" in settings:
        settings["monitor"] = {name: settings["monitor"][name] for name in _MONITOR}
    return Requested(given.get("quiet", _QUIET), settings)


def _check(key: Any, value: Any) -> None:
    """Refuse one entry of the mapping. Raises BadInput."""
    name = str(key)
    if name in _SECONDS:
        least, most = _SECONDS[name]
        if not _is_within(value, least, most):
            raise BadInput(
                f"durable_ups: {name}: observed {value!r}; expected seconds as a number, {least} to {most}"
            )
    elif name in _TEXTS:
        if not _is_text(_LINE, value):
            observed = without_secret(repr(value))
            raise BadInput(f"durable_ups: {name}: observed {observed}; expected one line that begins with /")
        if name == "shutdown_command":
            _check_command(value)
    elif name == "monitor":
        _check_monitor(value)
    else:
        problem = f"durable_ups: observed {name}; expected only {', '.join(KEYS)}"
        raise BadInput(Refusal(problem, "", near(name, KEYS)))


def _check_command(command: str) -> None:
    """Raise BadInput for a command that is known not to shut down at once. The facts report an unknown one."""
    found = shutdown_commands.of_line(command)
    if found and found.state == UNMET:
        raise BadInput(
            Refusal(
                f"durable_ups: shutdown_command: {without_secret(repr(command))} does not shut this host down at once:"
                f" {found.why}",
                "use /sbin/shutdown -h now",
            )
        )


def _check_monitor(line: Any) -> None:
    """Refuse a line of the monitor, with all its errors. Raises BadInput."""
    if not isinstance(line, dict):
        raise BadInput(f"durable_ups: monitor: observed {_kind(line)}; expected {_FIELDS}")
    wrong = []
    # Without a password alone the one in the monitor's configuration stays.
    if any(name not in line for name in _MONITOR):
        missing = ", ".join(name for name in (*_MONITOR, "password") if name not in line)
        names = ", ".join(sorted(map(str, line))) or "nothing"
        wrong.append(Refusal(f"durable_ups: monitor: observed {names}; expected {_FIELDS}", f"add {missing}"))
    for name in sorted(str(key) for key in line if key not in (*_MONITOR, "password")):
        question = near(name, (*_MONITOR, "password"))
        wrong.append(Refusal(f"durable_ups: monitor: observed {name}; expected {_FIELDS}", "", question))
    tests: dict[str, Callable[[Any], bool]] = {
        "system": functools.partial(_is_text, _SYSTEM),
        "power_value": functools.partial(_is_within, least=0, most=1_000),
        "user": functools.partial(_is_text, _USER),
        "type": lambda value: value in _TYPES,
    }
    for name, fits in tests.items():
        if name in line and not fits(line[name]):
            question = near(line[name], _TYPES) if name == "type" else ""
            problem = f"durable_ups: monitor: {name}: observed {line[name]!r}; expected {_MONITOR[name]}"
            wrong.append(Refusal(problem, "", question))
    if wrong:
        raise BadInput(*wrong)


def _is_within(value: Any, least: int, most: int) -> bool:
    # True is 1 to Python.
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_text(form: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _kind(value: Any) -> str:
    for kind, text in _KINDS:
        if isinstance(value, kind):
            return text
    return "nothing" if value is None else "a value that is no mapping"
