# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installation of the watch on a host: a program, its settings, and a timer."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..enforce import file_diff, our_files
from ..enforce.arguments import Arguments
from ..enforce.change import Change, verify
from ..enforce.our_files import ABSENT, CURRENT
from ..host import our_paths, program, systemd, trusted_path
from ..host.processes import output
from ..host.seam import ChangeFailed, Host, Unobservable
from . import orders, units
from . import program as watch

ARGUMENTS = Arguments(
    None,
    shared={
        "inputs": {"type": "dict", "default": {}},
        "calendar": {"type": "str", "default": "hourly"},
        "metrics": {"type": "str", "default": ""},
        "version": {"type": "str", "default": ""},
    },
)

_WANTED_BY = f"/etc/systemd/system/timers.target.wants/{our_paths.WATCH_TIMER}"
_MODES = {our_paths.WATCH_INPUTS: orders.MODE}
#: All that release takes away, except the numbers.
_FILES = (
    our_paths.WATCH_TIMER_UNIT,
    our_paths.WATCH_UNIT,
    our_paths.WATCH_PROGRAM,
    our_paths.WATCH_INPUTS,
    our_paths.WATCH_REPORT,
    our_paths.WATCH_STAMP,
)
_ACTIVE = "active"
#: Seconds for the first assessment: systemctl waits for its end.
_LOOK_TIMEOUT = 900.0


class Work(NamedTuple):
    """What there is to do: the files that differ, {path: content}.

    `stale`: the file with the numbers in the directory of an earlier run, and whom that belongs to.
    """

    changes: tuple[Change, ...]
    files: dict[str, bytes]
    options: Mapping[str, Any]
    stale: Mapping[str, int] = MappingProxyType({})


class Release(NamedTuple):
    """What release removes."""

    changes: tuple[Change, ...]


def target_of(row: Any) -> Any:
    """Return what is given: it is of the whole host."""
    return row


def plan(
    host: Host, _targets: list[Any], inputs: Mapping[str, Any], calendar: str, metrics: str, version: str
) -> Work:
    """Return the work that makes the host watch itself by these inputs; reads only. Raises ChangeFailed, Unobservable."""
    if not systemd.runs(host):
        raise ChangeFailed(
            "the watch is a timer of systemd, and systemd does not run here; use a controller's cron"
        )
    our_files.expect_roots(host, _ways())
    _expect_calendar(host, calendar)
    if metrics and not host.exists(metrics):
        raise ChangeFailed(
            f"metrics: observed no {metrics}; expected the directory of node_exporter's textfile collector"
        )
    wanted = {
        our_paths.WATCH_PROGRAM: program.build(watch.__name__),
        our_paths.WATCH_INPUTS: orders.render(inputs, metrics, version),
        our_paths.WATCH_UNIT: units.service(program.interpreter()).encode(),
        our_paths.WATCH_TIMER_UNIT: units.timer(calendar).encode(),
    }
    states = {path: our_files.state_of(host, path, content, _MODES) for path, content in wanted.items()}
    changes = [
        Change(path, posixpath.basename(path), "persisted", word, CURRENT)
        for path, word in states.items()
        if word != CURRENT
    ]
    # No check would ever write them again.
    stale = {path: owner for path, owner in _numbers(host).items() if path != f"{metrics}/{orders.METRICS}"}
    changes += [Change(path, orders.METRICS, "persisted", "present", ABSENT) for path in stale]
    if not host.exists(_WANTED_BY):
        changes.append(Change(our_paths.WATCH_TIMER, "enabled", "persisted", "no", "yes"))
    # The files can be right and the timer stopped, or loaded before they were: by a person, or by a run that was killed.
    runs = _state(host)
    if runs != _ACTIVE:
        changes.append(Change(our_paths.WATCH_TIMER, "state", "running", runs, _ACTIVE))
    files = {path: wanted[path] for path, word in states.items() if word != CURRENT}
    options = {"inputs": inputs, "calendar": calendar, "metrics": metrics, "version": version}
    return Work(tuple(changes), files, options, stale)


