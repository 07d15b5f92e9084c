# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""postgresql.conf with its includes and postgresql.auto.conf, read only.

PostgreSQL's manual, 20.1 "Setting Parameters"; the tokens of a line are those of its scanner: the
longest that fits at each place. The last setting of a name counts, postgresql.auto.conf's after all.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

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

_INCLUDES = ("include", "include_if_exists", "include_dir")
#: Includes within includes; PostgreSQL stops with an error beyond.
_DEEPEST = 10

#: Letters are A-Z, a-z, the underscore and all beyond ASCII; with digits; and with what else an unquoted value may have. Each is
#: said by the rest of ASCII, for a set that reaches up to U+10FFFF takes Python 3 ms to compile.
_LETTER = r"[^\x00-@\[-^`{-\x7f]"
_ALPHANUMERIC = r"[^\x00-/:-@\[-^`{-\x7f]"
_UNQUOTED = r"[^\x00-,;-@\[-^`{-\x7f]"
_ID = f"{_LETTER}{_ALPHANUMERIC}*"
#: The words of a line by kind; of two equally long ones the first counts.
_WORDS = {
    "id": re.compile(_ID),
    "qualified": re.compile(rf"{_ID}\.{_ID}"),
    "string": re.compile(r"'(?:[^'\\\n]|\\.|'')*'"),
    "unquoted": re.compile(f"{_LETTER}{_UNQUOTED}*"),
    "integer": re.compile(r"[-+]?(?:0x[0-9a-fA-F]+|[0-9]+)[a-zA-Z]*"),
    "real": re.compile(r"[-+]?[0-9]*\.[0-9]*(?:[Ee][-+]?[0-9]+)?"),
    "equals": re.compile("="),
}
#: With these no word begins: they end a line.
_ENDS = "#\n"
#: A name, an equals sign and a value.
_MOST_WORDS = 3
_VALUES = ("id", "string", "unquoted", "integer", "real")
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)|''", re.S)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
#: Lines with a password, or with the command that prints one: primary_conninfo, ssl_passphrase_command.
_SECRET = re.compile("pass|conninfo", re.I)
_BOOLEANS = {"true": "on", "false": "off", "yes": "on", "no": "off", "1": "on", "0": "off"}


def parse(text: str, file: str = "postgresql.conf") -> list[Line]:
    """Return the lines of a file; `kind` is `setting`, `include` or `other`.

    Names are in small letters, values without quotes and escapes, units kept. Raises Malformed for a
    line that PostgreSQL would refuse to start with.
    """
    return [_line(number, raw, file) for number, raw in enumerate(split(text, file), start=1)]


def get(lines: Sequence[Line], name: str, file: str = "postgresql.conf") -> Setting | None:
    """Return the setting of a name that counts in one file, or None when it is not set."""
    found = _of(lines, name)
    return Setting(found[-1].value, file, found[-1].number) if found else None


def effective(read: Read, names: Names, main: str, auto: str | None) -> Effective:
    """Return what counts in postgresql.conf, its includes and postgresql.auto.conf.

    `main` is an absolute path; `auto` may be None, or missing as a file. Raises Malformed for what
    keeps PostgreSQL from starting: a line it cannot read, a missing `include` or `include_dir`, an
    include that comes back to itself.
    """
    files: list[str] = []
    pairs = list(_read(main, True, read, names, files, 0))
    if auto is not None:
        pairs += _read(auto, False, read, names, files, 0)
    return settled(pairs, files)


def is_conf_file(name: str) -> bool:
    """Return whether include_dir reads a file of this name."""
    return name.endswith(".conf") and not name.startswith(".")


def boolean(value: str) -> str:
    """Return `on` or `off` for a boolean in any spelling that PostgreSQL takes. Raises ValueError."""
    word = value.lower()
    for whole, least in (("true", 1), ("false", 1), ("yes", 1), ("no", 1), ("on", 2), ("off", 2)):
        if len(word) >= least and whole.startswith(word):
            return _BOOLEANS.get(whole, whole)
    if word in ("1", "0"):
        return _BOOLEANS[word]
    raise ValueError(f"observed {value[:80]!r}; expected on or off")


def choice(value: str, words: Iterable[str]) -> str:
    """Return one of the values of an enum, `on` and `off` in any whole spelling. Raises ValueError.

    No prefixes: PostgreSQL takes them for booleans alone.
    """
    allowed = list(words)
    word = value.lower()
    for candidate in (word, _BOOLEANS.get(word)):
        if candidate in allowed:
            return candidate
    raise ValueError(f"observed {value[:80]!r}; expected one of {', '.join(allowed)}")


