# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration and state of apcupsd: apcupsd.conf(5), its scripts, and its network information server."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from ..host.observation import Observation
from ..host.observation import unknown as not_known
from ..host.our_paths import HOOK
from ..host.seam import Host, Unobservable
from ..host.textfile import Malformed, split
from . import nis, shutdown_commands
from .budget import NOTIFY, Available, Term
from .conditions import MET, UNMET, Condition, met, power_values, unknown, unmet
from .device import Low, Ups, minutes, of_apcupsd
from .fixes import fix, write_number
from .snapshot import READABLE, SHUTDOWN_HOOKS, Snapshot, hook

CONF = "/etc/apcupsd/apcupsd.conf"
#: Debian starts nothing before this says so.
_DEFAULT_FILE = "/etc/default/apcupsd"
#: Events after which the guard must look: apccontrol(8) runs a script of that name first. `powerout` comes at
#: once, `onbattery` after ONBATTERYDELAY.
EVENTS = (
    "powerout",
    "onbattery",
    "failing",
    "timeout",
    "loadlimit",
    "runlimit",
    "commfailure",
    "battdetach",
    "changeme",
)
_DEFAULTS = {
    "SCRIPTDIR": "/etc/apcupsd",
    "PWRFAILDIR": "/etc/apcupsd",
    "POLLTIME": "60",
    "ONBATTERYDELAY": "6",
    "BATTERYLEVEL": "5",
    "MINUTES": "3",
    "TIMEOUT": "0",
    "KILLDELAY": "0",
    "NISPORT": str(nis.PORT),
}
_TIMES = ("POLLTIME", "ONBATTERYDELAY", "TIMEOUT", "KILLDELAY")
_SECONDARY = "net"
_SETTING = re.compile(r"([A-Za-z]+)[ \t]*(.*)", re.S)
_CONFIGURED = re.compile(r"^[ \t]*ISCONFIGURED=[\"']?(\w*)", re.M)
#: 99, or an end that is not written there.
_ENDS_THERE = re.compile(r"\b99\b|^[^#\n]*\b(?:exit|return)[ \t]+[\"']?[$`]|^[ \t]*exec\b", re.M)
_BRANCH = re.compile(r"^[ \t]*doshutdown\)", re.M)
_ASSIGNMENT = re.compile(r"^[ \t]*([A-Z]+)=([\"']?)([\w./-]+)\2[ \t]*$", re.M)
_VARIABLE = re.compile(r"\$\{?([A-Z]+|[0-9])\}?")
_ANYWHERE = ("", "0.0.0.0", "::")
_RESTORE = fix("restore_apccontrol")
_SETTINGS = (
    "shutdown_command",
    "powerdown_flag",
    "notify_command",
    "notify_flags",
    "final_delay",
    "host_sync",
)


def see(host: Host) -> Snapshot:
    """Return the snapshot of apcupsd. Never raises: what cannot be read is unknown."""
    try:
        conf = parse(host.read(CONF))
    except (Unobservable, Malformed) as error:
        return _unread(host, str(error))
    conf = {**_DEFAULTS, **conf}
    ups, status = _ups(host, conf)
    missing = _not_notified(host, conf["SCRIPTDIR"])
    control = f"{conf['SCRIPTDIR']}/apccontrol"
    settings = {
        "shutdown_command": Observation(control, CONF),
        "powerdown_flag": Observation(f"{conf['PWRFAILDIR']}/powerfail", CONF),
        "notify_command": Observation(HOOK if not missing else "", conf["SCRIPTDIR"]),
        "notify_flags": Observation(
            f"without {HOOK}: {' '.join(missing)}" if missing else "exec", conf["SCRIPTDIR"]
        ),
        "final_delay": Observation("", "apcupsd has none"),
        "host_sync": Observation("", "apcupsd has none"),
        **{name.lower(): Observation(conf[name], CONF) for name in ("BATTERYLEVEL", "MINUTES", *_TIMES)},
    }
    poll = Term("poll", _number(conf["POLLTIME"]), "POLLTIME", write_number("POLLTIME", CONF))
    return Snapshot(
        mode="",
        upses=(ups,),
        supplies=1,
        timing={name.lower(): _number(conf[name]) for name in _TIMES},
        settings=settings,
        conditions=(
            _configured(host),
            _power_values(conf, ups),
            _shutdown_command(host, conf["SCRIPTDIR"]),
            _powerdown(host, conf),
            _notify(missing, conf["SCRIPTDIR"]),
        ),
        detection=(
            poll,
            Term("notify", NOTIFY, "until the monitor's script runs"),
        ),
        shutdown=(poll,),
        path=CONF,
        cut=_cut(host, conf, status),
    )


def parse(text: str, file: str = CONF) -> dict[str, str]:
    """Return {KEYWORD: value}; the last line of a keyword counts, and `#` starts a comment line.

    Raises Malformed for what is no text.
    """
    found = {}
    for raw in split(text, file):
        # Stripped first: blanks that a pattern may part in many ways take it a time that grows with their square.
        observed = _SETTING.fullmatch(raw.lstrip(" \t").rstrip())
        if observed:
            found[observed[1].upper()] = observed[2]
    return found


