# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What udev knows of the disks, and the rule file that keeps their write caches."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Sorts after the distributions' own rules (60-, 85-hdparm), so that it has the last word.
RULES_PATH = "/etc/udev/rules.d/99-durable-dbhost-write-cache.rules"

_HEADER = """\
# Managed by durable.dbhost: the write cache of each disk at the next boot.
# playbooks/release_db.yml takes it away. Other rules belong into files of their own.
"""

#: udev's own replacement for odd characters leaves these; anything else could be read as a
#: pattern or end the quotes of a rule.
_SAFE = re.compile(r"[A-Za-z0-9#+.:=@_-]+")

#: Kind of name -> the udev property that holds it, best first. The extension tells the volumes
#: of one array apart, which share a plain WWN.
_ID_KEYS = {"wwn": "ID_WWN_WITH_EXTENSION", "serial": "ID_SERIAL"}

_RULE = re.compile(
    r"^# disk (?P<id>(?:wwn|serial):\S+) (?P<transport>\S+) (?P<state>enabled|disabled)$", re.M
)


class CacheRule(NamedTuple):
    """One disk's line: `id` as the facts name it, `transport` sata or virtio, `state` enabled or
    disabled."""

    id: str
    transport: str
    state: str


def parse_database(text: str) -> dict[str, dict[str, str]]:
    """Return {kernel name: properties} of `udevadm info --export-db` for block devices."""
    disks = {}
    for record in text.split("\n\n"):
        properties = dict(
            line[3:].partition("=")[::2] for line in record.splitlines() if line.startswith("E: ")
        )
        if properties.get("SUBSYSTEM") == "block" and "DEVNAME" in properties:
            disks[properties["DEVNAME"].rpartition("/")[2]] = properties
    return disks


def identify(properties: dict[str, str]) -> str | None:
    """Return the name of a disk that stays (`wwn:...` or `serial:...`), or None."""
    for kind, key in _ID_KEYS.items():
        value = properties.get(key, "")
        if _SAFE.fullmatch(value):
            return f"{kind}:{value}"
    return None


def parse_rules(text: str) -> list[CacheRule]:
    """Return the disks whose rule stands whole in our rule file.

    A comment names the disk for us, the line below acts; a comment whose line was edited or
    removed does not count, because udev would do something else than we believe.
    """
    lines = set(text.split("\n"))
    named = [CacheRule(m["id"], m["transport"], m["state"]) for m in _RULE.finditer(text)]
    return [rule for rule in named if rule.transport in _ACTIONS and _line(rule) in lines]


def render_rules(rules: list[CacheRule]) -> str:
    """Return the rule file for these disks, sorted by id; empty when there are none."""
    if not rules:
        return ""
    blocks = [f"# disk {rule.id} {rule.transport} {rule.state}\n{_line(rule)}\n" for rule in rules]
    return "\n".join([_HEADER, *sorted(blocks)])


def _line(rule: CacheRule) -> str:
    kind, _colon, value = rule.id.partition(":")
    return ", ".join(
        [
            'ACTION=="add|change"',
            'SUBSYSTEM=="block"',
            'ENV{DEVTYPE}=="disk"',
            f'ENV{{{_ID_KEYS[kind]}}}=="{value}"',
            *_ACTIONS[rule.transport](rule.state),
        ]
    )


def _sata(state: str) -> list[str]:
    switch = "1" if state == "enabled" else "0"
    return [
        # hdparm would hang or harm other devices.
        'ENV{ID_BUS}=="ata"',
        # Many drives forget -W0 at the next power-on or reset: the kernel must go on flushing.
        'ATTR{device/scsi_disk/*/cache_type}="temporary write back"',
        f'RUN+="/sbin/hdparm -q -W{switch} $devnode"',
    ]


def _virtio(state: str) -> list[str]:
    word = "write back" if state == "enabled" else "write through"
    return ['KERNEL=="vd*"', f'ATTR{{cache_type}}="{word}"']


_ACTIONS = {"sata": _sata, "virtio": _virtio}
