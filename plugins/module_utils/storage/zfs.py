# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The properties of a ZFS dataset and its pool.

From zfs(8), zfsprops(7), zpool-status(8) and zfs(4) of OpenZFS 2.x: documented, run nowhere here. With `sync` at standard
or always an fsync returns when the intent log is on the log devices, or on the pool's disks, and these were flushed;
with disabled it returns at once.
"""

from __future__ import annotations

import re

from ..host.observation import UNKNOWN, Because, Observation, Undecided, caused, unread
from ..host.seam import Host, Unobservable
from ..next_boot import modprobe
from . import boot_loader

#: `zfs get` and the properties, before a dataset's name.
GET = ("zfs", "get", "-H", "-o", "property,value", "sync,canmount,mountpoint")
#: `zpool status` with whole and real paths, before a pool's name.
STATUS = ("zpool", "status", "-P", "-L")
PARAMETERS = "/sys/module/zfs/parameters"
#: Parameters of the module that drop each flush; the second came with OpenZFS 2.0.
_DROPPING = ("zfs_nocacheflush", "zil_nocacheflush")
_NAME = re.compile(r"[A-Za-z][\w.: -]*(/[\w.: -]+)*", re.A)
#: As options of the module, also the one with which an import discards the intent log. The kernel takes - for _.
_DROPS = re.compile(r"\b(?:z(?:fs|il)[-_]nocacheflush|zil[-_]replay[-_]disable)=(?!0\b)", re.A)
#: Of a pool's configuration: devices that hold no data of its own.
_COPIES = ("cache", "spares")
_LEAF = re.compile(r"\t( *)(\S+)(?:\s|$)")


def barrier(host: Host, dataset: str) -> Observation:
    """Return whether a commit on a dataset is flushed: on, off or unknown. Never raises."""
    source = f"zfs get sync {dataset}"
    try:
        sync = _properties(host, dataset).get("sync", "")
        for name in _DROPPING:
            path = f"{PARAMETERS}/{name}"
            if host.exists(path) or name == _DROPPING[0]:
                value = host.read(path).strip()
                if value != "0":
                    # pylint: disable-next=kwarg-superseded-by-positional-arg
                    return caused("off", path, "zfs_parameter", name=name, value=value)
    except Unobservable as error:
        return unread(source, error)
    return _of_sync(sync, source)


def persisted(host: Host, dataset: str, target: str, has_line: bool = False) -> Observation:
    """Return the same of the next boot. Never raises.

    ZFS mounts the dataset, or the initramfs as the root, or with mountpoint=legacy a line of fstab or a unit (`has_line`).
    """
    source = f"zfs get sync,canmount,mountpoint {dataset}"
    try:
        found = _properties(host, dataset)
        dropped = _dropped_at_boot(host)
        why = _why_not_mounted(host, dataset, target, found, has_line)
    except Unobservable as error:
        return unread(source, error)
    if dropped:
        return caused("off", dropped, "zfs_parameter_at_boot")
    if why:
        return Observation("unset", source, because=why)
    return _of_sync(found.get("sync", ""), source)


def _why_not_mounted(
    host: Host, dataset: str, target: str, found: dict[str, str], has_line: bool
) -> Because | None:
    """Return why the next boot does not mount a dataset at a target, None if it does. Raises Unobservable."""
    canmount, mountpoint = found.get("canmount", "unset"), found.get("mountpoint", "unset")
    if (canmount, mountpoint) == ("on", target):
        return None
    values = {"canmount": canmount, "mountpoint": mountpoint}
    if target == "/" and mountpoint in ("/", "legacy") and canmount in ("on", "noauto"):
        # The initramfs mounts the dataset that root= names; without a name in it, the pool's bootfs.
        others = [spec for spec in _roots(host) if spec not in ("", dataset)]
        return Because("zfs_other_root", {**values, "root": others[0]}) if others else None
    if mountpoint == "legacy" and canmount != "off":
        return None if has_line else Because("zfs_no_line", {**values, "target": target})
    return Because("zfs_not_mounted", {**values, "target": target})


def _roots(host: Host) -> list[str]:
    """Return the datasets that the boot loader, or this boot's command line, names as the root. Raises Unobservable."""
    specs = [spec for _source, spec in boot_loader.roots(host)]
    words = host.read("/proc/cmdline").split()
    specs = specs or [word[len("root=") :] for word in words if word.startswith("root=")]
    return [re.sub(r"^(?:ZFS=|zfs:)(?:AUTO$)?", "", spec) for spec in specs if re.match("ZFS=|zfs:", spec)]


def leaves(host: Host, dataset: str) -> tuple[list[str], list[str]]:
    """Return the paths of all devices that a dataset's pool writes to, and of those the log devices.

    Raises Unobservable.
    """
    pool = _checked(dataset).partition("/")[0]
    return parse_status(_run(host, [*STATUS, pool]), pool)


def parse_status(text: str, pool: str) -> tuple[list[str], list[str]]:
    """Return the paths of a pool's devices in `zpool status -P -L`, without caches and spares, and of those the logs.

    Raises Unobservable where there are none.
    """
    _before, _config, after = text.partition("\nconfig:\n")
    paths: list[str] = []
    logs: list[str] = []
    section = None
    for row in map(_LEAF.match, after.split("\n")):
        if row is None or row[2] == "NAME":
            continue
        if not row[1]:
            # The first row is the pool, which may be called cache or spares.
            section = "" if section is None else row[2]
        elif row[2].startswith("/") and section not in _COPIES:
            paths.append(row[2])
            logs += [row[2]] if section == "logs" else []
    if not paths:
        raise Unobservable(f"zpool status {pool}: no device is named")
    return paths, logs


def parse_properties(text: str) -> dict[str, str]:
    """Return {property: value} of `zfs get -H -o property,value`."""
    return dict(line.partition("\t")[::2] for line in text.split("\n") if "\t" in line)


def _of_sync(sync: str, source: str) -> Observation:
    if sync in ("standard", "always"):
        return Observation("on", source)
    if sync == "disabled":
        return caused("off", source, "zfs_sync_disabled")
    return caused(UNKNOWN, source, "zfs_sync", sync=sync)


def _dropped_at_boot(host: Host) -> str:
    """Return the file and line that have the module drop flushes or the intent log at the next boot, '' if none does.

    Raises Unobservable.
    """
    for path in modprobe.files(host):
        for row, line in modprobe.lines(host.read(path)):
            if not line.lstrip().startswith("#") and _DROPS.search(line):
                return f"{path} line {row}"
    lines = boot_loader.command_lines(host)
    dropping = [place for line, place in lines if _DROPS.search(line)]
    others = [place for _line, place in lines if place not in dropping]
    if dropping and others:
        raise Undecided("zfs_entries_differ", dropping=dropping[0], keeping=others[0])
    return dropping[0] if dropping else ""


def _properties(host: Host, dataset: str) -> dict[str, str]:
    return parse_properties(_run(host, [*GET, _checked(dataset)]))


def _checked(dataset: str) -> str:
    if not _NAME.fullmatch(dataset):
        raise Unobservable(f"{dataset!r} is no name of a ZFS dataset")
    return dataset


def _run(host: Host, argv: list[str]) -> str:
    result = host.run(argv)
    if result.rc != 0:
        raise Unobservable(f"{' '.join(argv)}: exit {result.rc}: {' '.join(result.stderr.split())}")
    return result.stdout
