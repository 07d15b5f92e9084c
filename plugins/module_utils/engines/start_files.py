# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a server reads only at its start: their content, and whether the running server has that content.

SQL Server and FairCom DB cannot be queried without a password. A configuration file is what the process read if nothing on
the way to it has changed since the process started (since_start.py). A run that changes the file notes before what ran.
The note holds as long as that process lives.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..facts.classes import SettingFacts, SettingFixFacts
from ..host import json_text, our_paths
from ..host.observation import UNKNOWN, Because, why_of
from ..host.processes import Process
from ..host.seam import Host, Unobservable
from . import since_start
from .instance import Why, Whys, setting, several
from .since_start import Start

#: What ran before a file was changed. Gone with the boot, as the processes are.
NOTES = our_paths.NOTES


class Word(NamedTuple):
    """What a setting is in a file: `origin` is the file and line, None for a default; `reason` is why
    the word is unknown; `held` as in :class:`.instance.Observed`."""

    value: str
    origin: str | None = None
    reason: Why = None
    held: SettingFixFacts | None = None


def note(host: Host, engine: str, start: Start, words: dict[str, str]) -> None:
    """Keep what runs, before the file that says so is changed. Raises ChangeFailed."""
    known = {name: word for name, word in words.items() if word != UNKNOWN}
    content = json.dumps({"start": start.ticks, "settings": known}, sort_keys=True) + "\n"
    host.write_file(_note_of(engine, start), content.encode("ascii"))


def noted(host: Host, engine: str, start: Start) -> dict[str, str]:
    """Return what was noted of a process, {} if nothing was or another process had its number."""
    path = _note_of(engine, start)
    if not host.exists(path):
        return {}
    try:
        found: Any = json_text.loads(host.read(path))
        if found["start"] != start.ticks:
            return {}
        return {str(name): str(word) for name, word in found["settings"].items()}
    except (Unobservable, ValueError, KeyError, TypeError, AttributeError):
        return {}


class Running(NamedTuple):
    """What a process is known to run with: `words` by setting, for all others `reason`."""

    words: dict[str, str]
    source: str
    reason: Whys = None


def running(
    host: Host, engine: str, path: str, process: Process, persisted: dict[str, Word], root: str = ""
) -> Running:
    """Return what a process read from its file when it began, a path inside `root`. Never raises."""
    try:
        start = since_start.start_of(host, process)
    except Unobservable as error:
        return Running({}, path, why_of(error))
    try:
        changed = since_start.change(host, path, start, root)
        if not changed:
            words = {name: word.value for name, word in persisted.items()}
            return Running(words, f"{path}, unchanged since the server began")
        why: Why = Because("changed_since", {"text": changed})
    except Unobservable as error:
        why = why_of(error)
    words = noted(host, engine, start)
    return Running(words, f"{path} before it was changed" if words else path, why)


def settings(persisted: dict[str, Word], process: Running | None) -> dict[str, SettingFacts]:
    """Return the settings of :class:`.instance.Observed`; `process` is None for a stopped server."""
    found = {}
    for name, word in persisted.items():
        runs = "stopped" if process is None else process.words.get(name, UNKNOWN)
        reasons: list[Why] = [word.reason] if word.reason else []
        if process and runs == UNKNOWN and not reasons:
            reasons += several(process.reason or Because("value_unknown", {"setting": name}))
        source = process.source if process else "configuration"
        found[name] = setting(runs, word.value, source, reasons, word.origin, word.held)
    return found


def waiting(found: dict[str, SettingFacts]) -> tuple[str, ...]:
    """Return the names of the settings that run differently from the next start will."""
    return tuple(
        name
        for name, row in found.items()
        if row["running"] not in (UNKNOWN, "stopped") and row["persisted"] not in (UNKNOWN, row["running"])
    )


def _note_of(engine: str, start: Start) -> str:
    return f"{NOTES}/{engine}-{start.pid}.json"
