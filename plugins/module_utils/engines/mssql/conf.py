# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mssql.conf of SQL Server on Linux, read only: mssql-conf writes it.

Sections and `key = value`. mssql-conf reads it with Python's ConfigParser, which folds the case of
keys, joins indented lines to the one above and splits at a colon too. What that and an INI reader
would take differently is refused, and so is a key that is set twice and differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...host.textfile import Line, Malformed, Setting, conflict, refusal, split

PATH = "/var/opt/mssql/mssql.conf"
_SECTION = re.compile(r"\[(?P<name>[^\]\r\n]+)\][ \t]*\r?\n?")
_PAIR = re.compile(r"(?P<name>[^=:\s]+)[ \t]*=[ \t]*(?P<value>(?:[^\r\n]*[^ \t\r\n])?)[ \t]*\r?\n?")
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
#: traceflag0, traceflag12, and without a number: all count, whatever the numbers.
_TRACE_FLAG = re.compile(r"traceflag\d*")


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
        if line.section == "traceflag" and _TRACE_FLAG.fullmatch(line.name):
            keys.setdefault(line.name, []).append(line)
    flags: dict[int, Setting] = {}
    for key, found in keys.items():
        setting = _only(found, file)
        said = (setting.value if setting else None) or ""
        if setting is None or not re.fullmatch(r"[0-9]{1,9}", said):
            raise Malformed(
                f"{file} line {found[-1].number}: seen {said[:80]!r} for {key}; wanted the number of one trace"
                " flag; mend that line, then run again"
            )
        flags[int(said)] = setting
    return flags


def _is_setting(line: Line, section: str, key: str) -> bool:
    return line.kind == "setting" and (line.section, line.name) == (section, key)


def _only(found: Sequence[Line], file: str) -> Setting | None:
    """Return what lines of one key say, or None without any."""
    if len({line.value for line in found}) > 1:
        raise conflict(file, f"{found[0].section}.{found[0].name}", found)
    return Setting(found[-1].value, file, found[-1].number) if found else None
