# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's mount table, as proc_pid_mountinfo(5) describes it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

_ESCAPE = re.compile(rb"\\([0-3][0-7]{2})")
#: So many mount points are compared in the time that one directory above another takes to be spelt out.
_AS_SOON = 50


class Mount(NamedTuple):
    """One line of mountinfo.

    `device` is `major:minor` and names the superblock; `root` is the part of the file system that
    is shown; `options` belong to this mount, `super_options` to the superblock that all share.
    `number` is the mount's id, `parent` the id of the mount that it is mounted on; '' for one that is in
    no table.
    """

    device: str
    root: str
    target: str
    options: tuple[str, ...]
    fstype: str
    source: str
    super_options: tuple[str, ...]
    number: str = ""
    parent: str = ""

    @property
    def read_only_by_itself(self) -> bool:
        """Return whether this mount is a read-only view of a writable file system."""
        return "ro" in self.options and "ro" not in self.super_options


def unescape(text: str) -> str:
    r"""Turn the octal escapes of mountinfo and fstab (`\040` is a space) into the characters that they encode.

    Each is a byte: in fstab, letters beyond ASCII are often written so.
    """
    raw = text.encode("utf-8", "surrogateescape")
    raw = _ESCAPE.sub(lambda match: bytes([int(match.group(1), 8)]), raw)
    return raw.decode("utf-8", "surrogateescape")


def parse_mountinfo(text: str) -> list[Mount]:
    """Return the mounts in the kernel's order. Raises ValueError on a line of another form."""
    # Not splitlines(): the kernel leaves form feeds and the like as they are in a name.
    return [_parse_line(line) for line in text.split("\n") if line]


def by_id(text: str) -> dict[str, Mount]:
    """Return {mount id: mount}; an id means the same mount to every process. Raises ValueError."""
    return {line.partition(" ")[0]: _parse_line(line) for line in text.split("\n") if line}


def _parse_line(line: str) -> Mount:
    left, separator, right = line.partition(" - ")
    before, after = left.split(" "), right.split(" ")
    if not separator or len(before) < 6 or len(after) < 3:
        raise ValueError(f"not a mountinfo line: {line!r}")
    return Mount(
        device=before[2],
        root=unescape(before[3]),
        target=unescape(before[4]),
        options=tuple(before[5].split(",")),
        fstype=after[0],
        source=unescape(after[1]),
        super_options=tuple(after[2].split(",")),
        number=before[0],
        parent=before[1],
    )


def visible(mounts: list[Mount]) -> list[Mount]:
    """Drop the mounts that no path leads to: others were mounted over them, or over a directory above."""
    over = _Covers(mounts)
    return [mount for mount in mounts if over.of(mount) is None]


def covered(mounts: list[Mount]) -> list[tuple[Mount, Mount]]:
    """Return the mounts that no path leads to, each with the mount that hides it."""
    over = _Covers(mounts)
    found = ((mount, over.of(mount)) for mount in mounts)
    return [(mount, cover) for mount, cover in found if cover is not None]


def why_absent(target: str, hidden: Mapping[str, str], types: Mapping[str, str]) -> str:
    """Return as text why no file system that could hold data is at a path.

    `hidden`: {mount point: mount point of what hides it}; `types`: {mount point: type} of all that paths lead to.
    """
    if target in hidden:
        cover = hidden[target]
        return f"what is mounted there is hidden by {types.get(cover, 'a file system')} mounted over {cover}: unmount that"
    if target in types:
        return f"{types[target]} is mounted there, which holds nothing over a power cut"
    return "nothing is mounted there"


class _Covers:
    """Finds what hides mounts of one table.

    A mount over a directory has the same parent as what it hides below; one over a mount's own root
    has that mount as its parent.
    """

    def __init__(self, mounts: list[Mount]) -> None:
        self._by_number = {mount.number: mount for mount in mounts}
        #: {number of a mount: {mount point on it: the topmost mount there}}
        self._topmost: dict[str, dict[str, Mount]] = {}
        for mount in mounts:
            parent, target = _place(mount)
            self._topmost.setdefault(parent, {})[target] = mount
        #: What hides the place of a mount. Each is searched for once: any user can nest thousands.
        self._known: dict[Mount, Mount | None] = {}

    def of(self, mount: Mount) -> Mount | None:
        """Return what was mounted over a mount, or over something on the way to it, None if nothing was."""
        return self._topmost.get(mount.number, {}).get(mount.target) or self._on_the_way(mount)

    def _on_the_way(self, mount: Mount) -> Mount | None:
        passed: dict[Mount, None] = {}
        cover: Mount | None = None
        while mount not in self._known:
            if mount in passed:
                cover = mount  # A table that leads in a circle leads nowhere.
                break
            passed[mount] = None
            cover = self._before(mount)
            parent = self._by_number.get(_place(mount)[0])
            if cover is not None or parent is None:
                break
            mount = parent
        else:
            cover = self._known[mount]
        self._known.update(dict.fromkeys(passed, cover))
        return cover

    def _before(self, mount: Mount) -> Mount | None:
        """Return what was mounted over a mount's place, or a directory above it, in its parent mount."""
        parent, target = _place(mount)
        there = self._topmost[parent]
        over = (there[above] for above in _above(target, there))
        return next(over, None if there[target] is mount else there[target])


def _place(mount: Mount) -> tuple[str, str]:
    """Return the parent of a mount, and the place of its mount point there; the first of all names itself."""
    return "" if mount.parent == mount.number else mount.parent, mount.target


def _above(target: str, known: Collection[str]) -> list[str]:
    """Return those of the known mount points that are directories above one, the root first."""
    if len(known) < _AS_SOON * target.count("/"):
        found = [other for other in known if target.startswith(f"{other.rstrip('/')}/")]
    else:
        parts = target.strip("/").split("/")
        found = ["/".join(("", *parts[:count])) or "/" for count in range(len(parts))]
    return sorted((above for above in found if above in known and above != target), key=len)
