# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The postgresql layer: settings of clusters, by a file of our own that is read last, and by a reload."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ...enforce import file_diff, ownership
from ...enforce.arguments import Arguments
from ...enforce.change import Change, each, expect_some, verify
from ...facts.classes import InstanceFacts, OverrideFacts, SettingFacts
from ...host import confined, named_by
from ...host.observation import NOTHING, UNKNOWN
from ...host.process_context import is_there
from ...host.processes import argv_of
from ...host.seam import ChangeFailed, Host, Unobservable
from ...host.textfile import without_content
from .. import causes
from .. import restart as servers
from ..collect import Engines
from ..instance import Override
from ..owners import where_to_set
from ..restart import Target, restart_limit
from . import alter, drop_in, restore, server
from . import cluster as postgresql_cluster
from .alter import Original
from .cluster import UNFLUSHED, Cluster, Files
from .server import Login

target_of = servers.target_of

#: Settings that wait for a restart.
_WAITING = ("data_sync_retry",)
#: Settings that, once they are on, protect only what is written from then on.
_OWING = ("fsync", "full_page_writes")
#: Who keeps the settings elsewhere.
_OWNERS = {
    "patroni": "Patroni writes its files",
    "container": "it runs in a container, or with another root directory",
    UNKNOWN: "its manager is unknown",
}
#: Seconds until a server shows a new value, and until statements that began before have ended.
PATIENCE = 60.0
_PAUSE = 0.5
#: Seconds that a checkpoint, or a flush of a whole data directory, may take.
FLUSH_TIMEOUT = 3600.0

_SETTING_WORDS = {
    "fsync": {"type": "str", "choices": ["on", "off"]},
    "full_page_writes": {"type": "str", "choices": ["on", "off"]},
    "synchronous_commit": {"type": "str", "choices": ["on", "off", "local", "remote_write", "remote_apply"]},
    "wal_sync_method": {"type": "str", "choices": ["fdatasync", "fsync", "open_datasync", "open_sync"]},
    "data_sync_retry": {"type": "str", "choices": ["on", "off"]},
}
_OVERRIDE = {
    "setting": {"type": "str", "required": True, "choices": list(_SETTING_WORDS)},
    "role": {"type": "str"},
    "database": {"type": "str"},
}
_TARGET = {
    "instance": {"type": "str", "required": True},
    "settings": {"type": "dict", "required": True, "options": _SETTING_WORDS},
    "overrides": {"type": "list", "elements": "dict", "default": [], "options": _OVERRIDE},
}
ARGUMENTS = Arguments(_TARGET, permissions=("restart", "alter_system"))


class Step(NamedTuple):
    """What is done to one cluster.

    `writes`: {path: (text before or None, text after)}, in order, as the users of `owners`. `login` is None for a stopped one.
    `removed`: the settings that the server itself removes, with their values.
    `shown`: the settings that the running server has to show. `flush`: those that were off until now.
    `restart`: the unit to restart, or None; `limit`: the seconds that this may take.
    """

    instance: str
    data: str
    login: Login | None
    initdb: list[str]
    writes: dict[str, tuple[str | None, str]]
    owners: dict[str, int]
    removed: dict[Original, str]
    shown: dict[str, str]
    reload: bool
    flush: tuple[str, ...]
    restart: str | None
    limit: float


class Work(NamedTuple):
    """What there is to do, cluster by cluster, whether servers may be restarted for it, and may remove what ALTER
    SYSTEM, ALTER ROLE and ALTER DATABASE have set.

    `failures`: {cluster: why it, or a setting of it, stays as it is}; `possible`: the clusters that do not
    stay, each with the settings that can be set.
    """

    changes: tuple[Change, ...]
    steps: dict[str, Step]
    restart: bool
    alter_system: bool
    failures: dict[str, str]
    possible: tuple[Target, ...]


class Release(NamedTuple):
    """What release changes: {configuration: its text without our line}, the files that go, and as whom each
    of all these is changed; `texts`: what they contain now.

    `failures`: {cluster: why what is ours stays there}.
    """

    changes: tuple[Change, ...]
    writes: dict[str, str]
    owners: dict[str, int]
    files: tuple[str, ...]
    failures: dict[str, str]
    back: tuple[restore.Cluster, ...]
    stored: dict[str, str]
    texts: dict[str, str | None]


