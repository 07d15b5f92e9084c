# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind of a host's root, and whether the next boot uses the running one.

Rebuilt from the documents of ostree, rpm-ostree, transactional-update(8) and btrfs-subvolume(8), not run.
"""

from __future__ import annotations

import re

from ..host.mountinfo import Mount, parse_mountinfo
from ..host.observation import UNKNOWN
from ..host.process_context import carrier
from ..host.processes import output
from ..host.seam import Host, Unobservable
from ..next_boot import boot_entries

#: A deployment of ostree; snapshots that are never changed while they run; an /usr that takes no writes.
OSTREE, TRANSACTIONAL, READ_ONLY, NONE = "ostree", "transactional", "read_only", "none"
#: The root that the next boot starts, compared with this one.
SAME, OTHER = "same", "other"
#: ostree writes the entry of such a deployment at the shutdown.
_STAGED = "/run/ostree/staged-deployment"
_UPDATE = "/usr/sbin/transactional-update"
#: The deployment of an entry. Behind `boot.` two directories alternate.
_DEPLOYMENT = re.compile(r"(?:^|\s)(?:ostree=/ostree/boot\.[\d.]+/|composefs=)(\S+)")
_SNAPSHOT = re.compile(r".*/\.snapshots/\d+/snapshot")
_SUBVOLUME = re.compile(r"(?:^|[\s,=])subvol(?:id)?=")
_DEFAULT = re.compile(r"ID \d+ gen \d+ top level \d+ path (\S+)\n?")


def read(host: Host) -> tuple[str, str]:
    """Return `root_image` and `next_root`. Raises Unobservable without a mount table."""
    try:
        mounts = parse_mountinfo(host.read("/proc/self/mountinfo"))
    except ValueError as error:
        raise Unobservable(f"/proc/self/mountinfo: {error}") from error
    root, usr = carrier("/", mounts), carrier("/usr", mounts)
    kind = NONE
    try:
        is_deployment = bool(_DEPLOYMENT.search(host.read("/proc/cmdline")))
    except Unobservable:
        return (READ_ONLY if usr and "ro" in usr.options else NONE), UNKNOWN
    if is_deployment:
        kind = OSTREE
    elif root and "ro" in root.options and host.exists(_UPDATE):
        kind = TRANSACTIONAL
    elif usr and "ro" in usr.options:
        kind = READ_ONLY
    return kind, _next(host, kind, root)


def _next(host: Host, kind: str, root: Mount | None) -> str:
    try:
        if kind == OSTREE:
            return _next_deployment(host)
        if root and root.fstype == "btrfs" and _SNAPSHOT.fullmatch(root.root):
            return _next_snapshot(host, root.root)
    except Unobservable:
        return UNKNOWN
    return SAME


def _next_deployment(host: Host) -> str:
    if host.exists(_STAGED):
        return OTHER
    now = _DEPLOYMENT.findall(host.read("/proc/cmdline"))
    found = [_DEPLOYMENT.findall(entry.line) for entry in boot_entries.find(host).entries[:1]]
    return OTHER if any(each != now for each in found) else SAME


def _next_snapshot(host: Host, root: str) -> str:
    """Return whether the default subvolume is the snapshot that runs. Raises Unobservable."""
    if _SUBVOLUME.search(host.read("/proc/cmdline")):
        return SAME  # The entry names it: boot_loader.py compares entries.
    found = _DEFAULT.fullmatch(output(host, ["btrfs", "subvolume", "get-default", "/"]))
    if not found:
        raise Unobservable("btrfs subvolume get-default /: the answer is not understood")
    return SAME if found[1].lstrip("/") == root.lstrip("/") else OTHER
