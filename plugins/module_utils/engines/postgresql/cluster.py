# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of one PostgreSQL cluster, and the command line that starts it.

Its owner decides what these files are: each is examined and read by commands with a time limit,
and no more of it than a configuration can have.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from ...facts.classes import SettingFixFacts
from ...host import bounded_read, our_paths
from ...host.paths import normal
from ...host.process_context import resolve
from ...host.read_budget import within
from ...host.seam import Host, Unobservable
from ...host.textfile import Effective, Malformed
from .. import fixes
from ..instance import COMMAND_LINE
from . import conf, pg_ctl, suse_script

AUTO = "postgresql.auto.conf"
#: What pg_lsclusters(1) calls version/cluster.
DEBIAN = re.compile(r"/etc/postgresql/(?P<version>[^/]+)/(?P<cluster>[^/]+)/postgresql\.conf")
#: Short options of postgres(1) that take a value.
_VALUED = "BCcDdfhkNprStW"
_ARGV = re.compile(r"\bargv\[\]=(.*?) ; ignore_errors=")
#: Setting -> its words. Booleans are on and off.
VALUES = {
    "fsync": ("on", "off"),
    "full_page_writes": ("on", "off"),
    "synchronous_commit": ("on", "off", "local", "remote_write", "remote_apply"),
    "wal_sync_method": ("fdatasync", "fsync", "open_datasync", "open_sync", "fsync_writethrough"),
    "data_sync_retry": ("on", "off"),
}
#: What a server on Linux takes if nothing says otherwise.
DEFAULTS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "wal_sync_method": "fdatasync",
    "data_sync_retry": "off",
}


#: Not a word of PostgreSQL's: it is on now, and what was written while it was off may not be on disk.
UNFLUSHED = "unflushed"
#: One file for each setting and data directory of which that is so. It goes with the boot, as what
#: waits in the kernel's memory does.
PENDING_FLUSH = our_paths.UNFLUSHED_POSTGRESQL


class Won(NamedTuple):
    """What a setting will be at the next start, and where that stands: a file and line, a command
    line, or None for the default. `held` as in :class:`.instance.Observed`; `altered`: it is ALTER SYSTEM's."""

    word: str
    place: str | None
    held: SettingFixFacts | None = None
    altered: bool = False


class Cluster(NamedTuple):
    """Where one cluster lies, as it sees it itself, and what decides its next start.

    `files` is what its configuration says, `options` {setting: value} of the command line of the next
    start, and `source` the place of that.
    """

    config: str
    data: str
    files: Effective
    options: dict[str, str]
    source: str


class Files:
    """Reads the files of one cluster, each once; `root` is where this process finds them.

    `written`: {path: text} of files that are read as if they had this text.
    """

    def __init__(self, host: Host, root: str, written: dict[str, str] | None = None) -> None:
        self.host = host
        self.root = root
        self.written = written or {}
        self._texts: dict[str, str | None] = {}

    def read(self, path: str) -> str | None:
        """Return a file's text, None if it is missing. Raises Unobservable."""
        if path in self.written:
            return self.written[path]
        if path not in self._texts:
            self._texts[path] = bounded_read.read(self.host, path, self.root)
        return self._texts[path]

    def names(self, path: str) -> list[str] | None:
        """Return the names that include_dir reads in a directory, or None.

        Raises Unobservable.
        """
        if not self._is_directory(path):
            return None
        found = self.host.list_names(path, self.root) or ()
        names = {name for name in found if conf.is_conf_file(name)}
        names = {name for name in names if not self._is_directory(f"{path}/{name}")}
        return sorted(
            names | {posixpath.basename(new) for new in self.written if posixpath.dirname(new) == path}
        )

    def effective(self, config: str, data: str | None) -> Effective:
        """Return what counts of all files. Raises Malformed, Unobservable."""
        auto = posixpath.join(data, AUTO) if data else None
        return conf.effective(within(self.host, self.read), self.names, config, auto)

    def _is_directory(self, path: str) -> bool:
        status = self.host.locate(path, self.root).status
        return status is not None and stat.S_ISDIR(status.mode)


def options(argv: Iterable[str]) -> list[tuple[str, str]]:
    """Return what the arguments of a postmaster set, in order: (`-D`, path) and (setting, value).

    A setting is `-c name=value`, `--name=value`, or `-F`, which is fsync=off: postgres(1).
    """
    words = iter(argv)
    found = []
    for word in words:
        if word.startswith("--"):
            found += _assignment(word[2:])
        elif word.startswith("-"):
            found += _short(word[1:], words)
    return found


def read(
    host: Host,
    files: Files,
    config: str,
    data: str | None,
    argv: list[str] | None,
    unit: str | None,
    begins: Iterable[str] | None = None,
) -> Cluster:
    """Return one cluster.

    `data` is None if only its configuration has it; `argv` is that of its postmaster, None for a
    stopped one; `unit` is what starts that, and `begins` the arguments that it gives it, variables in them replaced, where
    that is known. Raises Malformed, Unobservable.
    """
    data = data or _data(files, config)
    # The files under the data directory are found by its real name, however it was called.
    data = resolve(host, files.root, data)
    coming = None if begins is None else list(begins)
    if DEBIAN.fullmatch(config) and not coming:
        # Debian's tools start it, and hand on what this says.
        source = posixpath.join(posixpath.dirname(config), "pg_ctl.conf")
        words = _pg_ctl_words(files, source)
    elif argv is not None:
        source, words = COMMAND_LINE, argv[1:]
    elif unit:
        source = f"ExecStart of {unit}"
        words = coming if coming is not None else _unit_words(_shown(host, unit), unit)
    else:
        source, words = "none", []
    return Cluster(config, data, files.effective(config, data), settings_of(words), source)