@named_by.by_others
def plan(host: Host, targets: list[Target], restart: bool = False, alter_system: bool = False) -> Work:
    """Return the work that brings the clusters to their settings; reads only.

    `restart`: whether a server may be restarted for a setting that waits for it; `alter_system`: whether it may
    remove what ALTER SYSTEM has set, and the overrides of the targets. Raises ChangeFailed, before anything changes, when
    a cluster is not there. One that cannot be queried, or belongs to another manager, is a separate failure; so is a setting
    that cannot be read, or where something would go on beating what is written: the others of its cluster are still set.
    """
    found = _clusters(host) if targets else {}
    changes: list[Change] = []
    steps: dict[str, Step] = {}
    failures: dict[str, str] = {}
    possible: list[Target] = []
    for target in targets:
        if target.instance not in found:
            raise ChangeFailed(
                f"{target.instance}: no cluster of that name is there; expected one of"
                f" {', '.join(sorted(found)) or 'none that is here'}; run again to collect the facts again"
            )
    for target in targets:
        try:
            with named_by.of_instance(host, found[target.instance]["pids"]):
                step, own, left = _step(host, found[target.instance], target, restart, alter_system)
        except (ChangeFailed, Unobservable, ValueError) as error:
            failures[target.instance] = f"{target.instance}: {without_content(error)}"
            continue
        if left:
            failures[target.instance] = f"{target.instance}: {'; '.join(left.values())}"
        overrides = tuple(each for each in target.overrides if _whose(each) not in left)
        possible.append(Target(target.instance, _without(target.wanted, left), overrides))
        changes += own
        if own:
            steps[target.instance] = step
    expect_some(changes, failures)
    return Work(tuple(changes), steps, restart, alter_system, failures, tuple(possible))


@named_by.by_others
def apply(host: Host, work: Work, targets: list[Target]) -> None:
    """Do the work and read back what of the targets can be set. Raises ChangeFailed."""
    each(work.steps, lambda name: _do(host, work.steps[name]))
    verify(plan(host, list(work.possible), work.restart, work.alter_system).changes)


def edits(host: Host, work: Work | Release) -> list[file_diff.Edit]:
    """Return the files that a plan changes."""
    if isinstance(work, Work):
        return [
            file_diff.Edit(path, *texts)
            for step in work.steps.values()
            for path, texts in step.writes.items()
        ]
    return [file_diff.Edit(path, text, work.writes.get(path)) for path, text in work.texts.items()]


@named_by.by_others
def plan_release(host: Host) -> Release:
    """Return what release changes; reads only.

    Our files and lines go; a server keeps its settings until it reads its files again. Raises
    ChangeFailed.
    """
    writes: dict[str, str] = {}
    owners: dict[str, int] = {}
    gone: list[str] = []
    texts: dict[str, str | None] = {}
    found = _clusters(host)
    back, changes, stored, failures = restore.plan(host, found)
    for name, facts in found.items():
        if facts["root"] or not facts["config"]:
            continue
        try:
            files = Files(host, "")
            with named_by.of_instance(host, facts["pids"]):
                if files.read(facts["config"]) is None:
                    continue
                ours = drop_in.ours(files, facts["config"])
                text = drop_in.without_line(files, facts["config"])
                own = [*ours, *([facts["config"]] if text != files.read(facts["config"]) else [])]
                before = {path: files.read(path) for path in own}
            user = ownership.user_of(host, facts["pids"], facts["config"]) if own else 0
            writers = {path: drop_in.writer(host, path, facts["config"], user, restores=True) for path in own}
        except (ChangeFailed, Unobservable, ValueError) as error:
            failures[name] = f"{name}: {without_content(error)}"
            continue
        owners.update(writers)
        texts.update(before)
        for path, settings in ours.items():
            changes.append(Change(path, "drop_in", "persisted", "present", "absent"))
            changes += [Change(name, key, "persisted", value, "unset") for key, value in settings.items()]
            gone.append(path)
        if text != files.read(facts["config"]):
            changes.append(Change(facts["config"], "include", "persisted", "present", "absent"))
            writes[facts["config"]] = text
    expect_some(changes, failures)
    return Release(tuple(changes), writes, owners, tuple(gone), failures, back, stored, texts)


@named_by.by_others
def apply_release(host: Host, work: Release) -> None:
    """Take our lines and files away. Raises ChangeFailed."""
    # First what counts over our files.
    restore.apply(host, work.back, work.stored)
    each([*work.writes, *work.files], lambda path: _release(host, work, path))


