# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mariadb layer: settings of MariaDB and MySQL, in the running server and in an option file of our own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ...enforce import file_diff
from ...enforce.arguments import Arguments
from ...enforce.change import Change, each, expect_some, verify
from ...facts.classes import InstanceFacts
from ...host import named_by
from ...host.observation import NOTHING, UNKNOWN
from ...host.seam import ChangeFailed, Host, Unobservable
from .. import causes
from .. import restart as servers
from ..collect import Engines
from ..instance import Instance
from ..restart import Target, expect_there, restart_limit, settle
from . import client, drop_in, observe, options, owners, versions
from .expected import of_flavour
from .snapshot import Snapshot, examine

target_of = servers.target_of

NAME = "mariadb"
#: What can be set.
SETTINGS = (versions.LOG, versions.BINLOG, versions.DOUBLEWRITE, versions.METHOD, versions.REDO)
#: Writes what is in the log's buffer, and flushes it only where a commit would: at 1.
_FLUSH = (f"SET GLOBAL {versions.LOG} = 1", "FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")

_TARGET = {
    "instance": {"type": "str", "required": True},
    "settings": {"type": "dict", "required": True},
}
ARGUMENTS = Arguments(_TARGET, permissions=("restart",))


class Step(NamedTuple):
    """What is done to one server.

    `client` is the command that it lets in; `statements` are executed in order, `unit` is restarted, None
    without need, within `limit` seconds; and in the end the file systems of `flush` are flushed: `pending_flush` is
    the note that this flush is pending, for the next run. `shown`: what it has to say of itself then.
    """

    client: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    unit: str | None = None
    limit: float = 0.0
    flush: tuple[str, ...] = ()
    pending_flush: str = ""
    shown: Mapping[str, str] = MappingProxyType({})


class Work(NamedTuple):
    """What there is to do: server by server, and {path: text} of the option files that result.

    `failures`: {server: why it stays as it is}.
    """

    changes: tuple[Change, ...]
    steps: dict[str, Step]
    files: dict[str, str]
    restart: bool
    failures: Mapping[str, str] = MappingProxyType({})


class Planned(NamedTuple):
    """One server of a plan: its snapshot, its wanted settings, and those of them that its option files get."""

    snapshot: Snapshot
    wanted: dict[str, str]
    stale: dict[str, str]


class Release(NamedTuple):
    """What release changes: our option files go, the servers keep their settings until they start again.

    `failures`: {path: why it stays}.
    """

    changes: tuple[Change, ...]
    files: tuple[str, ...]
    failures: dict[str, str]


