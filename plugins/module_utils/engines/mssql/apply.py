# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mssql layer: trace flags and write-through of SQL Server on Linux, set by its own mssql-conf.

mssql-conf writes its file again in place, without our comments: what was there before is kept among
the originals alone. A file that belongs to another user is given to the server's user first (tool.py), and stays so.
"""

from __future__ import annotations

from typing import NamedTuple

from ...enforce import originals
from ...enforce.arguments import Arguments
from ...enforce.change import Change, verify
from ...facts.classes import InstanceFacts
from ...host import our_paths
from ...host.observation import NOTHING
from ...host.seam import ChangeFailed, Host, Unobservable
from .. import causes
from .. import restart as servers
from ..restart import Target
from . import observe, tool

target_of = servers.target_of

#: Setting -> what it was before us; a switch that was not set is `absent`.
ORIGINALS = our_paths.ORIGINALS_MSSQL
_ABSENT = "absent"
#: How a change of the owner of mssql.conf is named, in a plan and among the originals.
OWNER = tool.OWNER
#: What a switch can be restored to.
_VALUES = ("0", "1")
#: In this order each state on the way is as safe as the start: write-through first.
_ORDER = ("writethrough", "alternatewritethrough", "traceflag3982", "traceflag3979")

_SETTING_WORDS = {
    "traceflag3979": {"type": "str", "choices": ["on", "off"]},
    "traceflag3982": {"type": "str", "choices": ["on", "off"]},
    "writethrough": {"type": "str", "choices": ["1"]},
    "alternatewritethrough": {"type": "str", "choices": ["0", "1"]},
}
_TARGET = {
    "instance": {"type": "str", "required": True},
    "settings": {"type": "dict", "required": True, "options": _SETTING_WORDS},
}
ARGUMENTS = Arguments(_TARGET, permissions=("restart",))


class Work(NamedTuple):
    """What there is to do, what was in the file of each setting, and the instance's facts."""

    changes: tuple[Change, ...]
    before: dict[str, str]
    facts: InstanceFacts | None = None


class Release(NamedTuple):
    """What release changes, and the facts of the instance, None where SQL Server is gone; `warnings`: what remains."""

    changes: tuple[Change, ...]
    facts: InstanceFacts | None = None
    warnings: tuple[str, ...] = ()


def plan(host: Host, targets: list[Target], restart: bool = False) -> Work:
    """Return the work that brings the instance to its settings; reads only.

    Raises ChangeFailed, before anything changes, where the instance is not there, where its settings
    cannot be read, and for settings that contradict each other or send nothing on to the disk.
    """
    if not targets:
        return Work((), {})
    found = servers.instances(host, observe)
    changes: list[Change] = []
    before: dict[str, str] = {}
    for target in targets:
        facts = servers.choose(found, observe.NAME, target.instance)
        changes += servers.changes(facts, target.wanted, restart)
        before.update(_before(facts))
        _check(facts, target.wanted)
    if any(change.when == "persisted" for change in changes):
        tool.runner(host)
        given = _given(host)
        before.update({change.setting: change.before for change in given})
        changes = [*given, *changes]
    return Work(tuple(changes), before, facts)


