# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount namespace, container and systemd unit of a process."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from . import bounds
from .mountinfo import Mount, by_id, visible
from .observation import UNKNOWN
from .paths import normal
from .processes import FIRST_PERSON, Process, user_of
from .seam import Host, TooLong, Unobservable

#: Parts of a control group's path that name a container: what runs it, and its id or name there.
#: Docker, Podman, CRI-O and containerd with systemd's driver put the id into a scope's name, with
#: cgroupfs into a directory; Kubernetes has no word of the runtime there at all.
_CONTAINERS = (
    re.compile(r"/(?P<kind>docker|crio|cri-containerd|nerdctl)-(?P<id>[0-9a-f]{64})\.scope(?:/|$)"),
    re.compile(r"/(?P<kind>libpod)-(?:payload-)?(?P<id>[0-9a-f]{64})(?:\.scope)?(?:/|$)"),
    re.compile(r"/(?P<kind>docker|crio|nerdctl)[/-](?P<id>[0-9a-f]{64})(?:/|$)"),
    re.compile(r"/(?P<kind>kubepods)[^/]*/(?:[^/]+/)*(?P<id>[0-9a-f]{64})(?:/|$)"),
    re.compile(r"/(?P<kind>lxc)(?:\.payload)?[./](?P<id>[^/]+)(?:/|$)"),
    re.compile(r"/systemd-(?P<kind>nspawn)@(?P<id>[^/]+)\.service(?:/|$)"),
    re.compile(r"/(?P<kind>machine)-(?P<id>[^/]+)\.scope(?:/|$)"),
)
#: Those for whom mount tables are read.
_SYSTEM, _ALL_OTHERS = "the system's services", "all users and containers"
_UNIT = re.compile(r"[^/]+\.(?:service|scope)")


class Place(NamedTuple):
    """Where a process lives.

    `namespace` is host, private (a separate mount namespace), container or unknown; `root` is
    where this process finds the other's files, '' where they are at the same paths; `top` is the
    other's root directory as its link shows it; `container` is `kind:id` or ''; `unit` is a systemd
    service or None; `mounts` is {mount id: mount} as the process sees them.
    """

    namespace: str
    root: str
    top: str
    cgroup: str
    container: str
    unit: str | None
    mounts: dict[str, Mount]
    reason: str | None = None


