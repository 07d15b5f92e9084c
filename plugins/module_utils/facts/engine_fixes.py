# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The closed list of fixes of an engine's setting that no run sets. Data.

A host reports a fix by its keyword, with values; engines/fixes.py and engines/<name>/fixes.py have the sentence of each.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from ..host import bounds
from .boot_causes import have

_ANY = {
    "remove_from": "setting source",
    "refusal": "text",
    "correct": "",
    "move_away": "path",
    "put_file": "path",
}
_OF_POSTGRESQL = {
    "remove_option": "setting source",
    "reset_altered": "setting",
    "reset_overrides": "setting roles[] databases[]",
    "reset_login": "setting",
    "update": "setting",
    "allow_login": "",
    "allow_peer": "user",
    "install_psql": "",
    "trust_psql": "path",
    "rename_socket": "",
    "grant_superuser": "user",
    "grant_superuser.unnamed": "",
}
_OF_MARIADB = {
    "remove_argument": "setting",
    "reset_persisted": "setting",
    "write_in_full": "setting",
    "make_readable": "path setting source",
    "allow_reading": "source",
    "drop_events": "setting",
}
_OF_OTHERS = {
    "remove_trace_flag": "flag",
    "give_directory": "path",
    "give_file": "owner path",
    "create_file": "path",
}
#: Fix -> the names of its values, as in boot_causes.py. An engine has those for which it has a sentence.
PARAMETERS: dict[str, tuple[str, ...]] = {
    fix: tuple(names.split())
    for fixes in (_ANY, _OF_POSTGRESQL, _OF_MARIADB, _OF_OTHERS)
    for fix, names in fixes.items()
}
#: Why no run sets a setting -> the names of its values; `error` is a text as it was read.
REFUSALS: dict[str, tuple[str, ...]] = {
    "error": ("error",),
    "alter_system_off": (),
    "no_superuser": (),
    "no_file": ("file",),
}
#: Characters of one value, which may name two paths; values of a list.
MOST, MOST_VALUES = 2 * bounds.PATH, 1000
#: Forms of values that are words of a statement or an option.
FORMS = {
    "setting": re.compile(r"[\w.-]{1,64}", re.ASCII),
    "user": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .-]{0,62}"),
    "flag": re.compile(r"[0-9]{1,6}"),
    "owner": re.compile(r"[0-9]{1,10}:[0-9]{1,10}"),
}


def fits(fix: object, of_engine: Collection[str]) -> bool:
    """Return whether a fact is one of the fixes of an engine's settings, with its values and no others."""
    return (
        isinstance(fix, dict)
        and _is_known(fix, "fix", PARAMETERS, of_engine)
        and all(
            form.fullmatch(fix["parameters"][key]) for key, form in FORMS.items() if key in fix["parameters"]
        )
    )


def is_refusal(refusal: object, of_engine: Collection[str]) -> bool:
    """Return whether a fact is one of the refusals to set an engine's settings, with its values and no others."""
    return isinstance(refusal, dict) and _is_known(refusal, "cause", REFUSALS, of_engine)


def _is_known(
    found: dict[Any, Any], key: str, known: dict[str, tuple[str, ...]], of_engine: Collection[str]
) -> bool:
    """Return whether a fact has a keyword of an engine at `key`, and its values, none of which is long."""
    if set(found) != {key, "parameters"}:
        return False
    name, parameters = found[key], found["parameters"]
    return (
        isinstance(name, str)
        and name in of_engine
        and have(known[name], parameters)
        and all(map(_is_short, parameters.values()))
    )


def _is_short(value: str | list[str]) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST
    return len(value) <= MOST_VALUES and all(map(_is_short, value))
