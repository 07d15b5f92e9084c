# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two safe write methods of SQL Server, and which of them fits the storage below it. Pure.

FUA: trace flag 3979, writethrough 1, alternatewritethrough 0: each log write is one FUA write. Right
only where every disk below takes FUA, and keeps to it. Forced flush: no 3979, 1 and 1: a write, then
a flush of the whole disk. Right everywhere, and SQL Server's default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.engines import InstanceFacts
from ...facts.storage import DiskFacts, StorageFacts
from ...host.observation import NOTHING, UNKNOWN
from ...rows import Kind, Reason
from ...storage import causes, platforms
from .. import causes as engine_causes
from ..placement import place
from ..rule import Rule, Rules
from ..rules import Build, Honoured, Judge, Subject
from .fixes import FIXES

#: SQL Server 2017 CU6, the first that knows these settings. Those before it write with O_DIRECT alone, which
#: the vendor's article calls exposed to loss whatever is set. 2022 CU18 is the first without a race that
#: alternatewritethrough=1 has.
_KNOWS_FUA, _FIRST = (14, 0, 3025, 34), "2017 CU6 (14.0.3025.34)"
_RACES = ((16,), (16, 0, 4185, 3))
#: The way that is right over any storage.
_FORCE_FLUSH = (
    "run mssql-conf set control.alternatewritethrough 1 and mssql-conf traceflag 3979 off, then restart it (through its"
    " cluster, if any)"
)
_SINCE = Build(
    first=_FIRST,
    before="before it nothing is flushed, whatever is set",
    see="start it once, or make its log of errors readable",
    opened="with alternatewritethrough 0 its files must be open with O_DSYNC",
    look=_FORCE_FLUSH,
)
NEVER_FLUSHES = Kind(
    "risk.mssql.never_flushes",
    "at_risk",
    "commits of {engine} can be lost: version {version} flushes nothing that it writes",
    _SINCE.update,
)
NOT_SYNCHRONOUS = Kind(
    "risk.mssql.not_synchronous",
    "at_risk",
    "commits of {engine} can be lost: with alternatewritethrough 0 its files must be open with O_DSYNC, and {cause}",
    _FORCE_FLUSH,
)
NOTHING_FLUSHES = Kind(
    "risk.mssql.nothing_flushes",
    "at_risk",
    "commits of {engine} can be lost: {seen}",
    "run mssql-conf set control.writethrough 1, mssql-conf set control.alternatewritethrough 1 and mssql-conf traceflag 3979 off,"
    " then restart it (through its cluster, if any)",
)
RACE = Kind(
    "note.mssql.race",
    "note",
    "{engine}: {seen} a race with alternatewritethrough=1",
    "update 2022 to CU18 (16.0.4185.3) or later",
)
BOTH_FLAGS = Kind(
    "note.mssql.both_flags",
    "note",
    "{engine}: trace flags 3979 and 3982 contradict each other: only one of them can be meant",
    "run mssql-conf traceflag {flag} off, then restart it",
)
SLIP = Kind(
    "note.mssql.misspelt",
    "note",
    "{engine}: {cause}: SQL Server ignores it",
    "correct or delete each line or option that is named",
)
DELAYED_FORCED = Kind(
    "risk.mssql.delayed_durability",
    "at_risk",
    "commits of {engine} can be lost: a database has DELAYED_DURABILITY = FORCED, which acknowledges a commit before it is on"
    " the disk",
    "run ALTER DATABASE ... SET DELAYED_DURABILITY = DISABLED for each database that SELECT name FROM sys.databases WHERE"
    " delayed_durability = 2 lists",
)
DELAYED_ALLOWED = Kind(
    "note.mssql.delayed_durability_allowed",
    "note",
    "{engine}: a database has DELAYED_DURABILITY = ALLOWED: a transaction that requests it can be lost",
    "run ALTER DATABASE ... SET DELAYED_DURABILITY = DISABLED for each database that SELECT name FROM sys.databases WHERE"
    " delayed_durability = 1 lists",
)
DELAYED = Kind("note.mssql.delayed_durability", "note", "{engine}: DELAYED_DURABILITY is unknown: {cause}")
_FUA = {"traceflag3979": "on", "traceflag3982": "off", "writethrough": "1", "alternatewritethrough": "0"}
_FLAGS = ("traceflag3979", "traceflag3982")
_FLUSH = {"traceflag3979": "off", "writethrough": "1", "alternatewritethrough": "1"}
#: Those that lose commits where they are wrong.
_LOSES = ("writethrough",)
#: At 0 no write is followed by a flush.
_DSYNC_ALONE = ("alternatewritethrough",)
#: Evidence that there are files of which nobody knows where they lie.
_TELL_ITS_FILES = ("configuration", "directories", "files", "namespace", "observation")
_MEANS = {
    "traceflag3979": {
        "on": "the server leaves flushing to FUA writes",
        "off": "the server flushes where one FUA write would do",
    },
    "traceflag3982": {"on": "it contradicts trace flag 3979"},
    "writethrough": {"0": "writes are not sent on to the disk, by any way"},
    "alternatewritethrough": {
        "0": "nothing is flushed after a write that is no FUA write",
        "1": "the server flushes where one FUA write would do",
    },
}


