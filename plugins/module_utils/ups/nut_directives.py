# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of the power layer to NUT's files: each directive that it may set, as a text that can be restored.

A directive has a key: its name in upsmon.conf, with an event or a system behind it where it may stand
many times (`NOTIFYFLAG ONBATT`, `MONITOR rack@localhost`), or MODE of nut.conf.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypedDict

from ..host.seam import ChangeFailed
from ..host.secret_words import without_secret
from ..host.textfile import MARK, Malformed
from . import nut_mode, upsmon_conf

ABSENT = "absent"
#: What a user calls a setting, and the directive behind it.
VALUES = {
    "notify_command": "NOTIFYCMD",
    "shutdown_command": "SHUTDOWNCMD",
    "powerdown_flag": "POWERDOWNFLAG",
    "final_delay": "FINALDELAY",
    "host_sync": "HOSTSYNC",
}
_COMMANDS = ("NOTIFYCMD", "SHUTDOWNCMD")
MODE = "MODE"
_FLAG = "NOTIFYFLAG"
_MONITOR = "MONITOR"
_PASSWORD = 3
#: What upsmon reads `primary` as depends on its release; all of them know these.
_TYPES = {"primary": "master", "secondary": "slave"}


#: Settings of the power layer by name, as the module takes them.
Target = dict[str, Any]


class MonitorLine(TypedDict):
    """The setting `monitor`: the values of a MONITOR line."""

    system: str
    power_value: int
    user: str
    type: str


def wanted_of(text: str, path: str, settings: Target, password: str) -> dict[str, str]:
    """Return {key of upsmon.conf: word} of what is wanted. Raises ChangeFailed."""
    wanted = {VALUES[name]: str(settings[name]) for name in VALUES if name in settings}
    if settings.get("notify_flags") is not None:
        wanted.update(_flags(text, path))
    if "monitor" in settings:
        wanted.update(_monitor(text, path, settings["monitor"], password))
    return wanted


def word(text: str, path: str, key: str) -> str:
    """Return what a file says of a key, or ABSENT. Raises ChangeFailed."""
    name, _blank, which = key.partition(" ")
    try:
        if name == MODE:
            found = nut_mode.value(text, path)
            return (found.value if found else None) or ABSENT
        lines = upsmon_conf.parse(text, path)
        if name == _FLAG:
            return upsmon_conf.flag_word(lines, which) or ABSENT
        if name == _MONITOR:
            words = upsmon_conf.monitor_words(text, which)
            return json.dumps(words) if words else ABSENT
        setting = upsmon_conf.value(lines, name, path)
        return ABSENT if setting is None or setting.value is None else setting.value
    except Malformed as error:
        raise ChangeFailed(str(error)) from None


def put(text: str, path: str, key: str, wanted: str, note: str) -> str:
    """Return the text with a key at a word, ABSENT removes it. Raises ChangeFailed."""
    name, _blank, which = key.partition(" ")
    gone = wanted == ABSENT
    try:
        if name == MODE:
            return nut_mode.set_mode(text, nut_mode.NONE if gone else wanted, note, path)
        if name == _FLAG:
            if gone:
                return upsmon_conf.unset_flags(text, which)
            return upsmon_conf.set_flags(text, which, wanted.split("+"), note)
        if name == _MONITOR:
            if gone:
                return upsmon_conf.remove_monitor(text, which)
            return upsmon_conf.set_monitor(text, json.loads(wanted), note)
        if gone:
            return upsmon_conf.unset(text, name)
        return upsmon_conf.set_value(text, name, wanted, note)
    except Malformed as error:
        raise ChangeFailed(str(error)) from None
    except ValueError as error:
        raise ChangeFailed(f"{path}: {key}: {error}") from None


def shown(key: str, value: str) -> str:
    """Return a word as reports may show it: a password is not, and no command that can hold one."""
    if key in _COMMANDS:
        return without_secret(value)
    if not key.startswith(f"{_MONITOR} ") or value == ABSENT:
        return value
    words = json.loads(value)
    return " ".join([*words[:_PASSWORD], "********", *words[_PASSWORD + 1 :]])


