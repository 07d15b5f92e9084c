# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands and lines of tmpfiles.d(5) that write the configuration files of a server before its next start."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from typing import NamedTuple

from ..host import bounded_read, named_by
from ..host.observation import Because
from ..host.paths import normal
from ..host.seam import Host, Unobservable
from ..host.tmpfiles_d import Line
from .others import Change, Reads, Settings, Text

_ENDINGS = (".conf", ".cnf", ".cfg")
_PATH = re.compile(r"(?<![\w$}.:])/[^\s'\"`;|&<>(),=]+")
_PROGRAM = re.compile(r"^[@:+!|-]*(?:\S*/)?(?P<name>[\w.-]+)")
#: Programs that change the files that they are given.
_WRITER = re.compile(
    r"(?:^|[\s/;|&({'\"@:+!-])(?:tee|mv|rm|unlink|dd|truncate|patch|ed|ex|crudini|augtool|sponge"
    r"|(?:sed|perl)\s(?:\S+\s+)*?(?:-\w*i|--in-place))(?=[\s.]|$)"
)
#: Programs that write the last of the files that they are given.
_COPIER = re.compile(r"(?:^|[\s/;|&({'\"@:+!-])(?:cp|install|ln|rsync)\s")
#: What ends a command, or gives its output to another file.
_BEHIND = re.compile(r"\s*(?:[;|]|&&|\d?>).*$", re.S)
#: Programs and commands that make files below a directory that they are given, or in which they are.
_MAKER = re.compile(
    r"(?:^|[\s/;|&({'\"@:+!-])(?:cd|pushd|curl|wget|tar\s(?:[^;|&]*\s)?(?:-?\w*x\w*|-C|--extract)|unzip|cpio|git|scp|sftp|python[\d.]*|perl|ruby|php"
    r"|(?:cp|mv|ln|install)\s(?:[^;|&]*\s)?(?:-\w*t|--target-directory))(?=[\s=]|$)"
)
#: Programs that copy or move the files before a directory into it, and options with which they take all that is below one.
_MOVER = re.compile(r"(?:^|[\s/({'\"@:+!-])(?P<program>cp|mv|install|ln|rsync)\s")
_TREE = re.compile(r"\s(?:-\w*[rRa]\w*|--archive|--recursive)(?=\s)")
_INTO = re.compile(r"\s(?:-\w*t|--target-directory)[=\s]\s*['\"]?(?P<path>/[^\s'\"]*)")
_COMMANDS = re.compile(r"[;|&\n]+")
_REDIRECTED = re.compile(r"\d?>.*$", re.S)
#: Options with which tar unpacks, and those that name the directory into which tar and unzip do.
_EXTRACTS = re.compile(r"-?[A-Za-z]*x[A-Za-z]*|--extract|--get")
_BELOW = re.compile(r"\s(?:-\w*[Cd]|--directory)[=\s]?\s*['\"]?(?P<path>/[^\s'\"]*)")
#: What a shell replaces in a name, and the patterns of one command that are compared.
_REPLACED = re.compile(r"[$`*?\[{]")
_MOST_PATTERNS = 16
#: Programs that change no content.
_HARMLESS = frozenset(
    "[ awk cat chcon chgrp chmod chown cmp diff echo false grep head journalctl logger ls md5sum mkdir readlink"
    " restorecon sed setfacl sha256sum sleep stat sync systemctl tail test touch true".split()
)
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
#: A command whose output is its own text.
_LITERAL = re.compile(r"^\s*(?:echo|printf)\b|<<")
#: Where a setting comes from, as each engine writes it.
_ORIGIN = re.compile(r"(?P<path>/.*?)(?::\d+| line \d+)(?:\s|:|$)")


class Copy(NamedTuple):
    """A file or directory of a configuration that a command writes below the directory that it is given.

    `source`: what it copies there, '' if that is unknown; `is_tree`: with all that is in a directory.
    """

    path: str
    source: str
    is_tree: bool


class Config(NamedTuple):
    """The configuration of a server: its files, and the directories of which it reads each file."""

    files: frozenset[str]
    directories: frozenset[str]

    def has(self, path: str) -> bool:
        """Return whether a path is one of these files, or would be one, or is such a directory."""
        path = normal(path)
        is_read = posixpath.dirname(path) in self.directories and path.endswith(_ENDINGS)
        return path in self.files or path in self.directories or is_read


def of_instance(
    config: str | None,
    writes: Iterable[str],
    origins: Iterable[str | None],
    more: Iterable[str],
    includes: Iterable[str] = (),
) -> Config:
    """Return the configuration of a server: its main file, those that a run may write, and those that set something.

    `more`: other files that it reads at its start, those that it writes itself too; `includes`: directories of which it
    reads each file.
    """
    found = (_ORIGIN.match(origin) for origin in origins if origin)
    files = {*filter(None, [config]), *writes, *more, *(each["path"] for each in found if each)}
    # Next to the main file are others that set none of these, such as pg_hba.conf.
    directories = {posixpath.dirname(path) for path in writes} - {posixpath.dirname(config or "")}
    return Config(frozenset(map(normal, files)), frozenset(map(normal, (*directories, *includes))))