def settings_of(words: Iterable[str]) -> dict[str, str]:
    """Return {setting: value} of the arguments of a postmaster; the last one counts."""
    return {name: value for name, value in options(words) if not name.startswith("-")}


def are_same(words: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether two command lines set the same."""
    return settings_of(words) == settings_of(others)


def are_same_there(words: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether two command lines set the same, on the same data directory."""
    mine, theirs = dict(options(words)), dict(options(others))
    return settings_of(words) == settings_of(others) and mine.get("-D") == theirs.get("-D")


def won(cluster: Cluster, name: str) -> Won:
    """Return what a setting will be at the next start. Raises ValueError for a word that is none."""
    if name in cluster.options:
        held = fixes.fix("remove_option", setting=name, source=cluster.source)
        return Won(word(name, cluster.options[name]), cluster.source, held)
    found = cluster.files.settings.get(name)
    if found is None:
        return Won(DEFAULTS[name], None)
    place = f"{found.file}:{found.line}"
    try:
        held = fixes.fix("reset_altered", setting=name)
        is_auto = posixpath.basename(found.file) == AUTO
        return Won(word(name, found.value or ""), place, held if is_auto else None, is_auto)
    except ValueError as error:
        raise ValueError(f"{place}: {name}: {error}") from error


def word(name: str, value: str) -> str:
    """Return a value as pg_settings writes it. Raises ValueError for one that PostgreSQL refuses."""
    if VALUES[name] == ("on", "off"):
        return conf.boolean(value)
    return conf.choice(value, VALUES[name])


def pending_flush_path(data: str, name: str) -> str:
    """Return the file that says that a data directory is unflushed since a setting was off."""
    return f"{PENDING_FLUSH}/{name}:{quote(data, safe='', errors='surrogateescape')}"


def with_pending_flush(host: Host, data: str, name: str, word: str) -> str:
    """Return the value of a setting, or UNFLUSHED if it is on and a flush is pending."""
    return UNFLUSHED if word == "on" and host.exists(pending_flush_path(data, name)) else word


def _short(word: str, words: Iterator[str]) -> list[tuple[str, str]]:
    """Return what one word of short options sets; `words` are those behind it."""
    found: list[tuple[str, str]] = []
    for position, letter in enumerate(word):
        if letter in _VALUED:
            value = word[position + 1 :] or next(words, None)
            if value is not None:
                found += _assignment(value) if letter == "c" else [(f"-{letter}", value)]
            break
        if letter == "F":
            found.append(("fsync", "off"))
    return found


def _assignment(text: str) -> list[tuple[str, str]]:
    name, equals, value = text.partition("=")
    return [(name.strip().replace("-", "_").lower(), value)] if equals else []


def _data(files: Files, config: str) -> str:
    """Return the data directory that a configuration names, else the one in which it lies."""
    setting = files.effective(config, None).settings.get("data_directory")
    if setting is None or not setting.value:
        return posixpath.dirname(config)
    if not setting.value.startswith("/"):
        raise Unobservable(
            f"{setting.file}:{setting.line}: data_directory is {setting.value!r}, relative to its directory at its start"
        )
    return normal(setting.value)


def _pg_ctl_words(files: Files, path: str) -> list[str]:
    """Return the arguments that Debian's pg_ctl.conf adds to a postmaster's command line.

    pg_ctlcluster(1) splits them at blanks, whatever is in quotes.
    """
    text = files.read(path)
    found = conf.get(conf.parse(text or "", path), "pg_ctl_options", path)
    return pg_ctl.of_options((found.value or "").split() if found else (), path)


def data_of_unit(host: Host, unit: str) -> str:
    """Return the data directory of what a unit starts. Raises Malformed, Unobservable."""
    shown = _shown(host, unit)
    if f"path={suse_script.SCRIPT} ;" in shown:
        return suse_script.data(host, unit)
    given = dict(options(_unit_words(shown, unit)))
    environment = re.search(r"^Environment=(?:.* )?PGDATA=(/[^ \n]*)", shown, re.M)
    path = given.get("-D", "${PGDATA}")
    if path in ("${PGDATA}", "$PGDATA") and environment and "EnvironmentFiles=/" not in shown:
        path = environment[1]
    if not path.startswith("/") or "config_file" in given:
        raise Unobservable(f"{unit} names no data directory, or a configuration elsewhere")
    return normal(path)


def _shown(host: Host, unit: str) -> str:
    # The environment may hold passwords: nothing of it but PGDATA is used.
    properties = "--property=Environment,EnvironmentFiles,ExecStart"
    return host.run(["systemctl", "show", properties, "--", unit]).stdout


def _unit_words(shown: str, unit: str) -> list[str]:
    """Return the arguments of a unit's command, as systemd prints them."""
    found = _ARGV.search(shown)
    if not found:
        raise Unobservable(f"{unit}: systemctl does not show what it starts")
    return _shell_words(found[1], unit)[1:]


def _shell_words(text: str, where: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Malformed(where, repr(text[:80]), f"closed quotes ({error})") from error
