# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of the rollback timer on a host: whether they exist, and their removal."""

from __future__ import annotations

from typing import NamedTuple

from ..enforce import one_run, our_files
from ..host import json_text, our_paths, systemd
from ..host.seam import ChangeFailed, Host, Refused, Unobservable
from . import journal

#: States of the switch: there is none; one waits; one has put a host back; one cannot, with the reason.
NONE, ARMED, FIRED, BROKEN = "none", "armed", "fired", "broken"
#: In the order in which they go: without a journal the rest does nothing.
_FILES = (our_paths.UNDO_JOURNAL, our_paths.UNDO_UNIT, our_paths.UNDO_PROGRAM)
_STOP_TIMEOUT = 120.0
#: What one that waits does, and when.
WAITS = "{seconds} s after the last change, or after a boot, it restores what was changed"

_UNIT = """\
# Managed by durable.dbhost. playbooks/release_db.yml takes it away.
[Unit]
Description=Restore what a run changed, unless that run comes back to this host
# It waits before anything that a boot may fail at, and goes on where the boot has ended in emergency mode.
DefaultDependencies=no
IgnoreOnIsolate=yes
Conflicts=shutdown.target
Before=shutdown.target
StartLimitIntervalSec=0
ConditionPathExists={journal}

[Service]
Type=notify
NotifyAccess=main
ExecStart={python} -I -S {program}
Restart=on-failure
RestartSec=5
# Of a journal that cannot be read.
RestartPreventExitStatus=2
TimeoutStartSec=60
UMask=0022
# No separate mount namespace, which ProtectSystem= and its like make: it remounts what the host has mounted.

[Install]
WantedBy=sysinit.target emergency.target
"""


class Switch(NamedTuple):
    """The state of the switch; `said` is its message for people, '' if there is none."""

    state: str
    said: str = ""


def unit(python: str) -> str:
    """Return the unit's text; `python` is the interpreter that runs the program."""
    return _UNIT.format(journal=our_paths.UNDO_JOURNAL, python=python, program=our_paths.UNDO_PROGRAM)


def switch_of(host: Host) -> Switch:
    """Return how the switch is; reads only."""
    try:
        found = journal.read(host)
        if found is not None:
            return Switch(ARMED, WAITS.format(seconds=found.seconds))
        if host.exists(our_paths.UNDO_FIRED):
            return Switch(FIRED, _fired(host.read(our_paths.UNDO_FIRED)))
        # One that was half removed does nothing, but must be removed.
        return Switch(ARMED, "left by a run that was killed") if _there(host) else Switch(NONE)
    except Unobservable as error:
        return Switch(BROKEN, str(error))


def disarm(host: Host, now: str) -> Switch:
    """Remove the switch, but not the report of one that has fired; return its state then. `now`: the host's UTC time in ISO 8601.

    While the switch restores files, or a run changes the host, it stays armed, with the reason. One that cannot be read stays:
    an administrator needs its journal to restore the host.
    """
    before = switch_of(host)
    if before.state in (NONE, BROKEN) or (before.state == FIRED and not _there(host)):
        return before
    try:
        with one_run.hold(host, "a run that disarms the rollback timer", now, ["undo"]):
            if before.state != switch_of(host).state:
                return switch_of(host)
            remove(host, is_stopped=False)
    except ChangeFailed as error:
        why = error.reason if isinstance(error, Refused) else str(error)
        return Switch(switch_of(host).state, f"it was not removed: {why}")
    return switch_of(host)


def clear(host: Host) -> bool:
    """Remove the switch in a run that holds the host, in any state; return whether there was one. Raises ChangeFailed."""
    found = switch_of(host).state != NONE
    if found:
        if host.exists(our_paths.UNDO_FIRED):
            host.remove_file(our_paths.UNDO_FIRED)
        remove(host, is_stopped=False)
    return found


def remove(host: Host, is_stopped: bool) -> None:
    """Remove all files except the report of a switch that has fired: the answer to a call can be lost. Raises ChangeFailed.

    `is_stopped`: whether nothing waits any more; the program itself is not to stop itself.
    """
    host_has = host.exists(our_paths.UNDO_UNIT)
    if host.exists(our_paths.UNDO_JOURNAL):
        host.remove_file(our_paths.UNDO_JOURNAL)
    if host_has and systemd.runs(host):
        if not is_stopped:
            host.change(["systemctl", "stop", our_paths.UNDO_SERVICE], _STOP_TIMEOUT)
        host.change(["systemctl", "--quiet", "disable", "--no-reload", our_paths.UNDO_SERVICE])
        systemd.reset_failed(host, our_paths.UNDO_SERVICE)
    for path in _there(host):
        host.remove_file(path)
    our_files.remove_directories(host, (our_paths.UNDO, our_paths.CONFIGURED))
    if host_has and systemd.runs(host):
        host.change(["systemctl", "daemon-reload"])


def attempts(host: Host) -> tuple[list[str], list[str]]:
    """Return the files that the attempts of a switch have restored, and why they left others unchanged."""
    try:
        if host.exists(our_paths.UNDO_FIRED):
            _when, back, failures = _parse(host.read(our_paths.UNDO_FIRED))
            return back, failures
    except Unobservable as error:
        return [], [str(error)]
    return [], []


def _there(host: Host) -> list[str]:
    return [path for path in _FILES if host.exists(path)]


def _fired(text: str) -> str:
    try:
        when, back, failures = _parse(text)
    except Unobservable as error:
        return str(error)
    return f"at {when} it restored {', '.join(back) or 'nothing'}" + "".join(
        f"; it could not: {why}" for why in failures
    )


def _parse(text: str) -> tuple[str, list[str], list[str]]:
    try:
        found = json_text.loads(text)
        back, failures = ([str(each) for each in found[name]] for name in ("put_back", "failures"))
        return str(found["time"]), back, failures
    except (ValueError, TypeError, KeyError):
        raise Unobservable(f"{our_paths.UNDO_FIRED} cannot be read") from None
