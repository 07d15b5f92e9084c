# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a MariaDB or MySQL server's next start: option files, command line, persisted variables.

The last of a name counts: files in the server's order, then the command line, then, in MySQL, what
SET PERSIST left in the data directory. Option files hold passwords: no message shows their lines.
"""

from __future__ import annotations

import posixpath
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ...facts.classes import SettingFixFacts
from ...host import bounded_read, json_text
from ...host.observation import UNKNOWN, Because
from ...host.paths import normal
from ...host.read_budget import within
from ...host.seam import Host, Status, Unobservable, Withheld
from ...host.textfile import Effective, Malformed, without_content
from .. import fixes
from ..instance import COMMAND_LINE
from . import my_cnf, versions

_SET_PERSIST = ": SET PERSIST"
#: What MySQL's SET PERSIST writes, in the data directory.
AUTO = "mysqld-auto.cnf"
#: Variables of the environment that name directories of option files, or a suffix of groups.
VARIABLES = ("MARIADB_HOME", "MYSQL_HOME", "HOME", "MYSQL_GROUP_SUFFIX")
#: Options whose value may be the next word of a command line.
_WITH_VALUE = (versions.BINLOG, "datadir", "socket")
_FIRST = re.compile(
    r"--(?P<name>defaults-file|defaults-extra-file|defaults-group-suffix)=(?P<value>.*)", re.S
)


class Start(NamedTuple):
    """How a server is started, as far as it decides what it reads.

    `mains`: its main option files, in order; `options`: the (name, value) of its command line, in order.
    """

    mains: tuple[str, ...] = my_cnf.MAINS
    suffix: str = ""
    options: tuple[tuple[str, str | None], ...] = ()


class Stated(NamedTuple):
    """What the server's own program says that it would start with: {name: value}, {} if it was not run.

    `source` is the command; `reason`: why its output is unusable.
    """

    values: Mapping[str, str] = MappingProxyType({})
    source: str = ""
    reason: str | None = None


_NOT_QUERIED = Stated()


class Reading(NamedTuple):
    """All that decides what a server of a version will start with."""

    version: versions.Release
    started: Start
    found: Effective
    stated: Stated = _NOT_QUERIED


class NextValue(NamedTuple):
    """What a setting will be at the next start: its value, the source, and why it is unknown."""

    word: str
    origin: str | None
    reason: Because | str | None = None


def start(argv: Sequence[str], variables: dict[str, str], program: str = "") -> Start:
    """Return how a server was started, by its arguments, environment and the path of its program.

    Raises Unobservable for a file that was named from where it was started.
    """
    named: dict[str, str] = {}
    rest = list(argv[1:])
    no_defaults = rest[:1] == ["--no-defaults"]
    while rest:
        match = _FIRST.fullmatch(rest[0])
        if not match and rest[0] not in ("--no-defaults", "--print-defaults"):
            break
        if match:
            named[match["name"]] = match["value"]
        rest.pop(0)
    for path in (named.get("defaults-file"), named.get("defaults-extra-file")):
        if path and not path.startswith("/"):
            raise Unobservable(f"its option file {path}: from where it was started is unknown")
    suffix = named.get("defaults-group-suffix", variables.get("MYSQL_GROUP_SUFFIX", ""))
    mains = tuple(_mains(named, variables, program)) if not no_defaults else ()
    return Start(mains, suffix, tuple(_pairs(rest)))


def _mains(named: dict[str, str], variables: dict[str, str], program: str) -> Iterator[str]:
    if named.get("defaults-file"):
        yield named["defaults-file"]
        return
    yield from my_cnf.MAINS
    # Servers from an archive are built to read below the directory of their installation as well.
    prefix = posixpath.dirname(posixpath.dirname(program))
    if prefix not in ("", "/", "/usr"):
        yield f"{prefix}/etc/my.cnf"
    home = variables.get("MARIADB_HOME") or variables.get("MYSQL_HOME")
    if home:
        yield f"{home.rstrip('/')}/my.cnf"
    if named.get("defaults-extra-file"):
        yield named["defaults-extra-file"]
    if variables.get("HOME"):
        yield f"{variables['HOME'].rstrip('/')}/.my.cnf"


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the options of a command line, as my_cnf.option gives them."""
    for index, argument in enumerate(arguments):
        if argument == "--":
            return
        if not argument.startswith("--"):
            continue
        name, equals, value = argument[2:].partition("=")
        following = arguments[index + 1] if index + 1 < len(arguments) else ""
        bare, _value = my_cnf.option(name, None)
        if not equals and bare in _WITH_VALUE and following and not following.startswith("-"):
            yield my_cnf.option(name, following)
        else:
            yield my_cnf.option(name, value if equals else None)


