# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of systemd's units: templates, drop-in directories, endings. Pure."""

from __future__ import annotations

import re

#: Units that can start another one, or be started by one.
KINDS = ("service", "target", "timer", "path", "socket")
#: Units with commands, and the section that has them.
SECTIONS = {"service": "Service", "socket": "Socket"}
#: Directories of links to the units that a unit starts end so.
STARTS = (".wants", ".requires", ".upholds")


def with_kind(word: str) -> str:
    """Return the unit that a word of a command can mean: systemctl(1) takes a service without its ending."""
    return word if "." in word else f"{word}.service"


def template(name: str) -> str:
    """Return the template of an instance, or a unit's own name."""
    return re.sub(r"@.*(?=\.\w+$)", "@", name)


def askers(name: str) -> set[str]:
    """Return the units that start a unit if they are started, as templates, itself among them."""
    stem, _dot, own = template(name).rpartition(".")
    # A timer, a path or a socket starts the service of its name.
    return {f"{stem}.{kind}" for kind in (KINDS if own == "service" else (own,))}


def scopes(name: str) -> list[str]:
    """Return the names of the drop-in directories of a unit, without `.d`, the strongest first: systemd.unit(5).

    Those of the name itself, of its template, of a-b-c.mount a-b-.mount and a-.mount, and of its type.
    """
    own = dict.fromkeys((name, template(name)))
    found = [
        f"{'-'.join(parts[:count])}-{dot}{kind}"
        for stem, dot, kind in (each.rpartition(".") for each in own)
        for parts in [stem.split("-")]
        for count in range(len(parts) - 1, 0, -1)
        if parts[0]
    ]
    return list(dict.fromkeys([*own, *found, name.rpartition(".")[2]]))