def _release(host: Host, work: Release, path: str) -> None:
    if path in work.writes:
        host.write_file(path, _bytes(work.writes[path]), owner=work.owners[path])
    else:
        host.remove_file(path, owner=work.owners[path])


def _clusters(host: Host) -> dict[str, InstanceFacts]:
    """Return the facts of the clusters by name."""
    try:
        engines = Engines(host, ("postgresql",))
        found = {facts["name"]: facts for facts in engines.instances()}
    except Unobservable as error:
        raise ChangeFailed(f"PostgreSQL: {error}") from error
    for why in engines.failed.values():
        raise ChangeFailed(f"PostgreSQL: {causes.text(why.as_dict())}")
    return found


def _step(
    host: Host, facts: InstanceFacts, target: Target, restart: bool, alter_system: bool
) -> tuple[Step, list[Change], dict[str, str]]:
    """Return the work on one cluster, its changes, and {setting: why it stays as it is}.

    Raises ChangeFailed, ValueError.
    """
    wanted, rows, left = _possible(facts, target, alter_system)
    pid = facts["pids"][0] if facts["state"] == "running" else None
    argv = argv_of(host, pid) if pid else None
    files = Files(host, "")
    data = facts["directories"][0] if pid else None
    cluster = postgresql_cluster.read(host, files, str(facts["config"]), data, argv, facts["unit"])
    settings = facts["settings"]
    stale = {s: w for s, w in wanted.items() if not _is_persisted(settings[s], w)}
    resets = [s for s in stale if alter_system and settings[s]["permission"]]
    cluster, writes, beaten = _writes(files, cluster, stale, resets)
    left.update(beaten)
    stale, wanted = _without(stale, beaten), _without(wanted, beaten)
    live = _live(facts, wanted, argv, restart)
    flush = _flushes(facts, wanted, live.shown)
    login = server.login(host, pid, cluster.data) if pid else None
    user = ownership.user_of(host, facts["pids"], cluster.data) if writes else 0
    step = Step(
        instance=target.instance,
        data=cluster.data,
        login=login,
        initdb=_initdb(host, cluster, login) if "fsync" in flush else [],
        writes=writes,
        owners={path: drop_in.writer(host, path, cluster.config, user) for path in writes},
        removed=alter.removed(target.instance, settings, [s for s in resets if s in stale], rows),
        shown=live.shown,
        reload=_reloads(settings, live) or bool(live.waiting and stale and not live.restart),
        flush=flush,
        restart=live.restart,
        limit=restart_limit(facts),
    )
    # One that is stopped is flushed before its next start has fsync on.
    persisted = {**stale, "fsync": "on"} if flush and not pid else stale
    return step, _changes(target.instance, settings, live.shown, persisted, rows), left


def _possible(
    facts: InstanceFacts, target: Target, alter_system: bool
) -> tuple[dict[str, str], list[OverrideFacts], dict[str, str]]:
    """Return the settings that can be set, the rows of roles and databases to unset, and {setting: why it stays as it is}.

    Raises ChangeFailed if nothing can be set.
    """
    _refuse(facts, sorted({*target.wanted, *(each.setting for each in target.overrides)}))
    rows, staying = alter.wanted_of(facts, target.overrides) if alter_system else ([], {})
    # The value that a role's setting hides is readable after its removal.
    left = {**_unread(facts, target.wanted, {row["setting"] for row in rows}), **staying}
    wanted = _without(target.wanted, left)
    if left and not wanted and not target.overrides:
        raise ChangeFailed("; ".join(left.values()))
    return wanted, rows, left


def _is_persisted(row: SettingFacts, word: str) -> bool:
    return row["persisted"] == word or (word == "on" and row["persisted"] == UNFLUSHED)


def _writes(
    files: Files, cluster: Cluster, stale: dict[str, str], resets: list[str]
) -> tuple[Cluster, dict[str, tuple[str | None, str]], dict[str, str]]:
    """Return the cluster without what ALTER SYSTEM set, the files to write for it, and {setting: what beats our file}."""
    if resets:
        files, cluster = alter.without(files, cluster, resets)
    # Where the files, or their absence, say what is wanted once that is gone, nothing is written.
    needed = {
        s: w for s, w in stale.items() if s not in resets or postgresql_cluster.won(cluster, s).word != w
    }
    writes, beaten = drop_in.writes(files, cluster, needed) if needed else ({}, {})
    return cluster, writes, beaten


