# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts that a command runs, and the scripts that these run. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from . import shell_lines
from .seam import Unobservable

#: Scripts that one command runs, and paths that it names: with more, what it sets is unknown.
MOST, MOST_PATHS = 64, 8192


class Script(NamedTuple):
    """A script, its text, and the place of the command that runs it."""

    path: str
    text: str
    run_by: str


def follow(
    command: str,
    source: str,
    named: Callable[[str, int], Iterable[str]],
    begin: Callable[[str], str],
    whole: Callable[[str, str], str],
    most_paths: int = MOST_PATHS,
) -> Iterator[Script]:
    """Yield the scripts that a command at `source` runs, each once, however deep. Raises Unobservable for too many.

    `named`: the paths that a line can run, with the number of scripts above the line. `begin` and `whole` read a file, ''
    for what is not there; `whole` is given the place of the command, too.
    """
    begins: dict[str, str] = {}
    done: set[str] = set()
    waiting = [(command, source, 0)]
    while waiting:
        line, place, depth = waiting.pop(0)
        for path in named(line, depth):
            if path not in begins:
                _expect_few(begins, most_paths, source, "names", "paths")
                begins[path] = begin(path)
            # Whether a file is a script depends on how the line names it, too.
            if path in done or not begins[path] or not shell_lines.is_script(begins[path], path, line):
                continue
            _expect_few(done, MOST, source, "runs", "scripts")
            done.add(path)
            text = whole(path, place)
            yield Script(path, text, place)
            waiting += [(each, f"{path} line {row}", depth + 1) for row, each in shell_lines.lines(text)]


def _expect_few(found: Collection[str], most: int, source: str, verb: str, what: str) -> None:
    if len(found) >= most:
        raise Unobservable(
            f"{source} {verb} more than {most} {what}, and what the rest sets is unknown: move a part of it into a"
            " separate command, or remove it"
        )