def followed(host: Host, config: Config) -> Config:
    """Return a configuration with the names to which links in its names lead: a command can use either."""

    def real(paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            with contextlib.suppress(Unobservable):  # Nothing is there, and a command that names it makes it.
                yield host.locate(path).path

    return Config(*(frozenset((*paths, *real(paths))) for paths in config))


def by_commands(
    host: Host, texts: Iterable[Text], config: Config, settings: Settings, reads: Reads
) -> list[Change]:
    """Return what may change of settings because a command writes a file of the configuration."""
    found: list[Change] = []
    texts = list(texts)
    stated = {change.name for text in texts for change in reads(text) if change.value is not None}
    for text in texts:
        path = written(text, config)
        if path is None or _is_same_copy(host, text.text, path):
            path = _copied(host, text.text, config)
        if path is None:
            continue
        why = Because("writes_file", {"place": f"{text.source} ({text.by})", "path": path})
        # What it writes is in the line, or in those after it, which are read as such.
        names = _from(settings, path) - stated if _LITERAL.search(text.text) else set(settings)
        found += [Change(name, None, text.source, text.by, why=why) for name in settings if name in names]
    return found


def _from(settings: Settings, path: str) -> set[str]:
    """Return the settings that a file sets."""
    origins = {name: _ORIGIN.match(row["from"] or "") for name, row in settings.items()}
    return {name for name, origin in origins.items() if origin and normal(origin["path"]) == normal(path)}


def written(text: Text, config: Config) -> str | None:
    """Return the file of a configuration that a command writes, or may write; None if it does not."""
    line = text.text
    paths: list[str] = [path.rstrip(":") for path in _PATH.findall(line)]
    program = _PROGRAM.match(line)
    name = program["name"] if program else ""
    # Of a program that is unknown here: it is given the file, and not as the options to read.
    may_write = text.is_own and name not in _HARMLESS and name not in _SHELLS
    for path in filter(config.has, paths):
        if re.search(rf">{{1,2}}\|?\s*['\"]?{re.escape(path)}(?![\w/.-])", line) or _WRITER.search(line):
            return path
        if normal(path) in config.directories and _MAKER.search(line):
            return path
        if _MAKER.search(line) and re.search(
            rf"(?:-\w*[oO]|--output\S*?|open\()[=\s'\"]*{re.escape(path)}", line
        ):
            return path
        if _COPIER.search(line):
            if path in (paths[-1], *_PATH.findall(_BEHIND.sub("", line))[-1:]):
                return path
        elif (
            may_write
            and normal(path) in config.files
            and not re.search(rf"--\S+=['\"]?{re.escape(path)}", line)
        ):
            return path
    return None


def _copied(host: Host, line: str, config: Config) -> str | None:
    """Return the file of a configuration that a command replaces by what it copies into a directory, None for none."""
    for copy in _copies(line, config):
        if not copy.source:
            return copy.path
        if not (copy.is_tree and _is_missing(host, copy.source)) and not _is_same(
            host, copy.source, copy.path
        ):
            return copy.path
    return None


def _is_missing(host: Host, path: str) -> bool:
    try:
        return host.locate(path).status is None
    except Unobservable:
        return False


def _copies(line: str, config: Config) -> Iterator[Copy]:
    """Yield the files and directories of a configuration below a directory into which a command copies or unpacks."""
    for command in _COMMANDS.split(line):
        below = _BELOW.search(command)
        if below and _unpacks(command):
            yield from (Copy(path, "", True) for path, _rest in _inside(below["path"], config))
        mover = _MOVER.search(command)
        words = _REDIRECTED.sub("", command[mover.end() :]).split() if mover else []
        names = list(dict.fromkeys(word.strip("'\"") for word in words if not word.startswith("-")))
        given = _INTO.search(command)
        target = given["path"] if given else names.pop() if names else ""
        inside = list(_inside(target, config)) if target.startswith("/") else []
        if mover and inside:
            is_tree = mover["program"] in ("mv", "rsync") or bool(_TREE.search(command))
            yield from _of_sources(names, inside, config, is_tree, mover["program"] == "rsync")


def _unpacks(command: str) -> bool:
    words = command.split()
    names = [posixpath.basename(word.strip("'\"(@:+!-")) for word in words]
    options = (word for name, word in zip(("", *names), words) if name == "tar" or word.startswith("-"))
    return "unzip" in names or ("tar" in names and any(map(_EXTRACTS.fullmatch, options)))


def _of_sources(
    sources: Iterable[str],
    inside: Sequence[tuple[str, str]],
    config: Config,
    is_tree: bool,
    has_content: bool,
) -> Iterator[Copy]:
    """Yield what a command writes of files and directories of a configuration, with their paths from its target.

    `has_content`: a slash at the end of a source means what is in it.
    """
    patterns = 0
    for given in sources:
        is_content = given.endswith("/.") or (has_content and given.endswith("/"))
        source = given.rstrip("/.") if is_content else given.rstrip("/")
        name = posixpath.basename(source)
        patterns += bool(_REPLACED.search(name))
        # One that a shell makes may have any name.
        is_any = is_content or "$" in name or "`" in name or patterns > _MOST_PATTERNS
        for path, rest in inside:
            first, _slash, inner = rest.partition("/")
            is_named = is_any or first == name or (bool(_REPLACED.search(name)) and fnmatch(first, name))
            if is_named and (is_tree or not (inner or is_content or path in config.directories)):
                origin = f"{source if is_content else posixpath.dirname(source)}/{rest}"
                is_known = origin.startswith("/") and not _REPLACED.search(origin)
                yield Copy(path, origin if is_known else "", is_tree)


def _inside(directory: str, config: Config) -> Iterator[tuple[str, str]]:
    """Yield the files and directories of a configuration below a directory, with their paths from there."""
    above = normal(directory).rstrip("/") + "/"
    for path in sorted((*config.files, *config.directories)):
        if path.startswith(above):
            yield path, path[len(above) :]


def _is_same_copy(host: Host, line: str, path: str) -> bool:
    """Return whether a command copies a file over one with the same content."""
    paths = _PATH.findall(line)
    if not _COPIER.search(line) or len(paths) < 2 or paths[-1] != path or ";" in line or "&" in line:
        return False
    return _is_same(host, paths[-2], path)


def _is_same(host: Host, source: str, target: str) -> bool:
    try:
        with named_by.one(host, None):
            content = bounded_read.read(host, source)
            return content is not None and content == bounded_read.read(host, target)
    except Unobservable:
        return False


def by_tmpfiles(
    host: Host, lines: Iterable[Line], config: Config, settings: Settings, reads: Reads
) -> Iterator[Change]:
    """Yield what may change of settings because systemd-tmpfiles writes the configuration at a boot."""
    for line in lines:
        if not _acts(host, line, config):
            continue
        why = Because("changes_file", {"place": f"{line.source} (tmpfiles.d)", "path": line.path})
        names = set(settings)
        if line.letter in ("f", "F", "w"):
            text = line.content
            rows = (Text(row, line.source, "tmpfiles.d") for row in text.split("\n"))
            paths = [normal(line.path), *(_meant(normal(line.path), config) if line.letter == "w" else ())]
            is_added = line.has_plus and line.letter == "w"
            replaced = set() if is_added else {name for path in paths for name in _from(settings, path)}
            names = {change.name for row in rows for change in reads(row)} | replaced
        yield from (
            Change(name, None, line.source, "tmpfiles.d", why=why) for name in settings if name in names
        )


def _acts(host: Host, line: Line, config: Config) -> bool:
    """Return whether a line changes a file of a configuration, or adds one."""
    letter, path = line.letter, normal(line.path.replace("%%", "%"))
    if letter == "w":
        return any(_writes(host, line, each) for each in _meant(path, config))
    above = any(each.startswith(f"{path}/") for each in (*config.files, *config.directories))
    if letter in ("r", "R", "D"):
        return _removes(letter, path, config, above)
    if not config.has(path) and not (above and letter in ("C", "L")):
        return False
    if letter in ("f", "F"):
        return _writes(host, line, path)
    if letter in ("C", "L"):
        return (line.has_plus or not host.exists(path)) and not _is_same(host, line.argument, path)
    return False


def _meant(path: str, config: Config) -> list[str]:
    """Return the files of a configuration that a path means, which may be a pattern: those of w, r and R are."""
    return [each for each in sorted(config.files) if fnmatch(each, path)]


def _removes(letter: str, path: str, config: Config, above: bool) -> bool:
    """Return whether r, R or D removes a file of a configuration; `above`: the path is a directory above one."""
    # r and R also take patterns. D empties a directory at boot.
    if letter == "D":
        return path in config.directories or above
    return bool(_meant(path, config)) or (letter == "R" and above)


def _writes(host: Host, line: Line, path: str) -> bool:
    """Return whether f, F or w writes other content than a file has."""
    is_there, letter = host.exists(path), line.letter
    writes = (
        letter == "F" or (letter == "w" and is_there) or (letter == "f" and (line.has_plus or not is_there))
    )
    return writes and not _says(host, path, line.content, is_append=letter == "w" and line.has_plus)


def _says(host: Host, path: str, content: str, is_append: bool) -> bool:
    """Return whether a file has a content already."""
    try:
        with named_by.one(host, None):
            text = bounded_read.read(host, path)
    except Unobservable:
        return False
    if text is None:
        return not content
    # What is appended again changes nothing if it is at the end.
    return text == content or (is_append and text.endswith(content))
