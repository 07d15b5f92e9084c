# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings that a Firebird database needs so that acknowledged commits are on disk. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.engines import DatabaseFacts, InstanceFacts
from ...host.observation import NOTHING, UNKNOWN
from ...host.printable import command
from ...rows import FIX_READ_ERROR, RUN, Kind, Reason, Setting
from ..owners import OWNERS
from ..rule import Rules, rule
from ..rules import Judge, Subject, judge, why_of

_HOW_TO_FIND = "name its databases' paths in durable_databases"
_FULL = {"forced_writes": rule("on", "writes wait in memory for the kernel to get to them", loses=True)}


def _rows(subject: Subject, wanted: Rules) -> Iterator[Setting]:
    """Yield a row for each Firebird database: the setting is in its header.

    A process that has it open may do differently from the header, until it detaches.
    """
    only, instance = wanted["forced_writes"], subject.instance
    for database in instance["databases"]:
        persisted = database["forced_writes"]
        running = persisted if database["running"] == "closed" else database["running"]
        runs, persists = only.allows(running), only.allows(persisted)
        verdict = judge(running, persisted, runs, persists, only.live)
        if database["mode"] == "read_only":
            verdict = "ok"  # Nothing writes to it; Firebird changes no header of such a one either.
        can = verdict.startswith("drift") and _is_ours_to_change(instance, database)
        why = why_of(verdict, "forced_writes", running, persisted, only, {"reason": database["reason"]})
        if verdict.startswith("drift"):
            why += _flushes(instance)
        source = {"value": running, "source": f"how {database['path']} is open", "reason": database["reason"]}
        header = {**source, "value": persisted, "source": f"{database['path']}: header"}
        yield Setting(
            layer=instance["engine"],
            target=database["path"],
            setting="forced_writes",
            klass="safety",
            wanted_running=only.value,
            wanted_persisted=only.value,
            running=running,
            persisted=persisted,
            verdict=verdict,
            phase=only.phase if can else None,
            evidence={"running": header if database["running"] == "closed" else source, "persisted": header},
            why=why,
            means=verdict == "drift_running",
            remedy="" if verdict == "ok" else RUN if can else _gfix(instance, database, verdict),
        )


def _is_ours_to_change(instance: InstanceFacts, database: DatabaseFacts) -> bool:
    is_free = (database["in_use"], database["mode"]) == ("no", "read_write") and database["owner"] != "0"
    # Those who open a database find each other by files in /tmp/firebird, which another namespace hides.
    return is_free and instance["namespace"] == "host" and instance["managed_by"] not in OWNERS


def _gfix(instance: InstanceFacts, database: DatabaseFacts, verdict: str) -> str:
    # As the server itself calls it: from outside a link in /proc may lead there.
    path, root = database["path"], str(instance.get("root") or "")
    inside = path[len(root) :] if root and path.startswith(f"{root}/") else path
    pids, owner, sync = instance.get("pids"), str(database["owner"]), ("gfix", "-write", "sync")
    if verdict == UNKNOWN:
        return (
            "run again after its backup (nbackup) has ended"
            if database["mode"] == "backup"
            else FIX_READ_ERROR
        )
    if instance["managed_by"] == "container":
        return f"in the container, as the server's user, run {command(*sync, inside)}"
    if database["mode"] == "shutdown":
        return f"as the server's user run {command('gfix', '-online', path)}, then run again"
    if owner == "0":
        # As root, gfix leaves lock files that shut the server out.
        user = f"$(ps -o euid= -p {pids[0]})" if isinstance(pids, list) and pids else "USER_OF_THE_SERVER"
        return f"run chown -h {user} {command(path)}, then run again"
    if instance["namespace"] != "host" and isinstance(pids, list) and pids:
        enter = ("nsenter", "-t", str(pids[0]), "-m", "-S", owner, *sync, inside)
        return f"when no client has it open, run {command(*enter)}"
    if database["in_use"] == "yes":
        mode = instance["settings"].get("ServerMode", NOTHING).get("persisted", "")
        if mode.lower() in ("super", "threadeddedicated"):
            by_server = command(*sync, f"localhost:{path}")
            return f"run {by_server}, or run again when no client has it open"
        return "run again when no client has it open"
    if instance["managed_by"] in OWNERS:
        return f"as the server's user run {command(*sync, path)}"
    return FIX_READ_ERROR


def _flushes(instance: InstanceFacts) -> str:
    """Return what the server's settings mean for a database without forced writes."""
    settings = {name: row["persisted"] for name, row in instance["settings"].items()}
    writes, seconds = (
        settings.get("MaxUnflushedWrites", UNKNOWN),
        settings.get("MaxUnflushedWriteTime", UNKNOWN),
    )
    if not all(re.fullmatch(r"-?\d{1,9}", word, re.ASCII) for word in (writes, seconds)):
        return ""
    if max(int(writes), int(seconds)) < 0:
        return ", for the server never asks it to (MaxUnflushedWrites and MaxUnflushedWriteTime are off)"
    return f", at most until a commit after {writes} writes or {seconds} seconds (-1: never)"


NO_DATABASES = Kind(
    "unknown.firebird.databases", "unknown", "{engine}: none of its databases was found", _HOW_TO_FIND
)


def _unknowns(subject: Subject) -> Iterator[Reason]:
    if not subject.instance["databases"]:
        yield NO_DATABASES.found(subject.label, engine=subject.label)


JUDGE = Judge(
    full={"firebird": _FULL},
    rows=_rows,
    unknowns=_unknowns,
    kinds=(NO_DATABASES,),
    lies_anywhere=True,
    how_to_find=_HOW_TO_FIND,
    # The order of its writes (careful write) protects whole pages only.
    largest_page=32768,
    torn_page="after a power cut run gfix -v -full on each database, and restore a torn one from a backup (gbak)",
)
