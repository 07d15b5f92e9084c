# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""databases.conf of Firebird: aliases of databases, and settings of single databases in braces.

Firebird's Configuration Reference, "databases.conf". Aliases are case-sensitive on Linux. An
alias that stands twice, and a database with two blocks, keep Firebird from using the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...host.textfile import Line, Malformed, Names, Read, Setting, refusal
from . import conf


class Database(NamedTuple):
    """One alias: its path, or None with the reason, its own settings, and where it stands.

    `ignored`: no database of this server is behind it.
    """

    alias: str
    path: str | None
    settings: dict[str, Setting]
    file: str
    line: int
    reason: str | None = None
    ignored: bool = False


def parse(text: str, file: str = "databases.conf") -> list[Line]:
    """Return the lines of a databases.conf; see firebird_conf.parse."""
    return conf.parse(text, file, blocks=True)


def databases(
    read: Read, names: Names, main: str, macros: Mapping[str, str]
) -> tuple[list[Database], list[str]]:
    """Return the aliases of a databases.conf and of the files that it includes, and those files' paths.

    `macros` is {name in small letters: directory}. A path that is relative (Firebird ignores that
    alias), on another server, or behind a macro without a value is None.
    Raises Malformed for what makes Firebird refuse the file.
    """
    files: list[str] = []
    found: dict[str, Database] = {}
    configured: dict[str, str] = {}
    for file, line in conf.read_lines(read, names, main, files, macros, blocks=True):
        inside = line.section and line.kind != "open"
        if line.kind in ("setting", "open") and line.name and not inside:
            if line.name in found:
                raise refusal(
                    file, line.number, line.raw, f"each alias once (see line {found[line.name].line})"
                )
            path, reason, ignored = _path(line, file, macros)
            found[line.name] = Database(line.name, path, {}, file, line.number, reason, ignored)
        if line.kind == "open":
            _claim(found, configured, line, file)
        if inside and line.kind == "setting":
            found[line.section].settings.setdefault(line.name, Setting(line.value, file, line.number))
    return list(found.values()), list(dict.fromkeys(files))


def _claim(found: Mapping[str, Database], configured: dict[str, str], line: Line, file: str) -> None:
    """Note that the alias of an opening brace configures its database. Raises Malformed for a second one."""
    path = found[line.section].path if line.section in found else None
    if path is None:
        return
    first = configured.setdefault(path, line.section)
    if first != line.section:
        raise Malformed(
            f"{file} line {line.number}", f"a second block of settings for {path}", f"one, that of {first}"
        )


def _path(line: Line, file: str, macros: Mapping[str, str]) -> tuple[str | None, str | None, bool]:
    """Return the path of an alias and, without one, the reason, and whether the server passes it over."""
    try:
        path = conf.resolve(line.value or "", macros, file)
    except ValueError as error:
        return None, str(error), False
    if path.startswith("/") and "\\" in path:
        return None, f"{path[:80]!r} has a backslash, which Firebird takes for a slash: write that", False
    if path.startswith("/"):
        return path, None, False
    if re.match(r"[^/]+:", path) or path.startswith("\\\\"):
        return None, f"{path[:80]} is on another server", True
    return None, f"{path[:80]!r} is not absolute: Firebird ignores this alias", True
