# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faircom layer: settings for durable commits in FairCom DB's ctsrvr.cfg. All other bytes stay unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...enforce import file_diff, originals
from ...enforce.arguments import Arguments
from ...enforce.change import Change, attempt, expect_some, verify
from ...facts.classes import InstanceFacts
from ...host import bounded_read, named_by, our_paths
from ...host.seam import ChangeFailed, Host, Unobservable
from ...host.textfile import MARK, Malformed, without_content
from .. import fixes
from .. import restart as servers
from ..restart import Target
from . import ctsrvr, observe
from .builds import WRITE_THROUGH, writes_through
from .fixes import FIXES, REFUSALS

target_of = servers.target_of

#: `FILE SETTING` -> what it was before us: on or off, a value, or absent.
ORIGINALS = our_paths.ORIGINALS_FAIRCOM
_ABSENT = "absent"
_NOTE = f"managed; originals in {ORIGINALS}"
SETTINGS = (*observe.OPTIONS, *observe.KEYWORDS)

_SETTING_WORDS = {
    "LOG_WRITETHRU": {"type": "str", "choices": ["on", "off"]},
    "TDATA_WRITETHRU": {"type": "str", "choices": ["on", "off"]},
    "TINDEX_WRITETHRU": {"type": "str", "choices": ["on", "off"]},
    "SYNC_LOG": {"type": "str", "choices": ["off"]},
    "NO_SYS_FLUSH_ON_CLOSE": {"type": "str", "choices": ["off"]},
    "NO_FLUSH_DIR": {"type": "str", "choices": ["off"]},
    "DELAYED_DURABILITY": {"type": "str", "choices": ["0"]},
    "SUPPRESS_LOG_FLUSH": {"type": "str", "choices": ["NO"]},
    "SUPPRESS_LOG_SYNC": {"type": "str", "choices": ["NO"]},
    "COMMIT_DELAY": {"type": "int"},
}
_TARGET = {
    "instance": {"type": "str", "required": True},
    "settings": {"type": "dict", "required": True, "options": _SETTING_WORDS},
}
ARGUMENTS = Arguments(_TARGET, permissions=("restart",))


class Work(NamedTuple):
    """What there is to do, and by instance: its facts, the text of its file before and after, and as
    whom that is written.

    `failures`: {instance: why it stays as it is}.
    """

    changes: tuple[Change, ...]
    facts: dict[str, InstanceFacts]
    texts: dict[str, tuple[str, str]]
    owners: dict[str, int]
    failures: dict[str, str]


class Release(NamedTuple):
    """What release changes, the texts that files get, the facts of the servers that read them, and as
    whom each file is written."""

    changes: tuple[Change, ...]
    texts: dict[str, str]
    facts: tuple[InstanceFacts, ...]
    owners: dict[str, int]


@named_by.by_others
def plan(host: Host, targets: list[Target], restart: bool = False) -> Work:
    """Return the work that brings the instances to their settings; reads only.

    Raises ChangeFailed, before anything changes, where an instance is not there. One whose file cannot
    be understood or is not what counts, and builds whose write-through does nothing, are failures of
    their own.
    """
    work = Work((), {}, {}, {}, {})
    found = servers.instances(host, observe) if targets else {}
    for target in targets:
        servers.expect_there(found, observe.NAME, target.instance)
    for target in targets:
        try:
            changes = _plan_one(host, work, found[target.instance], target, restart)
        except ChangeFailed as error:
            work.failures[target.instance] = str(error)
            continue
        work = work._replace(changes=(*work.changes, *changes))
    expect_some(work.changes, work.failures)
    return work


def _plan_one(host: Host, work: Work, facts: InstanceFacts, target: Target, restart: bool) -> list[Change]:
    """Add one instance to the work, and return its changes. Raises ChangeFailed."""
    servers.expect_ours(facts)
    _check(facts, target.wanted)
    changes = servers.changes(facts, target.wanted, restart)
    written = {change.setting: change.after for change in changes if change.when == "persisted"}
    if written:
        before = _read(host, facts)
        work.owners[target.instance] = observe.writer(host, _config(facts), facts["pids"])
        work.texts[target.instance] = (before, _edit(before, _config(facts), written))
    work.facts[target.instance] = facts
    return changes


