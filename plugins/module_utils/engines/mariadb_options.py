# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a MariaDB or MySQL server will start with: option files, command line, persisted variables.

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

from .. import json_text
from ..host import Host, Status, Unobservable
from ..observation import UNKNOWN
from ..paths import normal
from . import bounded, my_cnf
from . import mariadb_words as words
from .budget import within
from .textfile import LIMIT, Effective, Malformed, without_content

COMMAND_LINE = "its command line"
_SET_PERSIST = ": SET PERSIST"
#: What MySQL's SET PERSIST writes, in the data directory.
AUTO = "mysqld-auto.cnf"
#: Variables of the environment that name directories of option files, or a suffix of groups.
VARIABLES = ("MARIADB_HOME", "MYSQL_HOME", "HOME", "MYSQL_GROUP_SUFFIX")
#: Options whose value may be the next word of a command line.
_WITH_VALUE = (words.LOG, words.BINLOG, "datadir", "socket")
_FIRST = re.compile(
    r"--(?P<name>defaults-file|defaults-extra-file|defaults-group-suffix)=(?P<value>.*)", re.S
)


class Start(NamedTuple):
    """How a server is started, as far as it decides what it reads.

    `mains`: its main option files, in order; `options`: {name: value} of its command line.
    """

    mains: tuple[str, ...] = my_cnf.MAINS
    suffix: str = ""
    options: Mapping[str, str | None] = MappingProxyType({})


class Kept(NamedTuple):
    """What a setting will be at the next start: its word, where that was said, and why it is unknown."""

    word: str
    origin: str | None
    reason: str | None = None


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
            raise Unobservable(f"its option file {path}: from where it was started is not known")
    suffix = named.get("defaults-group-suffix", variables.get("MYSQL_GROUP_SUFFIX", ""))
    mains = tuple(_mains(named, variables, program)) if not no_defaults else ()
    return Start(mains, suffix, dict(_pairs(rest)))


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
        if not argument.startswith("--") or argument == "--":
            continue
        name, equals, value = argument[2:].partition("=")
        name = name.replace("-", "_")
        following = arguments[index + 1] if index + 1 < len(arguments) else ""
        if name == words.LOG_BIN:
            yield name, value if equals else None
        elif not equals and name in _WITH_VALUE and following and not following.startswith("-"):
            yield name, following
        else:
            yield my_cnf.option(name, value if equals else None)


class Files:
    """The option files of a server, as it sees them below `root`. Each is read once.

    `overlay`: {path: text} of files that are not there yet. `user`: the numbers of the user and of the
    groups as whom the server reads, the user's first, () where that is not known.
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
        status = self.host.locate(path, self.root).status
        if status is None or stat.S_ISDIR(status.mode) or not self._is_read(path, status):
            return None
        part = self.host.read_part(path, self.root, LIMIT + 1)
        return part.text if part and self._is_read(path, part.status) else None

    def _is_read(self, path: str, status: Status) -> bool:
        """Tell whether the server reads a file: others it passes over. Raises Unobservable."""
        if status.mode & 0o002:
            return False
        return bool(status.mode & 0o004) or self._may_read(path, status)

    def _may_read(self, path: str, status: Status) -> bool:
        """Tell whether the server may read a file that is not for everyone. Raises Unobservable."""
        if not self.user:
            raise Unobservable(f"{path}: not for everyone to read, and as whom the server reads is not known")
        if self.user[0] == "0":
            return True
        if str(status.user) == self.user[0]:
            return bool(status.mode & 0o400)
        return bool(status.mode & 0o040) and str(status.group) in self.user[1:]


def effective(files: Files, begun: Start, version: words.Release) -> Effective:
    """Return what counts in the option files. Raises Unobservable, never with a line's content."""
    try:
        return my_cnf.effective(
            within(files.host, files.read),
            files.names,
            begun.mains,
            version.flavour,
            version.text,
            begun.suffix,
        )
    except Malformed as error:
        raise Unobservable(without_content(error)) from None


def persisted(
    names: Sequence[str], version: words.Release, begun: Start, files: Files, data: str
) -> dict[str, Kept]:
    """Return what each setting will be at the next start. `data` is the data directory."""
    try:
        found = effective(files, begun, version)
        auto = _persisted_variables(files, found, begun, version, data)
    except Unobservable as error:
        return {name: Kept(UNKNOWN, None, str(error)) for name in names}
    kept = {name: _kept(name, version, begun, found, auto, files) for name in names}
    if words.METHOD in kept:
        kept[words.METHOD] = _dedicated(kept[words.METHOD], version, begun, found)
    if words.DOUBLEWRITE in kept:
        kept[words.DOUBLEWRITE] = _fast(kept[words.DOUBLEWRITE], version, begun, found)
    return kept


