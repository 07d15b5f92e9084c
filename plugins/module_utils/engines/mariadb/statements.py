# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Statements that set global variables of ours: in an init_file, in commands of units, in scripts. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from ...host.observation import Because
from ..others import Change, Text, is_elsewhere
from . import versions

#: Variables that a running server takes. `innodb_doublewrite`: from MariaDB 11.0 and MySQL 8.0.30 on.
SET = (versions.LOG, versions.BINLOG, versions.DOUBLEWRITE)
_NAMES = "|".join(name.replace("_", "[-_]") for name in SET)
_MENTION = re.compile(rf"(?i)(?<![\w$-])(?:--)?(?:{_NAMES})(?![\w])")
#: One assignment: a scope, which the next ones inherit, a name, a value.
_ASSIGNMENT = re.compile(
    rf"(?i)\s*(?:(?P<word>global|persist|persist_only|session|local)\s+|@@(?P<at>global|persist|persist_only|session|local)\s*\.\s*)?"
    rf"`?(?P<name>{_NAMES.replace('[-_]', '_')})`?\s*:?=\s*(?P<value>'[\w]*'|\"[\w]*\"|\w+)\s*"
)
_OTHER = re.compile(r"(?i)\s*(?:(?P<word>global|persist|persist_only|session|local)\s+)?[@`\w]")
#: The same in a line of a script or a command, whatever is around it.
_LOOSE = re.compile(rf"(?i)(?<![\w$-])(?:--)?(?P<name>{_NAMES})`?\s*:?=(?!=)\s*['\"]?(?P<value>\w+)?")
_REDO = re.compile(r"(?i)\bALTER\s+INSTANCE\s+(?P<word>ENABLE|DISABLE)\s+INNODB\s+REDO_LOG\b")
_READS = re.compile(r"(?i)^\s*(?:SELECT|SHOW|DO|DESC|EXPLAIN)\b")
_RUNS = re.compile(r"(?i)^\s*(?:CALL|EXECUTE|PREPARE)\b")
#: Quoted text, which stays, and comments. One without an end goes on to the end: each place is read once.
_COMMENT = re.compile(
    r"""(?s)'(?:[^'\\]|\\.)*(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)|`[^`]*(?:`|\Z)"""
    r"""|/\*(?!M?!).*?(?:\*/|\Z)|(?:--(?=\s|$)|\#)[^\n]*"""
)
_GLOBAL = ("global", "persist")
_CLIENTS = ("mariadb", "mysql")
#: A command that is sent to a server of another host.
_ELSEWHERE = re.compile(r"(?:\s-h\s*|\s--host[= ]\s*)['\"]?(?!localhost\b|127\.|::1)[\w.:-]")


class Statement(NamedTuple):
    """One statement and its line, from 1. A comment in it is an instruction to the server."""

    text: str
    row: int


def of_file(text: str, path: str, version: versions.Release | None) -> list[Change]:
    """Return what an init_file sets: the server executes it at each start, before it accepts connections."""
    found: list[Change] = []
    for statement in split(text):
        where = Text(statement.text, f"{path} line {statement.row}", "init_file", True)
        found += _of_statement(statement, where, version)
    return found


def of_text(text: Text, version: versions.Release | None) -> list[Change]:
    """Return what a command of a unit, or a line of a script, sets."""
    if is_elsewhere(text.text, _ELSEWHERE):
        return []
    sql = _executed(text.text) if text.is_direct else None
    if sql is not None:
        return [change for statement in split(sql) for change in _of_statement(statement, text, version)]
    return _of_line(text, version)


def _of_line(text: Text, version: versions.Release | None) -> list[Change]:
    found = [
        Change(versions.REDO, "OFF" if redo["word"].upper() == "DISABLE" else "ON", text.source, text.by)
        for redo in _REDO.finditer(text.text)
    ]
    sets = bool(re.search(r"(?i)\bset\b|--init[-_]command", text.text))
    if re.search(r"(?i)\b(?:select|show)\b", text.text) and not sets:
        return found
    for given in _LOOSE.finditer(text.text):
        name = _plain(given["name"])
        found.append(Change(name, _word(name, given["value"], version), text.source, text.by))
    named = {_plain(mention[0].lstrip("-")) for mention in _MENTION.finditer(text.text)}
    if sets:
        found += [
            Change(name, None, text.source, text.by) for name in sorted(named - {c.name for c in found})
        ]
    return [change for change in found if _is_dynamic(change.name, version)]


