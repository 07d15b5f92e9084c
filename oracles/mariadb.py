# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reading of option files and command lines, without a second opinion, against the server and my_print_defaults."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import my_cnf, server_help
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import options as mariadb_options
from ansible_collections.durable.dbhost.plugins.module_utils.engines.mariadb import versions as mariadb_words
from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import UNKNOWN
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Effective
from oracles.contract import Answer, Case, agreed, declined, disagreed, mostly

KNOWN: dict[str, str] = {
    "fast": "from 11.0 on O_DIRECT_NO_FSYNC makes innodb_doublewrite fast when the server starts, which --help does not show",
    "refused": "the program ends without telling its options, or without InnoDB: a server that does not start commits nothing",
}
#: MariaDB, or MySQL.
PROGRAMS = ("/usr/sbin/mariadbd", "/usr/sbin/mysqld")
_LIMIT = 60
#: As whom the program is asked: nobody.
_USER = ("65534", "65534")
_AS_NOBODY = ("setpriv", f"--reuid={_USER[0]}", f"--regid={_USER[1]}", "--clear-groups", "--")
#: The settings that are compared.
NAMES = (
    mariadb_words.LOG,
    mariadb_words.BINLOG,
    mariadb_words.DOUBLEWRITE,
    mariadb_words.METHOD,
    mariadb_words.LOG_BIN,
    mariadb_words.NO_SYNC,
)
_SWITCHES = (mariadb_words.DOUBLEWRITE, mariadb_words.LOG_BIN, mariadb_words.NO_SYNC)
_VALUES = ("0", "1", "1", "2", "3", "ON", "OFF", "on", "true", "FALSE", "fsync", "O_DIRECT", "nosync", "5")
_ODD_VALUES = (
    *("", " ", "-1", "+1", "01", "0x1", "1k", "7", "99999999999999999999", "1e3", "1.5", "O_DIRECT_NO_FSYNC"),
    *(
        "'1'",
        '"0"',
        "'1",
        '1"',
        "'ON'",
        "1 # note",
        "1#note",
        "1 ; note",
        "'1 # 2'",
        "1\\",
        "\\1",
        "1\\n",
        "1\\s",
    ),
    *(
        "\\s1",
        "littlesync",
        "fs",
        "yes",
        "maybe",
        "=1",
        "1=0",
        "o_direct",
        "/srv/log",
        "./0",
        "ö",
        "1\r",
        "\v1\f",
    ),
)
_GROUPS = (
    "mysqld",
    "mysqld",
    "mariadb",
    "mariadbd",
    "server",
    "mysqld-10.11",
    "mariadb-10.11",
    "client-server",
)
_ODD_GROUPS = (
    *("MYSQLD", "mysqld ", "client", "mysqld_safe", "mysqld-8.0", "galera", "mysqld] x", "mysqld.two"),
    *("mariadb.two", " mysqld", "", "mysqld-10.5", "mysqld]#", "embedded"),
)
_PREFIXES = (
    "loose-",
    "skip-",
    "disable-",
    "enable-",
    "maximum-",
    "loose_skip_",
    "skip_loose-",
    "autoset-",
    "LOOSE-",
)
_ODD_LINES = (
    *(
        "",
        "  ",
        "# note",
        "; note",
        "\t# note",
        "!",
        "!other x",
        "! include",
        "!includedir",
        "innodb",
        "=1",
        "\r",
    ),
    *("skip-name-resolve", "sync", "debug", "[mysqld", "\f", "-sync_binlog=0", "--sync_binlog=0", "log"),
    *("loose-\\", "x" * 4100, "loose-x = " + "y" * 4080),
)
_INCLUDES = (
    "!include {0}/extra.cnf",
    "!includedir {0}/conf.d",
    "!includedir {0}/conf.d/",
    " ! include  {0}/extra.cnf",
)
_FILES = ("a.cnf", "b.cnf", "c.cnf.bak", "d.x.cnf", ".e.cnf", "F.cnf", "g")


class Configuration(NamedTuple):
    """Files by their path below a directory, with their modes, and a command line."""

    files: Mapping[str, tuple[str, int]]
    arguments: Sequence[str]


class Programs(NamedTuple):
    """The server, its version, and the path of my_print_defaults."""

    server: str
    version: mariadb_words.Release
    defaults: str


