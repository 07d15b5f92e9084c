# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The storage facts of one host: disks, mounted file systems, and the layers between them."""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from ..facts.classes import DiskFacts, MountFacts, Readahead, StorageFacts
from ..host import bounds, named_by, os_release
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN
from ..host.our_paths import LEASE
from ..host.seam import Host, Unobservable
from ..next_boot import tuned
from ..next_boot.last import Last
from . import crypttab, device_names, flush_passthrough, fua, nfs, platforms, root_image
from .blockstack import Blocks
from .boot_faults import Devices
from .disks import Disks
from .mounts import Mounts, Superblock

#: Kernel names that are layers, scratch devices or one path of several, and never the leaf below a
#: managed mount.
_NOT_DISKS = re.compile(r"(loop|dm-|md|sr|fd|zd|bcache|drbd\d)|nvme\d+c\d+n")
#: Paths, superblocks and disks that are asked at a time.
_AT_A_TIME = 8


def collect(host: Host, now: str, paths: Iterable[str] = ()) -> StorageFacts:
    """Return `durable_storage`; `now` is the host's UTC time in ISO 8601.

    `paths` are databases' paths; where they really lie, links followed, comes back as `resolved`,
    and why some could not be read as `unresolved`; the directories to which links directly in them
    lead as `links`: a database or its log may be kept there. One that is a block device itself comes back
    among the mounts, as file system `raw`.

    Raises Unobservable only when the kernel's own tables (/proc, /sys/block) are not there: then
    nothing can be said about this machine.
    """
    blocks = Blocks(host)
    disks, mounts = Disks(host, blocks), Mounts(host, blocks)
    names = [name for name in host.names("/sys/block") if not _NOT_DISKS.match(name)]
    superblocks = _superblocks(mounts)
    mounts.check_names(disks.properties)
    waiting = mounts.waiting(disks.properties)
    on_access = {superblock.mounts[0].target for superblock in waiting}
    kernel = host.read("/proc/sys/kernel/osrelease").strip()
    paths = tuple(paths)
    # Servers name the paths. The threads share the host, so the block is around all of them.
    with named_by.one(host, named_by.UNKNOWN_USER), ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
        # All at once: what hangs may be asked for paths, superblock and cache, and costs its limit once.
        places = pool.map(partial(_place, host, time.monotonic() + bounds.PATIENCE_FOR_ALL), paths)
        mounted = pool.map(mounts.collect, [*superblocks, *waiting])
        found = list(pool.map(disks.collect, names))
        placed = dict(zip(paths, places))
        read = list(mounted)
    resolved = {path: place.real for path, place in placed.items()}
    read += map(mounts.collect, _raw(mounts, resolved.values()))
    early = {name for layer in flush_passthrough.early(read) for name in layer.disks}
    found = [disks.with_power_on(disk) if disk["name"] in early else disk for disk in found]
    last, devices = Last(host, disks.properties, found), Devices(host, disks.properties)
    found = [last.disk(disk) for disk in found] + nfs.exports(read)
    by_name = {disk["name"]: disk for disk in found}
    image, next_root = root_image.read(host)
    distribution = os_release.read(host) if fua.asks_for_distribution(kernel) else ""
    return {
        "boot_id": host.read("/proc/sys/kernel/random/boot_id").strip(),
        "time": now,
        "kernel": kernel,
        "virtualization": disks.virtualization.value,
        "platform": platforms.read(host, disks.virtualization.value),
        "root_image": image,
        "next_root": next_root,
        "disks": found,
        "mounts": [
            _tied(last.mount(mount, by_name), disks, by_name, kernel, distribution, last) for mount in read
        ],
        "tuned": tuned.read(host),
        "other_mounts": {
            target: fstype for target, fstype in mounts.other_mounts().items() if target not in on_access
        },
        "covered": mounts.covered(),
        "resolved": resolved,
        "unresolved": {path: place.reason for path, place in placed.items() if place.reason},
        "links": {path: list(place.links) for path, place in placed.items() if place.links},
        "fstab_error": mounts.fstab_error,
        "boot_faults": [
            *mounts.faults(disks.properties),
            *crypttab.faults(host, read, devices),
            *device_names.of_volumes(host, read, devices),
        ],
        # Where it is there, the UPS must be asked whatever the profile is now.
        "leased": "yes" if host.exists(LEASE) else "no",
    }


class _Place(NamedTuple):
    """The real place of a path (None if it is missing), the places to which links directly in it lead, and why it could
    not be read."""

    real: str | None = None
    links: tuple[str, ...] = ()
    reason: str | None = None


def _place(host: Host, until: float, path: str) -> _Place:
    """Return the place of a path; none is read after a time.monotonic(). Never raises Unobservable.

    Others choose where it leads, and its disk may hang.
    """
    if time.monotonic() > until:
        return _Place(reason=f"{path}: not read: the time for all paths of databases was over")
    try:
        where = host.locate(path)
        if where.status is None:
            return _Place()
        is_directory = stat.S_ISDIR(where.status.mode)
        return _Place(where.path, _links(host, where.path) if is_directory else ())
    except Unobservable as error:
        return _Place(reason=str(error))


def _links(host: Host, directory: str) -> tuple[str, ...]:
    """Return the directories to which links in a directory lead. Raises Unobservable."""
    if directory == "/":
        return ()  # Nobody keeps a database in the links that a distribution has there.
    links = host.linked_directories(directory, bounds.LINKS + 1)
    if len(links) > bounds.LINKS:
        raise Unobservable(
            f"{directory}: links to more than {bounds.LINKS} directories in it; expected fewer"
        )
    return tuple(links)


def _superblocks(mounts: Mounts) -> list[Superblock]:
    try:
        return mounts.superblocks()
    except ValueError as error:
        raise Unobservable(f"/proc/self/mountinfo: {error}") from error


def _raw(mounts: Mounts, paths: Iterable[str | None]) -> list[Superblock]:
    """Return the block devices among databases' paths in the shape of mounts."""
    devices = [path for path in paths if path and mounts.host.is_block_device(path)]
    return [
        Superblock([Mount(mounts.blocks.number_of(path) or UNKNOWN, "/", path, ("rw",), "raw", path, ())], [])
        for path in dict.fromkeys(devices)
    ]


def _tied(
    mount: MountFacts,
    disks: Disks,
    by_name: dict[str, DiskFacts],
    kernel: str,
    distribution: str,
    last: Last,
) -> MountFacts:
    """Return a mount's facts with what only its devices know."""
    leaves = [by_name.get(name) for name in mount["disks_seen"]]
    path = fua.path(mount, leaves, kernel, distribution)
    evidence = {**mount["evidence"], "fua_path": path.as_dict()}
    carrier = mount["carrier"]
    readahead: Readahead = {}
    if carrier:
        own = disks.scheduling_persisted(carrier, "readahead")
        observed = {
            "running": disks.readahead(carrier).as_dict(),
            "persisted": last.readahead(carrier, disks.id_of(carrier), own),
        }
        readahead = {"running": observed["running"]["value"], "persisted": observed["persisted"]["value"]}
        evidence.update({f"readahead.{name}": row for name, row in observed.items()})
    return {
        **mount,
        "carrier_id": disks.id_of(carrier) if carrier else None,
        "readahead": readahead,
        "fua_path": path.value,
        "evidence": evidence,
    }
