# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of a host, escaped so that terminals and formats show it as text. Pure.

The owner of a directory, a database or a process gives it any name: with a line end and text that looks like
ours, with commands to a terminal, with letters that turn the order of others around. What is shown goes
through `line`: on its way from a host in module_utils/host/reply.py, from the controller in plugin_utils/output.py,
to the journal in ups/guard/ipc.py.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from typing import Any

#: Characters that are never visible, although Python calls them printable (Unicode: Default_Ignorable_Code_Point).
_NEVER_SHOWN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
#: A word with a colon that comes twice in succession.
_TWICE = re.compile(r"(?<!\S)(\S{1,4096}: )\1+")
#: A name that no reader takes for anything else; and what begins the lines that say what to do.
_NAME = re.compile(r"[\w/.:@%+,=~()\[\]-]+( [\w/.:@%+,=~()\[\]-]+)*")
_ADVICE = re.compile(r"\b(do|fix)\s*:", re.I)
#: What begins code in a text that Ansible evaluates.
_TEMPLATE = re.compile("{[{%#]")


class Lines(str):
    """A text of several lines, each of which went through `line`."""


def line(text: str) -> str:
    """Return a text as one line of visible characters: others are written out as escapes, as Python does.

    Those are control characters, line ends, marks of direction, letters without width, and bytes that are no
    UTF-8. What was written out already stays as it is.
    """
    if text.isprintable() and not _NEVER_SHOWN.search(text):
        return text
    return "".join(_visible(letter) for letter in text)


def message(text: str) -> str:
    """Return a message without a prefix that is in it twice: a caller names a path, and so does the error that it got."""
    return _TWICE.sub(r"\1", text)


def lines(rows: Iterable[str]) -> Lines:
    """Return a text of these lines: none of them can become two."""
    return Lines("".join(f"{line(row)}\n" for row in rows))


def printable(value: Any) -> Any:
    """Return a value of JSON's types with all texts in it, names of fields too, as `line` has them.

    A text that `lines` made keeps its lines.
    """
    if isinstance(value, Lines):
        return str(value)
    if isinstance(value, str):
        return line(value)
    if isinstance(value, dict):
        return {printable(key): printable(inner) for key, inner in value.items()}
    return [printable(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def command(*words: str) -> str:
    """Return a command for people to copy: each word is one to their shell, whatever is in it."""
    return shlex.join(words)


def name(text: str) -> str:
    """Return a name that a host gave to something, for use in our messages: in quotes, unless it can only be a name."""
    if _NAME.fullmatch(text) and not _ADVICE.search(text):
        return text
    return quote(text)


def quote(text: str) -> str:
    """Return a text of a host or a tool in quotes: where it begins and ends is ours to say."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def is_plain(text: str) -> bool:
    """Return whether a text is shown as it is, and is no template to Ansible."""
    return line(text) == text and not _TEMPLATE.search(text)


def yaml(text: str) -> str:
    """Return a text as YAML has it. Only what Ansible would evaluate has a tag: other readers of YAML refuse it."""
    # A JSON string is a YAML string.
    return json.dumps(text) if is_plain(text) else f"!unsafe {json.dumps(text)}"


def _visible(letter: str) -> str:
    code = ord(letter)
    if letter.isprintable() and not _NEVER_SHOWN.match(letter):
        return letter
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # A byte that is no UTF-8 (PEP 383).
    if code < 0x80:
        return _NAMED.get(letter, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