class _Live(NamedTuple):
    """What a running server will show: these settings; those `waiting` for a restart; the unit to restart for them, if any."""

    shown: dict[str, str]
    waiting: list[str]
    restart: str | None


def _live(facts: InstanceFacts, wanted: dict[str, str], argv: list[str] | None, restart: bool) -> _Live:
    settings, is_running = facts["settings"], facts["state"] == "running"
    wrong = {s: w for s, w in wanted.items() if is_running and settings[s]["running"] != w}
    # One that is on already, and unflushed, waits for nothing.
    waiting = _waiting((s for s in wrong if settings[s]["running"] != UNFLUSHED), argv)
    unit = facts["unit"] if restart and waiting and facts["managed_by"] == "systemd" else None
    return _Live({s: w for s, w in wrong.items() if unit or s not in waiting}, waiting, unit)


def _flushes(facts: InstanceFacts, wanted: dict[str, str], shown: dict[str, str]) -> tuple[str, ...]:
    """Return the settings for which what was written before must be flushed."""
    if facts["state"] == "running":
        return tuple(s for s in _OWING if shown.get(s) == "on")
    return ("fsync",) if facts["settings"]["fsync"]["persisted"] != "on" == wanted.get("fsync") else ()


def _changes(
    instance: str,
    settings: dict[str, SettingFacts],
    shown: dict[str, str],
    persisted: dict[str, str],
    rows: Iterable[OverrideFacts],
) -> list[Change]:
    return [
        *(Change(instance, s, "running", settings[s]["running"], w) for s, w in shown.items()),
        *(Change(instance, s, "persisted", settings[s]["persisted"], w) for s, w in persisted.items()),
        *(
            Change(f"{instance} {row['scope']}", row["setting"], "persisted", row["value"], "unset")
            for row in rows
        ),
    ]


def _refuse(facts: InstanceFacts, names: Iterable[str]) -> None:
    """Raise ChangeFailed where a cluster is not ours to write, or is not understood; `names`: the settings to write."""
    manager = facts["managed_by"]
    if manager in _OWNERS or facts["root"]:
        why = causes.text(facts["evidence"].get("managed_by", NOTHING))
        row = f"{_OWNERS.get(manager, _OWNERS['container'])}{f' ({why})' if why else ''}"
        what = ", ".join(names)
        fix = where_to_set(facts, what) or f"set {what} in its configuration file below {facts['root']}"
        raise ChangeFailed(f"{row}. Fix: {fix}")
    if "observation" in facts["evidence"]:
        raise ChangeFailed(causes.text(facts["evidence"]["observation"]))


def _unread(facts: InstanceFacts, wanted: dict[str, str], hidden: Collection[str]) -> dict[str, str]:
    """Return {setting: why it cannot be read} of those that are wanted; of `hidden` ones what runs may be unknown."""
    found = {}
    for setting in wanted:
        row = facts["settings"].get(setting)
        if row and setting in hidden and row["persisted"] != UNKNOWN:
            continue
        if row is None or UNKNOWN in (row["running"], row["persisted"]):
            why = causes.text(row) if row else "it was not read"
            found[setting] = f"{setting} cannot be read, so it is not set: {why}"
    return found


def _whose(override: Override) -> str:
    return f"{override.setting} of {alter.scope(override.role, override.database)}"


def _without(settings: dict[str, str], left: dict[str, str]) -> dict[str, str]:
    return {name: word for name, word in settings.items() if name not in left}


def _waiting(wrong: Iterable[str], argv: list[str] | None) -> list[str]:
    """Return the settings that only a restart changes: also those that the command line has fixed."""
    pinned = postgresql_cluster.settings_of(argv[1:]) if argv else {}
    return [name for name in wrong if name in _WAITING or name in pinned]


def _reloads(settings: dict[str, SettingFacts], live: _Live) -> bool:
    """Return whether a reload changes anything: one that is on and unflushed is there already."""
    return any(name not in live.waiting and settings[name]["running"] != UNFLUSHED for name in live.shown)


