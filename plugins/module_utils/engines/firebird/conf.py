# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""firebird.conf of Firebird 3, 4 and 5, and the syntax that it shares with databases.conf.

Firebird's Configuration Reference, "Shared syntax of configuration files": `Key = Value`, keys in
any case, `#` comments, double quotes, macros like $(dir_conf), `include`. Of a key that stands more
than once in firebird.conf Firebird takes the first: it searches a list sorted by key.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ...host.textfile import (
    MOST_FILES,
    Effective,
    Line,
    Malformed,
    Names,
    Read,
    Setting,
    byte_order,
    refusal,
    settled,
    split,
)

_BLANKS = " \t\r\n"
_INCLUDE = re.compile(r"include[ \t]+(?P<value>.*)", re.I | re.S)
_PAIR = re.compile(r"(?P<name>[^=#\"]*)=")
_MACRO = re.compile(r"\$\((?P<name>[^)]*)\)")
#: Macros of directories that were chosen when Firebird was built, and of its installation.
MACROS = frozenset(
    "root install dir_conf dir_secdb dir_plugins dir_udf dir_sample dir_sampledb dir_intl dir_msg".split()
)
#: Those of which the directory is certain; SUSE's firebird.conf includes files by it.
_OF_INCLUDES = ("dir_conf",)
NO_MACROS: Mapping[str, str] = MappingProxyType({})
_DEEPEST = 64
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


class _Value(NamedTuple):
    """The value of a line, where it stands as written, and what ended it: '', `{` or `}`."""

    text: str
    start: int
    end: int
    brace: str


def parse(text: str, file: str = "firebird.conf", blocks: bool = False) -> list[Line]:
    """Return the lines of a file; `kind` is `setting`, `include`, `open`, `close` or `other`.

    Names are in small letters, except aliases (`blocks`, outside braces), which keep their case;
    values are without quotes, with their macros. With `blocks` the lines within braces have the
    section of the alias before them, and `open` and `close` are the braces.
    Raises Malformed for what Firebird calls a bad line: an unclosed quote or brace, text behind a
    closing quote, quotes or nothing before the equals sign. And for what it lets pass but is nothing
    that are intended: a key without a value, a block in a block, a setting and a brace on one line.
    """
    lines: list[Line] = []
    alias = inside = ""
    opened = 0
    for number, raw in enumerate(split(text, file), start=1):
        line = _line(number, raw, file, blocks)
        if line.kind == "close" and not inside:
            raise refusal(file, number, raw, "an opening brace before this one")
        if line.kind in ("open", "include") and inside:
            raise refusal(file, number, raw, f"only settings in the block of line {opened}")
        if line.kind in ("setting", "open") and line.name and not inside:
            alias = line.name
        if line.kind == "open" and not alias:
            raise refusal(file, number, raw, "an alias before the opening brace")
        section = alias if inside or line.kind == "open" else ""
        keeps_case = blocks and not inside
        lines.append(line._replace(section=section, name=line.name if keeps_case else line.name.lower()))
        if line.kind == "open":
            inside, opened = alias, number
        elif line.kind == "close":
            inside = ""
    if inside:
        raise refusal(file, opened, lines[opened - 1].raw, "a closing brace", "close the block")
    return lines


def effective(read: Read, names: Names, main: str, macros: Mapping[str, str] = NO_MACROS) -> Effective:
    """Return what counts in a firebird.conf and the files that it includes, macros of values unresolved.

    `macros` is as for `read_lines`. Raises Malformed for a bad line in any of them and for an include that finds no file.
    """
    files: list[str] = []
    pairs = [
        (line.name, Setting(line.value, file, line.number))
        for file, line in read_lines(read, names, main, files, macros)
        if line.kind == "setting"
    ]
    return settled(pairs, list(dict.fromkeys(files)), first=True)


def read_lines(
    read: Read,
    names: Names,
    main: str,
    files: list[str],
    macros: Mapping[str, str] = NO_MACROS,
    blocks: bool = False,
    depth: int = 0,
) -> list[tuple[str, Line]]:
    """Return (file, line) of a file and, in place, of those that it includes; add their paths to `files`.

    Of `macros`, names in small letters, an include may have $(dir_conf).

    A pattern may find nothing; a plain path must be there. Firebird takes what a pattern finds as the directory
    has it, and that is unknown. It reads a file again that it has read, and refuses one that includes itself.
    """
    text = read(main)
    if text is None:
        raise Malformed(main, "no such file", "a configuration file of Firebird's")
    if depth > _DEEPEST or len(files) >= MOST_FILES:
        raise Malformed(main, f"includes deeper than {_DEEPEST} or more files than {MOST_FILES}", "fewer")
    files.append(main)
    found: list[tuple[str, Line]] = []
    for line in parse(text, main, blocks):
        found.append((main, line))
        if line.kind == "include":
            texts = [
                read_lines(read, names, path, files, macros, blocks, depth + 1)
                for path in _included(line, main, read, names, macros)
            ]
            _expect_any_order(texts, main, line)
            found += (pair for text in texts for pair in text)
    return found


def _expect_any_order(texts: Sequence[Sequence[tuple[str, Line]]], file: str, include: Line) -> None:
    """Raise Malformed where two files that one pattern finds set the same: the directory's order decides."""
    keys_of_others: set[str] = set()
    for text in texts:
        keys = {line.name for _file, line in text if line.kind == "setting" and not line.section}
        if keys & keys_of_others:
            wanted = f"{', '.join(sorted(keys & keys_of_others))} in one of these files alone: they are read in no known order"
            raise refusal(file, include.number, include.raw, wanted)
        keys_of_others |= keys