class Places:
    """Finds where the processes of one host live. `mounts`: {mount id: mount} as this process sees them."""

    def __init__(self, host: Host) -> None:
        self.host = host
        # Many processes see the same: by what stands for its text.
        self._read: dict[bytes, dict[str, Mount]] = {}
        #: {who: mounts, and characters of their tables, that are still read}; '' are the system's own services.
        self._left: dict[str, tuple[int, int]] = {}
        self.mounts = self._mounts("self", lambda: "")
        self._ours = {self._link("self", "ns/mnt"), self._link("1", "ns/mnt")} - {""}

    def of(self, process: Process) -> Place:
        """Return where a process lives. Raises Unobservable where that cannot be read."""
        pid = str(process.pid)
        cgroup = cgroup_of(self.host.read(f"/proc/{pid}/cgroup"))
        link = self._link(pid, "ns/mnt")
        top = self._link(pid, "root") or "/"
        mounts = self._mounts(pid, lambda: _stranger(self.host, process))
        moved = top != "/" or _slash(mounts.values()) != _slash(self.mounts.values())
        container = container_of(cgroup)
        if not link or not self._ours:
            namespace, container = UNKNOWN, ""
        elif link in self._ours:
            # A control group of a container, in our own namespace: this process is in it as well.
            namespace, container = "host", ""
        elif container or (moved and self._link(pid, "ns/pid") != self._link("self", "ns/pid")):
            namespace = "container"
        else:
            namespace = "private"
        why = None if namespace != UNKNOWN else f"/proc/{pid}/ns/mnt cannot be compared with this process's"
        root = f"/proc/{pid}/root" if moved else ""
        return Place(namespace, root, top, cgroup, container, unit_of(cgroup), mounts, why)

    def on_host(self, place: Place, path: str) -> str:
        """Return where this process finds what another calls `path`, links not followed."""
        if not place.root and place.namespace == "host":
            return path
        if place.namespace == "host":
            return normal(f"{place.top}/{path}")
        found = translate(path, place.mounts.values(), self.mounts.values())
        return found if found is not None else place.root + path

    def _mounts(self, pid: str, whose_it_is: Callable[[], str]) -> dict[str, Mount]:
        path = f"/proc/{pid}/mountinfo"
        try:
            text = self.host.read(path)
        except TooLong as error:
            raise Unobservable(f"{error}, in the mount namespace of {whose_it_is() or _SYSTEM}") from error
        key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
        if key not in self._read:
            self._charge(path, whose_it_is(), text.count("\n"), len(text))
            try:
                self._read[key] = by_id(text)
            except ValueError as error:
                raise Unobservable(f"{path}: {error}") from error
        return self._read[key]

    def _charge(self, path: str, who: str, mounts: int, letters: int) -> None:
        """Take a table from what is read for its owner. Raises Unobservable where too little is left.

        Any user can make a namespace with very many mounts: it costs no system service, and no other user, a value.
        """
        whole = bounds.MOUNTS, bounds.MOUNT_TABLES
        rooms = {who: tuple(most // 4 for most in whole), _ALL_OTHERS: whole} if who else {who: whole}
        for name, most in rooms.items():
            left = self._left.setdefault(name, (most[0], most[1]))
            if mounts > left[0] or letters > left[1]:
                raise Unobservable(
                    f"{path}: {mounts} mounts in {letters} characters, and of {name or _SYSTEM} only {left[0]} in {left[1]}"
                    " more are read: unmount what is not needed, or end what has mounted it"
                )
        for name in rooms:
            left = self._left[name]
            self._left[name] = left[0] - mounts, left[1] - letters

    def _link(self, pid: str, name: str) -> str:
        try:
            return self.host.link(f"/proc/{pid}/{name}")
        except Unobservable:
            return ""


def is_there(host: Host, path: str, root: str = "") -> bool:
    """Return whether a path is there, links followed inside `root`.

    Raises Unobservable, also for a link that leads to nothing, and where a disk does not answer in time.
    """
    return host.locate(path, root).status is not None


def resolve(host: Host, root: str, path: str) -> str:
    """Return where a path lies inside `root`, links followed. Raises Unobservable as is_there does."""
    return host.locate(path, root).path


def link_target(host: Host, path: str) -> str | None:
    """Return where a path leads if it is a link itself, None if not. Raises Unobservable as is_there does."""
    above, name = posixpath.split(path)
    target = host.locate(path).path
    return target if target != posixpath.join(host.locate(above).path, name) else None


def translate(path: str, theirs: Iterable[Mount], ours: Iterable[Mount]) -> str | None:
    """Return where one mount namespace shows what another shows at `path`, None where nowhere.

    Links are not followed.
    """
    path, mounts = normal(path), visible(list(ours))
    there = carrier(path, list(theirs))
    if there is None:
        return None
    inside = _join(there.root, path[len(there.target.rstrip("/")) :])
    for mount in mounts:
        if mount.device == there.device and _within(inside, mount.root):
            here = _join(mount.target, inside[len(mount.root.rstrip("/")) :])
            # Another mount may lie over that part of it.
            if carrier(here, mounts) == mount:
                return here
    return None


def cgroup_of(text: str) -> str:
    """Return the control group in which systemd or a container's runtime put a process: cgroups(7)."""
    paths = {}
    for line in text.split("\n"):
        fields = line.split(":", 2)
        if len(fields) == 3:
            paths[fields[1]] = fields[2]
    unified = paths.get("", "/")
    return unified if unified != "/" else paths.get("name=systemd", "/")


def container_of(cgroup: str) -> str:
    """Return `kind:id` of the container that a control group's path names, '' without one."""
    for pattern in _CONTAINERS:
        found = pattern.search(cgroup)
        if found and not found["id"].startswith("qemu"):
            return f"{found['kind']}:{found['id'][:12] if len(found['id']) == 64 else found['id']}"
    return ""


def whose(host: Host, process: Process) -> str:
    """Return who answers for a process: a user, and of the system's users the container. Never raises.

    A person can have a control group that is called as a container's.
    """
    try:
        user = user_of(host, process.pid)
        cgroup = cgroup_of(host.read(f"/proc/{process.pid}/cgroup"))
    except Unobservable:
        return "a user who is unknown"
    container = container_of(cgroup) if int(user) < FIRST_PERSON else ""
    return f"user {user}" + (f" in {container}" if container else "")


def _stranger(host: Host, process: Process) -> str:
    """Return the person or the container that answers for a process, '' for a service of the system's."""
    try:
        user = int(user_of(host, process.pid))
        container = container_of(cgroup_of(host.read(f"/proc/{process.pid}/cgroup")))
    except (Unobservable, ValueError):
        return "an unknown user"
    return whose(host, process) if user >= FIRST_PERSON or container else ""


def unit_of(cgroup: str) -> str | None:
    """Return the system's service that a control group's path names, None for a session's scope.

    As sd_pid_get_unit(3): the first part that is no slice.
    """
    parts = [part for part in cgroup.split("/") if part and not part.endswith(".slice")]
    unit = parts[0].lstrip("_") if parts else ""
    is_service = _UNIT.fullmatch(unit) and unit.endswith(".service")
    return unit if is_service and not unit.startswith("user@") else None


def _slash(mounts: Iterable[Mount]) -> tuple[str, str] | None:
    """Return which file system, and which part of it, is the root directory."""
    found = [mount for mount in mounts if mount.target == "/"]
    return (found[-1].device, found[-1].root) if found else None


def carrier(path: str, mounts: list[Mount]) -> Mount | None:
    """Return the mount on which a path lies: the longest target, the last of those."""
    found = [mount for mount in mounts if _within(path, mount.target)]
    return max(reversed(found), key=lambda mount: len(mount.target)) if found else None


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _join(directory: str, rest: str) -> str:
    return directory.rstrip("/") + rest or "/"
