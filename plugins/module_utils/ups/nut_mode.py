# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MODE in nut.conf: the services of NUT that this host runs.

nut.conf(5): a fragment of shell, `MODE=none` without spaces. Packages come with `none`, and then start
nothing.
"""

from __future__ import annotations

import re

from ..host.textfile import Line, Malformed, Setting, insert, replace, split

SIGN = "#"
FILE = "nut.conf"
NONE = "none"
#: netclient: upsmon alone. standalone: driver, upsd and upsmon. netserver: the same, for other hosts too.
MODES = ("netclient", "standalone", "netserver")

_LINE = re.compile(
    r"[ \t]*(?:export[ \t]+)?MODE=(?P<quote>[\"']?)(?P<value>[a-z]*)(?P=quote)[ \t]*(?:#.*)?\r?\n?"
)
_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?MODE[ \t]*=")


def value(text: str, file: str = FILE) -> Setting | None:
    """Return the mode, None if none is set.

    Raises Malformed for one that a shell would have to work out, and for two that differ.
    """
    found = _lines(text, file)
    settings = [line for line in found if line.kind == "setting"]
    if len({line.value for line in settings}) > 1:
        raise Malformed(f"{file} line {settings[-1].number}", "MODE set twice and differently", "it once")
    return Setting(settings[-1].value, file, settings[-1].number) if settings else None


def set_mode(text: str, mode: str, note: str, file: str = FILE) -> str:
    """Return the text with this mode. Raises Malformed."""
    lines = _lines(text, file)
    found = [line for line in lines if line.kind == "setting"]
    if not found:
        return insert(lines, len(lines), f"MODE={mode}", SIGN, note)
    return replace(
        lines, [(line, line.start, line.end, mode) for line in found if line.value != mode], SIGN, note
    )


def _lines(text: str, file: str) -> list[Line]:
    lines = []
    for number, raw in enumerate(split(text, file), start=1):
        found = _LINE.fullmatch(raw)
        if not found and _NAME.match(raw):
            raise Malformed(
                f"{file} line {number}",
                "a MODE that is no plain word",
                f"one of {', '.join((NONE, *MODES))}, without spaces around the =",
            )
        if found:
            lines.append(Line(number, raw, "setting", "", "MODE", found["value"], *found.span("value")))
        else:
            lines.append(Line(number, raw))
    return lines
