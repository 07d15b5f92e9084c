# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Firebird server's configuration: directories of databases, and its settings for writes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import NamedTuple

from ...facts.classes import SettingFacts
from ...host import bounded_read
from ...host.observation import UNKNOWN
from ...host.paths import normal
from ...host.process_context import is_there
from ...host.read_budget import within
from ...host.seam import Host, Unobservable
from ...host.textfile import Effective, without_content
from ..instance import setting
from . import conf, databases_conf

_DEBIAN = re.compile(r"/etc/firebird/(?P<version>[0-9.]+)")
_FEDORA = "/etc/firebird"
#: Where packages keep databases.
_USUAL = "/var/lib/firebird"
#: Setting -> its default on Linux, and how its value is read.
_SETTINGS: dict[str, tuple[str, Callable[[str], str]]] = {
    "MaxUnflushedWrites": ("-1", lambda value: str(conf.integer(value))),
    "MaxUnflushedWriteTime": ("-1", lambda value: str(conf.integer(value))),
    "UseFileSystemCache": ("on", conf.boolean),
    "FileSystemCacheThreshold": ("65536", lambda value: str(conf.integer(value))),
    "ServerMode": ("Super", lambda value: value),
}
_NOT_QUERIED = "a running server tells it only after a login; this is what it reads at its next start"


class Setup(NamedTuple):
    """What was found. `aliases`: paths that databases.conf names; `directories`: where databases may be.

    `unread`: {what: reason} of what could not be read, and so may hide databases.
    """

    settings: dict[str, SettingFacts]
    aliases: tuple[str, ...]
    directories: tuple[str, ...]
    unread: dict[str, str]


def read(host: Host, root: str, config: str | None) -> Setup:
    """Return the setup of an instance; `config` is the path of its firebird.conf as it sees it, or None.

    `root` is where its files are mounted, or ''. Nothing here raises.
    """
    unread: dict[str, str] = {}
    try:
        usual = (_USUAL,) if is_there(host, _USUAL, root) else ()
    except Unobservable as error:
        usual, unread[_USUAL] = (), str(error)
    if config is None:
        return Setup({}, (), usual, {**unread, "firebird.conf": "it was not found"})
    files = _Files(host, root)
    directory = posixpath.dirname(config)
    try:
        macros = _macros(host, root, directory)
        found = conf.effective(within(files.host, files.text), files.names, config, macros)
    except (Unobservable, ValueError) as error:
        why = without_content(error)
        return Setup(_unread(why), (), usual, {**unread, config: why})
    named, unknown = _named(found, macros)
    aliases, more = _aliases(files, posixpath.join(directory, "databases.conf"), macros)
    unread.update({**unknown, **more})
    places = dict.fromkeys((*usual, macros["dir_secdb"], macros["root"], *named))
    return Setup(_settings(found), aliases, tuple(places), unread)


class _Files:
    """Configuration files, links followed inside the root directory of a container."""

    def __init__(self, host: Host, root: str) -> None:
        self.host = host
        self.root = root

    def text(self, path: str) -> str | None:
        return bounded_read.read(self.host, path, self.root)

    def names(self, path: str) -> list[str] | None:
        return self.host.list_names(path, self.root)


def _macros(host: Host, root: str, directory: str) -> dict[str, str]:
    """Return the directories of macros.

    They were chosen when Firebird was built: the vendor's and Debian's Firebird 4 have all in one
    place, Debian's Firebird 3 has the security database, Fedora's has more elsewhere.
    """
    debian = _DEBIAN.fullmatch(directory)
    home = _debian_home(host, root, debian["version"]) if debian else directory
    version = posixpath.basename(home)
    macros = {
        **dict.fromkeys(("root", "install", "dir_conf", "dir_secdb", "dir_msg"), home),
        "dir_plugins": f"{home}/plugins",
        "dir_intl": f"{home}/intl",
        "dir_udf": f"{home}/UDF",
        "dir_sample": f"{home}/examples",
        "dir_sampledb": f"{home}/examples/empbuild",
    }
    if home.startswith("/usr/lib/") and version == "3.0":
        examples = "/usr/share/doc/firebird3.0-common-doc/examples"
        macros.update(
            dir_secdb=f"{_USUAL}/3.0/system", dir_sample=examples, dir_sampledb=f"{examples}/empbuild"
        )
    if directory == _FEDORA:
        macros.update(dir_secdb=f"{_USUAL}/secdb", dir_sampledb=f"{_USUAL}/data")
    return macros


def _debian_home(host: Host, root: str, version: str) -> str:
    for name in host.list_names("/usr/lib", root) or ():
        home = f"/usr/lib/{name}/firebird/{version}"
        if "-linux-" in name and is_there(host, home, root):
            return home
    return f"/etc/firebird/{version}"


def _named(found: Effective, macros: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the directories and files that firebird.conf names, and why some are unknown."""
    named, unread = [], {}
    for key in ("databaseaccess", "securitydatabase"):
        line = found.settings.get(key)
        value = (line.value or "") if line else ""
        if key == "databaseaccess":
            word, _blank, value = value.strip().partition(" ")
            value = value if word.lower() == "restrict" else ""
        for path in filter(None, (part.strip() for part in value.split(";"))):
            try:
                real = conf.resolve(path, macros, line.file if line else "")
                # An alias of databases.conf may stand here: it is read there.
                if real.startswith("/") or key == "databaseaccess":
                    named.append(normal(posixpath.join(macros["root"], real)))
            except ValueError as error:
                unread[f"{key} {path}"] = str(error)
    return named, unread


def _aliases(files: _Files, path: str, macros: dict[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    try:
        if files.text(path) is None:
            return (), {}
        found, _paths = databases_conf.databases(within(files.host, files.text), files.names, path, macros)
    except (Unobservable, ValueError) as error:
        return (), {path: without_content(error)}
    unread = {
        f"alias {database.alias}": f"{database.file} line {database.line}: {database.reason}"
        for database in found
        if database.path is None and database.reason and not database.ignored
    }
    return tuple(dict.fromkeys(normal(database.path) for database in found if database.path)), unread


def _settings(found: Effective) -> dict[str, SettingFacts]:
    settings = {}
    for name, (default, understand) in _SETTINGS.items():
        line = found.settings.get(name.lower())
        source = line.file if line else "firebird.conf: its default"
        origin = f"{line.file}:{line.line}" if line else None
        try:
            word, reason = understand(line.value or "") if line else default, _NOT_QUERIED
        except ValueError as error:
            word, reason = UNKNOWN, str(error)
        settings[name] = setting(UNKNOWN, word, source, reason, origin)
    return settings


def _unread(reason: str) -> dict[str, SettingFacts]:
    return {name: setting(UNKNOWN, UNKNOWN, "firebird.conf", reason) for name in _SETTINGS}