def _ups(host: Host, conf: Mapping[str, str]) -> tuple[Ups, Mapping[str, str]]:
    """Return what the UPS reports through apcupsd, and apcupsd's status, {} without one.

    The DRIVER that counts is that of the host with the cable.
    """
    kind = "secondary" if conf.get("UPSTYPE", "").lower() == _SECONDARY else "primary"
    port = _number(conf["NISPORT"])
    address = conf.get("NISIP", "")
    where = "localhost" if address in _ANYWHERE else address
    name = conf.get("UPSNAME") or "ups"
    nothing = Ups(name, f"{name}@{where}", "unknown", 1, kind)
    if conf.get("NETSERVER", "on").lower() == "off" or not port:
        reason = f"{CONF}: NETSERVER is off, or NISPORT no port: apcupsd cannot be queried"
        return nothing._replace(reason=reason, fixes=fix("serve_status", path=CONF, port=str(nis.PORT))), {}
    try:
        status = nis.ask(host, where, int(port))
    except Unobservable as error:
        fixes = fix("check_apcupsd", address=f"{where}:{port:.0f}")
        return nothing._replace(reason=str(error), fixes=fixes), {}
    driver = (
        status.get("DRIVER", "") if kind == "primary" else _driver_of_primary(host, conf.get("DEVICE", ""))
    )
    name_there = status.get("UPSNAME") or name
    return of_apcupsd(name_there, f"{name}@{where}", kind, status, driver, low(conf, status)), status


def _driver_of_primary(host: Host, device: str) -> str:
    address, _colon, port = device.partition(":")
    number = _number(port or str(nis.PORT))
    try:
        return nis.ask(host, address, int(number)).get("DRIVER", "") if address and number else ""
    except Unobservable:
        return ""


def low(conf: Mapping[str, str], status: Mapping[str, str]) -> Low:
    """Return what the battery still gives when apcupsd begins the shutdown.

    Of BATTERYLEVEL, MINUTES and TIMEOUT the first that is reached begins it, so MINUTES is the least there
    is, as long as the UPS reports its TIMELEFT; one that has less by now begins it at once, with that.
    apcupsd reads its file at its start: of the values there and of those that run the ones count that leave less.
    """
    left = minutes(status.get("TIMELEFT"))
    in_force = _both(conf["MINUTES"], status.get("MINTIMEL"))
    least = min(in_force) if in_force else None
    if left is None:
        return Low(None, "the UPS tells no TIMELEFT that can be used, so MINUTES is never reached")
    if least and left < least * 60:
        return Low(left, "TIMELEFT now, already less than MINUTES")
    if least:
        return Low(least * 60, "MINUTES of runtime left begin the shutdown")
    waits = _both(conf["TIMEOUT"], status.get("MAXTIME"))
    after = max(waits) if all(waits) else 0
    if waits and after:
        return Low(max(0.0, left - after), "TIMELEFT now, less the TIMEOUT on battery")
    return Low(None, "neither MINUTES nor TIMEOUT begins the shutdown with runtime left")


def _both(written: str, reported: str | None) -> list[float]:
    """Return a limit as the file and the status of apcupsd have it; nothing if one of them is no number."""
    texts = [written] if reported is None else [written, reported.partition(" ")[0]]
    found = [number for text in texts if (number := _number(text)) is not None]
    return found if len(found) == len(texts) else []


def _configured(host: Host) -> Condition:
    name = "mode_set"
    if not host.exists(_DEFAULT_FILE):
        return met(name, CONF, "apcupsd has no mode")
    try:
        found = _CONFIGURED.findall(host.read(_DEFAULT_FILE))
    except Unobservable as error:
        return unknown(name, _DEFAULT_FILE, str(error), fix("make_readable", path=_DEFAULT_FILE))
    if not found or found[-1] == "yes":
        return met(name, _DEFAULT_FILE, f"ISCONFIGURED is {found[-1] if found else 'not required'}")
    observed = f"ISCONFIGURED is {found[-1] or 'empty'}"
    return unmet(name, _DEFAULT_FILE, observed, fix("write_configured", path=_DEFAULT_FILE))


def _power_values(conf: Mapping[str, str], ups: Ups) -> Condition:
    if not conf.get("UPSTYPE"):
        return unmet("power_values", CONF, "UPSTYPE is not set", fix("set_type", path=CONF))
    return power_values((ups,), 1, "apcupsd's one UPS: what is needed", CONF)


