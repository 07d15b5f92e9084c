# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reading of databases.conf and firebird.conf against Firebird's engine, which opens a database by its alias.

It says which file it opened, and how many pages its cache has: a number that both files can set.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import conf as firebird_conf
from ansible_collections.durable.dbhost.plugins.module_utils.engines.firebird import databases_conf
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed
from oracles.contract import Answer, Case, agreed, compare, declined, mostly

_REFUSED = "all of it refused"
KNOWN = {
    _REFUSED: "Firebird refuses the whole file for one alias: with a macro that is none, or with another spelling of"
    " a path. We name that alias unknown and list the others: so more databases are judged, never fewer."
}
_MISCONFIGURED, _ILLEGAL = "Server misconfigured", "illegal line"

#: Debian's: below it, for each version, what a server needs besides its configuration.
HOMES = Path("/usr/lib/x86_64-linux-gnu/firebird")
_PROGRAM = "isql-fb"
_LIMIT = 60
_KEY = "DefaultDbCachePages"
_BASE = (f"{_KEY} = 321\n", "ServerMode = Classic\n", "SecurityDatabase = $(dir_conf)/security.fdb\n")
#: The engine takes fewer pages than these for these, and as many as memory has above.
_FEWEST, _MOST = 50, 5000
_ALIASES = ("lab", "lab", "lab", "Lab", "other", "lab ")
_PATHS = (
    "{0}/a.fdb",
    "{0}/b.fdb",
    '"{0}/a.fdb"',
    "$(dir_conf)/b.fdb",
    "{0}//a.fdb",
    "{0}/./b.fdb",
    "$(DIR_CONF)/a.fdb",
)
_ODD_PATHS = (
    *(
        "{0}/a.fdb # comment",
        "{0}/a.fdb#",
        '"{0}/b.fdb" # c',
        "a.fdb",
        "$(this)/a.fdb",
        "$(root)/b.fdb",
        "$(none)/a.fdb",
        "",
    ),
    *(
        '"{0}/a.fdb',
        "{0}/a.fdb {",
        "localhost:{0}/b.fdb",
        '{0}/"b.fdb"',
        "'{0}/a.fdb'",
        "{0}\\a.fdb",
        "{0}/a.fdb }",
        "$(dir_conf/a.fdb",
    ),
)
_VALUES = ("60", "75", "123", "1k", '"90"', "2K", " 200")
_ODD_VALUES = (
    "0x50",
    "80 # c",
    "80#c",
    "80 81",
    "",
    '""',
    "-1",
    "80}",
    "{80",
    "'80'",
    '"80" 81',
    "$(root)",
    "8 0",
    "80\t",
    "80\v",
    "1kk",
    "080",
)
_ODD_LINES = (
    *(
        "",
        "# comment",
        "  # x = y",
        "=",
        "= 5",
        "word",
        "{",
        "}",
        "{ }",
        "include",
        "include none.conf",
        "include *.inc",
        "include x.inc",
    ),
    *(
        '"quoted" = 1',
        "Key = Value",
        "include $(dir_conf)/x.inc",
        "include\tx.inc",
        "INCLUDE x.inc",
        "include y.inc # c",
        "a = b = c",
        "\ufeff",
    ),
    *(
        "lab = {0}/a.fdb { RemoteAccess = true }",
        "includex = 5",
        "include = x.inc",
        "#{",
        "lab",
        "lab =",
        "\v",
        "x\0y = 1",
    ),
)
_ENDS = ("\n",) * 40 + ("\r\n", "", "\n\n", "\\\n", " \n")


class Seen(NamedTuple):
    """The file that is behind an alias, and the pages of its cache; None where we do not know the number."""

    path: str
    pages: int | None


def prepare(directory: Path) -> Case:
    """Return a case that opens one alias."""
    # Not its configuration: what is written here would be written there.
    for path in _home().iterdir():
        if path.name == "plugins":
            shutil.copytree(
                path, directory / path.name
            )  # Version 4 takes none that is called otherwise elsewhere.
        elif path.suffix != ".conf" or path.name == "plugins.conf":
            (directory / path.name).symlink_to(path)
    _write(directory, {"firebird.conf": "".join(_BASE), "databases.conf": ""})
    for name in ("a", "b"):
        _ask(directory, "", f"create database '{directory}/{name}.fdb' page_size 4096;\n")
        if not (directory / f"{name}.fdb").exists():
            raise FileNotFoundError(f"{_PROGRAM} makes no database")
    os.chdir(directory)

    def case(numbers: random.Random) -> Answer:
        files = build(numbers, str(directory))
        _write(directory, files)
        try:
            ours, doubts = _ours(directory)
        except Malformed:
            return declined
        theirs, errors = _theirs(directory)
        if ours and theirs and ours.pages is None:
            theirs = theirs._replace(pages=None)
        # What is not there cannot be opened.
        if ours and not theirs and not os.path.exists(ours.path):
            return agreed
        is_refused = _MISCONFIGURED in errors or (_ILLEGAL in errors and " macro" in doubts)
        return compare(files, ours, theirs, _REFUSED if is_refused else "")

    return case


