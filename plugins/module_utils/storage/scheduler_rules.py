# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The udev rules that keep I/O schedulers and readahead."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..host import our_paths, udev
from ..host.seam import Host

RULES_PATH = our_paths.SCHEDULER_RULES
HEADER = """\
# Managed by durable.dbhost: I/O scheduler and readahead of each device, whenever it appears or changes.
# playbooks/release_db.yml takes it away. Other rules belong into files of their own.
"""
#: Setting -> the attribute of the device's queue that holds it.
ATTRIBUTES = {"scheduler": "queue/scheduler", "readahead": "queue/read_ahead_kb"}
#: Kibibytes, in digits that the kernel reads.
_KIB = re.compile(r"[0-9]{1,10}")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")


def read(host: Host) -> dict[str, dict[str, str]]:
    """Return {device id: {setting: value}} of what our rule file keeps. Raises Unobservable."""
    return _read(host, udev.parse_rules)


def read_rules(host: Host) -> dict[str, dict[str, str]]:
    """Return the rules of ours that stand in the rule file, to be written again with others.

    Raises Unobservable.
    """
    return _read(host, udev.written_rules)


def render(rules: dict[str, dict[str, str]]) -> str:
    """Return the rule file's text; empty without rules."""
    words = {
        known: " ".join(f"{name}={settings[name]}" for name in ATTRIBUTES if name in settings)
        for known, settings in rules.items()
        if settings
    }
    return udev.render_rules(words, HEADER, _assign)


def _read(host: Host, parse: Callable[..., dict[str, str]]) -> dict[str, dict[str, str]]:
    text = host.read(RULES_PATH) if host.exists(RULES_PATH) else ""
    return {known: _split(words) for known, words in parse(text, HEADER, _assign).items()}


def _assign(words: str) -> list[list[str]]:
    settings = _split(words)
    for name, value in settings.items():
        if name not in ATTRIBUTES or not (
            value in SCHEDULERS if name == "scheduler" else _KIB.fullmatch(value)
        ):
            raise ValueError(f"seen {name}={value}, wanted scheduler=NAME or readahead=KIB")
    return [[f'ATTR{{{ATTRIBUTES[name]}}}="{value}"' for name, value in settings.items()]]


def _split(words: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in words.split(" "))
    return {name: value for name, _equals, value in pairs}