def build(numbers: random.Random, directory: str = "{0}") -> Configuration:
    """Return a hostile configuration: most lines are as they should be."""
    places = ["my.cnf"]
    if numbers.random() < 0.4:
        places += ["extra.cnf", *numbers.sample([f"conf.d/{name}" for name in _FILES], numbers.randint(0, 3))]
    files = {
        place: (
            _text(numbers, len(places) > 1).replace("{0}", directory),
            numbers.choice((0o644, 0o644, 0o644, 0o666, 0o600)) if place != "my.cnf" else 0o644,
        )
        for place in places
    }
    arguments = [f"--defaults-file={directory}/my.cnf"]
    if numbers.random() < 0.1:
        arguments.append("--defaults-group-suffix=.two")
    for _count in range(numbers.choice((0, 0, 0, 1, 2))):
        arguments += _argument(numbers)
    return Configuration(files, arguments)


def _text(numbers: random.Random, has_more: bool) -> str:
    lines = [f"[{mostly(numbers, _GROUPS, _ODD_GROUPS, 0.15)}]"] if numbers.random() < 0.97 else []
    for _count in range(numbers.randint(1, 6)):
        chance = numbers.random()
        if chance < 0.1:
            lines.append(f"[{mostly(numbers, _GROUPS, _ODD_GROUPS, 0.3)}]")
        elif chance < 0.16:
            lines.append(numbers.choice(_ODD_LINES))
        elif chance < 0.26 and has_more:
            lines.append(numbers.choice(_INCLUDES))
        else:
            lines.append(_line(numbers))
    end = mostly(numbers, ("\n",), ("", "\r\n", " \n"), 0.06)
    return mostly(numbers, ("\n",), ("\r\n",), 0.03).join(lines) + end


def _line(numbers: random.Random) -> str:
    name, value = _setting(numbers)
    between = mostly(numbers, ("=", " = "), ("\t=", "= ", " =\t", "=\v"), 0.1)
    comment = mostly(numbers, ("",), (" # note", "#", " ; note", " \t"), 0.1)
    start = mostly(numbers, ("",), (" ", "\t", "--"), 0.05)
    return start + name + (comment if value is None else f"{between}{value}{comment}")


def _setting(numbers: random.Random) -> tuple[str, str | None]:
    """Return a name as somebody may write it, and a value that may suit it."""
    name = plain = numbers.choice(NAMES)
    if numbers.random() < 0.2:
        name = name.replace("_", "-")
    if numbers.random() < 0.15:
        name = numbers.choice(_PREFIXES) + name
    if numbers.random() < 0.06:
        name = name[: numbers.randint(len(name) - 8, len(name) - 1)]
    if numbers.random() < 0.06:
        name = numbers.choice((name.upper(), name.title(), name.swapcase()))
    if numbers.random() < (0.4 if plain in _SWITCHES else 0.03):
        return name, None
    usual = {
        mariadb_words.METHOD: ("fsync", "O_DIRECT", "nosync", "O_DSYNC", "o_direct"),
        mariadb_words.LOG: ("0", "1", "2", "3"),
        mariadb_words.BINLOG: ("0", "1", "5"),
    }
    return name, mostly(numbers, usual.get(plain, ("0", "1", "ON", "OFF")), (*_VALUES, *_ODD_VALUES), 0.15)


def _argument(numbers: random.Random) -> list[str]:
    name, value = _setting(numbers)
    if value is None:
        return [f"--{name}"]
    value = value.replace("\n", "")
    return [f"--{name}", value] if numbers.random() < 0.1 else [f"--{name}={value}"]


def prepare(directory: Path) -> Case:
    """Return a case that asks both programs about one configuration."""
    host = Host()
    server = next((path for path in PROGRAMS if Path(path).exists()), None)
    defaults = shutil.which("my_print_defaults")
    if server is None or defaults is None:
        raise FileNotFoundError(f"{' or '.join(PROGRAMS)}, and my_print_defaults")
    answer = subprocess.run(
        [server, "--no-defaults", "--version"], capture_output=True, timeout=_LIMIT, check=True
    )
    version = mariadb_words.release(answer.stdout.decode())
    assert version
    programs = Programs(server, version, defaults)
    directory.chmod(0o755)

    def case(numbers: random.Random) -> Answer:
        configuration = build(numbers, str(directory))
        _write(directory, configuration.files)
        return _compare(host, configuration, programs)

    return case