def apply(host: Host, work: Work, targets: list[Any]) -> None:
    """Do the work, assess for the first time, and read it back. Raises ChangeFailed."""
    for path, owner in work.stale.items():
        host.remove_file(path, owner)
    for directory in _ways():
        host.change(["install", "-d", "-m", "0755", directory])
    our_files.write(host, work.files, _MODES)
    # One reload for both: enable alone would have systemd read all units a second time.
    host.change(["systemctl", "--quiet", "enable", "--no-reload", our_paths.WATCH_TIMER])
    host.change(["systemctl", "daemon-reload"])
    host.change(["systemctl", "restart", our_paths.WATCH_TIMER])
    # Not waited for: that the verdict fails is no failure of this.
    host.change(["systemctl", "start", "--no-block", our_paths.WATCH_SERVICE])
    verify(plan(host, targets, **work.options).changes)


def edits(host: Host, work: Work | Release) -> Iterable[file_diff.Edit]:
    """Return the files that a plan changes."""
    if isinstance(work, Work):
        return file_diff.of_root(host, dict(work.files))
    return file_diff.of_root(host, {change.target: None for change in work.changes})


def plan_release(host: Host, **_options: Any) -> Release:
    """Return what release removes; reads only."""
    # The file of the inputs names the directory of the numbers, so it goes after them.
    there = [path for path in (*_numbers(host), *_FILES) if host.exists(path)]
    return Release(
        tuple(Change(path, posixpath.basename(path), "persisted", "present", ABSENT) for path in there)
    )


def apply_release(host: Host, work: Release) -> None:
    """Take all of it away. Raises ChangeFailed."""
    numbers = _numbers(host)
    if systemd.runs(host) and host.exists(our_paths.WATCH_TIMER_UNIT):
        host.change(["systemctl", "--quiet", "disable", "--now", "--no-reload", our_paths.WATCH_TIMER])
        host.change(["systemctl", "stop", our_paths.WATCH_SERVICE], _LOOK_TIMEOUT)
        # A verdict fails this unit, and so does the end of a running check.
        systemd.reset_failed(host, our_paths.WATCH_SERVICE)
    for change in work.changes:
        if host.exists(change.target):
            host.remove_file(change.target, numbers.get(change.target, 0))
    our_files.remove_directories(host, (*_ways(), our_paths.PERSISTENT))
    if systemd.runs(host):
        host.change(["systemctl", "daemon-reload"])
    verify(plan_release(host).changes)


def _numbers(host: Host) -> dict[str, int]:
    """Return {the file with the numbers: whom its directory belongs to}, as far as that is known."""
    directory = orders.directory(host)
    try:
        if not directory or not host.exists(f"{directory}/{orders.METRICS}"):
            return {}
        owner = trusted_path.statuses(host, [directory])[directory].owner
    except Unobservable:
        return {}
    return {f"{directory}/{orders.METRICS}": owner}


def _ways() -> tuple[str, ...]:
    return (posixpath.dirname(our_paths.WATCH_PROGRAM), posixpath.dirname(our_paths.WATCH_INPUTS))


def _state(host: Host) -> str:
    """Return the state of the timer by systemd, `not reloaded` if systemd has loaded other files. Raises Unobservable."""
    shown = output(
        host,
        ["systemctl", "show", "--property=ActiveState,NeedDaemonReload", "--", our_paths.WATCH_TIMER],
    )
    found = dict(line.partition("=")[::2] for line in shown.split("\n"))
    state = found.get("ActiveState") or "unknown"
    return "not reloaded" if state == _ACTIVE and found.get("NeedDaemonReload") != "no" else state


def _expect_calendar(host: Host, calendar: str) -> None:
    result = host.run(["systemd-analyze", "calendar", "--", calendar])
    if result.rc != 0:
        raise ChangeFailed(
            f"calendar: observed {calendar!r}, of which systemd says: {' '.join(result.stderr.split())}; expected a calendar"
            " event of systemd.time(7), as hourly or *:0/15"
        )
