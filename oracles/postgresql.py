# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reading of postgresql.conf, its includes, postgresql.auto.conf and the command line, against `postgres -C`."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import (
    cluster as postgresql_cluster,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import UNKNOWN
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed
from oracles.contract import Answer, Case, agreed, compare, declined, mostly

KNOWN: dict[str, str] = {
    "refused": "the program refuses the whole configuration: a server that does not start commits nothing",
}
_LIMIT = 60
_PROGRAMS = "/usr/lib/postgresql"
#: As whom the program is asked: it does not run as root.
_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
#: The settings that are compared.
NAMES = tuple(postgresql_cluster.VALUES)
#: Settings that are not looked at, with a value that every version takes.
_OTHERS = (
    "work_mem = 8MB",
    "port = 5433",
    "log_line_prefix = '%m [%p] '",
    "my.own = 'x'",
    "shared_buffers = 16MB",
)
_BOOLEANS = ("on", "off", "true", "false", "yes", "no", "1", "0", "ON", "Off")
_ODD_BOOLEANS = ("t", "f", "of", "o", "tr", "y", "n", "2", "01", "0x1", "onn", "", " on", "on ", "enabled")
_QUOTINGS = ("{0}", "'{0}'", "'{0}'")
_ODD_QUOTINGS = (
    "'{0}",
    '"{0}"',
    "'{0}'''",
    "'\\{0}'",
    "''{0}''",
    "'{0}' x",
    "= {0}",
    "'{0}\\",
    "{0}MB",
    "-{0}",
    "E'{0}'",
)
_BETWEEN = (" = ", "=", " ", "\t=\t")
_ODD_BETWEEN = ("", " == ", "\v=", "\u00a0", " =\f", ":", " = = ", " =\r ")
_ENDS = ("", "", " # note", "#note", " \t", "\r")
_ODD_ENDS = (" ; note", " -- note", "\\", " #", "'", "\v", "\f", ",", ".", ";")
_ODD_LINES = (
    *(
        "",
        "  ",
        "# fsync = off",
        "\t# note",
        "fsync",
        "= off",
        "'fsync' = off",
        "fsync.x = off",
        "\f",
        "[group]",
    ),
    *(
        "fsync = off; full_page_writes = off",
        "ö = 1",
        "1 = 2",
        "\\",
        "fsync = 'a",
        "off'",
        "unknown_name = 1",
    ),
)
_INCLUDES = (
    *(
        "include = 'extra.conf'",
        "include 'extra.conf'",
        "include_if_exists = 'extra.conf'",
        "include_dir = 'conf.d'",
    ),
    *(
        "include_if_exists 'gone.conf'",
        "INCLUDE './extra.conf'",
        "include_dir 'conf.d/'",
        "include = '{0}/extra.conf'",
    ),
)
_ODD_INCLUDES = (
    *(
        "include 'gone.conf'",
        "include_dir 'gone.d'",
        "include ''",
        "include_dir '  '",
        "include 'postgresql.conf'",
    ),
    *(
        "include_dir 'extra.conf'",
        "include 'conf.d'",
        "include extra.conf",
        "include_dir conf.d",
        "include_dir '.'",
    ),
)
_FILES = ("a.conf", "b.conf", ".c.conf", "d.conf.bak", "E.conf", "f")


class Configuration(NamedTuple):
    """Files by their path below a directory, and the words of a command line."""

    files: Mapping[str, str]
    arguments: Sequence[str]


def build(numbers: random.Random, directory: str = "{0}") -> Configuration:
    """Return a hostile configuration: most lines are as they should be."""
    places = ["postgresql.conf"]
    if numbers.random() < 0.4:
        places += [
            "extra.conf",
            *(f"conf.d/{name}" for name in numbers.sample(_FILES, numbers.randint(0, 3))),
        ]
    if numbers.random() < 0.3:
        places.append(f"data/{postgresql_cluster.AUTO}")
    has_more = "extra.conf" in places
    files = {place: _text(numbers, has_more).replace("{0}", directory) for place in places}
    arguments: list[str] = []
    for _count in range(numbers.choice((0, 0, 0, 1, 2))):
        arguments += _argument(numbers)
    return Configuration(files, arguments)


def _text(numbers: random.Random, has_more: bool) -> str:
    lines = []
    for _count in range(numbers.randint(1, 5)):
        chance = numbers.random()
        if chance < 0.03:
            lines.append(numbers.choice(_ODD_LINES))
        elif chance < 0.15:
            lines.append(numbers.choice(_OTHERS))
        elif chance < 0.27 and has_more:
            lines.append(mostly(numbers, _INCLUDES, _ODD_INCLUDES, 0.1))
        else:
            lines.append(_line(numbers))
    return "\n".join(lines) + mostly(numbers, ("\n",), ("", "\r\n", " ", "\n\n"), 0.1)


