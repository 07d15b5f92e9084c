# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's mount table, as proc_pid_mountinfo(5) describes it."""

from __future__ import annotations

import re
from typing import NamedTuple

_ESCAPE = re.compile(rb"\\([0-3][0-7]{2})")


class Mount(NamedTuple):
    """One line of mountinfo.

    `device` is `major:minor` and names the superblock; `root` is the part of the file system that
    is shown; `options` belong to this mount, `super_options` to the superblock that all share.
    """

    device: str
    root: str
    target: str
    options: tuple[str, ...]
    fstype: str
    source: str
    super_options: tuple[str, ...]

    @property
    def read_only_by_itself(self) -> bool:
        """Tell whether this mount is a read-only view of a writable file system."""
        return "ro" in self.options and "ro" not in self.super_options


def unescape(text: str) -> str:
    r"""Turn the octal escapes of mountinfo and fstab (`\040` is a space) into what they stand for.

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
    )


def visible(mounts: list[Mount]) -> list[Mount]:
    """Drop the mounts that a later one on the same target hides."""
    last = {mount.target: index for index, mount in enumerate(mounts)}
    return [mount for index, mount in enumerate(mounts) if last[mount.target] == index]
