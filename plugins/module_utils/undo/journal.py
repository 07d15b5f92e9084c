# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The original content of all files that a boot reads, stored on disk before a run changes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..host import bounds, json_text, our_paths
from ..host.seam import CHANGE_TIMEOUT, ChangeFailed, Host, Unobservable

_SCHEMA = 1
#: Seconds: the longest time that may be requested.
_MOST = 86400
#: What is no part of a boot.
_PASSING = (f"{our_paths.VOLATILE}/", f"{our_paths.TRIAL}/")


#: Targets for the module of a layer, with what was in force.
Rows = list[dict[str, Any]]


class Entry(NamedTuple):
    """A file before and after one change to it, None if it is not there; `mode` is for one that must be made again."""

    path: str
    before: str | None
    after: str | None
    mode: int


class Journal(NamedTuple):
    """What takes a host back to where a run found it.

    `rows`: by layer; `seconds`: after how long; `guard`: whether the guard's
    lease goes; `entries`: the files, in the order in which they were changed.
    """

    rows: dict[str, Rows]
    seconds: int = 0
    guard: bool = False
    entries: tuple[Entry, ...] = ()


def read(host: Host) -> Journal | None:
    """Return the journal, None if there is none. Raises Unobservable for one that this collection did not write."""
    if not host.exists(our_paths.UNDO_JOURNAL):
        return None
    try:
        return _parse(json_text.loads(host.read(our_paths.UNDO_JOURNAL)))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Unobservable(
            f"{our_paths.UNDO_JOURNAL}: observed no journal of the rollback timer ({error}); expected one: nothing was"
            " restored; compare fstab and the udev rules with a backup, then remove it"
        ) from error


def write(host: Host, journal: Journal) -> None:
    """Write the journal durably, for root alone. Raises ChangeFailed, also for one that could not be read back."""
    text = json.dumps({"schema": _SCHEMA, **journal._asdict()}, indent=1, sort_keys=True)
    content = f"{text}\n".encode()
    if len(content) > bounds.OUTPUT:
        raise ChangeFailed(_too_long(our_paths.UNDO_JOURNAL, f"it would have {len(content)} bytes"))
    host.write_file(our_paths.UNDO_JOURNAL, content, mode=0o600)


def _too_long(path: str, why: str) -> str:
    return (
        f"{path}: {why}, and the rollback timer reads back at most {bounds.OUTPUT} bytes."
        " Fix: set durable_undo_after to 0 for this host, to change it without a switch"
    )


def content_of(host: Host, path: str) -> str | None:
    """Return a file's text, None if it is not there. Raises ChangeFailed."""
    try:
        return host.read(path) if host.exists(path) else None
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error


def _before(host: Host, path: str) -> str | None:
    """Return the content of a file before a change of it, None for no file. Raises ChangeFailed, Unobservable."""
    status = host.locate(path).status
    if status and status.size > bounds.OUTPUT:
        raise ChangeFailed(_too_long(path, f"not changed: it has {status.size} bytes"))
    return content_of(host, path)


class KeepingHost(Host):
    """A host of which each file of root's is in the journal before it is changed."""

    def __init__(self, inner: Host) -> None:
        self._inner = inner

    def write_file(self, path: str, content: bytes, mode: int = 0o644, owner: int = 0) -> None:
        self._keep(path, content.decode("utf-8", "surrogateescape"), owner)
        self._inner.write_file(path, content, mode, owner)

    def remove_file(self, path: str, owner: int = 0) -> None:
        self._keep(path, None, owner)
        self._inner.remove_file(path, owner)

    def _keep(self, path: str, after: str | None, owner: int) -> None:
        if owner or path.startswith(_PASSING):
            return
        try:
            journal = read(self._inner)
            before = _before(self._inner, path)
            mode = 0o644 if before is None else self._inner.mode(path)
        except Unobservable as error:
            raise ChangeFailed(str(error)) from error
        if journal is None:
            raise ChangeFailed(f"{path}: not changed: the rollback timer was removed meanwhile")
        if before != after:
            entry = Entry(path, before, after, mode)
            try:
                write(self._inner, journal._replace(entries=(*journal.entries, entry)))
            except ChangeFailed as error:
                raise ChangeFailed(f"{path}: not changed: {error}") from error


class UnarmedHost(KeepingHost):
    """A host without a journal: what runs can be changed, and nothing that a boot reads."""

    def change(
        self, argv: list[str], timeout: float = CHANGE_TIMEOUT, environment: Mapping[str, str] | None = None
    ) -> None:
        # The superblock of the root is not in a file. That of a trial's image is no part of a boot.
        if argv[0] == "tune2fs" and argv[-1].startswith("/dev/"):
            self._keep(argv[-1], None, 0)
        self._inner.change(argv, timeout, environment)

    def _keep(self, path: str, after: str | None, owner: int) -> None:
        if not owner and not path.startswith(_PASSING):
            raise ChangeFailed(f"{path}: not changed, because no rollback timer is armed")


def _passed_on(call: str) -> Callable[..., Any]:
    return lambda self, *given, **more: getattr(self._inner, call)(*given, **more)


for _call, _function in vars(Host).items():
    if callable(_function) and not _call.startswith("_") and _call not in vars(KeepingHost):
        setattr(KeepingHost, _call, _passed_on(_call))


def _parse(parsed: Any) -> Journal:
    if not isinstance(parsed, dict) or parsed.get("schema") != _SCHEMA:
        raise ValueError(f"not of schema {_SCHEMA}")
    rows = {str(layer): [dict(row) for row in rows] for layer, rows in parsed["rows"].items()}
    seconds, entries = _number(parsed["seconds"], _MOST), tuple(map(_entry, parsed["entries"]))
    return Journal(rows, seconds, parsed["guard"] is True, entries)


def _entry(parsed: Any) -> Entry:
    path, before, after, mode = parsed
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError(f"observed {path!r}, expected a path")
    for text in (before, after):
        if text is not None and not isinstance(text, str):
            raise ValueError(f"{path}: observed {text!r}, expected a text")
    return Entry(path, before, after, _number(mode, 0o7777))


def _number(parsed: Any, most: int) -> int:
    if not isinstance(parsed, int) or isinstance(parsed, bool) or not 0 <= parsed <= most:
        raise ValueError(f"observed {parsed!r}, expected a number up to {most}")
    return parsed
