# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of DRBD 8.4, the version in the kernel: drbdsetup prints sections with `key:value`, not JSON. Pure.

Both are returned in the form of the JSON that version 9 gives, which drbd.py reads. Observed with drbd-utils 9.22 on a
lab machine. Version 8.4 has one peer, and forgets how to reach it when it stands alone: then `connections` is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

SHOW = ["drbdsetup", "show"]
STATUS = ["drbdsetup", "status", "--verbose", "--statistics"]
_TOKEN = re.compile(r'\s+|#[^\n]*|("(?:[^"\\\n]|\\.)*"|[{};]|[^\s{};"#]+)')
_DEEPEST = 8


class Statement(NamedTuple):
    """The parts of a statement, or of the head of a section, and the statements of a section."""

    words: tuple[str, ...]
    inner: tuple[Statement, ...] | None = None


def shown(text: str) -> list[dict[str, Any]]:
    """Return the resources that `drbdsetup show` prints. ValueError: it is not in that form."""
    return [_resource(one) for one in _statements(text) if one.words[:1] == ("resource",)]


def states(text: str) -> list[dict[str, Any]]:
    """Return the states that `drbdsetup status --verbose --statistics` prints."""
    found: list[dict[str, Any]] = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        words = dict(word.partition(":")[::2] for word in line.split() if ":" in word)
        if line.strip() and not indent:
            found.append({"name": line.split()[0], "devices": [], "connections": []})
        elif found and indent == 2 and "minor" in words:
            device = {"volume": int(words["volume"]), "minor": int(words["minor"])}
            found[-1]["devices"].append({**device, "disk-state": words["disk"]})
        elif found and indent == 2 and "connection" in words:
            found[-1]["connections"].append({"peer_devices": []})
        elif found and indent == 4 and "peer-disk" in words and found[-1]["connections"]:
            copy = {"volume": int(words["volume"]), "peer-disk-state": words["peer-disk"]}
            found[-1]["connections"][-1]["peer_devices"].append(copy)
        elif found and "write-ordering" in words:
            found[-1]["write-ordering"] = words["write-ordering"]
    return found


def _resource(resource: Statement) -> dict[str, Any]:
    sections = {one.words[0]: one.inner for one in resource.inner or () if one.inner is not None}
    (name,) = resource.words[1:]
    volumes = [one for one in sections.get("_this_host", ()) if one.words[0] == "volume"]
    peer = {"net": _options(sections.get("net", ()))}
    return {
        "resource": name,
        "_this_host": {"volumes": [_volume(volume) for volume in volumes]},
        "connections": [peer] if "_remote_host" in sections else None,
    }


def _volume(volume: Statement) -> dict[str, Any]:
    found: dict[str, Any] = {"volume_nr": int(volume.words[1])}
    for words, inner in volume.inner or ():
        if inner is not None:
            found["disk"] = _options(inner)
        elif words[:2] == ("device", "minor"):
            found["device_minor"] = int(words[2])
        elif words[0] == "disk":
            found["backing-disk"] = words[1]
        elif words[0] in ("meta-disk", "flexible-meta-disk"):
            found["meta-disk"] = words[1]
    return found


def _options(inner: tuple[Statement, ...]) -> dict[str, str]:
    return {one.words[0]: one.words[1] for one in inner if one.inner is None and len(one.words) == 2}


def _statements(text: str) -> tuple[Statement, ...]:
    """Return all statements of a text."""
    open_sections: list[tuple[tuple[str, ...], list[Statement]]] = [((), [])]
    words: list[str] = []
    for token in _tokens(text):
        if token == "{":
            open_sections.append((tuple(words), []))
            words = []
            if len(open_sections) > _DEEPEST or not open_sections[-1][0]:
                raise ValueError("drbdsetup shows a section that has no name, or lies too deep")
        elif token == "}":
            head, inner = open_sections.pop()
            if words or not open_sections:
                raise ValueError("drbdsetup shows a section that ends where it does not")
            open_sections[-1][1].append(Statement(head, tuple(inner)))
        elif token != ";":
            words.append(token[1:-1] if token.startswith('"') else token)
        elif words:
            open_sections[-1][1].append(Statement(tuple(words)))
            words = []
    if words or len(open_sections) != 1:
        raise ValueError("drbdsetup shows a section that has no end")
    return tuple(open_sections[0][1])


def _tokens(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(
                f"drbdsetup shows {text[place : place + 20]!r}; expected statements and sections"
            )
        place = found.end()
        if found[1]:
            yield found[1]
