# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a disk can be as fast as measured: a faster disk cannot honour flushes. Pure."""

from __future__ import annotations

from ..facts.classes import DiskFacts

#: Rotations in a second of the fastest disks that were ever sold, 15,000 in a minute.
ROTATIONS = 15_000 / 60
#: Room for measurement, and for a commit that finds its sector still ahead of the head.
MARGIN = 1.5
#: Commits in a second by one client at which flash is doubted: 50 us, less than programming a page takes.
FLASH = 20_000


def doubt(disk: DiskFacts, rate: float, clients: int) -> str | None:
    """Return why a disk's rate of commits is not plausible, None where it may be true.

    Each commit of a client waits for the one before. On a rotating disk the next sector of a log has then
    passed the head, so a client has one commit in a rotation at most; several share a rotation.
    A disk that says it has no cache turns no faster. A virtual disk says of itself that it rotates without meaning it.
    """
    cache = disk["write_cache"]
    has_cache = cache["device"] != "none"
    if has_cache and cache["volatile"] == "non_volatile":
        return None
    if disk["rotational"] == "yes" and disk["kind"] == "physical":
        most = ROTATIONS * MARGIN * clients
        if rate > most:
            return (
                f"{disk['name']}: observed {rate:g} commits/s from {clients} client(s), expected at most {most:g} of a disk"
                " that rotates: its cache answers instead of the medium. Unless that cache is known to survive a"
                " power cut, commits on it are not safe: pull the plug, or ask its maker"
            )
        return None
    if has_cache and clients == 1 and rate > FLASH:
        return (
            f"{disk['name']}: observed {rate:g} commits/s from one client, expected at most {FLASH} of flash without"
            " protected memory: something answers before the medium does. Attest power-loss protection if it"
            " is there; in a virtual machine ask how the host caches this disk"
        )
    return None
