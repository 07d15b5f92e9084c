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


def changes(host: Host, seen: Sight, names: Collection[str]) -> list[Change]:
    """Return what a server's own statements set of these settings, in order. Nothing here raises Unobservable."""
    found = [*_of_file(host, seen), *_of_replica(seen), *_of_events(host, seen)]
    return [change for change in found if change.name in names]


def _of_file(host: Host, seen: Sight) -> Iterator[Change]:
    origin = _FILE
    try:
        last = options.said(_FILE, seen.reading())
        if not last or not last[0]:
            return
        path, origin = last[0], last[1]
        if not path.startswith("/"):
            path = f"{seen.data.rstrip('/')}/{path}"
        text = bounded_read.read(host, path, seen.files.root)
        if text is None:
            raise Unobservable(f"{path} is not there, and the server does not start without it")
        yield from statements.of_file(text, path, seen.version)
    except Unobservable as error:
        if seen.begun is not None and seen.version is not None:
            yield from _unclear(origin, _FILE, f"what {_FILE} sets is unknown: {error}")


def _of_replica(seen: Sight) -> Iterator[Change]:
    for name in _OF_REPLICAS:
        try:
            last = options.said(name, seen.reading())
        except Unobservable:
            continue  # Its settings are unknown then, or another option is meant.
        if last and last[0]:
            yield from statements.of_text(Text(last[0], last[1], name), seen.version)


def _of_events(host: Host, seen: Sight) -> Iterator[Change]:
    """Yield what events may set. They are in tables: only a running server shows them."""
    if not seen.client or not _is_scheduled(seen):
        return
    source = f"information_schema.EVENTS at {seen.socket}"
    try:
        count = client.events(host, seen.client, (versions.LOG, versions.BINLOG))
    except Unobservable as error:
        yield from _unclear(source, "event", f"what its events set is unknown: {error}")
        return
    if count:
        yield from _unclear(source, "event", f"{count} of its events name such a setting ({source})")


def _is_scheduled(seen: Sight) -> bool:
    """Tell whether events run now or after the next start."""
    if seen.answers.get(_SCHEDULER, "").upper() in ("ON", "1"):
        return True
    try:
        last = options.said(_SCHEDULER, seen.reading())
        return bool(last and options.is_on(last))
    except Unobservable:
        return False


def _unclear(source: str, by: str, why: str) -> Iterator[Change]:
    for name in (versions.LOG, versions.BINLOG):
        yield Change(name, None, source, by, why=why)