@named_by.by_others
def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read it back, instance by instance. Raises ChangeFailed."""
    wanted = {target.instance: target for target in targets if target.instance not in work.failures}

    def write(name: str) -> None:
        _write(host, work, name)
        verify(plan(host, [wanted[name]]).changes)

    failures = attempt(work.texts, write)
    # One that cannot be written keeps no other from what its restart brings.
    done = [target for name, target in wanted.items() if name not in failures]
    running = [change.target for change in work.changes if change.when == "running"]
    waiting = dict.fromkeys(name for name in running if name not in failures)
    try:
        if waiting:
            servers.restart(host, [work.facts[name] for name in waiting])
            servers.settle(host, observe, waiting, lambda: plan(host, done, restart=True).changes)
    except (ChangeFailed, Unobservable) as error:
        failures["restart"] = str(error)
    if failures:
        raise ChangeFailed("; ".join(failures.values()))


def edits(host: Host, work: Work | Release) -> Iterator[file_diff.Edit]:
    """Yield the files that a plan changes."""
    if isinstance(work, Work):
        for name, (before, after) in work.texts.items():
            yield file_diff.Edit(_config(work.facts[name]), before, after)
    else:
        with named_by.one(host, named_by.UNKNOWN_USER):
            found = {path: _text(host, path) for path in work.owners}
        for path, text in found.items():
            yield file_diff.Edit(path, text, work.texts[path])


@named_by.by_others
def plan_release(host: Host) -> Release:
    """Return what release changes; reads only. A server takes it at its next start.

    Raises ChangeFailed.
    """
    stored = originals.load(host, ORIGINALS)
    if not stored:
        return Release((), {}, (), {})
    texts: dict[str, str] = {}
    changes = []
    for key, word in stored.items():
        path, _blank, name = key.rpartition(" ")
        text = texts[path] if path in texts else _text(host, path)
        if text is None or name not in SETTINGS:
            changes.append(Change(path, name, "persisted", word, "forgotten"))
            continue
        now = _words(text, path)[name]
        changes.append(Change(path, name, "persisted", now, word))
        texts[path] = text if now == word else _edit(text, path, {name: word})
    texts = {path: _unmarked(text) for path, text in texts.items()}
    facts = [facts for facts in servers.instances(host, observe).values() if facts["config"] in texts]
    pids = {one["config"]: one["pids"] for one in facts}
    owners = {
        path: observe.writer(host, path, pids.get(path, ()), restores=True)
        for path in texts
        if texts[path] != _text(host, path)
    }
    return Release(tuple(changes), texts, tuple(facts), owners)


@named_by.by_others
def apply_release(host: Host, work: Release) -> None:
    """Put the originals back into the files, and forget them. Raises ChangeFailed."""
    for facts in work.facts:
        servers.keep_running(host, observe.NAME, facts)
    for path, text in work.texts.items():
        if path in work.owners:
            host.write_file(path, text.encode("utf-8", "surrogateescape"), owner=work.owners[path])
    originals.save(host, {}, ORIGINALS)


def _check(facts: InstanceFacts, wanted: dict[str, str]) -> None:
    """Refuse write-through where the build makes it harm."""
    requested = [name for name in WRITE_THROUGH if wanted.get(name) == "on"]
    known = writes_through(facts["version"])
    if requested and known != "yes":
        raise ChangeFailed(
            f"faircom {facts['name']}: {', '.join(requested)}: observed version {facts['version']}, expected V10.3.1.21834"
            " (build 140307) or later: builds before it neither write through nor flush then; update it, or start"
            " it once where the version is unknown"
        )


def _write(host: Host, work: Work, name: str) -> None:
    facts, (before, after) = work.facts[name], work.texts[name]
    path = _config(facts)
    words = _words(before, path)
    stored = originals.load(host, ORIGINALS)
    new = {
        f"{path} {c.setting}": words[c.setting]
        for c in work.changes
        if c.target == name and c.when == "persisted"
    }
    servers.keep_running(host, observe.NAME, facts)
    originals.save(host, {**new, **stored}, ORIGINALS)
    host.write_file(path, after.encode("utf-8", "surrogateescape"), owner=work.owners[name])


def _config(facts: InstanceFacts) -> str:
    return str(facts["config"])


def _read(host: Host, facts: InstanceFacts) -> str:
    if not facts["config"]:
        refusal = observe.no_file(facts["name"])
        raise fixes.RefusedWith(
            f"faircom {facts['name']}: {fixes.refusal_text(refusal.reason, REFUSALS)}", refusal.fix, FIXES
        )
    try:
        with named_by.of_instance(host, facts["pids"]):
            text = _text(host, facts["config"])
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    if text is None:
        raise ChangeFailed(f"{facts['config']}: not there any more; run again to collect the facts again")
    return text


def _text(host: Host, path: str) -> str | None:
    try:
        return bounded_read.read(host, path)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def _words(text: str, path: str) -> dict[str, str]:
    """Return what a file says of each setting: on or off, a value, or absent."""
    try:
        lines = ctsrvr.parse(text, path)
        flags = ctsrvr.compatibility(lines, path)
        values = {name: ctsrvr.value(lines, name, path) for name in observe.KEYWORDS}
    except Malformed as error:
        raise ChangeFailed(without_content(error)) from None
    found = {name: "on" if name in flags else "off" for name in observe.OPTIONS}
    return {**found, **{name: str(where.value) if where else _ABSENT for name, where in values.items()}}


def _edit(text: str, path: str, wanted: dict[str, str]) -> str:
    """Return the text with settings at the requested values."""
    try:
        for name, word in wanted.items():
            if name in observe.KEYWORDS:
                text = (
                    ctsrvr.unset_keyword(text, name)
                    if word == _ABSENT
                    else ctsrvr.set_keyword(text, name, word, _NOTE)
                )
            elif word == "on":
                text = ctsrvr.add_compatibility(text, name, _NOTE)
            else:
                text = ctsrvr.remove_compatibility(text, name)
    except ValueError as error:
        raise ChangeFailed(f"{path}: {error}") from error
    return text


def _unmarked(text: str) -> str:
    """Return a text without our comments."""
    mark = f"{ctsrvr.SIGN} {MARK}: {_NOTE}"
    return "".join(line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") != mark)
