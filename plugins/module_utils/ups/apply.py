# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power layer: the configuration of the UPS's monitor, so that it notifies the guard and shuts down in time.

NUT's upsmon.conf and nut.conf, in single directives, and apcupsd's event scripts. Drivers are never
configured. upsmon is restarted after each change, not reloaded: its parent process never reads again what
shuts the host down, and a reload leaves flags in force whose line is gone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..enforce import file_diff, originals, our_files, ownership
from ..enforce.arguments import Arguments
from ..enforce.change import Change, verify
from ..engines import since_start
from ..host import bounded_read, our_paths, units
from ..host.our_paths import CHAINED, HOOK, UNIT
from ..host.processes import Process
from ..host.seam import ChangeFailed, Host, Unobservable
from ..host.secret_words import without_secret
from ..host.textfile import Malformed
from . import apcupsd, apcupsd_scripts, hook, nut, nut_directives, nut_mode, services, snapshot
from .nut_directives import ABSENT, Target

#: `FILE KEY` -> what it was before us. It may hold a password: root's alone.
ORIGINALS = our_paths.ORIGINALS_POWER
ORIGINALS_MODE = 0o600
_NOTE = f"managed; originals in {ORIGINALS}"

_SECRET_MODE = 0o640
_SCRIPT = "SCRIPT"
_CHAIN = "notify chain"
#: Looks, a second apart, that a monitor gets after a restart; and how many of them the same process has to
#: outlive.
_ATTEMPTS, _STEADY = 30, 3

_MONITOR = {
    "system": {"type": "str", "required": True},
    "power_value": {"type": "int", "default": 1},
    "user": {"type": "str", "required": True},
    "type": {"type": "str", "choices": ["primary", "secondary"], "required": True},
}
_TARGET = {
    "notify_command": {"type": "str"},
    "notify_flags": {"type": "str", "choices": ["EXEC"]},
    "shutdown_command": {"type": "str"},
    "powerdown_flag": {"type": "str"},
    "final_delay": {"type": "int"},
    "host_sync": {"type": "int"},
    "mode": {"type": "str", "choices": list(nut_mode.MODES)},
    "monitor": {"type": "dict", "options": _MONITOR},
}
ARGUMENTS = Arguments(
    _TARGET, shared={"password": {"type": "str", "default": "", "no_log": True}}, apart=False
)


class Monitor(NamedTuple):
    """Which monitor a host has, its configuration, its service, and the process of that, -1 where it does
    not run and 0 where systemd knows none."""

    name: str
    config: str
    unit: str
    pid: int


class Edit(NamedTuple):
    """A file's text before and after, None if it is not there; `mode` and `group` where they matter."""

    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    group: str | None = None


class Work(NamedTuple):
    """What there is to do.

    `edits` in the order in which they are safe, `stored`: new originals, `unit`: the service to restart
    between those and `later`, or '', `password`: to read back with, `warnings`: what is left as it is.
    """

    changes: tuple[Change, ...] = ()
    edits: tuple[Edit, ...] = ()
    stored: tuple[tuple[str, str], ...] = ()
    unit: str = ""
    password: str = ""
    warnings: tuple[str, ...] = ()
    later: tuple[Edit, ...] = ()


def target_of(row: dict[str, Any]) -> Target:
    """Return the settings of a target that are wanted. Raises ChangeFailed for values that no monitor takes."""
    wanted = {name: value for name, value in row.items() if value is not None}
    for name in ("notify_command", "shutdown_command", "powerdown_flag"):
        if not str(wanted.get(name, "/")).startswith("/"):
            raise ChangeFailed(
                f"{name}: observed {without_secret(repr(wanted[name]))}, expected an absolute path; upsmon does not search"
                " for it"
            )
    for name in ("final_delay", "host_sync"):
        if not 0 <= int(wanted.get(name, 0)) <= 86400:
            raise ChangeFailed(f"{name}: observed {wanted[name]}, expected seconds, of a day at most")
    monitor = wanted.get("monitor")
    if monitor:
        system = str(monitor["system"])
        if not re.fullmatch(r"[A-Za-z0-9_.-]+(@([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?)?", system):
            raise ChangeFailed(f"monitor: observed system {system!r}, expected ups@host or ups@host:port")
        if int(monitor["power_value"]) < 0 or not str(monitor["user"]):
            raise ChangeFailed("monitor: expected a power_value of 0 or more, and a user")
    return wanted