def _of(lines: Sequence[Line], name: str) -> list[Line]:
    return [line for line in lines if line.kind == "setting" and line.name == name.lower()]


def _line(number: int, raw: str, file: str) -> Line:
    words = _words(number, raw, file)
    if not words:
        return Line(number, raw)
    kinds = [kind for kind, _start, _end in words]
    if len(kinds) == 3 and kinds[1] == "equals":
        del words[1]
    if len(words) != 2 or kinds[0] not in ("id", "qualified") or words[1][0] not in _VALUES:
        raise _refusal(file, number, raw, "'name = value', odd characters in single quotes")
    (_kind, first, last), (kind, start, end) = words
    name, value = raw[first:last].lower(), raw[start:end]
    if kind == "string":
        value = _unquoted(value, number, raw, file)
    return Line(number, raw, "include" if name in _INCLUDES else "setting", "", name, value, start, end)


def _words(number: int, raw: str, file: str) -> list[tuple[str, int, int]]:
    """Return (kind, start, end) of each word of a line, without white space, comment and newline.

    Tokens beyond one too many are not examined.
    """
    words: list[tuple[str, int, int]] = []
    position = 0
    while position < len(raw) and len(words) <= _MOST_WORDS:
        if raw[position] in " \t\r":
            position += 1
            continue
        if raw[position] in _ENDS:
            break
        matches = [(kind, pattern.match(raw, position)) for kind, pattern in _WORDS.items()]
        kind, end = max(
            ((kind, match.end()) for kind, match in matches if match), key=_length, default=("", 0)
        )
        if not kind:
            wanted = (
                "a quote that is closed on its line" if raw[position] == "'" else "values that need no quotes"
            )
            raise _refusal(file, number, raw, wanted)
        words.append((kind, position, end))
        position = end
    return words


def _length(word: tuple[str, int]) -> int:
    return word[1]


def _unquoted(quoted: str, number: int, raw: str, file: str) -> str:
    """Return what a quoted string says: '' is a quote, a backslash starts an escape."""

    def character(match: re.Match[str]) -> bytes:
        escape = match[1]
        if escape is None:
            return b"'"
        if escape[0] in "01234567":
            return bytes([int(escape, 8) & 0xFF])
        return _LETTERS.get(escape, escape).encode("utf-8", "surrogateescape")

    inner, done = quoted[1:-1], 0
    parts: list[bytes] = []
    for match in _ESCAPE.finditer(inner):
        parts += [inner[done : match.start()].encode("utf-8", "surrogateescape"), character(match)]
        done = match.end()
    text = b"".join(parts) + inner[done:].encode("utf-8", "surrogateescape")
    if b"\0" in text:
        raise _refusal(file, number, raw, "a value without NUL bytes")
    return text.decode("utf-8", "surrogateescape")


def _read(
    path: str, must_exist: bool, read: Read, names: Names, files: list[str], depth: int
) -> list[tuple[str, Setting]]:
    """Return (name, setting) of a file and, in place, of those that it includes; add their paths to `files`."""
    if depth > _DEEPEST or len(files) >= MOST_FILES:
        raise Malformed(path, f"includes deeper than {_DEEPEST} or more files than {MOST_FILES}", "fewer")
    text = read(path)
    if text is None:
        if must_exist:
            raise Malformed(path, "no such file", "it there, or no include of it")
        return []
    files.append(path)
    found: list[tuple[str, Setting]] = []
    for line in parse(text, path):
        if line.kind == "setting":
            found.append((line.name, Setting(line.value, path, line.number)))
        elif line.kind == "include":
            for included in _included(line, path, names):
                must = line.name != "include_if_exists"
                found += _read(included, must, read, names, files, depth + 1)
    return found


def _included(line: Line, file: str, names: Names) -> list[str]:
    """Return the paths that an include line names, relative ones to the directory of its file."""
    text = line.value or ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), text))
    if not text.strip(" \t\r\n"):
        raise _refusal(file, line.number, line.raw, "the name of a file or directory")
    if line.name != "include_dir":
        if path == file:
            raise _refusal(file, line.number, line.raw, "an include of another file than this one")
        return [path]
    found = names(path)
    if found is None:
        raise _refusal(file, line.number, line.raw, f"a directory that is there ({path} is not)")
    return [posixpath.join(path, name) for name in byte_order(found) if is_conf_file(name)]


def _refusal(file: str, number: int, raw: str, wanted: str) -> Malformed:
    """Return the error for one line. How a replica logs in is in here too: such a line is not shown."""
    return refusal(file, number, f"{raw.split()[0]} ..." if _SECRET.search(raw) else raw, wanted)