def said(name: str, begun: Start, found: Effective) -> tuple[str | None, str] | None:
    """Return the value of an option and where it was said, None where nothing says it."""
    if name in begun.options:
        return begun.options[name], COMMAND_LINE
    setting = found.settings.get(name)
    return (setting.value, f"{setting.file} line {setting.line}") if setting else None


def held(name: str, origin: str | None) -> str | None:
    """Return how to take a setting away where it beats every option file, None where it does not."""
    if origin == COMMAND_LINE:
        return "take it out of the unit or script that starts the server, and restart it"
    if origin and origin.endswith(_SET_PERSIST):
        return f"RESET PERSIST {name} takes it away"
    return None


def is_on(last: tuple[str | None, str]) -> bool:
    """Tell whether a switch is on, by its value and where it was said. Raises Unobservable."""
    try:
        return my_cnf.boolean(last[0]) == "on"
    except ValueError as error:
        raise Unobservable(f"{last[1]}: {error}") from error


def _kept(
    name: str,
    version: words.Release,
    begun: Start,
    found: Effective,
    auto: Mapping[str, tuple[str | None, str]],
    files: Files,
) -> Kept:
    short = _short(name, version, begun, found)
    if short and name not in auto:
        return Kept(UNKNOWN, short, f"{short}: an option there may be short for {name}: write it out")
    last = auto.get(name) or said(name, begun, found)
    if last is None:
        return Kept(words.default(version, name), f"default of {version.text}")
    value, origin = last
    if name == words.LOG_BIN and name not in auto:
        return Kept("OFF" if _is_skipped(begun, found, files) else "ON", origin)
    try:
        return Kept(words.word(version, name, value), origin)
    except ValueError as error:
        return Kept(UNKNOWN, origin, f"{origin}: {name}: {error}")


def _short(name: str, version: words.Release, begun: Start, found: Effective) -> str | None:
    """Return where an option stands that may be short for a name. MySQL gave that up."""
    if not version.is_mariadb and version.numbers >= (8, 0, 0):
        return None
    if any(name.startswith(other) and other not in (name, "innodb") for other in begun.options):
        return COMMAND_LINE
    settings = my_cnf.abbreviations(found, name)
    # `log` and its like are options of their own.
    if not settings or name == words.LOG_BIN:
        return None
    return f"{settings[0].file} line {settings[0].line}"


def _is_skipped(begun: Start, found: Effective, files: Files) -> bool:
    """Tell whether the binary log is switched off: `log_bin=0` is one whose files are called 0."""
    if words.LOG_BIN in begun.options:
        return begun.options[words.LOG_BIN] == "0"
    setting = found.settings[words.LOG_BIN]
    line = my_cnf.parse(files.read(setting.file) or "", setting.file)[setting.line - 1]
    return my_cnf.option(line.name, "as it is")[1] == "0"


def _dedicated(kept: Kept, version: words.Release, begun: Start, found: Effective) -> Kept:
    """MySQL 8.0 on a dedicated server chooses not to flush files that have grown, where nothing else is set."""
    last = said("innodb_dedicated_server", begun, found)
    affected = not version.is_mariadb and (8, 0, 3) <= version.numbers < (8, 4, 0)
    if not last or not affected or kept.origin != f"default of {version.text}":
        return kept
    try:
        chosen = is_on(last)
    except Unobservable as error:
        return Kept(UNKNOWN, last[1], str(error))
    return Kept(words.NO_FSYNC, f"{last[1]}: innodb_dedicated_server") if chosen else kept


def _fast(kept: Kept, version: words.Release, begun: Start, found: Effective) -> Kept:
    """From 11.0 on MariaDB takes innodb_flush_method=O_DIRECT_NO_FSYNC for innodb_doublewrite=fast."""
    last = said(words.METHOD, begun, found)
    if not last or not version.is_mariadb or version.numbers < (11, 0, 0) or kept.word != "ON":
        return kept
    try:
        method = words.word(version, words.METHOD, last[0])
    except ValueError as error:
        return Kept(UNKNOWN, last[1], f"{last[1]}: {words.METHOD}: {error}")
    return Kept("fast", f"{last[1]}: {words.METHOD}={method}") if method == words.NO_FSYNC else kept


def _persisted_variables(
    files: Files, found: Effective, begun: Start, version: words.Release, data: str
) -> dict[str, tuple[str | None, str]]:
    """Return {name: (value, where)} of what SET PERSIST left. Raises Unobservable."""
    if version.is_mariadb or version.numbers < (8, 0, 0):
        return {}
    last = said("persisted_globals_load", begun, found)
    if last and not is_on(last):
        return {}
    path = f"{data.rstrip('/')}/{AUTO}"
    text = bounded.read(files.host, path, files.root)
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
