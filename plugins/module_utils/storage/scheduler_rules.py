# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The udev rules that persist I/O schedulers and readahead."""

from __future__ import annotations

import re

from ..host import our_paths, udev
from ..host.seam import Host

RULES_PATH = our_paths.SCHEDULER_RULES
FORMER_PATH = our_paths.FORMER_SCHEDULER_RULES
HEADER = """\
# Managed by durable.dbhost: I/O scheduler and readahead of each device, whenever it appears or changes.
# playbooks/release_db.yml takes it away. Other rules belong into files of their own.
"""
#: Setting -> the attribute of the device's queue that holds it, in the order in which they are set.
ATTRIBUTES = {"scheduler": "queue/scheduler", "readahead": "queue/read_ahead_kb"}
#: Kibibytes, in digits that the kernel reads.
_KIB = re.compile(r"[0-9]{1,10}")
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")


def read(host: Host) -> dict[str, dict[str, str]]:
    """Return {device id: {setting: value}} of what our rule file keeps. Raises Unobservable."""
    return _read(host, RULES_PATH, udev.parse_rules)


def read_rules(host: Host) -> dict[str, dict[str, str]]:
    """Return the rules of ours that are in the rule file, or in one of its former name, to be written again with others.

    Raises Unobservable.
    """
    former = _read(host, FORMER_PATH, udev.written_rules)
    return {**former, **_read(host, RULES_PATH, udev.written_rules)}


def write(host: Host, text: str) -> None:
    """Write the rule file, and remove one of its former name. Raises ChangeFailed."""
    host.write_file(RULES_PATH, text.encode("ascii"))
    if host.exists(FORMER_PATH):
        host.remove_file(FORMER_PATH)


def ours(host: Host) -> list[str]:
    """Return the paths of our files that are on the host."""
    return [path for path in (RULES_PATH, FORMER_PATH) if host.exists(path)]


def render(rules: dict[str, dict[str, str]]) -> str:
    """Return the rule file's text; empty without rules."""
    words = {
        known: " ".join(f"{name}={settings[name]}" for name in ATTRIBUTES if name in settings)
        for known, settings in rules.items()
        if settings
    }
    return udev.render_rules(words, HEADER, _assign)


def _read(host: Host, path: str, parse: udev.Parse) -> dict[str, dict[str, str]]:
    text = host.read(path) if host.exists(path) else ""
    return {known: _split(words) for known, words in parse(text, HEADER, _assign).items()}


def _assign(words: str) -> list[list[str]]:
    settings = _split(words)
    for name, value in settings.items():
        if name not in ATTRIBUTES or not (
            value in SCHEDULERS if name == "scheduler" else _KIB.fullmatch(value)
        ):
            raise ValueError(f"observed {name}={value}, expected scheduler=NAME or readahead=KIB")
    return [[f'ATTR{{{ATTRIBUTES[name]}}}="{value}"' for name, value in settings.items()]]


def _split(words: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in words.split(" "))
    return {name: value for name, _equals, value in pairs}
