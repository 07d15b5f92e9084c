# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that run at boot, with the scripts that they run, directly and indirectly."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from functools import partial

from ..host import script_chain, shell_lines
from ..host.boot_files import existing
from ..host.seam import Host
from . import commands
from .acts import Act, mentioned
from .files import program_text

#: Where a command that is named without a directory counts: an administrator's.
_PATH = ("/usr/local/sbin", "/usr/local/bin")
#: What can be before the name of a program: the start of a command, or a program that runs another one.
_BEFORE = (
    r"(?:^|[;&|(!{`]|-\w*c\s+['\"]|\b(?:then|do|else|exec|sudo|nohup|env|nice|ionice|timeout|setsid|command|systemd-run|time)"
    r"(?:\s+-\S+|\s+\d\S*)*)\s*(?:\w+=\S*\s+)*"
)
#: Where a program is found that is named without a directory.
_PROGRAMS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_WORD = re.compile(r"[@:+!|-]*(?P<name>[\w.-]+)")
#: run-parts(8), and what it passes over on all distributions.
_RUN_PARTS = re.compile(
    rf"{_BEFORE}(?:/(?:usr/)?bin/)?run-parts\s+(?:-\S+\s+)*['\"]?(?P<directory>/[\w./-]*\w)"
)
_NO_PART = re.compile(r"\..*|.*(?:~|,v|\.(?:rpm(?:save|orig|new|swp)|dpkg-\w+|cfsaved))")


def of_shell(host: Host, text: str, path: str, by: str, first: int = 1, packaged: bool = True) -> list[Act]:
    """Return what a text does that a shell reads; `first`: the number of its first line, 0 for a command at `path`.

    `packaged`: also scripts in directories of packages are read. Raises Unobservable.
    """
    found = commands.of_script(text, path, by, first)
    for row, line in shell_lines.lines(text):
        source = f"{path} line {first + row - 1}" if first else path
        found += _of_scripts(host, line, source, by, packaged)
    return [_if_there(host, act) for act in found]


def of_words(host: Host, command: str, source: str, by: str, packaged: bool = True) -> list[Act]:
    """Return what a command does that no shell reads. `packaged`: also scripts in directories of packages are read.

    Raises Unobservable.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return [Act(by, source, "script", (command, command), False)] if mentioned(command) else []
    if any("$" in word for word in words) and not commands.is_shell(words):
        found = [Act(by, source, "script", (command, command), False)] if mentioned(command) else []
    else:
        found = commands.of_words(words, source, by)
    found += _of_scripts(host, command, source, by, packaged)
    return [_if_there(host, act) for act in found]


def _if_there(host: Host, act: Act) -> Act:
    """Return an act; without its program what it does is not certain."""
    is_there = act.kind != "command" or any(host.exists(f"{base}/{act.words[0]}") for base in _PROGRAMS)
    return act if is_there else act._replace(is_certain=False)


def _of_scripts(host: Host, command: str, source: str, by: str, packaged: bool) -> list[Act]:
    """Return what the scripts do that a command runs. Raises Unobservable."""
    # On what a script is given, and on the rest of its text, its result depends.
    return [
        act._replace(source=f"{act.source}, run by {each.run_by}", is_certain=False)
        for each in scripts(host, command, source, packaged)
        for act in commands.of_script(each.text, each.path, by)
    ]


def scripts(host: Host, command: str, source: str, packaged: bool) -> Iterator[script_chain.Script]:
    """Yield the scripts that a command runs, and those that these run. Raises Unobservable."""
    named, read = partial(_named, host), partial(program_text, host, packaged=packaged)
    return script_chain.follow(command, source, named, read, lambda path, _place: read(path))


def _named(host: Host, command: str, _depth: int) -> list[str]:
    """Return the paths that a command runs or gives to a shell, and those of a program without a directory.

    What a program is only given as an argument is not read: it can be a key.
    """
    word = _WORD.match(command.strip())
    is_bare = word is not None and "/" not in command.split()[0]
    bare = [f"{directory}/{word['name']}" for directory in _PATH] if word and is_bare else []
    return [
        *(path for path in shell_lines.paths(command) if runs(path, command)),
        *bare,
        *_parts(host, command),
    ]


def _parts(host: Host, command: str) -> list[str]:
    """Return the scripts that a command runs by run-parts(8)."""
    found = _RUN_PARTS.search(command)
    if not found or not host.exists(found["directory"]):
        return []
    paths = existing(host, found["directory"])
    return [
        path for path in paths if not _NO_PART.fullmatch(posixpath.basename(path)) and host.mode(path) & 0o111
    ]


def runs(path: str, command: str) -> bool:
    """Return whether a command executes what is at a path, or gives it to a shell."""
    first = rf"{_BEFORE}[@:+!-]*['\"]?{re.escape(path)}(?![\w/.-])"
    return shell_lines.is_script("", path, command) or re.search(first, command) is not None
