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

from ..host import unit_names
from ..host.seam import Host
from ..next_boot import udev_rules
from ..next_boot.udev_rules import Rule, Token
from .others import Text

BY = "udev rule"
_UNIT = re.compile(r"[\w@.:\\*-]+")
#: A substitution of udev's: its value is unknown here.
_UNKNOWN = re.compile(r"\$\w+(?:\{[^}]*\})?|%[a-zA-Z](?:\{[^}]*\})?")


class Commands(NamedTuple):
    """What the rules run, and patterns of the units that they start."""

    texts: tuple[Text, ...]
    units: tuple[str, ...]


def read(host: Host) -> Commands:
    """Return what the rules of administrators run and start. Raises Unobservable."""
    rules = udev_rules.read(host, filter(_is_administrators, udev_rules.files(host)))
    return Commands(
        tuple(text for rule in rules for text in _texts(rule)),
        tuple(dict.fromkeys(unit for rule in rules for token in rule.tokens for unit in _units(token))),
    )


def _texts(rule: Rule) -> Iterator[Text]:
    for token in rule.tokens:
        if token.is_program:
            yield Text(udev_rules.command(token.value), rule.source, BY)


def _units(token: Token) -> Iterable[str]:
    """Return the units that a token starts, with `*` for what udev puts in."""
    value = _UNKNOWN.sub("*", token.value)
    if (token.key, token.name) == ("ENV", "SYSTEMD_WANTS") and not token.is_match:
        return value.split()
    if token.is_program and "systemctl" in value:
        return [unit_names.with_kind(word) for word in _UNIT.findall(value)]
    return []


def _is_administrators(path: str) -> bool:
    return posixpath.basename(path) not in udev_rules.OURS and not path.startswith(udev_rules.PACKAGED)
