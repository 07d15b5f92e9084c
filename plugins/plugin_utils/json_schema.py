# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a value fits a JSON Schema: the part of it that plugins/plugin_utils/report.schema.json uses. Pure.

https://json-schema.org/draft/2020-12/json-schema-validation
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any]

#: Name of a type -> whether a value is of it. True is 1 to Python, and no number to JSON.
_TYPES: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
#: Keywords without a rule for the value, or that another keyword reads.
_APART = ("$schema", "$defs", "title", "description")


def misfits(schema: Schema, value: Any) -> Iterator[str]:
    """Yield what is wrong with a value, each in one line: place, observed value, expected value.

    Raises KeyError for a schema with a keyword that is unknown here.
    """
    yield from _misfits(schema, schema.get("$defs", {}), "", value)


def _misfits(schema: Schema, defs: Schema, where: str, value: Any) -> Iterator[str]:
    for keyword, wanted in schema.items():
        if keyword == "$ref":
            yield from _misfits(defs[wanted.removeprefix("#/$defs/")], defs, where, value)
        elif keyword in _INNER:
            for name, inner, item in _INNER[keyword](schema, value):
                yield from _misfits(inner, defs, f"{where}{name}", item)
        elif keyword not in _APART:
            fits, expected = _RULES[keyword]
            if not fits(wanted, value):
                yield f"{where.lstrip('.') or 'all of it'}: observed {_shown(value)}, expected {expected(wanted, value)}"


def _is_type(wanted: Any, value: Any) -> bool:
    return any(_TYPES[name](value) for name in ([wanted] if isinstance(wanted, str) else wanted))


def _same(wanted: Any, value: Any) -> bool:
    return type(wanted) is type(value) and bool(wanted == value)


#: Keyword -> (whether a value fits it, the expected value as text).
_RULES: dict[str, tuple[Callable[[Any, Any], bool], Callable[[Any, Any], str]]] = {
    "type": (_is_type, lambda wanted, _value: wanted if isinstance(wanted, str) else " or ".join(wanted)),
    "const": (_same, lambda wanted, _value: str(wanted)),
    "enum": (
        lambda wanted, value: any(_same(each, value) for each in wanted),
        lambda wanted, _value: f"one of {', '.join(map(str, wanted))}",
    ),
    "required": (
        lambda wanted, value: not isinstance(value, dict) or set(wanted) <= set(value),
        lambda wanted, value: f"{', '.join(name for name in wanted if name not in value)} in it",
    ),
    "pattern": (
        lambda wanted, value: not isinstance(value, str) or re.search(wanted, value) is not None,
        lambda wanted, _value: f"text like {wanted}",
    ),
}


def _properties(schema: Schema, value: Any) -> Iterator[tuple[str, Schema, Any]]:
    if isinstance(value, dict):
        for name, inner in schema["properties"].items():
            if name in value:
                yield f".{name}", inner, value[name]


def _others(schema: Schema, value: Any) -> Iterator[tuple[str, Schema, Any]]:
    if isinstance(value, dict):
        for name in value.keys() - schema.get("properties", {}).keys():
            yield f".{name}", schema["additionalProperties"], value[name]


def _items(schema: Schema, value: Any) -> Iterator[tuple[str, Schema, Any]]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield f"[{number}]", schema["items"], item


#: Keyword -> the parts of a value that it is about: their name, schema and value.
_INNER: dict[str, Callable[[Schema, Any], Iterator[tuple[str, Schema, Any]]]] = {
    "properties": _properties,
    "additionalProperties": _others,
    "items": _items,
}


def _shown(value: Any) -> str:
    """Return a value as Python writes it, the middle left out of what is long."""
    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = 60
    shown.maxlist = shown.maxdict = 3
    shown.maxlevel = 1
    return shown.repr(value)
