# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a service of this collection on a host: program, unit and settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..host import program, trusted_path
from ..host.seam import ChangeFailed, Host, Unobservable
from . import ownership

CURRENT, ABSENT, DIFFERS = "current", "absent", "differs"
#: A path that is one word in a systemd unit, without any specifier or variable in it.
_WORD = re.compile(r"/[A-Za-z0-9_./+@:=,~-]+")
#: Of a file without another mode.
_MODE = 0o644


def state_of(host: Host, path: str, content: bytes, modes: Mapping[str, int]) -> str:
    """Return whether a file is current, differs or is absent; `modes` by path, 0644 by default. Raises Unobservable."""
    if not host.exists(path):
        return ABSENT
    found = host.read(path).encode("utf-8", "surrogateescape")
    return CURRENT if found == content and host.mode(path) == modes.get(path, _MODE) else DIFFERS


def write(host: Host, files: Mapping[str, bytes], modes: Mapping[str, int]) -> None:
    """Write files durably, in their order, with their modes. Raises ChangeFailed."""
    for path, content in files.items():
        mode = modes.get(path, _MODE)
        host.write_file(path, content, mode)
        if host.mode(path) != mode:
            host.change(["chmod", f"{mode:04o}", path])  # An existing file keeps its own.


def remove_directories(host: Host, directories: Iterable[str]) -> None:
    """Remove those directories that are empty. Raises ChangeFailed."""
    for directory in directories:
        if host.exists(directory):
            host.change(["rmdir", "--ignore-fail-on-non-empty", directory])


def expect_roots(host: Host, directories: Iterable[str]) -> None:
    """Raise ChangeFailed where others than root may change the interpreter, or a directory, of what then runs as root.

    Also for an interpreter whose path is more than one plain word to systemd: it becomes text in units.
    """
    if not _WORD.fullmatch(program.interpreter()):
        raise ChangeFailed(
            f"the interpreter is {program.interpreter()!r}, which a systemd unit cannot name without quotes. Fix: set"
            " ansible_python_interpreter to a path of letters, digits and the characters _./+@:=,~-, as /usr/bin/python3 is"
        )
    try:
        trusted_path.expect_program(host, program.interpreter())
    except Unobservable as error:
        raise ChangeFailed(
            f"the interpreter: {error}; set ansible_python_interpreter to one that root alone may change, as"
            " /usr/bin/python3 is"
        ) from error
    for path in directories:
        ownership.expect_roots(host, path)