def _write(directory: Path, files: Mapping[str, tuple[str, int]]) -> None:
    for path in (directory / "conf.d", directory / "my.cnf", directory / "extra.cnf"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (directory / "conf.d").mkdir()
    for name, (text, mode) in files.items():
        path = directory / name
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        path.chmod(mode)


def _compare(host: Host, configuration: Configuration, programs: Programs) -> Answer:
    server, version, defaults = programs
    begun = mariadb_options.start([server, *configuration.arguments], {}, server)
    files = mariadb_options.Files(host, "", _USER)
    ours = _ours(version, begun, files)
    stated = _stated(host, configuration.arguments, programs)
    theirs = {name: _theirs(version, name, stated.values[name]) for name in ours if name in stated.values}
    if stated.values and mariadb_words.LOG_BIN not in theirs:
        del ours[mariadb_words.LOG_BIN]  # Its answer says two things.
    if stated.values and version.flavour == "mysql":
        del ours[mariadb_words.NO_SYNC]  # It has none.
        if (theirs[mariadb_words.METHOD], ours[mariadb_words.METHOD]) == mariadb_words.CHOSEN[
            mariadb_words.METHOD
        ]:
            del ours[mariadb_words.METHOD]  # It chooses at the start, which its answer does not show.
    wrong = {
        name: (ours[name], theirs.get(name)) for name in ours if ours[name] not in (UNKNOWN, theirs.get(name))
    }
    seen = f"{configuration}\n  (ours, theirs) "
    if wrong:
        return disagreed(f"{seen}{wrong} {stated.reason or ''}", _class(wrong, stated))
    try:
        found = mariadb_options.effective(files, begun, version)
    except Unobservable:
        return declined
    lines = _lines(defaults, configuration.arguments, version)
    if lines is not None and lines != _last(found):
        return disagreed(f"{seen}{_last(found)} {lines}")
    return declined if UNKNOWN in ours.values() else agreed


def _stated(host: Host, arguments: Sequence[str], programs: Programs) -> mariadb_options.Stated:
    """Return what the program says with all of these arguments: the modules give it only those of option files."""
    argv = [*_AS_NOBODY, programs.server, *arguments, "--datadir=/", "--help", "--verbose"]
    try:
        return server_help.read(programs.server, host.run(argv), programs.version)
    except Unobservable as error:
        return mariadb_options.Stated({}, programs.server, str(error))


def _class(wrong: Mapping[str, tuple[str, str | None]], stated: mariadb_options.Stated) -> str:
    if not stated.values:
        return "refused"
    return "fast" if wrong == {mariadb_words.DOUBLEWRITE: ("fast", "ON")} else ""


def _ours(
    version: mariadb_words.Release, begun: mariadb_options.Start, files: mariadb_options.Files
) -> dict[str, str]:
    names = [name for name in mariadb_words.names(version) if name in NAMES]
    kept = mariadb_options.persisted(names, version, begun, files, "/")
    words = {name: kept[name].word for name in names}
    try:
        reading = mariadb_options.Reading(version, begun, mariadb_options.effective(files, begun, version))
        words[mariadb_words.NO_SYNC] = (
            "ON" if mariadb_options.switched_on(mariadb_words.NO_SYNC, reading) else "OFF"
        )
    except Unobservable:
        words[mariadb_words.NO_SYNC] = UNKNOWN
    return words


def _theirs(version: mariadb_words.Release, name: str, value: str) -> str:
    if name == mariadb_words.LOG_BIN:
        return "OFF" if value == "0" else "ON"
    return mariadb_words.word(version, name, value)


def _lines(
    program: str, arguments: Sequence[str], version: mariadb_words.Release
) -> dict[str, str | None] | None:
    """Return what my_print_defaults makes of the files, None where newlines in values hide where each ends."""
    suffix = ".two" if "--defaults-group-suffix=.two" in arguments else ""
    groups = my_cnf.groups(version.flavour, version.text, suffix)
    said = subprocess.run(
        [*_AS_NOBODY, program, arguments[0], *groups], capture_output=True, timeout=_LIMIT, check=False
    )
    text = said.stdout.decode("utf-8", "surrogateescape")
    lines = text.split("\n")[:-1]
    if said.returncode != 0 or not all(line.startswith("--") for line in lines):
        return None
    return dict(my_cnf.option(*_pair(line[2:])) for line in lines)


def _pair(said: str) -> tuple[str, str | None]:
    name, equals, value = said.partition("=")
    return name, value if equals else None


def _last(found: Effective) -> dict[str, str | None]:
    return {name: setting.value for name, setting in found.settings.items()}