class Files:
    """The option files of a server, as it sees them below `root`. Each is read once.

    `overlay`: {path: text} of files that are not there yet. `user`: the numbers of the user and of the
    groups as whom the server reads, the user's first, () if that is unknown.
    """

    def __init__(self, host: Host, root: str = "", user: Sequence[str] = ()) -> None:
        self.host = host
        self.root = root
        self.user = tuple(user)
        self.overlay: dict[str, str] = {}
        self._texts: dict[str, str | None] = {}

    def read(self, path: str) -> str | None:
        """Return a file's text, None where the server passes over it. Raises Unobservable."""
        if path in self.overlay:
            return self.overlay[path]
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def names(self, path: str) -> list[str] | None:
        """Return the names in a directory, None when it is not there. Raises Unobservable."""
        found = self.host.list_names(path, self.root)
        planned = {posixpath.basename(new) for new in self.overlay if posixpath.dirname(new) == normal(path)}
        return sorted({*found, *planned}) if found is not None else None

    def directories(self, files: Sequence[str]) -> list[str]:
        """Return the directories that these files include, in the order in which they are named."""
        lines = (line for path in files for line in my_cnf.parse(self.read(path) or "", path))
        return list(dict.fromkeys(line.value for line in lines if line.kind == "includedir" and line.value))

    def _read(self, path: str) -> str | None:
        try:
            status = self.host.locate(path, self.root).status
            if status is None or stat.S_ISDIR(status.mode) or not self._is_read(path, status):
                return None
            part = bounded_read.part(self.host, path, self.root)
        except Withheld:
            if not self.user:
                raise
            return None  # The server cannot reach it either.
        return part.text if part and self._is_read(path, part.status) else None

    def _is_read(self, path: str, status: Status) -> bool:
        """Return whether the server reads a file: others it passes over. Raises Unobservable."""
        if status.mode & 0o002:
            return False
        return bool(status.mode & 0o004) or self._may_read(path, status)

    def _may_read(self, path: str, status: Status) -> bool:
        """Return whether the server may read a file that is not for everyone. Raises Unobservable."""
        if not self.user:
            raise Unobservable(f"{path}: not for everyone to read, and as whom the server reads is unknown")
        if self.user[0] == "0":
            return True
        if str(status.user) == self.user[0]:
            return bool(status.mode & 0o400)
        return bool(status.mode & 0o040) and str(status.group) in self.user[1:]


def effective(files: Files, started: Start, version: versions.Release) -> Effective:
    """Return what counts in the option files. Raises Unobservable, never with a line's content."""
    try:
        return my_cnf.effective(
            within(files.host, files.read),
            files.names,
            started.mains,
            version.flavour,
            version.text,
            started.suffix,
        )
    except Malformed as error:
        raise Unobservable(without_content(error)) from None


def persisted(
    names: Sequence[str],
    version: versions.Release,
    started: Start,
    files: Files,
    data: str,
    stated: Stated = _NOT_QUERIED,
) -> dict[str, NextValue]:
    """Return what each setting will be at the next start. `data` is the data directory."""
    try:
        reading = Reading(version, started, effective(files, started, version), stated)
        auto = _persisted_variables(files, reading, data)
    except Unobservable as error:
        return {name: NextValue(UNKNOWN, None, str(error)) for name in names}
    coming = {name: _next_value(name, reading, auto) for name in names}
    if versions.METHOD in coming:
        coming[versions.METHOD] = _dedicated(coming[versions.METHOD], reading)
    if versions.DOUBLEWRITE in coming:
        coming[versions.DOUBLEWRITE] = _fast(coming[versions.DOUBLEWRITE], reading)
    return coming


def last_value(name: str, reading: Reading) -> tuple[str | None, str] | None:
    """Return the value of an option and its source, None if nothing says it.

    Files first, then the command line. Where something behind the last one that is written in full may
    mean the same option, the program's word counts. Raises Unobservable if that is unknown.
    """
    last, doubt = None, None
    in_full = not reading.version.is_mariadb and reading.version.numbers >= (8, 0, 0)
    for written, value, origin in _in_order(reading):
        if written == name:
            last, doubt = (value, origin), None
        elif my_cnf.may_mean(written, name, in_full):
            doubt = origin
    if doubt is None:
        return last
    if name not in reading.stated.values:
        raise Unobservable(f"{doubt}: an option there may mean {name}: write it out, in small letters")
    return reading.stated.values[name], doubt


def _in_order(reading: Reading) -> Iterator[tuple[str, str | None, str]]:
    """Yield name, value and origin of all options, the last of a name in its place."""
    for name, setting in reading.found.settings.items():
        yield name, setting.value, f"{setting.file} line {setting.line}"
    for name, value in reading.started.options:
        yield name, value, COMMAND_LINE


def held(name: str, origin: str | None) -> SettingFixFacts | None:
    """Return how to remove a setting that overrides every option file, or None."""
    if origin == COMMAND_LINE:
        return fixes.fix("remove_argument", setting=name)
    if origin and origin.endswith(_SET_PERSIST):
        return fixes.fix("reset_persisted", setting=name)
    return None


