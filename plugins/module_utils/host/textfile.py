# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files as lines that preserve every byte: shared by the parsers of all engines.

A text is what Host.read gives: UTF-8, with bytes that are none as surrogates. Only a newline ends
a line; a carriage return is part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from . import bounds

#: Bytes of one file, and files that one configuration may read.
LIMIT, MOST_FILES = bounds.FILE, bounds.FILES
#: A managed line is preceded by a comment that starts so, behind the format's own comment sign.
MARK = "durable.dbhost"

#: How a parser reads an included file: its text, or None when the server would not find it.
Read = Callable[[str], "str | None"]
#: The names of the files (no directories) in a directory, or None when there is no such directory.
Names = Callable[[str], "list[str] | None"]

_WHOLE_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


_CHECK_FILE = "see whether this is the file that was meant"


class Malformed(ValueError):
    """A text that the server could not use, or that cannot be assessed.

    The message has the file and the line, the observed text and the expected one. `without_content` is the message without the
    observed text, which may hold a password: a server's owner can name a file that only root reads.
    """

    def __init__(self, place: str, observed: str, expected: str) -> None:
        super().__init__(f"{place}: observed {observed}; expected {expected}")
        self.without_content = f"{place}: expected {expected}"


class Line(NamedTuple):
    """One line: its number from 1, all its characters, and what it says.

    `kind` is a word of the format (`setting`, `section`, `include`, ...), or `other` for comments,
    blank lines and what is never touched. `start` and `end` bound the value in `raw` as it is
    written, with its quotes.
    """

    number: int
    raw: str
    kind: str = "other"
    section: str = ""
    name: str = ""
    value: str | None = None
    start: int = 0
    end: int = 0


class Setting(NamedTuple):
    """A value, and where it stands. None is an option that was given without a value."""

    value: str | None
    file: str
    line: int


class Effective(NamedTuple):
    """What a server reads from all its files.

    `settings` holds the one of each name that counts, in the order in which these are read, `overridden`
    those that it beats, in that order; `files` are the paths of all files that were read, in that order.
    """

    settings: dict[str, Setting]
    overridden: dict[str, tuple[Setting, ...]]
    files: list[str]


def split(text: str, file: str) -> list[str]:
    """Return the lines of a text, each with its line end.

    Raises Malformed for a text over its bounds, with a byte order mark, or with a NUL: none of the
    servers reads such a file as an editor shows it.
    """
    size = len(text.encode("utf-8", "surrogateescape"))
    if size > LIMIT:
        raise Malformed(file, f"{size} bytes", f"at most {LIMIT} bytes; {_CHECK_FILE}")
    if text.count("\n") > bounds.LINES:
        raise Malformed(file, f"more than {bounds.LINES} lines", f"fewer; {_CHECK_FILE}")
    if text.startswith("\ufeff"):
        raise refusal(file, 1, text[:20], "no byte order mark", "save the file without it")
    lines = _WHOLE_LINE.findall(text)
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise refusal(file, number, line, "text without NUL bytes", "restore the file from a backup")
    return lines


def refusal(file: str, number: int, observed: str, wanted: str, remedy: str = "fix that line") -> Malformed:
    """Return the error for one line; a long line is shown by its beginning."""
    shown = observed.rstrip("\r\n")
    if len(shown) > 80:
        shown = f"{shown[:80]}..."
    return Malformed(f"{file} line {number}", repr(shown), f"{wanted}; {remedy}, then run again")


def without_content(error: Exception) -> str:
    """Return an error's message; of a malformed file without its content."""
    return error.without_content if isinstance(error, Malformed) else str(error)


def render(lines: Iterable[Line]) -> str:
    """Return the text of parsed lines: the very text that was parsed."""
    return "".join(line.raw for line in lines)