@named_by.by_others
def plan(host: Host, targets: list[Target], restart: bool = False) -> Work:
    """Return the work that brings the servers to their settings; reads only.

    `restart`: whether a server may be restarted for a setting that waits for it. Raises ChangeFailed,
    before anything changes, when a server is not there or when targets contradict each other. A server
    that cannot be queried, belongs to another program, does not know a setting, or where something would go
    on overriding what is written, is a separate failure.
    """
    names = [target.instance for target in targets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ChangeFailed(
            f"{twice}: observed twice among the targets; expected each server once, with all its settings"
        )
    engines, found = _servers(host) if targets else (None, {})
    work = Work((), {}, {}, restart)
    for target in targets:
        expect_there(found, NAME, target.instance)
    snapshots, failures = _snapshots(host, engines, [found[target.instance] for target in targets])
    checked: dict[str, Planned] = {}
    known = [target for target in targets if target.instance in snapshots]
    # Servers with separate groups read those of the others as well.
    for target in sorted(known, key=lambda target: _is_apart(snapshots[target.instance])):
        name, snapshot = target.instance, snapshots[target.instance]
        try:
            wanted = _wanted_values(target, snapshot)
            with named_by.of_instance(host, found[name]["pids"]):
                work, stale = _plan_one(work, found[name], snapshot, wanted)
            checked[name] = Planned(snapshot, wanted, stale)
        except (ChangeFailed, Unobservable) as error:
            failures[name] = f"{name}: {error}"
    cleaned = _clean(host, work, snapshots.values()) if targets else work
    _expect_set_apart(host, {name: found[name]["pids"] for name in checked}, checked, cleaned)
    if cleaned is not work or any(map(_loosens, checked.values())):
        others = [facts for name, facts in found.items() if name not in checked and _is_shared(facts)]
        _expect_no_harm(host, engines, others, cleaned)
    expect_some(cleaned.changes, failures)
    return cleaned._replace(failures=failures)


def _snapshots(
    host: Host, engines: Engines | None, instances: Iterable[InstanceFacts]
) -> tuple[dict[str, Snapshot], dict[str, str]]:
    """Return the snapshots of the servers that are ours to change, and why others are not, by their names."""
    found, failures = {}, {}
    for facts in instances:
        try:
            _expect_ours(facts)
            with named_by.of_instance(host, facts["pids"]):
                found[facts["name"]] = _examine(host, engines, facts)
        except (ChangeFailed, Unobservable) as error:
            failures[facts["name"]] = f"{facts['name']}: {error}"
    return found, failures


def _clean(host: Host, work: Work, checked: Iterable[Snapshot]) -> Work:
    """Return the work with our files without what is not from our own lists: earlier releases wrote group suffixes."""
    places = dict.fromkeys(drop_in.PLACES)
    for snapshot in checked:
        with contextlib.suppress(ChangeFailed):
            places.update(dict.fromkeys(drop_in.places(snapshot)))
    for path, lines, text in drop_in.strange(host, places):
        changes = [Change(path, name, "persisted", "present", "absent") for name in lines]
        work = work._replace(changes=(*work.changes, *changes), files={path: text, **work.files})
    return work


def _expect_set_apart(
    host: Host, pids: Mapping[str, list[int]], checked: Mapping[str, Planned], work: Work
) -> None:
    """Raise ChangeFailed if what one target needs would undo what another does: servers may share files."""
    for name, (snapshot, wanted, stale) in checked.items():
        others = [setting for setting in wanted if setting not in stale and setting != versions.REDO]
        try:
            with named_by.of_instance(host, pids[name]):
                left = drop_in.beaten(snapshot, stale, work.files) if stale else ""
                changed = drop_in.changed(snapshot, others, work.files) if work.files else {}
        except Unobservable as error:
            raise ChangeFailed(f"{name}: {error}") from error
        if left:
            raise ChangeFailed(f"{name}: {left}")
        for setting, coming in changed.items():
            raise ChangeFailed(f"{name}: {_undone(snapshot, setting, coming, wanted[setting])}")


def _expect_no_harm(host: Host, engines: Engines | None, others: Iterable[InstanceFacts], work: Work) -> None:
    """Raise ChangeFailed where a server whose own settings are left unchanged would lose more commits with these files."""
    for facts in others if work.files else ():
        settings = [setting for setting in facts["settings"] if versions.is_option(setting)]
        try:
            with named_by.of_instance(host, facts["pids"]):
                snapshot = _examine(host, engines, facts)
                changed = drop_in.changed(snapshot, settings, work.files)
        except (ChangeFailed, Unobservable) as error:
            raise ChangeFailed(
                f"{facts['name']}: its next start cannot be read ({error}), and it can read the option files of this run."
                " Fix: correct that, then run again"
            ) from error
        for setting, coming in changed.items():
            if not _is_full(facts, setting, coming.word):
                safe = of_flavour(facts.get("flavour"))[setting].value
                raise ChangeFailed(f"{facts['name']}: {_undone(snapshot, setting, coming, safe)}")


def _loosens(planned: Planned) -> bool:
    """Return whether a server gets a value with which commits can be lost."""
    flavour = planned.snapshot.version.flavour if planned.snapshot.version else None
    return any(not _allows(flavour, name, word) for name, word in planned.stale.items())


def _is_shared(facts: InstanceFacts) -> bool:
    """Return whether a server of the system can read the same option files. Others choose at their own risk."""
    return not facts["root"] and facts["managed_by"] not in ("container", "none", UNKNOWN)


def _undone(snapshot: Snapshot, setting: str, coming: options.NextValue, wanted: str) -> str:
    return (
        f"{setting} would be {coming.word} at the next start (from {coming.origin}), must be {wanted}: the server reads the"
        " option files of this run as well. Fix:"
        f" {owners.fix(snapshot, {setting: wanted}, drop_in.group(snapshot))}; then run again"
    )


@named_by.by_others
def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read it back. Raises ChangeFailed."""
    failures = []
    try:
        each(work.steps, lambda name: _tell(host, work.steps[name]))
    except ChangeFailed as error:
        # The others are done all the same, and this one is safe at its next start.
        failures.append(str(error))
    try:
        each(
            work.files,
            lambda path: host.write_file(path, work.files[path].encode("utf-8", "surrogateescape")),
        )
        each(work.steps, lambda name: _restart(host, work.steps[name]))
    except ChangeFailed as error:
        failures.append(str(error))
    if failures:
        raise ChangeFailed("; ".join(failures))
    done = [target for target in targets if target.instance not in work.failures]
    restarted = [name for name, step in work.steps.items() if step.unit]
    if restarted:
        settle(host, observe, restarted, lambda: _left(host, work, done, restarted))
    verify(plan(host, done, work.restart).changes)


def edits(host: Host, work: Work | Release) -> Iterable[file_diff.Edit]:
    """Return the files that a plan changes."""
    return file_diff.of_root(
        host, dict.fromkeys(work.files) if isinstance(work, Release) else dict(work.files)
    )


def _left(host: Host, work: Work, targets: list[Target], restarted: Iterable[str]) -> Iterable[Change]:
    """Yield what is not done yet, and what servers that answered before their restart do not report yet."""
    yield from plan(host, targets, work.restart).changes
    _engines, found = _servers(host)
    for name in restarted:
        expect_there(found, NAME, name)
        for setting, word in work.steps[name].shown.items():
            if _value_of(found[name], setting, "running") == UNKNOWN:
                yield Change(name, setting, "running", UNKNOWN, word)


@named_by.by_others
def plan_release(host: Host) -> Release:
    """Return what release changes; reads only. Raises ChangeFailed."""
    engines, found = _servers(host)
    places = dict.fromkeys(drop_in.PLACES)
    for facts in found.values():
        if not facts["root"]:
            try:
                with named_by.of_instance(host, facts["pids"]):
                    places.update(dict.fromkeys(drop_in.directories(_examine(host, engines, facts))))
            except (ChangeFailed, Unobservable):
                pass  # Where it includes nothing that can be understood, nothing of ours was written.
    changes = []
    ours, failures = drop_in.ours(host, places)
    for path, groups in ours.items():
        changes.append(Change(path, "drop_in", "persisted", "present", "absent"))
        changes += [
            Change(path, f"{name} of [{group}]", "persisted", value, "unset")
            for group, settings in groups.items()
            for name, value in settings.items()
        ]
    expect_some(changes, failures)
    return Release(tuple(changes), tuple(ours), failures)


@named_by.by_others
def apply_release(host: Host, work: Release) -> None:
    """Take our option files away. Raises ChangeFailed."""
    for path in work.files:
        host.remove_file(path)


def _servers(host: Host) -> tuple[Engines, dict[str, InstanceFacts]]:
    """Return the facts of the servers by name. Raises ChangeFailed."""
    try:
        engines = Engines(host, (NAME,))
        found = {facts["name"]: facts for facts in engines.instances()}
    except Unobservable as error:
        raise ChangeFailed(f"MariaDB and MySQL: {error}") from error
    for why in engines.failed.values():
        raise ChangeFailed(f"MariaDB and MySQL: {causes.text(why.as_dict())}")
    return engines, found


def _expect_ours(facts: InstanceFacts) -> None:
    """Raise ChangeFailed where the settings of a server are not ours to change."""
    if facts["managed_by"] in ("container", UNKNOWN) or facts["root"] or facts["namespace"] == UNKNOWN:
        raise ChangeFailed(
            f"managed by {facts['managed_by']}, namespace {facts['namespace']}; expected a server of this host"
            " whose manager is known; set it by its manager"
        )


def _examine(host: Host, engines: Engines | None, facts: InstanceFacts) -> Snapshot:
    if engines is None:
        raise ChangeFailed("no engines were searched for; run again")
    found = Instance(NAME, facts["name"], unit=facts["unit"], flavour=facts.get("flavour"))
    main = engines.processes.all.get(facts["pids"][0]) if facts["pids"] else None
    if main is None:
        return examine(host, found._replace(begins=engines.begins.get(facts["unit"] or "")), None)
    try:
        directories = (engines.processes.directory(main),)
        place = engines.places.of(main)
    except Unobservable as error:
        raise ChangeFailed(f"{error}; run again") from error
    return examine(host, found._replace(processes=(main,), directories=directories), place)


def _is_apart(snapshot: Snapshot) -> bool:
    """Return whether nothing is written into root's option files for a server; also if that is unknown."""
    try:
        return bool(owners.apart(snapshot, drop_in.places(snapshot)))
    except ChangeFailed:
        return True


def _wanted_values(target: Target, snapshot: Snapshot) -> dict[str, str]:
    """Return the requested settings as the server writes them. Raises ChangeFailed."""
    if snapshot.version is None:
        raise ChangeFailed(snapshot.reason or "its version is unknown")
    wanted = {}
    for name, word in target.wanted.items():
        if name not in SETTINGS or name not in versions.names(snapshot.version):
            why = versions.why_absent(snapshot.version, name)
            raise ChangeFailed(f"{name}: {why}; expected {', '.join(SETTINGS)}")
        try:
            wanted[name] = versions.word(snapshot.version, name, word)
        except ValueError as error:
            raise ChangeFailed(f"{name}: {error}") from error
        if name == versions.REDO and wanted[name] != "ON":
            raise ChangeFailed(f"{name}: observed {word}; expected ON: it is never switched off here")
    return wanted


def _plan_one(
    work: Work, facts: InstanceFacts, snapshot: Snapshot, wanted: dict[str, str]
) -> tuple[Work, dict[str, str]]:
    """Return the work with what one server needs, and the settings that its option file gets."""
    stale = _stale(facts, wanted)
    wrong = _wrong(facts, wanted)
    waiting = [name for name in wrong if name not in versions.LIVE]
    unit = facts["unit"] if work.restart and waiting and facts["managed_by"] == "systemd" else None
    now = {name: word for name, word in wrong.items() if unit or name not in waiting}
    changes = [
        Change(facts["name"], name, "running", _value_of(facts, name, "running"), word)
        for name, word in now.items()
    ]
    changes += [
        Change(facts["name"], name, "persisted", _value_of(facts, name, "persisted"), word)
        for name, word in stale.items()
    ]
    files = drop_in.write(snapshot, stale, work.files) if stale else {}
    steps = dict(work.steps)
    if now:
        tightened = any(_tightens(facts, name, word) for name, word in now.items())
        steps[facts["name"]] = Step(
            client=snapshot.client,
            statements=tuple(_statements(facts, now)),
            unit=unit,
            limit=restart_limit(facts),
            flush=tuple(facts["directories"]) if tightened else (),
            pending_flush=observe.pending_flush_path(snapshot.data),
            shown=now,
        )
    planned = work._replace(changes=(*work.changes, *changes), steps=steps, files={**work.files, **files})
    return planned, stale


def _stale(facts: InstanceFacts, wanted: dict[str, str]) -> dict[str, str]:
    """Return the settings that will be something else at the next start. Raises ChangeFailed."""
    stale = {}
    for name, word in wanted.items():
        persisted = _value_of(facts, name, "persisted")
        if name == versions.REDO or persisted == word:
            continue
        if persisted == UNKNOWN:
            reason = causes.text(facts["settings"][name])
            raise ChangeFailed(
                f"{name}: observed nothing that counts ({reason}); expected {word}; correct that, then run again"
            )
        stale[name] = word
    return stale


def _wrong(facts: InstanceFacts, wanted: dict[str, str]) -> dict[str, str]:
    """Return the settings that the running server has otherwise, and not in a way that will do as well."""
    return {
        name: word
        for name, word in wanted.items()
        if _value_of(facts, name, "running") not in (word, UNKNOWN, "stopped")
        and not (_is_full(facts, name, word) and _is_full(facts, name, _value_of(facts, name, "running")))
    }


def _statements(facts: InstanceFacts, now: dict[str, str]) -> Iterable[str]:
    """Yield what has a running server take its settings, and flush what it has not flushed until now."""
    if versions.REDO in now:
        yield "ALTER INSTANCE ENABLE INNODB REDO_LOG"
    if versions.BINLOG in now:
        yield f"SET GLOBAL {versions.BINLOG} = {now[versions.BINLOG]}"
    if versions.LOG not in now:
        return
    word = now[versions.LOG]
    if _tightens(facts, versions.LOG, word):
        yield from _FLUSH
    if word != "1" or not _tightens(facts, versions.LOG, word):
        yield f"SET GLOBAL {versions.LOG} = {word}"


def _tell(host: Host, step: Step) -> None:
    if step.flush:
        host.write_file(step.pending_flush, b"")
    if step.statements:
        host.change(client.statements(step.client, step.statements))
    # What was written to binary logs and data files without a flush is in the kernel's memory.
    _flush(host, step)
    if step.flush and not step.unit:
        host.remove_file(step.pending_flush)


def _restart(host: Host, step: Step) -> None:
    if step.unit:
        host.change(["systemctl", "restart", "--", step.unit], timeout=step.limit)
        _flush(host, step)
        if step.flush:
            host.remove_file(step.pending_flush)


def _flush(host: Host, step: Step) -> None:
    if step.flush:
        for path in step.flush:
            host.sync(path, whole=True)


def _value_of(facts: InstanceFacts, name: str, when: str) -> str:
    row = facts["settings"].get(name)
    if row is None:
        why = causes.text(facts["evidence"].get("observation", NOTHING)) or "it was not read"
        raise ChangeFailed(f"{name} cannot be read, so it is not set: {why}")
    return row["running"] if when == "running" else row["persisted"]


def _tightens(facts: InstanceFacts, name: str, word: str) -> bool:
    return _is_full(facts, name, word) and not _is_full(facts, name, _value_of(facts, name, "running"))


def _is_full(facts: InstanceFacts, name: str, word: str) -> bool:
    """Return whether commits survive with a word."""
    return _allows(facts.get("flavour"), name, word)


def _allows(flavour: str | None, name: str, word: str) -> bool:
    rule = of_flavour(flavour).get(name)
    return bool(rule and rule.allows(word))
