# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that a MariaDB or MySQL server program reports for its next start: `--help --verbose`.

A second opinion on its option files, from the program that reads them, and on nothing else. It runs as the
server's user and never as root, and with our own arguments: of the server's own ones, only those that choose
option files, if their values are plain. (`--plugin-load-add` has `--help` load a library.) For what the
command line names there is no second opinion. The program loads what option files name, too: it runs only if
root alone can change it, all of those files and the directories of libraries in them. With its data
directory at / it writes nothing (observed with MariaDB 10.5, 10.11 and 11.8, and MySQL 9.7).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

from ...host import confined, trusted_path
from ...host.process_context import is_there
from ...host.seam import Host, Result, Unobservable
from ...host.textfile import Setting
from . import my_cnf, options, versions
from .options import Stated

#: Rows of the answer that it need not have.
_MAY_LACK = ("wsrep_on", "innodb_dedicated_server", "persisted_globals_load")
_QUESTION = ("--datadir=/", "--help", "--verbose")
_TABLE = re.compile(r"^Variables \(--.*\n.*\n-+ -+$", re.M)
#: The message about options after which it has read no more, and without InnoDB.
_BROKEN = "Parsing options for plugin 'InnoDB' failed"
#: The arguments and variables that choose option files, with values that are plain.
_PATH, _GROUPS = r"/[\w./-]*", r"[\w.-]*"
_NO_FILES = "--no-defaults"
_PLAIN_ARGUMENT = re.compile(
    rf"{_NO_FILES}|--defaults-(?:extra-)?file={_PATH}|--defaults-group-suffix={_GROUPS}", re.ASCII
)
_PLAIN_VARIABLE = re.compile(
    rf"(?:HOME|MARIADB_HOME|MYSQL_HOME)={_PATH}|MYSQL_GROUP_SUFFIX={_GROUPS}", re.ASCII
)
#: The option file in a directory that a variable names.
_HOMES = {"HOME": ".my.cnf", "MARIADB_HOME": "my.cnf", "MYSQL_HOME": "my.cnf"}
#: Options that name directories of libraries, and where those are below the directory.
_LIBRARIES = {"plugin_dir": ("",), "basedir": ("lib/plugin", "lib/mysql/plugin", "lib64/mysql/plugin")}


def ask(
    host: Host,
    program: str,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    user: Sequence[str],
    version: versions.Release,
) -> Stated:
    """Return what a program would start with. `user`: the numbers of its user, its group, and further groups.

    It is not run if its user is unknown or root, if others than root can change what it loads, or if an argument
    that chooses option files is not plain.
    """
    if not user:
        return Stated()
    try:
        first, own = _first(arguments), _own(host, variables)
        files = options.Files(host, "", user)
        started = options.start([program, *first], own, program)
        found = options.effective(files, started, version)
        _expect_roots(host, files, [*started.mains, *found.files], found.settings)
        argv = confined.command(host, confined.of_numbers(user), [program, *first, *_QUESTION], own)
    except (Unobservable, ValueError):
        return Stated()
    source = f"{program} --help --verbose"
    try:
        result = host.run(argv)
    except Unobservable:
        return Stated({}, source, f"{source}: no answer in time, or a longer one than it has to give")
    stated = read(source, result, version)
    return stated._replace(values=_of_files(stated.values, options.start([program, *arguments], {}).options))


def _first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments that choose option files: they come first. Raises Unobservable for one that is not plain."""
    found = []
    for word in arguments:
        if word == "--print-defaults":
            continue
        if not word.startswith(("--defaults-", _NO_FILES)):
            break
        if not _PLAIN_ARGUMENT.fullmatch(word):
            raise Unobservable("an argument that chooses option files is not plain")
        found.append(word)
    return found


def _own(host: Host, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that choose option files: a home only if one is there.

    Raises Unobservable for a value that is not plain.
    """
    own = {}
    for name, value in variables.items():
        is_home = name in _HOMES and value.startswith("/")
        if not value or (is_home and not is_there(host, posixpath.join(value, _HOMES[name]))):
            continue
        if not _PLAIN_VARIABLE.fullmatch(f"{name}={value}"):
            raise Unobservable(f"the variable {name}, which chooses option files, is not plain")
        own[name] = value
    return own


def _expect_roots(
    host: Host, files: options.Files, paths: Iterable[str], settings: Mapping[str, Setting]
) -> None:
    """Raise Unobservable if others than root can change what is read, or which libraries that names."""
    read = list(dict.fromkeys(paths))
    libraries = [
        posixpath.join(setting.value or "/", place)
        for name, setting in settings.items()
        for library, places in _LIBRARIES.items()
        if name == library or my_cnf.may_mean(name, library)
        for place in places
    ]
    weak = [(path, trusted_path.weak_future(host, path)) for path in (*read, *_included(files, read))]
    weak += [(path, trusted_path.weak_entry(host, path)) for path in libraries]
    for path, why in weak:
        if why:
            raise Unobservable(f"{path} may be changed by others than root ({why})")


def _included(files: options.Files, paths: Iterable[str]) -> list[str]:
    """Return what files include, also what is not there yet. Raises Unobservable."""
    return [
        line.value
        for path in paths
        for line in my_cnf.parse(files.read(path) or "", path)
        if line.kind in ("include", "includedir") and line.value
    ]


def _of_files(values: Mapping[str, str], given: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """Return the values of which a command line says nothing: the program did not get it."""
    return {
        name: value
        for name, value in values.items()
        if not any(written == name or my_cnf.may_mean(written, name) for written, _value in given)
    }


def read(source: str, result: Result, version: versions.Release) -> Stated:
    """Return what an answer of `source`, the program's command, says."""
    if _BROKEN in result.stderr:
        return Stated({}, source, f"{source}: InnoDB cannot start with these options. Fix: correct them")
    wanted = [name for name in versions.names(version) if name != versions.REDO]
    wanted += [versions.NO_SYNC] if version.is_mariadb else []
    table = _TABLE.search(result.stdout)
    rows = result.stdout[table.end() :] if table else ""
    values = {}
    for name in (*wanted, *_MAY_LACK):
        # A value may have newlines in it, and look like another row.
        found = re.findall(rf"^{name.replace('_', '-')} +(.*)$", rows, re.M)
        if len(found) == 1:
            values.update(_value(name, found[0]))
        elif found or name in wanted:
            return Stated(
                {}, source, f"{source}: exit {result.rc}, and {len(found)} values of {name} instead of one"
            )
    return Stated(values, source)


def _value(name: str, shown: str) -> dict[str, str]:
    """Return {name: value}, as an option file would say it; {} for one that says two things."""
    if name == versions.LOG_BIN and shown == "0":
        return {}  # Switched off, or files of that name.
    if shown == "(No default value)":
        return {name: "0" if name == versions.LOG_BIN else ""}
    return {name: my_cnf.option(name, shown)[1] or ""}