def _line(numbers: random.Random) -> str:
    name = numbers.choice(NAMES)
    value = _value(numbers, name)
    written = mostly(numbers, _QUOTINGS, _ODD_QUOTINGS, 0.04).format(value)
    if value and numbers.random() < 0.04:
        letter = numbers.randrange(len(value))
        written = f"'{value[:letter]}\\{ord(value[letter]):03o}{value[letter + 1 :]}'"
    name = mostly(numbers, (name,), (name.upper(), name.title(), f" {name}", f"\t{name}"), 0.15)
    return (
        name
        + mostly(numbers, _BETWEEN, _ODD_BETWEEN, 0.03)
        + written
        + mostly(numbers, _ENDS, _ODD_ENDS, 0.03)
    )


def _value(numbers: random.Random, name: str) -> str:
    usual: Sequence[str] = postgresql_cluster.VALUES[name]
    if usual == ("on", "off"):
        return mostly(numbers, _BOOLEANS, _ODD_BOOLEANS, 0.08)
    usual = tuple(word for word in usual if word != "fsync_writethrough")
    return mostly(numbers, usual, (*_BOOLEANS, *_ODD_BOOLEANS, "LOCAL", "Fsync", "fsync_writethrough"), 0.08)


def _argument(numbers: random.Random) -> list[str]:
    name = numbers.choice(NAMES)
    said = f"{name}={_value(numbers, name)}"
    dashed = said.replace("_", "-", 1)
    return list(
        numbers.choice(
            (
                *(
                    ("-c", said),
                    ("-c", said),
                    (f"-c{said}",),
                    (f"--{said}",),
                    (f"--{dashed}",),
                    ("-F",),
                    ("-Fi",),
                ),
                *(
                    ("-iF", "-N", "20"),
                    ("-N20",),
                    ("-c", said.upper()),
                    (f"--{said.title()}",),
                    ("-c", f"{name} = off"),
                ),
                *(("-B", "64"), ("-d", "1"), ("-iFc", said), ("--", said), ("-p", "5434")),
            )
        )
    )


def prepare(directory: Path) -> Case:
    """Return a case that asks PostgreSQL about one configuration."""
    programs = sorted(Path(_PROGRAMS).glob("*/bin/postgres"))
    if not programs:
        raise FileNotFoundError(f"{_PROGRAMS}/*/bin/postgres")
    host = Host()
    directory.chmod(0o755)

    def case(numbers: random.Random) -> Answer:
        configuration = build(numbers, str(directory))
        _write(directory, configuration.files)
        ours = _ours(host, directory, configuration)
        if ours is None:
            return declined
        theirs = _theirs(programs[-1], directory, configuration)
        known = {
            name: word for name, word in ours.items() if word != UNKNOWN and (not theirs or name in theirs)
        }
        if theirs is None:
            return compare(configuration, known, None, "refused") if known else declined
        found = compare(configuration, known, {name: theirs[name] for name in known})
        return declined if found == agreed and UNKNOWN in ours.values() else found

    return case


def _write(directory: Path, files: Mapping[str, str]) -> None:
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    for name in ("conf.d", "data"):
        (directory / name).mkdir()
    for name, text in files.items():
        (directory / name).write_bytes(text.encode("utf-8", "surrogateescape"))


def _ours(host: Host, directory: Path, configuration: Configuration) -> dict[str, str] | None:
    files = postgresql_cluster.Files(host, "")
    argv = ["postgres", "-D", str(directory / "data"), *configuration.arguments]
    try:
        cluster = postgresql_cluster.read(
            host, files, str(directory / "postgresql.conf"), str(directory / "data"), argv, None
        )
    except (Malformed, Unobservable):
        return None
    found = {}
    for name in NAMES:
        try:
            found[name] = postgresql_cluster.won(cluster, name).word
        except ValueError:
            found[name] = UNKNOWN
    return found


def _theirs(program: Path, directory: Path, configuration: Configuration) -> dict[str, str] | None:
    """Return what the program says of each setting that is named, None where it refuses the configuration."""
    found = {}
    said_of = str(configuration).lower().replace("-", "_")
    # -F names none, and is of fsync.
    for name in [name for name in NAMES if name in said_of or name == "fsync"]:
        argv = [
            *(*_NOBODY, str(program), "-D", str(directory / "data")),
            *(f"--config-file={directory}/postgresql.conf", "-C", name, *configuration.arguments),
        ]
        said = subprocess.run(argv, capture_output=True, timeout=_LIMIT, check=False, text=True)
        if said.returncode != 0:
            return None
        found[name] = said.stdout.strip()
    return found