def plan(host: Host, targets: list[Target], password: str = "") -> Work:
    """Return the work that brings the monitor's configuration to the wanted settings; reads only.

    Raises ChangeFailed, before anything changes, if there is no monitor or two of them, where its
    configuration cannot be understood, and for one with which it would end. Raises Unobservable.
    """
    wanted = _merged(targets)
    if not wanted:
        return Work()
    monitor = find(host)
    stored = originals.load(host, ORIGINALS)
    if monitor.name == services.NUT:
        return _plan_nut(host, monitor, wanted, password, stored)
    return _plan_apcupsd(host, monitor, wanted)


def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read it back: the files, and that the monitor runs with them. Raises ChangeFailed."""
    stored = originals.load(host, ORIGINALS)
    if work.stored:
        originals.save(host, {**stored, **dict(work.stored)}, ORIGINALS, ORIGINALS_MODE)
    _write(host, work.edits)
    if work.unit:
        _restart(host, work.unit)
    verify(plan(host, targets, work.password).changes)


def edits(host: Host, work: Work) -> Iterable[file_diff.Edit]:
    """Return the files that a plan changes."""
    return file_diff.of_root(host, {edit.path: edit.after for edit in (*work.edits, *work.later)})


def plan_release(host: Host, password: str = "") -> Work:
    """Return what release changes; reads only. Raises ChangeFailed and Unobservable."""
    stored = originals.load(host, ORIGINALS)
    if not stored:
        return Work()
    changes: list[Change] = []
    edits: dict[str, Edit] = {}
    later = [Edit(path, "", None) for path in (CHAINED,) if host.exists(path)]
    if host.exists(HOOK) and not host.exists(UNIT):
        later.append(Edit(HOOK, "", None))
    for entry, original in stored.items():
        path, _blank, key = entry.partition(" ")
        edit = edits.get(path) or Edit(path, _text(host, path), _text(host, path))
        if key == _SCRIPT:
            edits[path], more = _script_release(host, edit, original)
            later += more
            changes.append(_change(posixpath.basename(path), "ours", original))
        elif edit.after is None:
            changes.append(_change(key, ABSENT, "forgotten"))
        else:
            now = nut_directives.word(edit.after, path, key)
            changes.append(_change(key, nut_directives.shown(key, now), nut_directives.shown(key, original)))
            edits[path] = edit._replace(after=nut_directives.put(edit.after, path, key, original, _NOTE))
    done = [
        edit if edit.after is None else edit._replace(after=nut_directives.unmarked(edit.after, _NOTE))
        for edit in edits.values()
    ]
    return Work(tuple(changes), tuple(done), (), _running_unit(host, done), later=tuple(later))


def apply_release(host: Host, work: Work) -> None:
    """Put the originals back, have the monitor read them, then forget them. Raises ChangeFailed."""
    _write(host, work.edits)
    if work.unit:
        _restart(host, work.unit)
    _write(host, work.later)
    our_files.remove_directories(host, (our_paths.CHAINED_SCRIPTS, *our_paths.UPS_WAY))
    originals.save(host, {}, ORIGINALS)


def find(host: Host) -> Monitor:
    """Return the monitor of this host. Raises ChangeFailed if there is none, or two; Unobservable."""
    found = services.find(host)
    paths = {services.NUT: [f"{directory}/upsmon.conf" for directory in nut.DIRECTORIES]}
    config = next((path for path in paths.get(found.monitor, [apcupsd.CONF]) if host.exists(path)), "")
    if found.monitor not in (services.NUT, services.APCUPSD) or not config:
        observed = found.reason or f"{found.unit} without its configuration"
        raise ChangeFailed(
            f"monitor of the UPS: observed that {observed}; expected one of NUT (nut-client) and apcupsd, with its configuration;"
            " install one, or disable the one that is not meant"
        )
    runs = found.active.state == "met"
    return Monitor(found.monitor, config, found.unit, found.pid if runs else -1)


def _plan_nut(host: Host, monitor: Monitor, settings: Target, password: str, stored: dict[str, str]) -> Work:
    path = monitor.config
    text = _expect_text(host, path)
    wanted = nut_directives.wanted_of(text, path, settings, password)
    changes: list[Change] = []
    new: dict[str, str] = {}
    after = text
    for key, value in wanted.items():
        now = nut_directives.word(text, path, key)
        if now != value:
            changes.append(_change(key, nut_directives.shown(key, now), nut_directives.shown(key, value)))
            new.setdefault(f"{path} {key}", now)
            after = nut_directives.put(after, path, key, value, _NOTE)
    before_us = _command_before_us(text, path, settings, stored)
    # A command that an administrator has set since then stays.
    new = {entry: value for entry, value in new.items() if entry not in stored}
    if before_us is not None and stored.get(f"{path} NOTIFYCMD", before_us) != before_us:
        new[f"{path} NOTIFYCMD"] = before_us
    edits = [*_hook(host, settings, changes), *_chain(host, path, text, before_us, changes)]
    edits += _mode_edit(host, path, settings, changes, new)
    nut_directives.expect_usable(after, path)
    warnings = nut_directives.passed_over(text, path) + _no_shutdown_hook(host, settings)
    mode, group = _tighter(host, path, after, changes)
    if after != text or mode:
        _expect_roots(host, path)
        edits.append(Edit(path, text, after, mode, group))
    stale = "" if changes else _stale(host, monitor)
    if changes or stale:
        value = stale or "what it read before"
        changes.append(Change("host", monitor.unit, "running", value, "restarted"))
    originals_now = tuple(new.items())
    unit = monitor.unit if changes else ""
    return Work(tuple(changes), tuple(edits), originals_now, unit, password, tuple(warnings))


def _plan_apcupsd(host: Host, monitor: Monitor, settings: Target) -> Work:
    foreign = sorted(set(settings) - {"notify_command", "notify_flags"})
    if foreign:
        raise ChangeFailed(
            f"{monitor.config}: observed {', '.join(foreign)}, expected settings that apcupsd has: it shuts down by its own"
            " apccontrol and needs none of them; leave them out"
        )
    changes: list[Change] = []
    directory = _scripts(host)
    originals_of_scripts: dict[str, str] = {}
    command = str(settings.get("notify_command", HOOK))
    edits = _hook(host, {"notify_command": command}, changes)
    for path in (command, our_paths.CHAINED_SCRIPTS):
        ownership.expect_roots(host, path)  # apcupsd runs what is there as root.
    for event in apcupsd_scripts.EVENTS:
        path = f"{directory}/{event}"
        theirs, ours = _text(host, path), apcupsd_scripts.script(event, command)
        if theirs == ours and host.mode(path) & 0o111:
            continue
        _expect_roots(host, path)
        observed = ABSENT
        if theirs is not None and not apcupsd_scripts.is_ours(theirs):
            observed = "a script of the host"
            copy = f"{our_paths.CHAINED_SCRIPTS}/{event}"
            edits.append(Edit(copy, _text(host, copy), theirs, host.mode(path)))
        if theirs is None or not apcupsd_scripts.is_ours(theirs):
            originals_of_scripts[f"{path} {_SCRIPT}"] = observed
        changes.append(
            _change(
                event,
                "differs" if theirs and not originals_of_scripts.get(f"{path} {_SCRIPT}") else observed,
                "ours",
            )
        )
        edits.append(Edit(path, theirs, ours, apcupsd_scripts.MODE))
    return Work(tuple(changes), tuple(edits), tuple(originals_of_scripts.items()))


def _merged(targets: Iterable[Target]) -> Target:
    wanted: Target = {}
    for target in targets:
        for name, value in target.items():
            if wanted.setdefault(name, value) != value:
                raise ChangeFailed(f"{name}: observed two different values, expected one")
    return wanted


def _command_before_us(text: str, path: str, settings: Target, stored: dict[str, str]) -> str | None:
    """Return the notify command that the hook has to run on, ABSENT for none, None if that is no matter."""
    if settings.get("notify_command") != HOOK:
        return None
    now = nut_directives.word(text, path, "NOTIFYCMD")
    found = stored.get(f"{path} NOTIFYCMD", ABSENT) if now in (settings["notify_command"], ABSENT) else now
    if found != ABSENT and not found.startswith("/"):
        raise ChangeFailed(
            f"{path}: NOTIFYCMD: observed {without_secret(found)!r}, expected an absolute path, to run it after the guard was"
            " woken; write the whole path"
        )
    return found


def _chain(host: Host, path: str, text: str, before_us: str | None, changes: list[Change]) -> list[Edit]:
    """Return the edit of the file from which the hook, as upsmon's user, reads what to run on."""
    if before_us is None:
        return []
    now = _text(host, CHAINED)
    wanted = None if before_us == ABSENT else f"{before_us}\n"
    is_secret = without_secret(before_us) != before_us
    if now == wanted and not (is_secret and host.mode(CHAINED) != _SECRET_MODE):
        return []
    changes.append(_change(_CHAIN, without_secret((now or ABSENT).strip()), without_secret(before_us)))
    if not is_secret:
        return [Edit(CHAINED, now, wanted)]
    return [Edit(CHAINED, now, wanted, _SECRET_MODE, _group_of_upsmon(host, path, text))]


