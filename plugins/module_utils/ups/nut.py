# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration and state of NUT: nut.conf, upsmon.conf, and the upsd of each UPS that upsmon monitors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..host.observation import Observation
from ..host.observation import unknown as not_known
from ..host.our_paths import HOOK
from ..host.seam import Host, Unobservable
from ..host.secret_words import without_secret
from ..host.textfile import Malformed
from . import nut_mode, upsd, upsmon_conf
from .budget import NOTIFY, Term
from .conditions import Condition, met, power_values, unknown, unmet
from .device import Ups, of_nut
from .fixes import add_monitor, fix, write_number
from .snapshot import READABLE, SHUTDOWN_HOOKS, Snapshot, hook, shutdown_command, shutdown_delay
from .upsmon_conf import Directive, Monitor

#: Where distributions keep NUT's configuration: Debian, then Red Hat and SUSE.
DIRECTORIES = ("/etc/nut", "/etc/ups")
#: Events after which the guard must look: all but those that say that things are well again.
EVENTS = tuple(event for event in upsmon_conf.EVENTS if event not in ("ONLINE", "COMMOK"))
#: upsmon.conf(5): what counts where a directive is not set, in seconds.
_DEFAULTS = {"POLLFREQ": 5, "POLLFREQALERT": 5, "FINALDELAY": 5, "HOSTSYNC": 15, "DEADTIME": 15}
_SETTINGS = {
    "shutdown_command": "SHUTDOWNCMD",
    "powerdown_flag": "POWERDOWNFLAG",
    "notify_command": "NOTIFYCMD",
    "final_delay": "FINALDELAY",
    "host_sync": "HOSTSYNC",
    "min_supplies": "MINSUPPLIES",
}
_INSTALL_HOOK = fix("install_hook", path=SHUTDOWN_HOOKS[0])
#: upsmon and upsd of one host come in one package.
_OLD = re.compile(r"[01]\.|2\.[0-7]\.")
_HARDEN = fix("harden")


def see(host: Host) -> Snapshot:
    """Return the snapshot of NUT. Never raises: what cannot be read is unknown."""
    directory = next((path for path in DIRECTORIES if host.exists(f"{path}/upsmon.conf")), DIRECTORIES[0])
    path = f"{directory}/upsmon.conf"
    mode, mode_set = _mode(host, f"{directory}/{nut_mode.FILE}")
    try:
        lines = upsmon_conf.parse(host.read(path), path)
        watched = upsmon_conf.monitors(lines, path)
    except (Unobservable, Malformed) as error:
        return _unread(path, str(error), mode, mode_set)
    upses = tuple(_ask(host, monitor) for monitor in watched)
    timing = {name: _seconds(lines, name) for name in _DEFAULTS}
    supplies, source = _supplies(lines, path)
    settings = _settings(lines, path)
    return Snapshot(
        mode=mode,
        upses=upses,
        supplies=supplies,
        timing={name.lower(): timing[name] for name in timing},
        settings=settings,
        conditions=(
            mode_set,
            power_values(upses, supplies, source, path),
            shutdown_command(host, settings["shutdown_command"], path),
            _powerdown_flag(host, settings["powerdown_flag"].value, watched, upses, path),
            _notify(host, lines, settings, path),
        ),
        detection=_detection(timing, upses, path),
        shutdown=(
            *_low_battery_delay(lines, path),
            *_shutdown(timing, upses, settings["shutdown_command"].value, path),
        ),
        path=path,
        evidence={"mode": Observation(mode, f"{directory}/{nut_mode.FILE}")},
    )


def _mode(host: Host, path: str) -> tuple[str, Condition]:
    name, fixes = "mode_set", fix("write_mode", path=path)
    try:
        found = nut_mode.value(host.read(path), path)
    except (Unobservable, Malformed) as error:
        return "", unknown(name, path, str(error), fixes)
    mode = (found.value if found else None) or ""
    if mode in nut_mode.MODES:
        return mode, met(name, path, f"MODE is {mode}")
    return mode, unmet(name, path, f"MODE is {mode or 'not set'}", fixes)


