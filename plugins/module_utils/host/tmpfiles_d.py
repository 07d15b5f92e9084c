# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""tmpfiles.d(5): the files and links that systemd-tmpfiles makes, writes and removes at each boot."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from .seam import Host
from .system_conf import drop_ins

#: The strongest first. A file in one hides those of its name in the others; /run is empty at a boot.
DIRECTORIES = ("/etc/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")
_FIELD = r"(?:\"[^\"]*\"|'[^']*'|\S)+"
#: Type, path, four fields more, and the argument, which goes to the end of its line.
_LINE = re.compile(rf"\s*(?P<kind>[a-zA-Z]\S*)\s+(?P<path>{_FIELD})(?:\s+{_FIELD}){{0,4}}(?P<rest>.*)")

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{3}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "s": " ", '"': '"', "'": "'"}


class Line(NamedTuple):
    """One line: its type with modifiers, path, argument, and file and line."""

    kind: str
    path: str
    argument: str
    source: str

    @property
    def letter(self) -> str:
        """The type without its modifiers."""
        return self.kind[:1]

    @property
    def has_plus(self) -> bool:
        """Whether the modifier `+` is there."""
        return "+" in self.kind

    @property
    def content(self) -> str:
        """The argument as it is written: C escapes, or base64 with the modifier `~`."""
        if "~" in self.kind:
            try:
                return base64.b64decode(self.argument, validate=True).decode("utf-8", "surrogateescape")
            except ValueError:
                return ""
        return _ESCAPE.sub(lambda found: _character(found[1]), self.argument)


def collect(host: Host) -> list[Line]:
    """Return the lines of all files that a boot reads. Raises Unobservable."""
    paths = [path for path in drop_ins(host, DIRECTORIES) if host.exists(host.resolve(path))]
    return [line for path in paths for line in parse(host.read(path), path)]


def parse(text: str, path: str) -> Iterator[Line]:
    """Yield the lines of one file. `%%` stays: other specifiers are not expanded."""
    for number, raw in enumerate(text.split("\n"), 1):
        found = _LINE.match(raw)
        if not found:
            continue
        # systemd takes no quotes away from an argument, and `-` is none.
        argument = "" if found["rest"].strip() == "-" else found["rest"].strip()
        yield Line(found["kind"], _unquoted(found["path"]), argument, f"{path} line {number}")


def _character(escape: str) -> str:
    """Return the character of an escape sequence without its backslash."""
    if escape[0] == "x":
        return chr(int(escape[1:], 16))
    return chr(int(escape, 8)) if escape.isdigit() else _LETTERS.get(escape, f"\\{escape}")


def _unquoted(word: str) -> str:
    try:
        return "".join(shlex.split(word))
    except ValueError:
        return word
