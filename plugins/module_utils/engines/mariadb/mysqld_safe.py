# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that mysqld_safe (mariadbd-safe) passes to the server: its script in MariaDB 11 and MySQL 8.

It takes options from groups of the option files and from its command line; those that it does not know it
hands on from the command line alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...host.read_budget import within
from ...host.seam import Host, Unobservable
from ...host.textfile import Malformed, without_content
from ...host.units import Unit, expect_flushing
from ..next_start import NextStart
from . import my_cnf, options

#: Groups that it reads; those of the server too, some by version.
_GROUPS = re.compile(r"(mysqld|mariadbd?)[_-]safe.*|safe_mysqld|mysqld.*|mariadbd?(-\d.*)?|server")
_OWN_GROUPS = re.compile(r".*safe.*")
#: Options that it keeps to itself, and those that it gives to each server.
_OWN = (
    "core_file_size crash_script flush_caches help malloc_lib mysqld_safe_log_timestamps nice numa_interleave"
    " skip_kill_mysqld kill_mysqld syslog syslog_tag timezone"
).split()
_ADDED = "basedir log_error log_syslog open_files_limit pid_file plugin_dir port socket user".split()
_PRELOAD, _DATA = "malloc_lib", "datadir"
#: Options that have it start another program.
_PROGRAM = ("ledir", "mysqld", "mysqld_version")
_FIRST = re.compile(r"--(defaults-file|defaults-extra-file|no-defaults)(=.*)?", re.S)


def start(host: Host, unit: Unit, given: NextStart) -> NextStart:
    """Return what a unit's mysqld_safe gives to the server. Raises Unobservable."""
    first = [word for word in given.words[:1] if _FIRST.fullmatch(word)]
    rest = given.words[len(first) :]
    data = ""
    for name, value, where in [*_of_files(host, first, given), *_of_words(rest, unit)]:
        if name in _PROGRAM:
            raise Unobservable(
                f"{where}: mysqld_safe starts another program ({name.replace('_', '-')}): remove that, then run again"
            )
        if name == _PRELOAD:
            expect_flushing(where, value)
        if name == _DATA:
            data = value.rstrip("/") or value  # As it does.
    handed = [word for word in rest if _name(word) not in (*_OWN, *_ADDED, _DATA)]
    words = (*first, *([f"--datadir={data}"] if data else []), *handed)
    # Without one it makes one up, from where it lies.
    home = given.variables.get("MYSQL_HOME")
    return NextStart(words, {**given.variables, "MYSQL_HOME": home})


def is_same(words: Sequence[str], coming: Sequence[str]) -> bool:
    """Return whether two command lines of a server are the same except for the options that mysqld_safe adds."""
    directories = [word for word in coming if _name(word) == _DATA]
    own, theirs = (
        [word for word in line if word and _name(word) not in (*_ADDED, _DATA)] for line in (words, coming)
    )
    return own == theirs and all(word in words for word in directories[-1:])


def _of_words(words: Sequence[str], unit: Unit) -> Iterator[tuple[str, str, str]]:
    for word in words:
        yield _name(word), word.partition("=")[2], unit.name


def _of_files(host: Host, first: list[str], given: NextStart) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and place of the options in files that it takes for itself. Raises Unobservable.

    It is root that reads them.
    """
    named = {name: value for name, value in given.variables.items() if value}
    files = options.Files(host, user=("0",))
    mains = options.start(["mysqld", *first], named).mains
    try:
        for path, line in my_cnf.lines(within(host, files.read), files.names, mains):
            name = line.name.replace("-", "_")
            is_own = bool(_OWN_GROUPS.fullmatch(line.section))
            if not _GROUPS.fullmatch(line.section) or not (is_own or name == _PRELOAD):
                continue
            yield name, line.value or "", f"{path} line {line.number} [{line.section}]"
    except Malformed as error:
        raise Unobservable(without_content(error)) from None


def _name(word: str) -> str:
    """Return the name of an option of the command line, as files have it."""
    return word.partition("=")[0].lstrip("-").replace("-", "_")
