# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Firebird database must be set to, so that a commit that is acknowledged is on disk. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...host.observation import UNKNOWN
from ...host.printable import command
from ...rows import MEND, Kind, Reason, Setting
from ..rules import OWNERS, Judge, Rules, Subject, judge, rule, why_of

_HOW_TO_FIND = "name its databases' paths in durable_databases"
_FULL = {"forced_writes": rule("on", "writes wait in memory for the kernel to get to them", loses=True)}


def _rows(subject: Subject, wanted: Rules) -> Iterator[Setting]:
    """Yield a row for each Firebird database: the setting is in its header.

    Who has it open may do otherwise than the header says, until he detaches.
    """
    only, instance = wanted["forced_writes"], subject.instance
    for database in instance["databases"]:
        persisted = database["forced_writes"]
        running = persisted if database["running"] == "closed" else database["running"]
        runs, kept = only.allows(running), only.allows(persisted)
        verdict = judge(running, persisted, runs, kept, only.live)
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
            remedy="" if verdict == "ok" else "run harden-db" if can else _gfix(instance, database, verdict),
        )


def _is_ours_to_change(instance: dict[str, Any], database: dict[str, Any]) -> bool:
    is_free = (database["in_use"], database["mode"]) == ("no", "read_write") and database["owner"] != "0"
    # Those who open a database find each other by files in /tmp/firebird, which another namespace hides.
    return is_free and instance["namespace"] == "host" and instance["managed_by"] not in OWNERS


def _gfix(instance: dict[str, Any], database: dict[str, Any], verdict: str) -> str:
    path, manager = database["path"], instance["managed_by"]
    if verdict == UNKNOWN:
        return MEND
    if manager in OWNERS:
        return OWNERS[manager]
    if instance["namespace"] != "host":
        return f"run {command('gfix', '-write', 'sync', path)} in the server's own mount namespace: nsenter"
    if database["mode"] == "shutdown":
        return f"it is shut down: bring it online ({command('gfix', '-online', path)}), and run again"
    if database["owner"] == "0":
        return "root owns it: give it to the server's user (chown), as whom gfix has to run"
    if database["in_use"] == "yes":
        mode = instance["settings"].get("ServerMode", {}).get("persisted", "")
        if mode.lower() in ("super", "threadeddedicated"):
            by_server = command("gfix", "-write", "sync", f"localhost:{path}")
            return f"somebody has it open: run again when nobody has, or {by_server} now"
        return "somebody has it open: run again when nobody has; who has it open keeps his way of writing"
    return MEND


def _flushes(instance: dict[str, Any]) -> str:
    """Return what the server's settings mean for a database without forced writes."""
    said = {name: row["persisted"] for name, row in instance["settings"].items()}
    writes, seconds = said.get("MaxUnflushedWrites", UNKNOWN), said.get("MaxUnflushedWriteTime", UNKNOWN)
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
)