def rules(subject: Subject, _wanted: Rules) -> Rules:
    """Return the rules for an instance on its storage."""
    if not subject.profile.promises_durability:
        return {}
    instance = subject.instance
    against = against_fua(instance, subject.storage, subject.honoured)
    wanted = _FLUSH if against else _FUA
    why = f"forced flush is right here ({against[0]})" if against else "every disk below takes FUA"
    return {
        name: Rule(
            (word,),
            word,
            f"it is neither of the two that are safe; {why}",
            loses=False,
            live=False,
            phase="loosen" if _loosens(instance, name, word) else "tighten",
            klass="performance" if _loosens(instance, name, word) else "safety",
            meanings=tuple((other, f"{means}; {why}") for other, means in _MEANS[name].items()),
        )
        for name, word in wanted.items()
    }


def _loosens(instance: InstanceFacts, name: str, word: str) -> bool:
    """Flushing where FUA would do is slow and not unsafe: leaving it waits until all else is true.

    A flag that contradicts another waits for nothing: it is unknown which of the two the server follows.
    """
    persisted = {flag: instance["settings"].get(flag, NOTHING).get("persisted") for flag in _FLAGS}
    if name == "traceflag3982" and set(persisted.values()) == {"on"}:
        return False
    return word == _FUA[name] != _FLUSH.get(name)


def against_fua(instance: InstanceFacts, storage: StorageFacts, honoured: Honoured) -> list[str]:
    """Return what contradicts the FUA way, one text each; none if it fits."""
    found = []
    if _flushes(instance["version"]) != "yes":
        found.append(f"version {instance['version']} is unknown to be {_FIRST} or later")
    where = place(instance, storage)
    found += where.unknown
    if instance["state"] == "stopped":
        found.append("it is stopped: which files it will open is unknown")
    for field in _TELL_ITS_FILES:
        observed = instance["evidence"].get(field)
        if observed and observed["value"] != "complete":
            found.append(f"not all of its files are known: {observed['reason']}")
    found += [] if where.mounts else ["the location of its files is unknown"]
    by_name = {disk["name"]: disk for disk in storage["disks"]}
    for mount in where.mounts:
        if mount["disks"] == UNKNOWN:
            found.append(f"{mount['target']}: its disks are unknown")
            continue
        if mount["fua_path"] != "yes":
            reason = causes.why(mount["evidence"]["fua_path"])
            found.append(f"{mount['target']}: {reason or 'whether it sends FUA is unknown'}")
            continue
        statement = platforms.statement(storage["platform"], platforms.FUA)
        hint = f" (check {statement.look})" if statement else ""
        disks = [by_name[name] for name in mount["disks"]]
        found += _without_fua(mount["target"], disks, honoured, hint)
    return found


def _without_fua(target: str, disks: list[DiskFacts], honoured: Honoured, hint: str) -> Iterator[str]:
    """Yield the disks of a mount that do not take FUA, then those that only claim to."""
    for disk in disks:
        # A cache that is off now may come on, in this run too. A flush that is not needed costs little.
        if disk["fua"] != "supported" and disk["write_cache"]["device"] != "none":
            yield f"{disk['name']} ({target}) does not take FUA, and its cache is only switched off"
    for disk in disks:
        if not honoured(disk):
            yield (
                f"{disk['name']} ({target}) only claims to take FUA: attest host_honours_fua for"
                f" {disk['id'] or 'host'}{hint}"
            )


def _defects(subject: Subject) -> Iterator[Reason]:
    """Yield the ways in which it loses acknowledged commits now, whatever is set.

    If O_DSYNC alone brings writes to the disk, and a file is open without it, nothing flushes it.
    """
    instance, label = subject.instance, subject.label
    if _flushes(instance["version"]) == "no":
        yield NEVER_FLUSHES.found(label, engine=label, version=instance["version"])
    if instance["evidence"].get("delayed_durability", NOTHING).get("value") == "forced":
        yield DELAYED_FORCED.found(label, engine=label)
    flags = instance["evidence"].get("write_through", NOTHING)
    if _relies_on_flags(subject) and flags.get("value") == "no":
        yield NOT_SYNCHRONOUS.found(label, engine=label, cause=str(flags["reason"]))