def _shutdown_command(host: Host, scripts: str) -> Condition:
    name, control, own = "shutdown_command", f"{scripts}/apccontrol", f"{scripts}/doshutdown"
    try:
        text = host.read(control)
        runs = host.mode(control) & 0o111
        script = host.read(own) if host.exists(own) else ""
    except Unobservable as error:
        return unknown(name, control, str(error), _RESTORE)
    branch = _BRANCH.search(text)
    if not runs or branch is None:
        observed = f"{control} may not be executed, or does nothing at doshutdown"
        return unmet(name, control, observed, _RESTORE)
    lines = text[branch.end() :].partition(";;")[0]
    found = shutdown_commands.of_lines(_inserted(text, lines).split("\n"))
    if found.state != MET:
        observed = f"{control} at doshutdown: {found.why}"
        if found.state == UNMET:
            return unmet(name, control, observed, _RESTORE)
        return unknown(name, control, observed, _RESTORE)
    if _ENDS_THERE.search(script):
        observed = f"{own} may end with 99: apccontrol then shuts nothing down"
        return unknown(name, own, observed, fix("end_script", path=own))
    return met(name, control, f"{control} shuts down at doshutdown")


def _inserted(text: str, lines: str) -> str:
    """Return lines of a script with the values of its variables, and of its arguments, which are texts for people.

    A variable of which the script sets two values stays as it is: which one counts is unknown.
    """
    values: dict[str, set[str]] = {}
    for name, _quote, value in _ASSIGNMENT.findall(text):
        values.setdefault(name, set()).add(value)
    known = {name: found.pop() for name, found in values.items() if len(found) == 1}
    return _VARIABLE.sub(lambda found: "UPS" if found[1].isdigit() else known.get(found[1], found[0]), lines)


def _powerdown(host: Host, conf: Mapping[str, str]) -> Condition:
    name = "powerdown_flag"
    if conf.get("UPSTYPE", "").lower() == _SECONDARY:
        return met(name, CONF, "this host is a secondary: its primary switches the UPS off")
    try:
        program = hook(host, "apcupsd")
    except Unobservable as error:
        return unknown(name, "host", str(error), READABLE)
    if not program:
        observed = "nothing of apcupsd's that may be executed is in systemd's system-shutdown"
        directory, scripts, flags = SHUTDOWN_HOOKS[0], conf["SCRIPTDIR"], conf["PWRFAILDIR"]
        fixes = fix("install_hook.apcupsd", directory=directory, scripts=scripts, flags=flags)
        return unmet(name, "host", observed, fixes)
    return met(name, CONF, f"{conf['PWRFAILDIR']}/powerfail, obeyed by {program}")


def _not_notified(host: Host, scripts: str) -> list[str]:
    """Return the events whose script does not wake the guard."""
    return [event for event in EVENTS if not _calls(host, f"{scripts}/{event}")]


def _calls(host: Host, script: str) -> bool:
    try:
        return bool(host.mode(script) & 0o111) and HOOK in host.read(script) and bool(host.mode(HOOK) & 0o111)
    except Unobservable:
        return False


def _notify(missing: list[str], scripts: str) -> Condition:
    name = "notify_reaches_guard"
    if missing:
        observed = f"no script that runs {HOOK} for {' '.join(missing)}"
        return unmet(name, scripts, observed, fix("harden"))
    return met(name, scripts, f"{HOOK} is run for {' '.join(EVENTS)}")


def _cut(host: Host, conf: Mapping[str, str], status: Mapping[str, str]) -> Available | None:
    """Return when apcupsd itself has the UPS switch off, whatever still runs.

    Its status does not report KILLDELAY: the value of the file counts if apcupsd has read that file since it was changed.
    """
    if status and not _is_read(host, status):
        reason = f"{CONF}: KILLDELAY that runs is unknown: the file may have changed since apcupsd started"
        return Available(None, reason, fix("restart_unit", unit="apcupsd"))
    after, fixes = _number(conf["KILLDELAY"]), fix("zero_kill_delay", path=CONF)
    if after is None:
        return Available(None, f"{CONF}: KILLDELAY is no number", fixes)
    return Available(after, "KILLDELAY: the UPS is switched off then", fixes) if after else None


def _is_read(host: Host, status: Mapping[str, str]) -> bool:
    """Return whether the file was not changed since apcupsd started."""
    try:
        started = datetime.datetime.strptime(status.get("STARTTIME", "").strip(), "%Y-%m-%d %H:%M:%S %z")
        found = host.locate(CONF).status
    except (ValueError, Unobservable):
        return False
    # STARTTIME has whole seconds.
    return found is not None and int(found.modified) <= started.timestamp()


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def _unread(host: Host, reason: str) -> Snapshot:
    names = ("power_values", "shutdown_command", "powerdown_flag", "notify_reaches_guard")
    fixes = fix("correct_file", path=CONF)
    nothing = Term("monitor", None, reason, fixes)
    return Snapshot(
        mode="",
        upses=(),
        supplies=None,
        timing={name.lower(): None for name in _TIMES},
        settings={name: not_known(CONF, reason) for name in _SETTINGS},
        conditions=(_configured(host), *(unknown(name, CONF, reason, fixes) for name in names)),
        detection=(nothing,),
        shutdown=(nothing,),
        path=CONF,
    )
