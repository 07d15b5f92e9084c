# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Owners of an engine's settings other than its files, and the fix for each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..host.observation import NOTHING, UNKNOWN
from ..host.printable import name as quoted
from .instance import COMMAND_LINE

#: Who keeps an engine's settings elsewhere, and what to do there about one that is wrong.
OWNERS = {
    "patroni": "set {name} with patronictl edit-config, below postgresql.parameters",
    # Another container with other volumes has other data.
    "container": (
        "set {name} in the server's configuration file in the container and restart the container, or in the container's"
        " options and create it again with its data on the same volumes"
    ),
    UNKNOWN: "set {name} in the component that starts {server}",
}
#: What to do about an option of a container's command line: it overrides each file.
CONTAINER_OPTION = (
    "remove the option {name} where the container is defined, and create the container again with its data on the same"
    " volumes"
)
#: Cause for which the manager is unknown -> the fix, if it is another one.
_UNKNOWN_OWNERS = {
    "maybe_pacemaker": (
        "run crm_mon -1r to see whether it is a resource of Pacemaker's, and set {name} in the server's configuration file"
    ),
    "manager_not_queried": "make systemctl show {server} work as root, then run again",
}


def where_to_set(instance: Mapping[str, Any], name: str, origin: str | None = None) -> str:
    """Return what to do about a setting that is wrong, where its manager keeps it elsewhere; '' where it does not.

    `origin`: the place of the value that wins.
    """
    manager, pids = instance["managed_by"], instance.get("pids")
    if manager == "container" and origin == COMMAND_LINE:
        return CONTAINER_OPTION.format(name=name)
    fix = OWNERS.get(manager, "")
    if manager == UNKNOWN:
        cause = instance["evidence"].get("managed_by", NOTHING).get("cause")
        fix = _UNKNOWN_OWNERS.get(str(cause), fix)
    server = (
        f"process {pids[0]}"
        if isinstance(pids, list) and pids
        else quoted(str(instance["unit"] or instance["name"]))
    )
    return fix.format(name=name, server=server)