def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read it back. Raises ChangeFailed."""
    if work.facts is None:
        return  # nothing was wanted
    written = {change.setting: change.after for change in work.changes if change.when == "persisted"}
    if written:
        servers.keep_running(host, observe.NAME, work.facts)
        stored = originals.load(host, ORIGINALS)
        originals.save(host, {**{name: work.before[name] for name in written}, **stored}, ORIGINALS)
        _write(host, written)
        verify(plan(host, targets).changes)
    if any(change.when == "running" for change in work.changes):
        servers.restart(host, [work.facts])
        names = [work.facts["name"]]
        servers.settle(host, observe, names, lambda: plan(host, targets, restart=True).changes)


def plan_release(host: Host) -> Release:
    """Return what release changes; reads only. The server takes it at its next start.

    Raises ChangeFailed.
    """
    stored = originals.load(host, ORIGINALS)
    if not stored:
        return Release(())
    found = servers.instances(host, observe)
    facts = found.get(observe.NAME)
    if facts is None or not host.exists(tool.PATH):
        gone = (Change(observe.NAME, name, "persisted", word, "forgotten") for name, word in stored.items())
        return Release(tuple(gone))
    now = _before(facts)
    changes = [
        Change(observe.NAME, name, "persisted", now[name], stored[name]) for name in _ORDER if name in stored
    ]
    if any(change.before != change.after for change in changes):
        changes = [*_given(host), *changes]
    remains = f"{tool.CONFIG} stays with the server's user. It belonged to {stored.get(OWNER)} before the first run."
    return Release(tuple(changes), facts, (remains,) if OWNER in stored else ())


def apply_release(host: Host, work: Release) -> None:
    """Put the originals back by mssql-conf, and forget them. Raises ChangeFailed."""
    if work.facts:
        wanted = {change.setting: change.after for change in work.changes if change.before != change.after}
        if wanted:
            servers.keep_running(host, observe.NAME, work.facts)
            _write(host, wanted)
            now = _before(servers.choose(servers.instances(host, observe), observe.NAME, observe.NAME))
            verify(
                Change(observe.NAME, name, "persisted", now[name], word)
                for name, word in wanted.items()
                if now.get(name, word) != word
            )
    originals.save(host, {}, ORIGINALS)


def _before(facts: InstanceFacts) -> dict[str, str]:
    """Return what the file says of each setting: a switch that stands nowhere, or has no value of our own list, is absent.

    Release hands these to mssql-conf, and the file's owner can write any text there.
    Raises ChangeFailed where the instance could not be observed.
    """
    rows = facts["settings"]
    if not all(name in rows for name in _ORDER):
        failed = facts["evidence"].get("observation") or facts["evidence"].get("namespace") or NOTHING
        why = causes.text(failed) or "they were not read"
        raise ChangeFailed(
            f"mssql {facts['name']}: observed no settings ({why}), expected those of {tool.CONFIG}; correct that, then run"
            " again"
        )
    return {
        name: _ABSENT
        if name in observe.SWITCHES and (rows[name]["from"] is None or rows[name]["persisted"] not in _VALUES)
        else str(rows[name]["persisted"])
        for name in _ORDER
    }


def _check(facts: InstanceFacts, wanted: dict[str, str]) -> None:
    """Refuse what no profile may leave behind."""
    after = {name: wanted.get(name, row["persisted"]) for name, row in facts["settings"].items()}
    label = f"mssql {facts['name']}"
    # One that was there before is not ours to fix here, and prevents no other change.
    adds = "on" in (wanted.get("traceflag3979"), wanted.get("traceflag3982"))
    if adds and after["traceflag3979"] == after["traceflag3982"] == "on":
        raise ChangeFailed(
            f"{label}: observed trace flags 3979 and 3982 both on at the next start, expected one of them at most;"
            " they contradict each other: set the other one to off in the same call"
        )
    if after["writethrough"] != "1":
        raise ChangeFailed(
            f"{label}: observed writethrough {after['writethrough']} at the next start, expected 1: else nothing is sent"
            " on to the disk; set writethrough to 1 in the same call"
        )
    for name in wanted:
        if facts["settings"][name]["from"] == observe.COMMAND_LINE and wanted[name] == "off":
            raise ChangeFailed(
                f"{label}: observed {name} on the server's command line, which mssql-conf does not change; expected off;"
                " remove it from the unit, then run again"
            )


def _given(host: Host) -> list[Change]:
    """Return the change of the owner of mssql.conf that is necessary before mssql-conf can write it. Raises ChangeFailed."""
    try:
        found = tool.ownership(host)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    return [Change(observe.NAME, OWNER, "persisted", found.before, found.after)] if found else []


def _write(host: Host, wanted: dict[str, str]) -> None:
    """Set what is wanted by mssql-conf, see owner and mode kept, and bring the file to the disk."""
    wanted = {name: word for name, word in wanted.items() if name != OWNER}
    runner, given = tool.runner(host), tool.ownership(host)
    if given:
        host.give_file(tool.CONFIG, given.status, given.user, given.group)
    before = _owner(host)
    for name in _sequence(wanted):
        host.change([*runner, *_arguments(name, wanted[name])])
    after = _owner(host)
    if after is None:
        raise ChangeFailed(f"{tool.CONFIG}: not there after {tool.PATH} has written it; check its output")
    # mssql-conf does not: a power cut now would leave the file empty.
    host.sync(tool.CONFIG)
    if before not in (None, after):
        raise ChangeFailed(
            f"{tool.CONFIG}: observed owner and mode {after}, expected {before} as before; {tool.PATH} changed them: put"
            " them back with chown and chmod"
        )


def _sequence(wanted: dict[str, str]) -> list[str]:
    """Return settings in the order in which they are set: a flag that contradicts another goes before that
    one comes."""
    return sorted(
        (name for name in _ORDER if name in wanted),
        key=lambda name: name in observe.FLAGS and wanted[name] == "on",
    )


def _arguments(name: str, word: str) -> list[str]:
    if name in observe.FLAGS:
        return ["traceflag", str(observe.FLAGS[name]), word]
    if word == _ABSENT:
        return ["unset", f"control.{name}"]
    return ["set", f"control.{name}", word]


def _owner(host: Host) -> str | None:
    """Return user, group and mode of the configuration file, or None."""
    try:
        status = host.locate(tool.CONFIG).status
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    return f"{status.user}:{status.group} {status.mode & 0o7777:o}" if status else None
