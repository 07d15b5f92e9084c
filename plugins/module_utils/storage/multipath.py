# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dm-multipath: the result of a write if no path is left.

With the feature queue_if_no_path it waits, else it fails (kernel, Documentation: dm-mpath). multipathd sets the feature by
no_path_retry: always (queue), for so many checks (a number), or never (fail): multipath.conf(5). What it goes by it prints
as `%Q`: on, off, what is left of a number, or - where only the features of the map say it (libmultipath/print.c).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..facts.classes import LayerFacts, MountFacts
from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable

ASK = ["multipathd", "show", "maps", "raw", "format", "%w:%Q"]
#: Of a map's queueing: for ever, for a while, not at all.
QUEUES, LIMITED, FAILS = "queue", "limited", "fail"
_FEATURE = "queue_if_no_path"
_LEFT = re.compile(r"\d+ (?:chk|sec)")
_NAMES = {"on": QUEUES, "off": FAILS}


class Queueing(NamedTuple):
    """What a multipath device does without a path, now, and by multipathd's configuration: QUEUES, LIMITED, FAILS
    or unknown."""

    label: str
    running: str
    persisted: str


def read(host: Host) -> dict[str, str]:
    """Return {WWID: what multipathd says of its queueing}; nothing where it does not answer."""
    try:
        result = host.run(ASK)
    except Unobservable:
        return {}
    lines = result.stdout.split("\n") if result.rc == 0 else ()
    return {wwid: said.strip() for wwid, colon, said in (line.rpartition(":") for line in lines) if colon}


def state(arguments: str, said: str | None) -> str:
    """Return a layer's state of the arguments of its table, and of what multipathd says of it."""
    count, _space, rest = arguments.partition(" ")
    features = rest.split(" ")[: int(count)] if re.fullmatch(r"\d{1,2}", count) else []
    running = QUEUES if _FEATURE in features else FAILS
    if said == "-":
        persisted = running
    elif said and _LEFT.fullmatch(said):
        persisted = LIMITED
    else:
        persisted = _NAMES.get(said or "", UNKNOWN)
    return f"no path: {running}, no_path_retry: {persisted}"


def queueing(mount: MountFacts) -> list[Queueing]:
    """Return what the multipath devices below a mount do without a path."""
    return [_queueing(layer) for layer in mount["stack"] if layer["type"] == "multipath"]


def _queueing(layer: LayerFacts) -> Queueing:
    found = re.fullmatch(r"no path: (\w+), no_path_retry: (\w+)", layer["state"])
    running, persisted = found.groups() if found else (UNKNOWN, UNKNOWN)
    known = (QUEUES, LIMITED, FAILS)
    return Queueing(
        layer["label"] or layer["name"],
        running if running in known else UNKNOWN,
        persisted if persisted in known else UNKNOWN,
    )
