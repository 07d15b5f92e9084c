# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Statements that a server executes of itself: its init_file, init_slave of a replica, and its events."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...host import bounded_read
from ...host.seam import Host, Unobservable
from ..others import Change, Text
from . import client, options, statements, versions
from .snapshot import Sight

_FILE = "init_file"
#: Options whose statements a replica executes as it connects.
_OF_REPLICAS = ("init_slave", "init_replica")
_SCHEDULER = "event_scheduler"
_EVENTS = "information_schema.EVENTS"


def changes(host: Host, sight: Sight, names: Collection[str]) -> list[Change]:
    """Return what a server's own statements set of these settings, in order. Nothing here raises Unobservable."""
    found = [*_of_file(host, sight), *_of_replica(sight), *_of_events(host, sight)]
    return [change for change in found if change.name in names]


def _of_file(host: Host, sight: Sight) -> Iterator[Change]:
    origin, do = _FILE, f"write {_FILE} in full and in small letters in the server's option files"
    try:
        last = options.said(_FILE, sight.reading())
        if not last or not last[0]:
            return
        path, origin = last[0], last[1]
        if not path.startswith("/"):
            path = f"{sight.data.rstrip('/')}/{path}"
        do = f"make {path} a file that root can read, or remove {_FILE} from {origin}"
        text = bounded_read.read(host, path, sight.files.root)
        if text is None:
            raise Unobservable(f"{path} is not there, and the server does not start without it")
        yield from statements.of_file(text, path, sight.version)
    except Unobservable as error:
        if sight.begun is not None and sight.version is not None:
            yield from _unclear(origin, _FILE, f"what {_FILE} sets is unknown: {error}", do)


def _of_replica(sight: Sight) -> Iterator[Change]:
    for name in _OF_REPLICAS:
        try:
            last = options.said(name, sight.reading())
        except Unobservable:
            continue  # Its settings are unknown then, or another option is meant.
        if last and last[0]:
            yield from statements.of_text(Text(last[0], last[1], name), sight.version)


def _of_events(host: Host, sight: Sight) -> Iterator[Change]:
    """Yield what events may set. They are in tables: only a running server shows them."""
    if not sight.client or not _is_scheduled(sight):
        return
    source = f"{_EVENTS} at {sight.socket}"
    try:
        count = client.events(host, sight.client, (versions.LOG, versions.BINLOG))
    except Unobservable as error:
        do = f"let root's login read {source}"
        yield from _unclear(source, "event", f"what its events set is unknown: {error}", do)
        return
    if count:
        do = f"drop or alter the events that set {{name}} (SELECT EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION FROM {_EVENTS})"
        yield from _unclear(source, "event", f"{count} of its events name such a setting ({source})", do)


def _is_scheduled(sight: Sight) -> bool:
    """Tell whether events run now or after the next start."""
    if sight.answers.get(_SCHEDULER, "").upper() in ("ON", "1"):
        return True
    try:
        last = options.said(_SCHEDULER, sight.reading())
        return bool(last and options.is_on(last))
    except Unobservable:
        return False


def _unclear(source: str, by: str, why: str, do: str) -> Iterator[Change]:
    for name in (versions.LOG, versions.BINLOG):
        yield Change(name, None, source, by, why=why, do=do.replace("{name}", name))