def passed_over(text: str, path: str) -> list[str]:
    """Return what upsmon passes over in a file, as warnings. Raises ChangeFailed."""
    try:
        complaints = upsmon_conf.complaints(upsmon_conf.parse(text, path), path)
    except Malformed as error:
        raise ChangeFailed(str(error)) from None
    return [f"{complaint}; upsmon passes it over" for complaint in complaints]


def expect_usable(text: str, path: str) -> None:
    """Raise ChangeFailed for a text with which upsmon would end.

    That is a MONITOR that it cannot use, or less power than MINSUPPLIES.
    """
    try:
        lines = upsmon_conf.parse(text, path)
        found = upsmon_conf.monitors(lines, path)
    except Malformed as error:
        raise ChangeFailed(str(error)) from None
    fatal = upsmon_conf.complaints([each for each in lines if each.name == "MONITOR"], path)
    if fatal:
        raise ChangeFailed(f"{fatal[0]}; fix that line, then run again")
    least = upsmon_conf.value(lines, "MINSUPPLIES", path)
    needed = upsmon_conf.number(least.value or "") if least else 1
    power = sum(monitor.power_value for monitor in found)
    if needed is None or power < needed:
        raise ChangeFailed(
            f"{path}: observed power values of {power} in all and MINSUPPLIES {least.value if least else 1}, expected no"
            " less than MINSUPPLIES: upsmon would end; add a MONITOR, or correct MINSUPPLIES"
        )


def unmarked(text: str, note: str) -> str:
    """Return a text without our comments."""
    mark = f"{upsmon_conf.SIGN} {MARK}: {note}"
    return "".join(line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") != mark)


def mode_for(monitor: MonitorLine) -> str:
    """Return the mode that a host with this MONITOR needs: its own upsd, or another host's."""
    _name, at, where = monitor["system"].partition("@")
    is_here = not at or re.fullmatch(r"(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?", where)
    return "standalone" if is_here else "netclient"


def _flags(text: str, path: str) -> dict[str, str]:
    """Return the flags with which every event runs the notify command; else they stay."""
    try:
        lines = upsmon_conf.parse(text, path)
    except Malformed as error:
        raise ChangeFailed(str(error)) from None
    wanted = {}
    for event in dict.fromkeys([*upsmon_conf.EVENTS, *upsmon_conf.flagged(lines)]):
        now = upsmon_conf.flags(lines, event)
        # At an event that is ignored upsmon does nothing, whatever else its flags say.
        after = [flag for flag in now if flag not in ("IGNORE", "EXEC")]
        if "EXEC" not in now or "IGNORE" in now:
            wanted[f"{_FLAG} {event}"] = "+".join([*after, "EXEC"])
    return wanted


def _monitor(text: str, path: str, row: MonitorLine, password: str) -> dict[str, str]:
    """Return the MONITOR that is wanted; without a password, with that of the existing line."""
    system = row["system"]
    key = f"{_MONITOR} {system}"
    now = word(text, path, key)
    present = json.loads(now) if now != ABSENT else None
    secret = password or (present[_PASSWORD] if present else "")
    if not secret:
        raise ChangeFailed(
            f"{path}: MONITOR {system}: observed no password, expected that of the user {row['user']} in upsd.users of the"
            " host that the UPS is connected to; give it with the monitor"
        )
    kind = _TYPES[row["type"]]
    if present and _means(present[-1]) == row["type"]:
        kind = present[-1]
    return {key: json.dumps([system, str(row["power_value"]), row["user"], secret, kind])}


def _means(value: str) -> str:
    return "primary" if value.lower() in ("primary", "master") else "secondary"


def has_password(text: str, path: str) -> bool:
    """Return whether a file holds one. Raises ChangeFailed."""
    try:
        return bool({"MONITOR", "CERTIDENT"} & {each.name for each in upsmon_conf.parse(text, path)})
    except Malformed as error:
        raise ChangeFailed(str(error)) from None


def runs_as(text: str, path: str) -> str:
    """Return the user as whom upsmon reads its file again."""
    setting = upsmon_conf.value(upsmon_conf.parse(text, path), "RUN_AS_USER", path)
    return (setting.value if setting else None) or "nut"