def line_ends(text: str) -> str:
    """Return `unix`, `dos`, `mixed`, or `none` for a text without any newline."""
    newlines, pairs = text.count("\n"), text.count("\r\n")
    if not newlines:
        return "none"
    if pairs in (0, newlines):
        return "dos" if pairs else "unix"
    return "mixed"


def settled(pairs: Iterable[tuple[str, Setting]], files: list[str], first: bool = False) -> Effective:
    """Return what counts of all that was read: the last one of each name, or the first."""
    found: dict[str, list[Setting]] = {}
    for name, setting in pairs:
        each = found.get(name, []) if first else found.pop(name, [])
        each.append(setting)
        found[name] = each
    counts = 0 if first else -1
    return Effective(
        {name: each[counts] for name, each in found.items()},
        {name: tuple(each[1:] if first else each[:-1]) for name, each in found.items() if len(each) > 1},
        files,
    )


def conflict(file: str, name: str, found: Sequence[Line]) -> Malformed:
    """Return the error for a name that is set to different values if it cannot be determined which one counts."""
    places = ", ".join(f"line {line.number}: {(line.value or '')[:40]!r}" for line in found[:3])
    more = ", ..." if len(found) > 3 else ""
    return Malformed(file, f"{name} set to different values ({places}{more})", "one of them")


def plain(text: str, what: str) -> str:
    """Return text for one line of a file, checked. Raises ValueError for control characters."""
    if _CONTROL.search(text):
        raise ValueError(
            f"{what}: observed {text[:80]!r}; expected text on one line without control characters"
        )
    return text


def is_marked(lines: Sequence[Line], line: Line, sign: str) -> bool:
    """Return whether our comment stands right above a line. `sign` starts a comment."""
    above = lines[line.number - 2] if line.number > 1 else None
    return above is not None and above.kind == "other" and above.raw.startswith(f"{sign} {MARK}")


def replace(
    lines: Sequence[Line], changes: Iterable[tuple[Line, int, int, str]], sign: str, note: str
) -> str:
    """Return the text with a part of some lines replaced, each marked by a comment above it.

    A change is (line, start, end, the text there now). All other bytes stay.
    Raises ValueError for a part that would be several lines.
    """
    mark = _mark(sign, note) + _newline(lines)
    written = {
        line.number: line.raw[:start] + plain(text, "value") + line.raw[end:]
        for line, start, end, text in changes
    }
    raws: list[str] = []
    for line in lines:
        if line.number not in written:
            raws.append(line.raw)
            continue
        if is_marked(lines, line, sign):
            raws.pop()
        raws += [mark, written[line.number]]
    return "".join(raws)


def insert(
    lines: Sequence[Line], row: int, body: str, sign: str, note: str, heading: str | None = None
) -> str:
    """Return the text with a new line before a row (counted from 0), marked by a comment above it.

    A heading stands above both. Raises ValueError for a line that would be several.
    """
    newline = _newline(lines)
    raws = [line.raw for line in lines]
    if row and not raws[row - 1].endswith("\n"):
        raws[row - 1] += newline
    added = [_mark(sign, note), plain(body, "line")]
    raws[row:row] = [text + newline for text in ([heading, *added] if heading else added)]
    return "".join(raws)


def remove(lines: Sequence[Line], doomed: Sequence[Line], sign: str) -> str:
    """Return the text without some lines and without our comments above them."""
    numbers = {line.number for line in doomed}
    numbers |= {line.number - 1 for line in doomed if is_marked(lines, line, sign)}
    return "".join(line.raw for line in lines if line.number not in numbers)


def byte_order(names: Iterable[str]) -> list[str]:
    """Return names sorted as strcmp(3) does."""
    return sorted(names, key=lambda name: name.encode("utf-8", "surrogateescape"))


def _newline(lines: Sequence[Line]) -> str:
    return "\r\n" if line_ends(render(lines)) == "dos" else "\n"


def _mark(sign: str, note: str) -> str:
    return f"{sign} {MARK}: {plain(note, 'note')}"