def _initdb(host: Host, cluster: Cluster, login: Login | None) -> list[str]:
    """Return the command that flushes a data directory, with its log and tablespaces."""
    if login:
        uid, places = login.uid, [login.programs]
    else:
        version = (Files(host, "").read(f"{cluster.data}/PG_VERSION") or "").strip()
        # Whoever owns the directory can write anything there, and it leads to a program.
        if not re.fullmatch(r"[0-9.]{1,20}", version, re.ASCII):
            raise Unobservable(f"{cluster.data}/PG_VERSION: it names no version")
        status = host.locate(cluster.data).status
        if status is None:
            raise Unobservable(f"{cluster.data}: its owner is unknown: it is not there")
        if status.user == 0:
            raise Unobservable(f"{cluster.data}: observed root as its owner; expected the user of the server")
        uid = status.user
        places = [f"/usr/lib/postgresql/{version}/bin", f"/usr/pgsql-{version}/bin", "/usr/bin"]
    for place in places:
        program = posixpath.join(place, "initdb")
        if is_there(host, program):
            return confined.command(
                host, confined.account(host, uid), [program, "--sync-only", "-D", cluster.data]
            )
    raise Unobservable(f"initdb is not in {', '.join(places)}; expected it, to flush what was written")


def _do(host: Host, step: Step) -> None:
    """Write, let the server take it, flush what was written before.

    Killed anywhere in between, the pending flush stays noted, and the setting is reported as unflushed.
    """
    for name in step.flush:
        host.write_file(postgresql_cluster.pending_flush_path(step.data, name), b"")
    for path, (before, after) in step.writes.items():
        if Files(host, "").read(path) != before:
            raise ChangeFailed(f"{path}: another process changed it meanwhile; run again")
        host.write_file(path, _bytes(after), owner=step.owners[path])
    if step.login and step.removed:
        _take(host, step, step.login)
    if step.login and step.reload:
        server.tell(host, step.login, "SELECT pg_catalog.pg_reload_conf()")
    if step.restart:
        host.change(["systemctl", "restart", "--", step.restart], step.limit)
    if step.login and step.shown:
        _await_settings(host, step)
    if step.flush:
        _flush(host, step)


def _take(host: Host, step: Step, login: Login) -> None:
    """Have the server remove its own settings, stored as originals first; our file is in effect by then. Raises ChangeFailed."""
    alter.keep(host, step.removed)
    alter.note_sessions(host, step.data, _ask(host, step)["now"], step.removed)
    each(
        [original.statement(None) for original in step.removed],
        lambda statement: server.tell(host, login, statement),
    )


def _flush(host: Host, step: Step) -> None:
    """Bring to the disk what was written while a setting was off, and remove the note."""
    if step.login:
        _await_statements(host, step)
        server.tell(host, step.login, "CHECKPOINT", FLUSH_TIMEOUT)
    if "fsync" in step.flush:
        host.change(step.initdb, FLUSH_TIMEOUT)
    for name in step.flush:
        host.remove_file(postgresql_cluster.pending_flush_path(step.data, name))


def _await_settings(host: Host, step: Step) -> None:
    """Wait until the server shows its settings. Raises ChangeFailed."""
    end = time.monotonic() + PATIENCE
    while True:
        missed = _missed(host, step)
        if not missed:
            return
        if time.monotonic() > end:
            raise ChangeFailed(f"{step.instance}: {missed}: the server did not follow; its log says why")
        time.sleep(_PAUSE)


def _missed(host: Host, step: Step) -> str:
    """Return what a server does not show yet."""
    try:
        answer = _ask(host, step)
    except ChangeFailed as error:
        return str(error)
    for name, word in step.shown.items():
        row = answer["settings"].get(name)
        observed = row["value"] if row else None
        if observed != word:
            return f"{name} (running): observed {observed}, expected {word}"
    return ""


def _await_statements(host: Host, step: Step) -> None:
    """Wait until no session goes on with the settings from before. Raises ChangeFailed."""
    end = time.monotonic() + PATIENCE
    while _ask(host, step)["busy"]:
        if time.monotonic() > end:
            raise ChangeFailed(
                f"{step.instance}: statements go on that began before {' and '.join(step.flush)} came on, and"
                " commit as they did before, or sessions whose statements are not reported (track_activities is off);"
                " expected none; run again when they have ended"
            )
        time.sleep(_PAUSE)


def _ask(host: Host, step: Step) -> server.Answer:
    if step.login is None:
        raise ChangeFailed(f"{step.instance}: it cannot be asked; expected a server that runs")
    try:
        return server.ask(host, step.login)
    except Unobservable as error:
        raise ChangeFailed(f"{step.instance}: {error}") from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