def _hook(host: Host, settings: Target, changes: list[Change]) -> list[Edit]:
    """Return the edit that puts our hook there before anything runs it."""
    command = settings.get("notify_command")
    if command == HOOK:
        ownership.expect_roots(host, HOOK)
        ownership.expect_roots(host, CHAINED)
    if command is None or host.exists(str(command)):
        return []
    if command != HOOK:
        raise ChangeFailed(
            f"notify_command {without_secret(str(command))}: observed no such file, expected a program; put it there first"
        )
    changes.append(_change(HOOK, ABSENT, "written"))
    return [Edit(HOOK, None, hook.TEXT, hook.MODE)]


def _mode_edit(
    host: Host, config: str, settings: Target, changes: list[Change], new: dict[str, str]
) -> list[Edit]:
    """Return the edit of nut.conf. Raises ChangeFailed where a mode is set already: that is the user's word."""
    path = f"{posixpath.dirname(config)}/{nut_mode.FILE}"
    requested = settings.get("mode")
    text = _text(host, path)
    if text is None:
        if requested:
            raise ChangeFailed(
                f"{path}: observed no such file, expected MODE={requested}; install nut-client"
            )
        return []
    now = nut_directives.word(text, path, nut_directives.MODE)
    idle = now in (nut_mode.NONE, ABSENT)
    wanted = requested or (
        nut_directives.mode_for(settings["monitor"]) if idle and "monitor" in settings else now
    )
    if now == wanted:
        return []
    if not idle:
        raise ChangeFailed(
            f"{path}: observed MODE={now}, expected {wanted}: a mode other than none is yours to change; do that, or leave"
            " mode out"
        )
    _expect_roots(host, path)
    changes.append(_change(nut_directives.MODE, now, str(wanted)))
    new[f"{path} {nut_directives.MODE}"] = now
    return [Edit(path, text, nut_directives.put(text, path, nut_directives.MODE, str(wanted), _NOTE))]


