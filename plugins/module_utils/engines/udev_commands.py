# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that udev rules of administrators run, and the units that they start (udev(7)).

No device is compared: a rule that matches none of this boot's can match one of the next.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..host import our_paths, unit_names
from ..host.seam import Host
from ..next_boot import udev_rules
from ..next_boot.udev_rules import Rule, Token
from .others import Text

BY = "udev rule"
#: Where udev looks for a program that is named without a directory.
_PROGRAMS = "/usr/lib/udev"
_OURS = (
    *(our_paths.CACHE_RULES, our_paths.SCHEDULER_RULES),
    *(our_paths.FORMER_CACHE_RULES, our_paths.FORMER_SCHEDULER_RULES),
)
_UNIT = re.compile(r"[\w@.:\\*-]+")
#: A substitution of udev's: its value is unknown here.
_UNKNOWN = re.compile(r"\$\w+(?:\{[^}]*\})?|%[a-zA-Z](?:\{[^}]*\})?")


class Commands(NamedTuple):
    """What the rules run, and patterns of the units that they start."""

    texts: tuple[Text, ...]
    units: tuple[str, ...]


def read(host: Host) -> Commands:
    """Return what the rules of administrators run and start. Raises Unobservable."""
    paths = (path for path in udev_rules.files(host) if path not in _OURS)
    rules = udev_rules.read(host, [path for path in paths if not path.startswith(udev_rules.PACKAGED)])
    return Commands(
        tuple(text for rule in rules for text in _texts(rule)),
        tuple(dict.fromkeys(unit for rule in rules for token in rule.tokens for unit in _units(token))),
    )


def _texts(rule: Rule) -> Iterator[Text]:
    for token in rule.tokens:
        if _is_command(token):
            is_named = not token.value or posixpath.isabs(token.value)
            yield Text(token.value if is_named else f"{_PROGRAMS}/{token.value}", rule.source, BY)


def _units(token: Token) -> Iterable[str]:
    """Return the units that a token starts, with `*` for what udev puts in."""
    value = _UNKNOWN.sub("*", token.value)
    if (token.key, token.name) == ("ENV", "SYSTEMD_WANTS") and not token.is_match:
        return value.split()
    if _is_command(token) and "systemctl" in value:
        return [unit_names.with_kind(word) for word in _UNIT.findall(value)]
    return []


def _is_command(token: Token) -> bool:
    """Tell whether a token runs a program: RUN{builtin} and IMPORT{db} do not."""
    if token.key == "RUN":
        return token.name in ("", "program") and not token.is_match
    return token.key == "PROGRAM" or (token.key, token.name) == ("IMPORT", "program")
