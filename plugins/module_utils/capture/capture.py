# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pack what the facts read on a host into a recording that can be published and replayed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..facts.classes import StorageFacts
from ..host.seam import Host, Unobservable
from ..storage.collect import collect
from . import servers
from .recording import SCHEMA, Recording, RecordingHost, ReplayHost
from .redaction import Redactor, redactor

#: What is recorded, by the name of its module.
COMMAND = "storage_facts"


def capture(host: Host, now: str, paths: Iterable[str] = (), databases: Any = None) -> Recording:
    """Return the redacted recording of what the facts read on a host; `paths` as for `collect`, `databases` as in the inventory.

    `engines` has the facts about its servers, `system` the state of the system around them.

    A host whose facts cannot be collected is recorded up to that point, and `failed` says where it
    was. `differs` names the facts whose replayed value differs from the host's.
    """
    requested = tuple(paths)
    recorder = RecordingHost(host)
    live, failed = _attempt(recorder, now, requested)
    recording = {
        "schema": SCHEMA,
        "command": [COMMAND, *requested],
        "kernel": _optional(host, "/proc/sys/kernel/osrelease"),
        "release": _release(host),
        "taken": now[:10],
        "calls": recorder.calls,
    }
    names = filter(None, [_optional(host, "/proc/sys/kernel/hostname"), _optional(host, "/etc/hostname")])
    made, redacted = redactor(recording, names)
    found = servers.without_names(servers.facts(host, now, databases))
    redacted["engines"] = servers.redacted(found, made.names)
    redacted["system"] = servers.system(host, found, made.names)
    again, failed_again = _attempt(ReplayHost(redacted), now, redacted["command"][1:])
    redacted["failed"] = failed
    redacted["differs"] = sorted(differences(live, again, made))
    if failed != failed_again:
        redacted["differs"].append(f"the replay failed: {failed_again}")
    return redacted


def replay(recording: Recording, now: str, lenient: bool = False) -> StorageFacts:
    """Return the facts of a recorded host. Raises what `collect` raised there, and NotRecorded."""
    return collect(ReplayHost(recording, lenient), now, recording["command"][1:])


def replay_engines(recording: Recording) -> dict[str, Any] | None:
    """Return `durable_engines` of a recorded host, None if it could not be collected there, or by an earlier version."""
    found = recording.get("engines")
    return found if isinstance(found, dict) and "error" not in found else None


def differences(live: Any, again: Any, redactor: Redactor, where: str = "") -> Iterator[str]:
    """Yield where facts of a replay are not those of the host, stand-ins aside."""
    if isinstance(live, dict) and isinstance(again, dict):
        renamed = {_key(key, again, redactor): value for key, value in live.items()}
        for key in {*renamed, *again}:
            yield from differences(renamed.get(key), again.get(key), redactor, f"{where}.{key}".lstrip("."))
    elif isinstance(live, list) and isinstance(again, list) and len(live) == len(again):
        for number, pair in enumerate(zip(live, again)):
            yield from differences(*pair, redactor, f"{where}.{number}")
    elif live != again and not (isinstance(live, str) and _became(live, again, redactor)):
        yield where


def _became(live: str, again: Any, redactor: Redactor) -> bool:
    return again == redactor.names.text(live) or again in redactor.stands_for(live)


def _key(key: str, again: Mapping[str, Any], redactor: Redactor) -> str:
    return key if key in again else redactor.names.text(key)


def _attempt(host: Host, now: str, paths: Iterable[str]) -> tuple[Mapping[str, Any], str | None]:
    """Return the facts and None, or nothing and what went wrong.

    A capture is wanted most of all where the facts fail, so nothing is let through. Of an error
    that is unexpected only its kind and place are reported: its message can contain any text.
    """
    try:
        return collect(host, now, paths), None
    except Unobservable:
        return {}, "Unobservable"
    except Exception as error:
        return {}, f"{type(error).__name__} at {_place(error)}"


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"


def _release(host: Host) -> str | None:
    text = _optional(host, "/etc/os-release") or ""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', text, re.M)
    return found[1] if found else None


def _optional(host: Host, path: str) -> str | None:
    try:
        return host.read(path).strip()
    except Unobservable:
        return None