def _tighter(host: Host, path: str, text: str, changes: list[Change]) -> tuple[int | None, str | None]:
    """Return mode and group for a file of passwords that others may read, or (None, None)."""
    mode = host.mode(path)
    if not mode & 0o027 or not nut_directives.has_password(text, path):
        return None, None
    group = _group_of_upsmon(host, path, text)
    changes.append(_change(f"{path} mode", f"{mode:04o}", f"{_SECRET_MODE:04o} group {group}"))
    return _SECRET_MODE, group


def _group_of_upsmon(host: Host, path: str, text: str) -> str:
    """Return the group that reads files with passwords. Raises ChangeFailed if it is unknown."""
    user = nut_directives.runs_as(text, path)
    result = host.run(["id", "--group", "--name", "--", user])
    group = result.stdout.strip()
    if result.rc != 0 or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*\$?", group):
        raise ChangeFailed(
            f"{path}: it contains a password; observed upsmon's user {user!r}, whose group is unknown; expected a user of this"
            " host; set RUN_AS_USER to one"
        )
    return group


def _no_shutdown_hook(host: Host, settings: Target) -> list[str]:
    if "powerdown_flag" not in settings or snapshot.hook(host, "nut"):
        return []
    return [
        "powerdown_flag: observed no program of NUT's in systemd's system-shutdown, where its package puts one: nothing"
        " tells the UPS to cut its outlets at the end of a shutdown"
    ]


