# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's command line of the next boot, and the units that it starts: kernel-command-line(7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..host.seam import Host
from . import boot_entries
from .boot_entries import Entry

_QUOTES = re.compile("[\"']")


class Word(NamedTuple):
    """A word of a command line: the key as it is written, the value, the place, and whether all candidates have it."""

    key: str
    value: str
    place: str
    is_sure: bool


def candidates(host: Host) -> list[Entry]:
    """Return the entries of the boot loader of which the next boot's is one; [] without a boot loader. Raises Unobservable.

    Those for repairs are chosen by hand, unless the default is one.
    """
    found = boot_entries.find(host)
    entries = found.entries or found.others
    return [each for each in entries if (found.entries and found.is_decided) or not each.is_repair]


def of_this_boot(host: Host) -> tuple[str, str]:
    """Return this boot's, and its place. Raises Unobservable."""
    return host.read("/proc/cmdline"), "the kernel's command line of this boot (/proc/cmdline)"


def words(host: Host) -> dict[str, Word]:
    """Return {word without quotes: its parts} of all candidates; without a boot loader of this boot. Raises Unobservable."""
    lines = {entry.line: entry.at for entry in candidates(host)} or dict([of_this_boot(host)])
    parts = [(split(line), place) for line, place in lines.items()]
    found: dict[str, Word] = {}
    for each, place in reversed(parts):
        for word in each:
            key, _equals, value = word.partition("=")
            is_sure = all(word in others for others, _place in parts)
            found[word] = Word(key, value, place, is_sure)
    return found


def split(line: str) -> list[str]:
    """Return the options of a command line without quotes."""
    return _QUOTES.sub("", line).split()


def plain(key: str) -> str:
    """Return a key as systemd compares it: an underscore is a dash."""
    return key.replace("_", "-")


def wants(host: Host) -> Mapping[str, bool]:
    """Return {unit: whether each candidate has it} of `systemd.wants=`. Raises Unobservable."""
    found = [each for each in words(host).values() if plain(each.key) == "systemd.wants" and each.value]
    return {each.value: each.is_sure for each in found}