def resolve(value: str, macros: Mapping[str, str], file: str) -> str:
    """Return a value with its macros replaced by directories, no slash doubled.

    `macros` has names in small letters; $(this) is the directory of `file`, links not followed.
    Raises ValueError for a macro that Firebird does not know, and for one without a value.
    """
    known = {**macros, "this": posixpath.dirname(file)}

    def directory(match: re.Match[str]) -> str:
        name = match["name"].lower()
        if name not in MACROS | {"this"}:
            raise ValueError(
                f"observed the macro {match[0]}; expected one of Firebird's: {', '.join(sorted(MACROS))}, this"
            )
        if name not in known:
            raise ValueError(f"the directory of {match[0]} is unknown")
        return known[name].rstrip("/")

    if value.rfind("$(") > value.rfind(")"):
        raise ValueError(f"observed {value[:80]!r}; expected a macro that is closed")
    return _MACRO.sub(directory, value)


def boolean(value: str) -> str:
    """Return `on` or `off` as Firebird reads a boolean. Raises ValueError where it takes a typing error."""
    if value.lower() in ("true", "yes", "y") or re.fullmatch(r"-?0*[1-9][0-9]*", value):
        return "on"
    if value.lower() in ("false", "no", "n") or re.fullmatch(r"-?0+", value):
        return "off"
    raise ValueError(f"observed {value[:80]!r}; expected true or false")


def integer(value: str) -> int:
    """Return a number with k, m or g for powers of 1024. Raises ValueError; Firebird would take 0."""
    match = re.fullmatch(r"(-?[0-9]{1,18})([kmg]?)", value, re.I)
    if not match:
        raise ValueError(f"observed {value[:80]!r}; expected a number, with k, m or g at most")
    return int(match[1]) * _UNITS[match[2].lower()]


def _line(number: int, raw: str, file: str, blocks: bool) -> Line:
    words = raw.strip(_BLANKS)
    if not words or words.startswith("#"):
        return Line(number, raw)
    include = _INCLUDE.fullmatch(words)
    if include:
        return Line(number, raw, "include", value=include["value"])
    pair = _PAIR.match(raw)
    if pair:
        name, value = pair["name"].strip(_BLANKS), _value(number, raw, pair.end(), file, blocks)
        if not name or (blocks and re.search(r"[{}]", name)):
            raise refusal(file, number, raw, "'Key = Value'")
        kind = "open" if value.brace else "setting"
        return Line(number, raw, kind, name=name, value=value.text, start=value.start, end=value.end)
    alone = raw.partition("#")[0].strip(_BLANKS)
    if blocks and alone == "{" and "#" in raw:
        raise refusal(
            file, number, raw, "no comment behind an opening brace: Firebird passes over such a block"
        )
    if blocks and alone in ("{", "}"):
        return Line(number, raw, "open" if alone == "{" else "close")
    raise refusal(file, number, raw, "'Key = Value'" + (" or a brace alone on a line" if blocks else ""))


def _value(number: int, raw: str, start: int, file: str, blocks: bool) -> _Value:
    """Return the value that starts somewhere in a line: up to a comment or brace outside quotes."""
    quotes, end, brace = 0, len(raw), ""
    for position in range(start, len(raw)):
        char = raw[position]
        if char == "#" and quotes != 1:
            end = position
            break
        if char in "{}" and blocks and quotes != 1:
            if char == "}" or raw[position + 1 :].strip(_BLANKS):
                raise refusal(file, number, raw, "a brace that opens a block at the end of the line")
            end, brace = position, char
            break
        if quotes == 2 and char not in _BLANKS:
            raise refusal(file, number, raw, "nothing behind the closing quote")
        quotes += char == '"'
    if quotes == 1:
        raise refusal(file, number, raw, "a quote that is closed on its line")
    written = raw[start:end]
    first = start + len(written) - len(written.lstrip(_BLANKS))
    last = max(first, start + len(written.rstrip(_BLANKS)))
    return _Value(raw[first:last].strip('"'), first, last, brace)


def _included(line: Line, file: str, read: Read, names: Names, macros: Mapping[str, str]) -> list[str]:
    """Return the paths that an include line finds."""
    known = {name: macros[name] for name in _OF_INCLUDES if name in macros}
    try:
        named = resolve(line.value or "", known, file)
    except ValueError:
        named = "$("
    directory, pattern = posixpath.split(posixpath.normpath(posixpath.join(posixpath.dirname(file), named)))
    if "$(" in named or re.search(r"[?*]", directory):
        wanted = "an include of files in one directory, without macros but $(dir_conf) and $(this)"
        raise refusal(file, line.number, line.raw, wanted)
    path = posixpath.join(directory, pattern)
    if not re.search(r"[?*]", pattern):
        if read(path) is None:
            raise refusal(file, line.number, line.raw, f"an include that finds a file ({path} is not there)")
        return [path]
    glob = pattern.replace("[", "[[]")
    found = [name for name in names(directory) or [] if fnmatch.fnmatchcase(name, glob)]
    return [posixpath.join(directory, name) for name in byte_order(found)]