def _of_statement(statement: Statement, where: Text, version: versions.Release | None) -> Iterator[Change]:
    text = statement.text
    redo = _REDO.search(text)
    if redo:
        word = "OFF" if redo["word"].upper() == "DISABLE" else "ON"
        yield Change(versions.REDO, word, where.source, where.by, True)
        return
    if _RUNS.match(text):
        why = Because("runs_procedure", {"place": f"{where.source} ({where.by})"})
        for name in (versions.LOG, versions.BINLOG):
            yield Change(name, None, where.source, where.by, why=why)
        return
    names = {_plain(found[0].lstrip("-")) for found in _MENTION.finditer(text)}
    if not names or _READS.match(text):
        return
    body = re.fullmatch(r"(?is)\s*SET\s+(?P<body>.*)", text)
    clear = _assignments(body["body"]) if body else {}
    for name in sorted(names):
        if not _is_dynamic(name, version):
            continue
        if name in clear and clear[name] == "":
            continue  # A session has no such variable: the statement fails.
        value = _word(name, clear.get(name), version)
        yield Change(name, value, where.source, where.by, value is not None)


def _assignments(body: str) -> dict[str, str]:
    """Return {name: value} of the assignments to ours, '' for a session's; {} if one of them is not understood."""
    found: dict[str, str] = {}
    scope = ""
    for part in _commas(body):
        ours = _ASSIGNMENT.fullmatch(part)
        other = _OTHER.match(part)
        if not ours:
            if other and other["word"]:
                scope = other["word"].lower()
            if _MENTION.search(part):
                return {}
            continue
        scope = (ours["word"] or scope).lower()
        counts = (ours["at"] or scope).lower()
        if counts == "persist_only":
            return {}  # It acts at the start after the next one.
        if counts in _GLOBAL or _plain(ours["name"]) not in found:
            found[_plain(ours["name"])] = ours["value"].strip("'\"") if counts in _GLOBAL else ""
    return found


def _commas(text: str) -> list[str]:
    return [part for part in _parted(text, ",") if part.strip()]


def split(text: str) -> list[Statement]:
    """Return the statements of a text, without comments; one in `/*! */` is an instruction, and stays."""
    found, row = [], 1
    for part in _parted(_without_comments(text), ";"):
        blank = len(part) - len(part.lstrip())
        first = row + part[:blank].count("\n")
        if part.strip():
            found.append(Statement(part.strip(), first))
        row += part.count("\n")
    return found


def _without_comments(text: str) -> str:
    """Return a text in which comments are blank; lines keep their numbers."""

    def blank(found: re.Match[str]) -> str:
        is_comment = found[0].startswith(("/*", "--", "#"))
        return "\n" * found[0].count("\n") + " " if is_comment else found[0]

    return _COMMENT.sub(blank, text)


def _parted(text: str, sign: str) -> list[str]:
    """Return the parts of a text between signs that are in no quotes and in no brackets."""
    parts, now, quote, depth = [], "", "", 0
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == sign and depth <= 0:
            parts.append(now)
            now = ""
            continue
        now += char
    return [*parts, now]


def _executed(command: str) -> str | None:
    """Return the statements that a command has a client execute, None for any other command."""
    bare = command.lstrip("@:+!|-")
    try:
        words = shlex.split(bare)
    except ValueError:
        return None
    # systemd ignores a failure of a command with `-`. A variable can stand for anything.
    if "-" in command[: len(command) - len(bare)] or not words:
        return None
    if words[0].rpartition("/")[2] not in _CLIENTS or any("$" in word for word in words):
        return None
    for index, word in enumerate(words):
        if word.startswith("--execute="):
            return word.partition("=")[2]
        if word in ("-e", "--execute"):
            return words[index + 1] if index + 1 < len(words) else None
        if re.match(r"-e.", word):
            return word[2:]
    return None


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _word(name: str, value: str | None, version: versions.Release | None) -> str | None:
    """Return the word of a value, None if it is not understood."""
    if version is None or value is None:
        return None
    try:
        if value.lower() == "default":
            return versions.default(version, name)
        return versions.word(version, name, value)
    except (ValueError, KeyError):
        return None


def _is_dynamic(name: str, version: versions.Release | None) -> bool:
    """Return whether a running server of a version takes a variable; it refuses the others."""
    if name != versions.DOUBLEWRITE or version is None:
        return True
    return version.numbers >= ((11, 0, 0) if version.is_mariadb else (8, 0, 30))