def _relies_on_flags(subject: Subject) -> bool:
    """Return whether nothing but O_DSYNC brings a running server's writes to the disk."""
    return [subject.running(name) for name in _LOSES + _DSYNC_ALONE] == ["1", "0"]


def _risks(subject: Subject) -> Iterator[Reason]:
    """Yield the ways in which its settings lose acknowledged commits now.

    Trace flag 3979 disables the flushes. Without write-through nothing is left: that trusts every
    cache on the way, and a file system that has not yet noted where a file's blocks are.
    """
    label, runs = subject.label, {name: subject.running(name) for name in _FUA}
    through = runs["writethrough"]
    if through == "0" and runs["traceflag3979"] == "on":
        cause = "trace flag 3979 with writethrough 0: nothing flushes what it writes"
    elif through == "0":
        cause = "writethrough is 0"
    elif through not in ("1", "stopped", UNKNOWN) and runs["traceflag3979"] == "on":
        cause = f"trace flag 3979 with writethrough {through}"
    else:
        return
    yield NOTHING_FLUSHES.found(label, engine=label, seen=cause)


def _unknowns(subject: Subject) -> Iterator[Reason]:
    """Yield what of its version and open files contradicts any guarantee, and the fix."""
    yield from _SINCE.unknowns(subject, _flushes(subject.instance["version"]), _relies_on_flags(subject))


def _flushes(version: str) -> str:
    """Return yes, no or unknown: whether a build brings to the disk what its settings say."""
    numbers = parse_version(version)
    if numbers is None or numbers == _KNOWS_FUA[: len(numbers)] != _KNOWS_FUA:
        return UNKNOWN
    return "yes" if numbers >= _KNOWS_FUA else "no"


def _warnings(subject: Subject) -> Iterator[Reason]:
    """Yield what is known of its version and settings and should be known by its owner."""
    instance, label = subject.instance, subject.label
    version = parse_version(instance["version"])
    words = [instance["settings"].get(name, NOTHING) for name in ("alternatewritethrough", *_FLAGS)]
    alternate, *flags = [{row.get("running"), row.get("persisted")} for row in words]
    if (version is None or _RACES[0] <= version < _RACES[1]) and "1" in alternate:
        has = f"version {instance['version']} has" if version else "its version is unknown, and 2022 has"
        yield RACE.found(label, engine=label, seen=has)
    if all("on" in values for values in flags):
        # Without 3979 it flushes, which is right everywhere.
        is_fua = not against_fua(instance, subject.storage, subject.honoured)
        yield BOTH_FLAGS.found(label, engine=label, flag="3982" if is_fua else "3979")
    slips = instance["evidence"].get("slips")
    if slips:
        yield SLIP.found(label, engine=label, cause=slips["reason"])
    delayed = instance["evidence"].get("delayed_durability")
    if delayed and delayed["value"] == "allowed":
        yield DELAYED_ALLOWED.found(label, engine=label)
    elif delayed and delayed["value"] == UNKNOWN:
        yield DELAYED.found(label, engine=label, cause=delayed["reason"], fix=engine_causes.fix(delayed))


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a version like 16.0.4185.3, None for anything else."""
    found = re.match(r"[0-9]{1,9}(?:\.[0-9]{1,9})+", text)
    return tuple(map(int, found[0].split("."))) if found else None


JUDGE = Judge(
    full={"mssql": {}},
    rules=rules,
    defects=_defects,
    risks=_risks,
    unknowns=_unknowns,
    warnings=_warnings,
    kinds=(
        NEVER_FLUSHES,
        NOT_SYNCHRONOUS,
        NOTHING_FLUSHES,
        RACE,
        BOTH_FLAGS,
        SLIP,
        DELAYED,
        DELAYED_FORCED,
        DELAYED_ALLOWED,
    ),
    settings=tuple(_MEANS),
    loses=_LOSES,
    fix_texts=FIXES,
    lies_anywhere=True,
    largest_page=8192,
    # CHECKSUM and TORN_PAGE_DETECTION find a torn page and do not repair it.
    torn_page="set PAGE_VERIFY CHECKSUM for each database, and restore a torn page from a backup (RESTORE DATABASE ... PAGE)",
)
