# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Statements that a server executes itself: its init_file, a replica's init_slave, and its events."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...facts.classes import SettingFixFacts
from ...host import bounded_read
from ...host.observation import Because, because_of
from ...host.seam import Host, Unobservable
from .. import fixes
from ..others import Change, Text
from . import client, options, statements, versions
from .snapshot import Snapshot

_FILE = "init_file"
#: Options whose statements a replica executes as it connects.
_OF_REPLICAS = ("init_slave", "init_replica")
_SCHEDULER = "event_scheduler"
_EVENTS = "information_schema.EVENTS"


def changes(host: Host, snapshot: Snapshot, names: Collection[str]) -> list[Change]:
    """Return what a server's own statements set of these settings, in order. Nothing here raises Unobservable."""
    found = [*_of_file(host, snapshot), *_of_replica(snapshot), *_of_events(host, snapshot)]
    return [change for change in found if change.name in names]


def _of_file(host: Host, snapshot: Snapshot) -> Iterator[Change]:
    origin, do = _FILE, fixes.fix("write_in_full", setting=_FILE)
    try:
        last = options.last_value(_FILE, snapshot.reading())
        if not last or not last[0]:
            return
        path, origin = last[0], last[1]
        if not path.startswith("/"):
            path = f"{snapshot.data.rstrip('/')}/{path}"
        do = fixes.fix("make_readable", path=path, setting=_FILE, source=origin)
        text = bounded_read.read(host, path, snapshot.files.root)
        if text is None:
            raise Unobservable(f"{path} is not there, and the server does not start without it")
        yield from statements.of_file(text, path, snapshot.version)
    except Unobservable as error:
        if snapshot.started is not None and snapshot.version is not None:
            yield from _unclear(origin, _FILE, _unread(_FILE, error), do)


def _of_replica(snapshot: Snapshot) -> Iterator[Change]:
    for name in _OF_REPLICAS:
        try:
            last = options.last_value(name, snapshot.reading())
        except Unobservable:
            continue  # Its settings are unknown then, or another option is meant.
        if last and last[0]:
            yield from statements.of_text(Text(last[0], last[1], name), snapshot.version)


def _of_events(host: Host, snapshot: Snapshot) -> Iterator[Change]:
    """Yield what events may set. They are in tables: only a running server shows them."""
    if not snapshot.client or not _is_scheduled(snapshot):
        return
    source = f"{_EVENTS} at {snapshot.socket}"
    try:
        count = client.events(host, snapshot.client, (versions.LOG, versions.BINLOG))
    except Unobservable as error:
        do = fixes.fix("allow_reading", source=source)
        yield from _unclear(source, "event", _unread("EVENT", error), do)
        return
    if count:
        why = Because("events", {"number": str(count), "place": source})
        for name in (versions.LOG, versions.BINLOG):
            do = fixes.fix("drop_events", setting=name)
            yield Change(name, None, source, "event", why=why, do=do)


def _is_scheduled(snapshot: Snapshot) -> bool:
    """Return whether events run now or after the next start."""
    if snapshot.answers.get(_SCHEDULER, "").upper() in ("ON", "1"):
        return True
    try:
        last = options.last_value(_SCHEDULER, snapshot.reading())
        return bool(last and options.is_on(last))
    except Unobservable:
        return False


def _unread(what: str, error: Unobservable) -> Because:
    return Because("source_unread", {"text": what, "why": [because_of(error).as_dict()]})


def _unclear(source: str, by: str, why: Because, do: SettingFixFacts) -> Iterator[Change]:
    for name in (versions.LOG, versions.BINLOG):
        yield Change(name, None, source, by, why=why, do=do)
