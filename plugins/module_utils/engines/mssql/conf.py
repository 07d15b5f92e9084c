# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mssql.conf of SQL Server on Linux, read only: mssql-conf writes it.

Sections and `key = value`. mssql-conf reads it with Python's ConfigParser, which folds the case of
keys, joins indented lines to the one above and splits at a colon too. What that and an INI reader
would take differently is refused, and so is a key that is set twice and differently.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from ...host.textfile import Line, Malformed, Setting, conflict, refusal, split

PATH = "/var/opt/mssql/mssql.conf"
_SECTION = re.compile(r"\[(?P<name>[^\]\r\n]+)\][ \t]*\r?\n?")
_PAIR = re.compile(r"(?P<name>[^=:\s]+)[ \t]*=[ \t]*(?P<value>(?:[^\r\n]*[^ \t\r\n])?)[ \t]*\r?\n?")
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
#: traceflag0, traceflag12, and without a number: all count, whatever the numbers.
_TRACE_FLAG = re.compile(r"traceflag\d*")

#: The keys that decide how commits reach the disk, by their section. Their slips are searched for.
_KEYS = {"control": ("writethrough", "alternatewritethrough"), "traceflag": ("traceflag",)}
#: The vendor's article on FUA has this slip for 3982.
_SLIPPED_FLAGS = {8932: 3982}
#: How alike a slip is to what is meant, by difflib's measure; and how long one can be: a longer word is another one.
_ALIKE, _LONGEST = 0.8, 40


def parse(text: str, file: str = PATH) -> list[Line]:
    """Return the lines of an mssql.conf; `kind` is `section`, `setting` or `other`, names in small letters.

    Raises Malformed for an indented line, a line that is no `key = value`, a key before any section.
    """
    lines: list[Line] = []
    section = ""
    for number, raw in enumerate(split(text, file), start=1):
        if not raw.strip() or raw[0] in "#;":
            lines.append(Line(number, raw, section=section))
            continue
        if _ODD.search(raw):
            raise refusal(file, number, raw, "text without control characters")
        head = _SECTION.fullmatch(raw)
        if head:
            section = head["name"].lower()
            lines.append(Line(number, raw, "section", section))
            continue
        pair = _PAIR.fullmatch(raw)
        if not pair or not section:
            raise refusal(file, number, raw, "'key = value' at the start of a line, below a [section]")
        lines.append(
            Line(
                number,
                raw,
                "setting",
                section,
                pair["name"].lower(),
                pair["value"],
                pair.start("value"),
                pair.end("value"),
            )
        )
    return lines


def get(lines: Sequence[Line], section: str, key: str, file: str = PATH) -> Setting | None:
    """Return the value of a key, or None when it is absent and its default counts.

    Raises Malformed when it is set twice and differently.
    """
    wanted = (section.lower(), key.lower())
    return _only([line for line in lines if _is_setting(line, *wanted)], file)


def trace_flags(lines: Sequence[Line], file: str = PATH) -> dict[int, Setting]:
    """Return {trace flag: where it stands}, by value, over all keys `traceflag` with or without number.

    Raises Malformed for a value that is no number, and for a key that is set twice and differently.
    """
    keys: dict[str, list[Line]] = {}
    for line in lines:
        if _is_flag(line):
            keys.setdefault(line.name, []).append(line)
    flags: dict[int, Setting] = {}
    for key, found in keys.items():
        setting = _only(found, file)
        value = (setting.value if setting else None) or ""
        if setting is None or not re.fullmatch(r"[0-9]{1,9}", value):
            raise Malformed(
                f"{file} line {found[-1].number}",
                f"{value[:80]!r} for {key}",
                f"the number of one trace flag{_meant_flag(value)}; fix that line, then run again",
            )
        flags[int(value)] = setting
    return flags


def slips(lines: Sequence[Line], file: str = PATH) -> Iterator[str]:
    """Yield the misspelt names of settings that decide over a commit: SQL Server ignores them."""
    for line in lines:
        if line.kind == "section":
            meant = _nearest(line.section, tuple(_KEYS))
            if meant:
                yield f"{file} line {line.number}: unknown section [{line.section}] (did you mean [{meant}]?)"
        elif line.kind == "setting" and line.section in _KEYS and not _is_key(line):
            meant = _nearest(line.name.rstrip("0123456789"), _KEYS[line.section])
            if meant:
                yield f"{file} line {line.number}: unknown key {line.name} (did you mean {meant}?)"
        elif line.kind == "setting" and _is_flag(line):
            yield from (f"{file} line {line.number}: {slip}" for slip in slipped_flags([line.value or ""]))


def slipped_flags(words: Iterable[str]) -> Iterator[str]:
    """Yield those of trace flags, as they are written, that are a known slip."""
    for word in words:
        meant = _meant_flag(word)
        if meant:
            yield f"unknown trace flag {word[:80]}{meant}"


def _meant_flag(word: str) -> str:
    """Return the number that a word for a trace flag is meant for, if it is no such number or a known slip."""
    found = re.fullmatch(r"-?(?P<letter>T?)(?P<number>[0-9]{1,9})", word, re.I)
    number = int(found["number"]) if found else 0
    if not found or not (found["letter"] or number in _SLIPPED_FLAGS):
        return ""
    return f" (did you mean {_SLIPPED_FLAGS.get(number, number)}?)"


def _nearest(word: str, known: Sequence[str]) -> str | None:
    """Return what a word that is unknown is nearest to, or None."""
    if word in known or len(word) > _LONGEST:
        return None
    near = difflib.get_close_matches(word, known, 1, _ALIKE)
    return near[0] if near else None


def _is_key(line: Line) -> bool:
    return _is_flag(line) or line.name in _KEYS[line.section]


def _is_flag(line: Line) -> bool:
    return line.section == "traceflag" and bool(_TRACE_FLAG.fullmatch(line.name))


def _is_setting(line: Line, section: str, key: str) -> bool:
    return line.kind == "setting" and (line.section, line.name) == (section, key)


def _only(found: Sequence[Line], file: str) -> Setting | None:
    """Return what lines of one key say, or None without any."""
    if len({line.value for line in found}) > 1:
        raise conflict(file, f"{found[0].section}.{found[0].name}", found)
    return Setting(found[-1].value, file, found[-1].number) if found else None