def _ask(host: Host, monitor: Monitor) -> Ups:
    try:
        source = upsd.system(monitor.system)
    except Unobservable as error:
        answer, name = upsd.Answer(None, None, "", str(error)), monitor.system
    else:
        answer, name = upsd.ask(host, source), source.ups
    system = monitor.system if "@" in monitor.system else f"{monitor.system}@localhost"
    return of_nut(name, system, monitor.user, monitor.power_value, monitor.type, answer)


def _seconds(lines: Sequence[Directive], name: str) -> float | None:
    found = upsmon_conf.value(lines, name)
    return _DEFAULTS[name] if found is None else upsmon_conf.number(found.value or "")


def _supplies(lines: Sequence[Directive], path: str) -> tuple[int | None, str]:
    found = upsmon_conf.value(lines, "MINSUPPLIES", path)
    if found is None:
        return 1, "MINSUPPLIES, by default,"
    return upsmon_conf.number(found.value or ""), f"MINSUPPLIES ({path} line {found.line})"


def _settings(lines: Sequence[Directive], path: str) -> dict[str, Observation]:
    found = {}
    for name, directive in _SETTINGS.items():
        observed = upsmon_conf.value(lines, directive, path)
        place = f"{path} line {observed.line}" if observed else f"{path}: {directive} is not set"
        found[name] = Observation((observed.value if observed else None) or "", place)
    missing = _not_notified(lines)
    found["notify_flags"] = Observation(f"without EXEC: {' '.join(missing)}" if missing else "exec", path)
    return found


def _not_notified(lines: Sequence[Directive]) -> list[str]:
    """Return the events after which upsmon does not run its notify command."""
    flags = {event: upsmon_conf.flags(lines, event) for event in EVENTS}
    return [event for event, chosen in flags.items() if "EXEC" not in chosen or "IGNORE" in chosen]


def _notify(host: Host, lines: Sequence[Directive], settings: dict[str, Observation], path: str) -> Condition:
    name, command = "notify_reaches_guard", settings["notify_command"].value
    if command != HOOK:
        return unmet(name, path, f"NOTIFYCMD is {without_secret(command) or 'not set'}", _HARDEN)
    missing = _not_notified(lines)
    if missing:
        return unmet(name, path, f"no EXEC for {' '.join(missing)}", _HARDEN)
    try:
        runs = host.mode(HOOK) & 0o111
    except Unobservable as error:
        return unmet(name, HOOK, str(error), _HARDEN)
    if not runs:
        return unmet(name, HOOK, f"{HOOK} may not be executed", _HARDEN)
    return met(name, path, f"NOTIFYCMD is {command}, with EXEC for {' '.join(EVENTS)}")


def _powerdown_flag(
    host: Host, flag: str, watched: Sequence[Monitor], upses: Sequence[Ups], path: str
) -> Condition:
    name = "powerdown_flag"
    counted = [(one, ups) for one, ups in zip(watched, upses) if one.power_value]
    if counted and not any(one.type == "primary" for one, _ups in counted):
        return met(name, path, "this host is a secondary: its primary switches the UPS off")
    if any(one.word.lower() == "primary" and _OLD.match(ups.version) for one, ups in counted):
        observed = "MONITOR says primary, which NUT before 2.8 takes for a secondary"
        return unmet(name, path, observed, fix("write_master", path=path))
    if not flag.startswith("/"):
        observed = f"POWERDOWNFLAG is {flag or 'not set'}"
        return unmet(name, path, observed, fix("set_powerdown_flag"))
    try:
        program = hook(host, "nut")
    except Unobservable as error:
        return unknown(name, "host", str(error), READABLE)
    if not program:
        observed = (
            f"POWERDOWNFLAG is {flag}; nothing of NUT's that may be executed is in systemd's system-shutdown"
        )
        return unmet(name, "host", observed, _INSTALL_HOOK)
    return met(name, path, f"POWERDOWNFLAG is {flag}, obeyed by {program}")


