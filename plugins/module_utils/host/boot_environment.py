# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that systemd gives to all services from the next boot on.

`DefaultEnvironment=` sets them, and after it the programs of systemd.environment-generator(7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import bounded_read, named_by, shell_lines, system_conf
from .seam import NO_FILE, Host, Unobservable

#: Where administrators keep environment generators, the strongest first. Those of packages are in /usr/lib.
DIRECTORIES = (
    "/etc/systemd/system-environment-generators",
    "/usr/local/lib/systemd/system-environment-generators",
)
_PACKAGED = ("/usr/lib/", "/lib/")
_EXECUTABLE = 0o111
_SHEBANG = re.compile(r"#!\s*/(?:usr/)?bin/(?:env\s+)?(?:ba|da|k|z)?sh(?:\s+-[eux]+)?\s*")
#: A line whose output no shell, printf(1) or systemd changes: no quotes, backslashes, variables or patterns in the value.
_WORD = r"(?P<{0}name>[A-Za-z_]\w*)=(?P<{0}value>[\w./:@+,={1}-]*)"
_PRINTS = re.compile(
    rf"echo\s+(?:{_WORD.format('a', '%')}|(?P<quote>['\"]){_WORD.format('b', '% ')}(?P=quote))"
    rf"|printf\s+(?P<mark>['\"]){_WORD.format('c', ' ')}\\n(?P=mark)"
)


def read(host: Host) -> dict[str, tuple[str, str]]:
    """Return {variable: (value, file and line)}. Raises Unobservable, also for a generator that is not understood."""
    return {**system_conf.default_environment(host), **_generated(host)}


def _generated(host: Host) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for path in _generators(host):
        with named_by.one(host, None):
            text = bounded_read.read(host, path) or ""
        for name, value, source in _printed(text, path):
            found[name] = (value, source)
    return found


def _generators(host: Host) -> list[str]:
    """Return the programs of administrators in the order in which systemd runs them. Raises Unobservable."""
    found: dict[str, str] = {}
    for directory in DIRECTORIES:
        for name in system_conf.names_in(host, directory):
            path = f"{directory}/{name}"
            if name not in found and not name.startswith(".") and _counts(host, path):
                found[name] = path
    paths = (found[name] for name in sorted(found))
    return [path for path in paths if not _is_nothing(host, path)]


def _counts(host: Host, path: str) -> bool:
    """Return whether a file hides those of its name: a mask or a program. systemd passes over any other. Raises Unobservable."""
    real = host.resolve(path)
    if real == "/dev/null" or not host.exists(real):
        return real == "/dev/null"
    begin = _begin(host, path)
    return begin == "" or (begin is not None and bool(host.mode(path) & _EXECUTABLE))


def _is_nothing(host: Host, path: str) -> bool:
    """Return whether a file is a mask, or a package's program."""
    return host.resolve(path).startswith(("/dev/null", *_PACKAGED)) or not _begin(host, path)


def _begin(host: Host, path: str) -> str | None:
    """Return the first byte of a file, '' for an empty one, None for a directory or a pipe. Raises Unobservable."""
    try:
        with named_by.one(host, None):
            found = host.read_part(path, limit=1)
    except Unobservable as error:
        if NO_FILE in str(error):
            return None
        raise
    return found.text if found else None


def _printed(text: str, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, value, file and line of what a script prints. Raises Unobservable if it may print anything else."""
    if not _SHEBANG.fullmatch(text.partition("\n")[0]):
        raise _not_understood(path)
    for row, line in shell_lines.lines(text):
        assignment = _PRINTS.fullmatch(line)
        if not assignment:
            raise _not_understood(f"{path} line {row}")
        kind = next((kind for kind in "abc" if assignment[f"{kind}name"]), "a")
        yield assignment[f"{kind}name"], assignment[f"{kind}value"].strip(), f"{path} line {row}"


def _not_understood(source: str) -> Unobservable:
    return Unobservable(
        f"{source}: an environment generator, and which variables it sets for all services is unknown: remove it, or set"
        " them by DefaultEnvironment= in /etc/systemd/system.conf.d"
    )