def build(numbers: random.Random, directory: str) -> dict[str, str]:
    """Return hostile files: the two of Firebird, and two that they may include."""
    one = partial(mostly, numbers)

    def pair(key: str, value: str) -> str:
        return f"{key}{one((' = ', '='), (' =', '= ', chr(9) + '=' + chr(9)), 0.2)}{value}"

    def key() -> str:
        return one((_KEY,), (_KEY.lower(), f" {_KEY}", _KEY.upper(), f"{_KEY}X"), 0.3)

    def setting() -> str:
        return one((pair(key(), one(_VALUES, _ODD_VALUES, 0.25)),), _ODD_LINES, 0.12)

    def block() -> list[str]:
        return [
            one(("{",), ("{ # c", " { "), 0.1),
            *(setting() for _ in range(numbers.randint(0, 2))),
            "}",
        ]

    def alias() -> list[str]:
        found = [pair(numbers.choice(_ALIASES), one(_PATHS, _ODD_PATHS, 0.1))]
        return found + block() if numbers.random() < 0.35 else found

    def text(lines: list[str]) -> str:
        return "".join(line.replace("{0}", directory) + numbers.choice(_ENDS) for line in lines)

    def some(make: list[str]) -> list[str]:
        return make + ([numbers.choice(_ODD_LINES)] if numbers.random() < 0.08 else [])

    conf = text(some([setting() for _ in range(numbers.randint(0, 2))]))
    return {
        "databases.conf": text(some([line for _ in range(numbers.randint(1, 2)) for line in alias()])),
        "firebird.conf": conf + ("" if conf.endswith("\n") or not conf else "\n") + "".join(_BASE),
        "x.inc": text([setting()]),
        "y.inc": text([setting()]),
    }


def _write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).write_bytes(text.encode("utf-8", "surrogateescape"))


def _ours(directory: Path) -> tuple[Seen | None, str]:
    """Return what we read of the alias, and why we do not know others. Raises Malformed."""

    def read(path: str) -> str | None:
        try:
            return Path(path).read_bytes().decode("utf-8", "surrogateescape")
        except OSError:
            return None

    def names(path: str) -> list[str] | None:
        return os.listdir(path) if os.path.isdir(path) else None

    macros = {"dir_conf": str(directory), "root": str(directory)}
    found, _files = databases_conf.databases(read, names, f"{directory}/databases.conf", macros)
    general = firebird_conf.effective(read, names, f"{directory}/firebird.conf").settings.get(_KEY.lower())
    database = next((each for each in found if each.alias == "lab"), None)
    if database and database.path is None and not database.ignored:
        raise Malformed(
            f"{directory}/databases.conf, alias lab",
            database.reason or "no path",
            "a path that we can resolve",
        )
    doubts = "".join(each.reason or "" for each in found)
    if database is None or database.path is None:
        return None, doubts
    same = [each for each in found if each.path == database.path]
    own = next((each.settings[_KEY.lower()] for each in same if _KEY.lower() in each.settings), general)
    try:
        pages = firebird_conf.integer(own.value or "") if own else 0
    except ValueError:
        pages = 0
    return Seen(os.path.normpath(database.path), pages if _FEWEST <= pages <= _MOST else None), doubts


def _theirs(directory: Path) -> tuple[Seen | None, str]:
    """Return what the engine opens, and its complaint."""
    said, errors = _ask(
        directory,
        "lab",
        "set heading off;\nselect mon$page_buffers || '|' || trim(mon$database_name) || '|' from mon$database;\n",
    )
    pages, bar, rest = said.strip().partition("|")
    path = os.path.normpath(rest.partition("|")[0])
    return Seen(path, int(pages)) if bar else None, errors


def _home() -> Path:
    (home,) = HOMES.glob("?.0")
    return home


def _ask(directory: Path, database: str, script: str) -> tuple[str, str]:
    # From version 4 on Debian's is a script that sets FIREBIRD itself, and then runs this.
    program = shutil.which(_PROGRAM, path=f"/usr/lib/firebird/{_home().name}/bin:{os.environ['PATH']}")
    if program is None:
        raise FileNotFoundError(_PROGRAM)
    found = subprocess.run(
        [program, "-q", *filter(None, [database])],
        input=script.encode(),
        env={**os.environ, "FIREBIRD": str(directory), "HOME": str(directory)},
        capture_output=True,
        timeout=_LIMIT,
        check=False,
    )
    return found.stdout.decode("utf-8", "surrogateescape"), found.stderr.decode("utf-8", "surrogateescape")
