# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of systemd: lines with their places, drop-ins merged, and `DefaultEnvironment=` of system.conf."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from . import bounded_read, bounds, named_by
from .seam import Host, Unobservable

#: Directories of systemd-system.conf(5), the strongest first.
_BASES = ("/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")
_BLANKS = " \t\n\r"
_LINE = re.compile(r"(?P<key>[A-Za-z]\w*)\s*=\s*(?P<value>.*)", re.S)


class Line(NamedTuple):
    """One assignment: its section, key and value, and the file and line."""

    section: str
    key: str
    value: str
    source: str


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1: systemd.syntax(7).

    A backslash that no other one escapes joins a line with the next; the result has the number of its first part. Comments
    and blank lines are dropped before: the backslash of a comment continues nothing, and one between the parts of a line
    ends nothing.
    """
    joined, first = "", 0
    for number, raw in enumerate(text.split("\n"), 1):
        if not raw.strip(_BLANKS) or raw.strip(_BLANKS)[0] in "#;":
            continue
        first = first if joined else number
        joined += raw
        if (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = f"{joined[:-1]} "
            continue
        yield first, joined.strip(_BLANKS)
        joined = ""
    if joined:
        yield first, joined.strip(_BLANKS)


def parse(text: str, path: str) -> Iterator[Line]:
    """Yield the assignments of a file, with their sections."""
    section = ""
    for first, line in logical_lines(text):
        if line.startswith("["):
            section = line.strip("[]")
            continue
        found = _LINE.fullmatch(line)
        if found:
            yield Line(section, found["key"], found["value"].strip(), f"{path} line {first}")


def names_in(host: Host, directory: str) -> list[str]:
    """Return the sorted names in a directory of root's, none if it is not there. Raises Unobservable, also for too many."""
    names = host.names(directory) if host.exists(directory) else []
    if len(names) > bounds.NAMES:
        raise Unobservable(
            f"{directory}: more than {bounds.NAMES} names in it: remove those that nothing needs"
        )
    return names


def drop_ins(host: Host, directories: Iterable[str], ending: str = ".conf") -> list[str]:
    """Return the files of directories, the strongest directory first, in the order in which systemd reads them.

    A file hides those of its name in weaker directories; a link to /dev/null does no more than that. Raises Unobservable.
    """
    found: dict[str, str] = {}
    for directory in directories:
        for name in names_in(host, directory):
            if name.endswith(ending) and not name.startswith("."):
                found.setdefault(name, f"{directory}/{name}")
    return [found[name] for name in sorted(found) if host.resolve(found[name]) != "/dev/null"]


def text_of(host: Host, path: str) -> str:
    """Return the text of a file that root's configuration names, '' if there is none. Raises Unobservable.

    A link to nothing is none, and neither is one to /dev/null, which masks a unit.
    """
    real = host.resolve(path)
    if real == "/dev/null" or not host.exists(real):
        return ""
    with named_by.one(host, None):
        return bounded_read.read(host, path) or ""


def default_environment(host: Host) -> dict[str, tuple[str, str]]:
    """Return {variable: (value, file and line)} of `DefaultEnvironment=`, as the next boot reads it. Raises Unobservable."""
    mains = (f"{base}/system.conf" for base in _BASES)
    main = next((path for path in mains if host.exists(path)), None)
    paths = [*([main] if main else []), *drop_ins(host, [f"{base}/system.conf.d" for base in _BASES])]
    found: dict[str, tuple[str, str]] = {}
    for path in paths:
        for line in parse(text_of(host, path), path):
            if (line.section, line.key) != ("Manager", "DefaultEnvironment"):
                continue
            if not line.value:
                found.clear()  # An empty one takes back those before it.
            found.update({name: (value, line.source) for name, value in assigned(line)})
    return found


def assigned(line: Line) -> Iterator[tuple[str, str]]:
    """Yield name and value of the variables of a line. Raises Unobservable."""
    try:
        words = shlex.split(line.value)
    except ValueError:
        raise Unobservable(f"{line.source}: quotes do not match: correct them, then run again") from None
    for word in words:
        name, equals, value = word.partition("=")
        if equals and re.fullmatch(r"\w+", name):
            yield name, value