def _detection(timing: dict[str, float | None], upses: Sequence[Ups], path: str) -> tuple[Term, ...]:
    polls = [ups.poll for ups in upses if ups.power_value]
    return (
        Term("driver", max(polls, default=None), "the driver's pollinterval", add_monitor(path)),
        Term("poll", timing["POLLFREQ"], f"POLLFREQ ({path} or default)", write_number("POLLFREQ", path)),
        Term(
            "silence",
            timing["DEADTIME"],
            f"DEADTIME ({path} or default), for a UPS that falls silent",
            write_number("DEADTIME", path),
        ),
        Term("notify", NOTIFY, "until the monitor's command runs"),
    )


def _low_battery_delay(lines: Sequence[Directive], path: str) -> tuple[Term, ...]:
    """Return how long upsmon waits until a low battery counts; no term without a wait. Old releases ignore the directive."""
    found = upsmon_conf.value(lines, "OBLBDURATION", path)
    text = (found.value if found else None) or "0"
    seconds = 0 if re.fullmatch(r"-[0-9]{1,9}", text) else upsmon_conf.number(text)
    if seconds == 0:
        return ()
    return (Term("low_battery", seconds, f"OBLBDURATION ({path})", write_number("OBLBDURATION", path)),)


def _shutdown(
    timing: dict[str, float | None], upses: Sequence[Ups], command: str, path: str
) -> tuple[Term, ...]:
    polls = {name: timing[name] for name in ("POLLFREQ", "POLLFREQALERT")}
    wrong = [name for name, seconds in polls.items() if seconds is None]
    poll = None if wrong else max(each for each in polls.values() if each is not None)
    drivers = [ups.poll for ups in upses if ups.power_value]
    final_delay = write_number("FINALDELAY", path)
    return (
        Term("driver", max(drivers, default=None), "pollinterval", add_monitor(path)),
        Term(
            "poll",
            poll,
            f"POLLFREQ or POLLFREQALERT ({path} or default), the longer",
            write_number(" and ".join(wrong), path),
        ),
        _host_sync(timing["HOSTSYNC"], upses, path),
        Term("final_delay", timing["FINALDELAY"], f"FINALDELAY ({path} or default)", final_delay),
        shutdown_delay(command),
    )


def _host_sync(seconds: float | None, upses: Sequence[Ups], path: str) -> Term:
    """Return how long hosts wait for each other: a primary for its secondaries, they for its command."""
    counted = [ups for ups in upses if ups.power_value]
    alone = all(ups.type == "primary" and ups.logins == 1 for ups in counted)
    if counted and alone:
        return Term("host_sync", 0, "upsd counts no other host at these UPSes")
    known = all(ups.logins is not None for ups in counted)
    source = "hosts wait for each other" if known else "upsd does not tell whether other hosts are there"
    source_of_sync = f"HOSTSYNC ({path} or default): {source}"
    return Term("host_sync", seconds, source_of_sync, write_number("HOSTSYNC", path))


def _unread(path: str, reason: str, mode: str, mode_set: Condition) -> Snapshot:
    names = ("power_values", "shutdown_command", "powerdown_flag", "notify_reaches_guard")
    fixes = fix("correct_file", path=path)
    nothing = Term("monitor", None, reason, fixes)
    return Snapshot(
        mode=mode,
        upses=(),
        supplies=None,
        timing={name.lower(): None for name in _DEFAULTS},
        settings={name: not_known(path, reason) for name in (*_SETTINGS, "notify_flags")},
        conditions=(mode_set, *(unknown(name, path, reason, fixes) for name in names)),
        detection=(nothing,),
        shutdown=(nothing,),
        path=path,
    )
