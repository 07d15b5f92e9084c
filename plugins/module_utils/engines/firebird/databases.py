# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firebird databases: forced writes in the header, forced writes in effect, and whether in use.

The header decides how the next one opens the database. With Classic and SuperClassic, those who have
it open already go on as they are: only the open flags of their files show their mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...facts.classes import DatabaseFacts
from ...host import bounds, confined
from ...host.observation import UNKNOWN
from ...host.seam import Host, Status, Unobservable
from ..open_files import Opened
from . import tools
from .files import GONE, NO_FILE, Files
from .header import Header, Unfamiliar, is_database, parse

CLOSED = "closed"
_ATTRIBUTES = re.compile(r"^[ \t]*Attributes[ \t]*(?P<names>.*)$", re.M)


class Database(NamedTuple):
    """One database, or what may be one and cannot be read: the fields of the facts, and where they can
    be read its header and its owner.
    """

    path: str
    forced_writes: str
    running: str
    in_use: str
    mode: str
    reason: str | None
    header: Header | None = None
    status: Status | None = None

    def as_dict(self) -> DatabaseFacts:
        """Return what the facts tell."""
        return {
            "path": self.path,
            "forced_writes": self.forced_writes,
            "running": self.running,
            "in_use": self.in_use,
            "mode": self.mode,
            "owner": str(self.status.user) if self.status else UNKNOWN,
            "reason": self.reason,
        }


def unread(what: str, reason: str) -> Database:
    """Return the entry of a database that may be there and cannot be read."""
    return Database(what, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, reason)


def collect(
    host: Host, root: str, paths: Iterable[str], named: Iterable[str], opened: Iterable[Opened] = ()
) -> list[Database]:
    """Return the databases among files, in order of their paths.

    `paths` may be any files; those in `named` are databases by a configuration, and what is
    none is reported as unknown. `opened` are the files that the server has open for writing. `root` is
    where a container's files are mounted, or ''.
    """
    files, known, written = Files(host, root), set(named), list(opened)
    found: list[Database] = []
    for path in sorted({*paths, *known}):
        begin = files.beginning(path)
        header = None if begin.reason else _header(begin.page)
        if begin.reason:
            # Pipes and the like are none; what has gone meanwhile is none any more.
            if path in known or begin.reason not in (GONE, NO_FILE):
                found.append(_one(host, files, path, begin.reason, begin.status, written))
        elif header:
            found.append(_one(host, files, path, header, begin.status, written))
        elif path in known and not is_database(begin.page):
            found.append(unread(path, "it does not begin as a Firebird database does"))
    return found


def _header(page: bytes) -> Header | Unfamiliar | None:
    """Return what a file's beginning says, None for no database."""
    try:
        return parse(page)
    except Unfamiliar as error:
        return error


def _one(
    host: Host,
    files: Files,
    path: str,
    header: Header | Unfamiliar | str,
    status: Status | None,
    opened: list[Opened],
) -> Database:
    """`header`: a text is the reason why it cannot be read."""
    reasons = []
    forced, mode = UNKNOWN, UNKNOWN
    if not isinstance(header, Header):
        reasons.append(str(header))
        if isinstance(header, Unfamiliar) and status and not files.root:
            forced, why = ask_gstat(host, path, status)
            reasons = [f"{header}; {why}"] if why else []
    elif header.mode == "backup":
        mode = header.mode
        reasons.append(
            "a backup is under way (nbackup): its changes are in a file next to it until that ends"
        )
    else:
        forced, mode = header.forced_writes, header.mode
    in_use, running, why = _use(files, path, status, [file for file in opened if file.path == path])
    if why:
        reasons.append(why)
    return Database(
        path=path,
        forced_writes=forced,
        running=running,
        in_use=in_use,
        mode=mode,
        reason="; ".join(reasons) or None,
        header=header if isinstance(header, Header) else None,
        status=status,
    )


def _use(files: Files, path: str, status: Status | None, opened: list[Opened]) -> tuple[str, str, str | None]:
    """Return whether a database is in use, what its users do with writes, and why one is unknown."""
    ways = [file.opened for file in opened]
    try:
        if status is None:
            raise Unobservable(f"{path}: who has it open is unknown")
        pids = files.holders(path, status)
    except Unobservable as error:
        return "yes" if ways else UNKNOWN, _effect(ways) if ways else UNKNOWN, str(error)
    try:
        # With Classic, programs can have it open beside the server, without it.
        ways += [way for pid in pids[: bounds.PROCESSES] for way in _ways(files, pid, path)]
    except Unobservable as error:
        return "yes" if ways else UNKNOWN, "off" if _effect(ways) == "off" else UNKNOWN, str(error)
    if not ways and not pids:
        return "no", CLOSED, None
    if not ways:
        who = ", ".join(str(pid) for pid in pids if pid > 0) or "a process of another namespace"
        return "yes", UNKNOWN, f"{who} has it locked, and how it was opened is unknown"
    running = _effect(ways)
    return "yes", running, "how it was opened is not understood here" if running == UNKNOWN else None


def _ways(files: Files, pid: int, path: str) -> list[str]:
    """Return how a process has a database open for writing, nothing of one that has ended. Raises Unobservable."""
    try:
        return files.flags(pid, path) if pid > 0 else []
    except Unobservable:
        if files.host.exists(f"/proc/{pid}/stat"):
            raise
        return []


def _effect(ways: list[str]) -> str:
    """Return whether every writer has each write go to the disk at once."""
    if UNKNOWN in ways:
        return UNKNOWN
    return "on" if all({"dsync", "sync"} & set(way.split()) for way in ways) else "off"


def ask_gstat(host: Host, path: str, status: Status) -> tuple[str, str | None]:
    """Return what gstat says of forced writes, and why it is unknown. It runs as the file's owner."""
    if status.user == 0:
        return UNKNOWN, "root owns it, as whom gstat is not run; give it to the user of the server (chown)"
    tool = "gstat"
    try:
        tool = tools.choose(host, tools.GSTAT)
        result = host.run(confined.command(host, confined.account(host, status.user), [tool, "-h", path]))
    except Unobservable as error:
        return UNKNOWN, str(error)
    attributes = _ATTRIBUTES.search(result.stdout)
    if result.rc != 0 or not attributes:
        error_text = " ".join(result.stderr.split())[:300] or "it tells no attributes"
        return UNKNOWN, f"{tool} -h: exit {result.rc}: {error_text}"
    return "on" if "force write" in attributes["names"].split(", ") else "off", None
