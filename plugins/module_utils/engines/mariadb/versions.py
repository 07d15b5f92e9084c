# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of MariaDB and MySQL, the settings that each of them has, and their values. Pure.

Sources: the system variables of both manuals; MDEV-24854 (O_DIRECT by default), MDEV-30136
(innodb_flush_method means nothing of flushes any more), MDEV-33545 (innodb_doublewrite=fast).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from . import my_cnf

LOG = "innodb_flush_log_at_trx_commit"
BINLOG = "sync_binlog"
DOUBLEWRITE = "innodb_doublewrite"
METHOD = "innodb_flush_method"
#: Kept in MySQL's redo log itself, and no option of a file.
REDO = "innodb_redo_log_enabled"
LOG_BIN = "log_bin"
#: An option of MariaDB that no variable shows.
NO_SYNC = "debug_no_sync"

#: Those that a running server takes.
LIVE = (LOG, BINLOG, REDO)
NO_FSYNC = "O_DIRECT_NO_FSYNC"
#: The services that start servers.
UNITS = re.compile(r"(rh-[^/]*-)?(mariadb|mysqld?)(@.+)?\.service")
#: What MySQL may choose by itself if nothing is set: by its file system, or after a message.
CHOSEN = {METHOD: ("fsync", "O_DIRECT"), LOG_BIN: ("ON", "OFF")}
_METHODS = ("fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", NO_FSYNC)
_OLD_METHODS = ("ALL_O_DIRECT",)
#: What our option file may say of each setting: nothing else is ever written to it.
_WRITTEN = {
    LOG: re.compile(r"[0-3]"),
    BINLOG: re.compile(r"\d{1,10}", re.ASCII),
    DOUBLEWRITE: re.compile(r"ON|OFF|fast|DETECT_ONLY|DETECT_AND_RECOVER"),
    METHOD: re.compile("|".join((*_METHODS, *_OLD_METHODS))),
}
_VERSION = re.compile(r"(?:\bVer\s+)?(?P<text>(?<![\d.])(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?!\d)\S*)", re.ASCII)
_NUMBER = re.compile(r"([+-]?\d{1,20})([kmgtpe]?)", re.I | re.ASCII)
_MOST_BINLOG = 2**32 - 1
#: What servers refuse as a number.
_TOO_MUCH = 2**63


class Release(NamedTuple):
    """A version: `flavour` is mariadb or mysql, `text` as the server says it, `numbers` to compare."""

    flavour: str
    text: str
    numbers: tuple[int, int, int]

    @property
    def is_mariadb(self) -> bool:
        """Tell MariaDB from MySQL and Percona Server."""
        return self.flavour == "mariadb"


def release(text: str) -> Release | None:
    """Return the version that `--version`, or the variable of that name, has; None for anything else."""
    match = _VERSION.search(text)
    if not match:
        return None
    flavour = "mariadb" if "mariadb" in text.lower() else "mysql"
    return Release(flavour, match["text"], (int(match[2]), int(match[3]), int(match[4])))


def names(version: Release) -> list[str]:
    """Return the settings that a version has, those of engine_rules and what they depend on."""
    found = [LOG, BINLOG, DOUBLEWRITE, METHOD, LOG_BIN]
    if version.is_mariadb and version.numbers >= (11, 0, 0):
        found.remove(METHOD)
    if not version.is_mariadb and version.numbers >= (8, 0, 21):
        found.append(REDO)
    return found


def is_option(name: str) -> bool:
    """Return whether a setting is one that our option file may have."""
    return name in _WRITTEN


def is_written(name: str, value: str) -> bool:
    """Return whether a setting and its value are from our own list, which our option file consists of."""
    return is_option(name) and bool(_WRITTEN[name].fullmatch(value))


def why_absent(version: Release, name: str) -> str:
    """Say why a version has no such setting."""
    if name == METHOD and version.is_mariadb:
        return "from MariaDB 11.0 on no value of it keeps the server from flushing"
    return f"{version.text} has no such setting"


def default(version: Release, name: str) -> str:
    """Return the word that holds if nothing sets a setting."""
    numbers, maria = version.numbers, version.is_mariadb
    if name == BINLOG:
        return "1" if not maria and numbers >= (5, 7, 7) else "0"
    if name == METHOD:
        return "O_DIRECT" if numbers >= ((10, 6, 0) if maria else (8, 4, 0)) else "fsync"
    if name == LOG_BIN:
        return "ON" if not maria and numbers >= (8, 0, 3) else "OFF"
    return {LOG: "1", DOUBLEWRITE: "ON"}[name]


def word(version: Release, name: str, value: str | None) -> str:
    """Return what an option's value means, in the word that a running server uses for it.

    Raises ValueError for one that the server refuses, or whose effect is unknown.
    """
    if name == LOG:
        return _number(value, 3 if version.is_mariadb else 2)
    if name == BINLOG:
        return _number(value, _MOST_BINLOG)
    if name == DOUBLEWRITE:
        return _doublewrite(version, value)
    if name == METHOD:
        return _method(value)
    return my_cnf.boolean(value).upper()


def _number(value: str | None, most: int) -> str:
    """Numbers over the bound are brought to it, with a warning in the log; versions differ over negative ones."""
    match = _NUMBER.fullmatch(value or "")
    number = int(match[1]) * 1024 ** " kmgtpe".index(match[2].lower() or " ") if match else -1
    if not 0 <= number < _TOO_MUCH:
        raise ValueError(f"observed {_shown(value)}; expected a number")
    return str(min(number, most))


def _doublewrite(version: Release, value: str | None) -> str:
    words = {}
    if version.is_mariadb and version.numbers >= (11, 0, 0):
        words = {"fast": "fast"}
    elif not version.is_mariadb and version.numbers >= (8, 0, 30):
        words = {"detect_only": "DETECT_ONLY", "detect_and_recover": "DETECT_AND_RECOVER"}
    return words.get((value or "").lower()) or my_cnf.boolean(value).upper()


def _method(value: str | None) -> str:
    # Older servers show an empty word if nothing was set.
    if value == "":
        return "fsync"
    if value is not None and re.fullmatch(r"[0-5]", value):
        return _METHODS[int(value)]
    known = {method.lower(): method for method in (*_METHODS, *_OLD_METHODS)}
    if value is None or value.lower() not in known:
        raise ValueError(f"observed {_shown(value)}; expected one of {', '.join(_METHODS)}")
    return known[value.lower()]


def _shown(value: str | None) -> str:
    return "no value" if value is None else repr(value[:80])
