# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixes of a setting that no run sets: their keywords in facts, and the sentences of those of any engine. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..facts import engine_fixes
from ..facts.classes import RefusalFacts, SettingFixFacts
from ..host import bounds
from ..host.printable import name as quoted
from ..host.printable import quote
from ..host.seam import Refused
from .overrides import reset

#: Fix of facts/engine_fixes.py -> its sentence, with the names of values in braces.
FIXES = {
    "remove_from": "remove {setting} from {source}, then run again",
    "refusal": "correct what the reason names, then run again. The host reports: {text}",
    "correct": "correct what the reason names, then run again",
    "move_away": "move {path} away, then run again",
    "put_file": "put the file at {path}, then run again",
}
#: Refusal of facts/engine_fixes.py -> its sentence.
REFUSALS = {
    "error": "{error}",
}


class RefusedWith(Refused):
    """A change that is not made as things are; `found`: its fix as the facts have it."""

    def __init__(self, reason: str, found: SettingFixFacts, sentences: Mapping[str, str]) -> None:
        super().__init__(reason, text(found, sentences))
        self.found = found


def fix(name: str, **parameters: str | Sequence[str]) -> SettingFixFacts:
    """Return a fix as the facts have it; very long values are shortened."""
    return {
        "fix": name,
        "parameters": {
            key: _short(value)
            if isinstance(value, str)
            else [*map(_short, value)][: engine_fixes.MOST_VALUES]
            for key, value in parameters.items()
        },
    }


def text(found: SettingFixFacts, sentences: Mapping[str, str]) -> str:
    """Return the sentence of a fix; the text of a host is in quotes."""
    parameters = found["parameters"]
    values = {
        key: (quote if key == "text" else quoted)(value)
        for key, value in parameters.items()
        if isinstance(value, str)
    }
    if "roles" in parameters:
        rows = zip(parameters["roles"], parameters["databases"])
        resets = (reset(values["setting"], role or None, database or None) for role, database in rows)
        values["statements"] = " and ".join(resets)
    return sentences[found["fix"]].format(**values)


def refusal(cause: str, **parameters: str) -> RefusalFacts:
    """Return why no run sets a setting, as the facts have it."""
    return {"cause": cause, "parameters": {key: _short(value) for key, value in parameters.items()}}


def refusal_text(found: RefusalFacts, sentences: Mapping[str, str]) -> str:
    """Return the sentence of a refusal; the text of an error is in quotes."""
    values = {key: (quote if key == "error" else quoted)(value) for key, value in found["parameters"].items()}
    return sentences[found["cause"]].format(**values)


def _short(value: str) -> str:
    # `short` adds five characters.
    return bounds.short(value, engine_fixes.MOST - 5)
