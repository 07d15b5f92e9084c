# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mounts that a measurement writes to, and their disks, from facts collected at that moment."""

from __future__ import annotations

from collections.abc import Sequence

from ..facts.storage import DiskFacts, MountFacts
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable
from ..storage import causes, nfs
from ..storage.blockstack import Blocks
from ..storage.disks import Disks
from ..storage.mounts import Mounts
from .limits import Refused

#: A write goes to more than one disk below these.
_REDUNDANT = ("md", "dm", "multipath", "unknown")


class Place(MountFacts):
    """The facts of a mount with its line of the mount table and the facts of its disks."""

    mount: Mount
    leaves: list[DiskFacts]


def find(host: Host, targets: Sequence[str]) -> list[Place]:
    """Return the mounts at these paths.

    Raises Refused, before anything is written, for a path on which nothing is mounted and for a stack whose
    disks are unknown: what reaches them could not be counted.
    """
    blocks = Blocks(host)
    reader, disks = Mounts(host, blocks), Disks(host, blocks)
    try:
        here = [found for found in reader.superblocks() if found.hidden_in is None]
    except (Unobservable, ValueError) as error:
        raise Refused(f"/proc/self/mountinfo: {error}") from error
    by_target = {mount.target: (found, mount) for found in here for mount in found.mounts}
    places: list[Place] = []
    for target in dict.fromkeys(targets):
        if target not in by_target:
            raise Refused(
                f"{target}: {reader.absent(target)}; expected one of {', '.join(sorted(by_target))}"
            )
        found, mount = by_target[target]
        facts = reader.collect(found)
        if facts["disks"] == UNKNOWN or not facts["disks"] or nfs.is_nfs(facts["fstype"]):
            why = (
                causes.of_evidence(facts["evidence"]["disks"])["reason"] or "no disk of this host is below it"
            )
            raise Refused(
                f"{target}: its disks are unknown ({why}); expected layers that the facts understand"
            )
        leaves = [disks.with_power_on(leaf) for leaf in disks.collect_all(facts["disks"])]
        places.append({**facts, "target": target, "mount": mount, "leaves": leaves})
    return places


def may_be_redundant(place: Place) -> bool:
    """Return whether one write may go to several of a mount's disks."""
    return any(layer["type"] in _REDUNDANT for layer in place["stack"])
