# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names and addresses of this host: a command that is sent to one of them is sent to the server here."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from contextlib import suppress

from ..host.seam import Host, Unobservable

#: How a client is given its server, by an option or in a connection string.
_GIVEN = re.compile(r"(?P<option>(?:\s-h\s*|\s--host[= ]\s*|\bhost=)['\"]?)(?P<name>[\w.:-]+)")
#: An address of this host in the kernel's routing table.
_LOCAL = re.compile(r"\|-- (?P<address>[0-9.]{7,15})\n\s+/32 host LOCAL")


def read(host: Host) -> frozenset[str]:
    """Return the first part of this host's name, and its addresses; those that cannot be read are left out."""
    found: set[str] = set()
    with suppress(Unobservable):
        found.add(_first(host.read("/proc/sys/kernel/hostname").strip()))
    with suppress(Unobservable):
        found.update(each["address"] for each in _LOCAL.finditer(host.read("/proc/net/fib_trie")))
    with suppress(Unobservable, ValueError):
        words = (line.partition(" ")[0] for line in host.read("/proc/net/if_inet6").split("\n"))
        found.update(str(ipaddress.IPv6Address(int(word, 16))) for word in words if len(word) == 32)
    return frozenset(found - {""})


def as_local(command: str, own: Collection[str]) -> str:
    """Return a command with `localhost` in place of a name or address of this host."""

    def replaced(found: re.Match[str]) -> str:
        is_own = found["name"].lower() in own or _first(found["name"]) in own
        return f"{found['option']}localhost" if is_own else found[0]

    return _GIVEN.sub(replaced, command)


def _first(name: str) -> str:
    """Return the first part of a name: a host has it in whatever domain. An address has none."""
    return "" if re.fullmatch(r"[0-9.]+|.*:.*", name) else name.partition(".")[0].lower()
