# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a log write can reach the medium as one FUA write, without a separate flush. Pure.

A database that opens its files with O_DIRECT and O_DSYNC, and overwrites blocks that were written
before, has one write for each commit where all of this holds, and a write and a flush elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..facts.classes import DiskFacts, MountFacts
from ..host.kernel_version import version
from ..host.observation import UNKNOWN, Observation, caused
from . import flush_passthrough

#: File system -> first kernel whose direct I/O sends FUA. ext4's came with 5.5 and is supported
#: by database vendors from 5.6.
_SINCE = {"xfs": (4, 18), "ext4": (5, 6)}
#: (`ID VERSION_ID` of os-release(5), file system) -> first kernel of a vendor who has brought it to an
#: older one. From SQL Server's documentation: it was not tried on such a host.
_BACKPORTED = {("sles 12.5", "xfs"): (4, 12)}
#: Layers that make more of a write than one: they keep a map, a journal or tags of their own.
_WRITING_MORE = {
    "bcache",
    "loop",
    "cache",
    "writecache",
    "snapshot",
    "snapshot-origin",
    "snapshot-merge",
    "integrity",
}


def asks_for_distribution(kernel: str) -> bool:
    """Return whether a kernel is so old that it counts whose it is."""
    return version(kernel) < min(_SINCE.values())


def path(
    mount: MountFacts, disks: Iterable[DiskFacts | None], kernel: str, distribution: str = ""
) -> Observation:
    """Return yes, no or unknown for a file system on its leaf disks, with the reason.

    `distribution`: `ID VERSION_ID`, as host/os_release.py returns it.
    """
    source = "file system, kernel and disks"
    fstype = mount["fstype"]
    since = _BACKPORTED.get((distribution, fstype), _SINCE.get(fstype))
    if since is None:
        return caused("no", source, "fua_file_system", fstype=fstype)
    if version(kernel) < since:
        wanted = ".".join(map(str, since))
        return caused("no", source, "fua_since", kernel=kernel, fstype=fstype, since=wanted)
    if mount["data_mode"] == "journal":
        return caused("no", source, "fua_journal")
    if mount["barrier"] == "off":
        return caused("no", source, "fua_no_barrier")
    if UNKNOWN in (mount["data_mode"], mount["barrier"], mount["disks"]):
        return caused(UNKNOWN, source, "fua_unknown")
    flush_blocked_by = [layer.name for layer in flush_passthrough.layers(mount)]
    if flush_blocked_by:
        return caused("no", source, "fua_blocked", layers=flush_blocked_by)
    more = [
        layer["name"]
        for layer in mount["stack"]
        if _WRITING_MORE & {layer["type"], *layer["detail"].split("+")}
    ]
    if more:
        return caused("no", source, "fua_more_writes", layers=more)
    return _of_disks(disks, source)


def _of_disks(disks: Iterable[DiskFacts | None], source: str) -> Observation:
    disks = list(disks)
    if not disks:
        return caused(UNKNOWN, source, "fua_no_disk")
    for disk in disks:
        if disk is None:
            return caused(UNKNOWN, source, "fua_unknown_disk")
        if disk["fua_efficient"] != "yes":
            values = {"disk": disk["name"], "fua": disk["fua"], "cache": disk["write_cache"]["device"]}
            return caused(disk["fua_efficient"], source, "fua_disk", **values)
    return Observation("yes", source)
