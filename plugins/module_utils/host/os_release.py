# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The distribution of a host: os-release(5)."""

from __future__ import annotations

import shlex

from .seam import Host, Unobservable

PATH = "/etc/os-release"


def read(host: Host) -> str:
    """Return `ID VERSION_ID` of a host, such as `sles 12.5`; '' where the file does not tell both."""
    try:
        return parse(host.read(PATH))
    except Unobservable:
        return ""


def parse(text: str) -> str:
    """Return `ID VERSION_ID` of the text of os-release(5), '' where it does not tell both.

    Its values are quoted as for a shell, and the last one counts.
    """
    values = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name in ("ID", "VERSION_ID"):
            try:
                values[name] = " ".join(shlex.split(value))
            except ValueError:
                return ""
    return f"{values['ID']} {values['VERSION_ID']}" if len(values) == 2 else ""