def _scripts(host: Host) -> str:
    """Return the directory of apcupsd's event scripts. Raises ChangeFailed."""
    try:
        found = apcupsd.parse(_expect_text(host, apcupsd.CONF))
    except Malformed as error:
        raise ChangeFailed(str(error)) from None
    directory = found.get("SCRIPTDIR", posixpath.dirname(apcupsd.CONF))
    if not directory.startswith("/") or " " in directory:
        raise ChangeFailed(f"{apcupsd.CONF}: SCRIPTDIR: observed {directory!r}, expected an absolute path")
    return directory.rstrip("/")


def _stale(host: Host, monitor: Monitor) -> str:
    """Return why a running monitor may not have read its configuration, '' where it has. Raises Unobservable."""
    if monitor.pid < 0:
        return ""
    if not monitor.pid:
        raise Unobservable(f"{monitor.unit}: systemd does not know its process; restart it by hand")
    process = Process(monitor.pid, 0, "", "", None, None, None)
    start = since_start.start_of(host, process)
    return since_start.change(host, monitor.config, start)


def _restart(host: Host, unit: str) -> None:
    """Restart a monitor, and wait until it stays up. Raises ChangeFailed."""
    host.change(["systemctl", "restart", "--", unit])
    steady, last = 0, 0
    for _attempt in range(_ATTEMPTS):
        shown, _why = units.show(host, [unit])
        observed = shown.get(unit)
        main = observed.main if observed and observed.active == "active" else 0
        steady, last = (steady + 1 if main and main == last else 0), main
        if steady == _STEADY:
            return
        host.run(["sleep", "1"])
    raise ChangeFailed(
        f"{unit}: observed it down, or starting again and again, {_ATTEMPTS} s after a restart, expected it up; see its journal"
    )


def _running_unit(host: Host, edits: Iterable[Edit]) -> str:
    """Return the service that has to read its restored files, '' if none runs. Raises Unobservable."""
    changed = {edit.path for edit in edits if edit.before != edit.after}
    files = {
        f"{directory}/{name}" for directory in nut.DIRECTORIES for name in ("upsmon.conf", nut_mode.FILE)
    }
    if not files & changed:
        return ""
    found = services.find(host)
    if found.monitor == "unknown":
        raise Unobservable(f"whether a monitor of a UPS runs here is unknown: {found.reason}")
    return found.unit if found.monitor == services.NUT and found.active.state == "met" else ""


def _script_release(host: Host, edit: Edit, original: str) -> tuple[Edit, list[Edit]]:
    """Return how an event's script comes back, and what of ours goes after that."""
    copy = f"{our_paths.CHAINED_SCRIPTS}/{posixpath.basename(edit.path)}"
    theirs = _text(host, copy)
    gone = [Edit(copy, theirs, None)] if theirs is not None else []
    if edit.before is not None and not apcupsd_scripts.is_ours(edit.before):
        return edit, gone  # Somebody has put another one there: it is theirs.
    if original == ABSENT or theirs is None:
        return edit._replace(after=None), gone
    return edit._replace(after=theirs, mode=host.mode(copy)), gone


def _write(host: Host, edits: Iterable[Edit]) -> None:
    for edit in edits:
        if edit.after is None:
            if edit.before is not None:
                host.remove_file(edit.path)
            continue
        if edit.group and not host.exists(edit.path):
            host.write_file(edit.path, b"", mode=0o600)
        is_there = host.exists(edit.path)
        # Before its content: a password is never where others read it.
        if is_there and edit.group:
            host.change(["chgrp", "--", edit.group, edit.path])
        if is_there and edit.mode is not None and host.mode(edit.path) != edit.mode:
            host.change(["chmod", f"{edit.mode:04o}", "--", edit.path])
        if edit.before != edit.after:
            content = edit.after.encode("utf-8", "surrogateescape")
            host.write_file(edit.path, content, mode=0o644 if edit.mode is None else edit.mode)


def _expect_roots(host: Host, path: str) -> None:
    """Raise ChangeFailed where others than root may change a file, or the way to it."""
    ownership.writer(host, path, 0, [posixpath.dirname(path)], ())


def _expect_text(host: Host, path: str) -> str:
    text = _text(host, path)
    if text is None:
        raise ChangeFailed(f"{path}: not there any more; run again to collect the facts again")
    return text


def _text(host: Host, path: str) -> str | None:
    return bounded_read.read(host, path)


def _change(setting: str, before: str, after: str) -> Change:
    return Change("host", setting, "persisted", before, after)