def is_on(last: tuple[str | None, str]) -> bool:
    """Return whether a switch is on, by its value and its source. Raises Unobservable."""
    try:
        return my_cnf.boolean(last[0]) == "on"
    except ValueError as error:
        raise Unobservable(f"{last[1]}: {error}") from error


def switched_on(name: str, reading: Reading) -> tuple[str | None, str] | None:
    """Return what switches on an option that is off by default, None where it will be off.

    Raises Unobservable if that is unknown.
    """
    last = last_value(name, reading)
    word = "ON" if last and is_on(last) else "OFF"
    _expect_agreement(name, word, last is None, reading)
    return last if word == "ON" else None


def _next_value(name: str, reading: Reading, auto: Mapping[str, tuple[str | None, str]]) -> NextValue:
    version = reading.version
    origin = None
    try:
        last = auto.get(name) or last_value(name, reading)
        origin = last[1] if last else f"default of {version.text}"
        word = _word(name, version, last[0], name in auto) if last else versions.default(version, name)
        if name not in auto:
            _expect_agreement(name, word, last is None, reading)
    except Unobservable as error:
        return NextValue(UNKNOWN, origin, str(error))
    except ValueError as error:
        return NextValue(UNKNOWN, origin, f"{origin}: {name}: {error}")
    return NextValue(word, origin)


def _word(name: str, version: versions.Release, value: str | None, is_variable: bool) -> str:
    """Return what a value means. Raises ValueError."""
    if name == versions.LOG_BIN and not is_variable:
        return "OFF" if value == "0" else "ON"
    return versions.word(version, name, value)


def _expect_agreement(name: str, word: str, is_default: bool, reading: Reading) -> None:
    """Raise Unobservable where the server's program would start with something else than was read."""
    stated = reading.stated
    if stated.reason:
        raise Unobservable(stated.reason)
    if name not in stated.values:
        return
    try:
        theirs = _word(name, reading.version, stated.values[name], False)
    except ValueError as error:
        raise Unobservable(f"{stated.source}: {name}: {error}") from error
    may_choose = is_default and not reading.version.is_mariadb and name in versions.CHOSEN
    if theirs != word and not (may_choose and theirs in versions.CHOSEN[name]):
        raise Unobservable(
            f"{name}: {stated.source} tells {theirs}, its option files {word}: write it out once, in small letters"
        )


def _dedicated(coming: NextValue, reading: Reading) -> NextValue:
    """MySQL 8.0 on a dedicated server chooses not to flush files that have grown, if nothing else is set."""
    version = reading.version
    affected = not version.is_mariadb and (8, 0, 3) <= version.numbers < (8, 4, 0)
    if not affected or coming.origin != f"default of {version.text}":
        return coming
    try:
        last = last_value("innodb_dedicated_server", reading)
        chosen = last is not None and is_on(last)
    except Unobservable as error:
        return NextValue(UNKNOWN, coming.origin, str(error))
    return NextValue(versions.NO_FSYNC, f"{last[1]}: innodb_dedicated_server") if last and chosen else coming


def _fast(coming: NextValue, reading: Reading) -> NextValue:
    """From 11.0 on MariaDB takes innodb_flush_method=O_DIRECT_NO_FSYNC for innodb_doublewrite=fast."""
    version = reading.version
    if not version.is_mariadb or version.numbers < (11, 0, 0) or coming.word != "ON":
        return coming
    origin = None
    try:
        last = last_value(versions.METHOD, reading)
        if last is None:
            return coming
        origin = last[1]
        method = versions.word(version, versions.METHOD, last[0])
    except Unobservable as error:
        return NextValue(UNKNOWN, origin, str(error))
    except ValueError as error:
        return NextValue(UNKNOWN, origin, f"{origin}: {versions.METHOD}: {error}")
    return (
        NextValue("fast", f"{origin}: {versions.METHOD}={method}") if method == versions.NO_FSYNC else coming
    )


def _persisted_variables(files: Files, reading: Reading, data: str) -> dict[str, tuple[str | None, str]]:
    """Return {name: (value, where)} of what SET PERSIST left. Raises Unobservable."""
    if reading.version.is_mariadb or reading.version.numbers < (8, 0, 0):
        return {}
    last = last_value("persisted_globals_load", reading)
    if last and not is_on(last):
        return {}
    path = f"{data.rstrip('/')}/{AUTO}"
    text = bounded_read.read(files.host, path, files.root)
    if text is None:
        return {}
    try:
        tree = json_text.loads(text)
        values = dict(_values(tree))
    except (ValueError, RecursionError):
        raise Unobservable(f"{path}: not the JSON that SET PERSIST writes") from None
    return {name: (value, f"{path}{_SET_PERSIST}") for name, value in values.items()}


def _values(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield name and value of each variable: versions differ in how they group them."""
    if not isinstance(tree, dict):
        raise ValueError("not a mapping")
    for name, inner in tree.items():
        if isinstance(inner, dict) and isinstance(inner.get("Value"), str):
            yield name, inner["Value"]
        elif isinstance(inner, dict):
            yield from _values(inner)
