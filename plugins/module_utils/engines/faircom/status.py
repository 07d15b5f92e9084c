# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CTSTATUS.FCS, FairCom DB's status log: version, how logs were opened, what was recovered.

What it says of a recovery, and of one that failed, is from FairCom's documentation ("Additional Recovery Logging",
"Automatic recovery terminated with error", TRANIDX_LOPN_ERR_CONTINUE) and its advisory on Linux; none of it was run.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...host import bounds
from ...host.observation import UNKNOWN, Observation, unknown
from ...host.processes import Process
from ...host.seam import Host, Unobservable
from .. import since_start

NAME = "CTSTATUS.FCS"
_OPERATIONAL = re.compile(r"Server Is Operational", re.I)
#: The version stands before that on the line, no further away than this. Any user can write such a log, and
#: a search that goes on to the end of each line for each version in it has no end.
_REACH = 200
_VERSION = re.compile(r"V(?P<numbers>\d{1,9}(?:\.\d{1,9}){1,9})(?:\s{0,9}\(?Build-(?P<build>\d{6}))?", re.I)
_OVER = re.compile(r"Server shutdown completed|Process ID:", re.I)
#: The line between one start and the messages before it.
_EARLIER = re.compile(r"Server Is Operational|Server shutdown completed|Process ID:", re.I)
#: How a life of the server ends in it: cleanly, or not at all.
_LIFE = re.compile(r"Server Is Operational|(?P<clean>Server shutdown completed)", re.I)
_SYNCHRONOUS = "Transaction logs using synchronous I/O."
_RECOVERS = re.compile(r"Automatic recovery|tran(?:rcv|und|red|idx):|Index (?:repair|composition) time", re.I)
#: Errors of a recovery that mean damage, and if it is known what each is.
_MEANS = {
    "64": "",
    "66": "",
    "96": ": a transaction log that it needs is not there",
    "571": ": its indexes must be rebuilt",
}
_ERROR = re.compile(r"(?:error|log file)[:# \t]{1,3}(?P<number>64|66|96|571)(?![0-9.])", re.I)
_OF_RECOVERY = re.compile(r"recover|tran(?:rcv|und|red|idx)|initialize", re.I)
_TIME = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}")


class Status(NamedTuple):
    """What CTSTATUS.FCS says of the last start: the version; whether the logs are opened for synchronous writes (on, off, or
    unknown with the reason); `recovered`: whether that start had to recover (yes, no, unknown). `damage`: a recovery that
    failed, now or earlier."""

    version: Observation
    synchronous: str = UNKNOWN
    reason: str | None = None
    recovered: Observation = unknown(NAME, "its last start is unknown")
    damage: Observation | None = None


def read(host: Host, root: str, directories: list[str], main: Process | None) -> Status:
    """Return what CTSTATUS.FCS says of this start, or of a stopped server's last one.

    `directories`: where it may lie, the server's working directory first.
    """
    try:
        paths = [f"{directory}/{NAME}" for directory in dict.fromkeys(filter(None, directories))]
        there = {path: status for path in paths if (status := host.locate(path, root).status)}
        if not there:
            why = f"there is no {' and no '.join(paths) or NAME}: it tells once the server has run"
            return Status(unknown(NAME, why), reason=why)
        path = max(there, key=lambda path: there[path].modified)
        if main and there[path].modified < since_start.start_of(host, main).at:
            why = f"{path} is older than the server that runs"
            return Status(unknown(path, why), reason=why)
        part = host.read_part(path, root, bounds.STATUS_LOG, at_end=True)
        return parse(part.text if part else "", path, running=main is not None)
    except Unobservable as error:
        return Status(unknown(NAME, str(error)), reason=str(error))


def parse(text: str, path: str, running: bool) -> Status:
    """Return what a status log says of the last start in it; `running`: of a server that still runs."""
    start, damage = _last_start(text), _damage(text, path)
    if start is None:
        why = f"{path}: its end tells of no start"
        return Status(unknown(path, why), reason=why, damage=damage)
    first, last = start
    build = f" build {first['build']}" if first["build"] else ""
    version = Observation(first["numbers"] + build, path)
    if running and _OVER.search(text, last.end()):
        why = f"{path}: the server that runs is not yet operational"
        return Status(unknown(path, why), reason=why, damage=damage)
    earlier_end = 0
    for earlier in _EARLIER.finditer(text, 0, first.start()):
        earlier_end = earlier.end()
    synchronous = "on" if _SYNCHRONOUS in text[earlier_end : last.end()] else "off"
    return Status(version, synchronous, None, _recovered(text, first.start(), path), damage)


def _last_start(text: str) -> tuple[re.Match[str], re.Match[str]] | None:
    """Return the version in the line about the last start, and where it does; None without one."""
    last = None
    for found in _OPERATIONAL.finditer(text):
        version = _VERSION.search(text, _line(text, found.start()), found.start())
        last = (version, found) if version else last
    return last


def _line(text: str, place: int) -> int:
    """Return where the line of a place begins, or how far back one looks in it."""
    reach = max(0, place - _REACH)
    return max(reach, text.rfind("\n", reach, place) + 1)


def _recovered(text: str, start: int, path: str) -> Observation:
    """Return whether the start at a place of the log had to recover: it logs so, or the run before did not end cleanly."""
    before = None
    for life in _LIFE.finditer(text, 0, start):
        before = life
    if _RECOVERS.search(text, before.end() if before else 0, start):
        return Observation("yes", path)
    if before is None:
        return unknown(path, f"{path}: it does not tell how the server ended before")
    return Observation("no" if before["clean"] else "yes", path)


def _damage(text: str, path: str) -> Observation | None:
    """Return the last failure of a recovery that means damage, with its time as the server has it."""
    damage = None
    for found in _ERROR.finditer(text):
        line = _line(text, found.start())
        if _OF_RECOVERY.search(text, line, found.end()):
            number, time = found["number"], _TIME.search(text, max(0, line - 40), line)
            at = f", last on {time[0]}" if time else ""
            damage = Observation("seen", path, f"its recovery met error {number}{_MEANS[number]}{at}")
    return damage
