# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounded reads of files and directories at paths that another user can choose."""

from __future__ import annotations

from . import named_by
from .seam import Host, Part, Unobservable
from .textfile import LIMIT


def read(host: Host, path: str, root: str = "", limit: int = LIMIT + 1) -> str | None:
    """Return a file's text, `limit` bytes at most; None if there is no such file.

    Links are followed inside `root`. Raises Unobservable, also for what is no regular file, and where
    its disk does not answer in time.
    """
    found = part(host, path, root, limit)
    return found.text if found else None


def part(host: Host, path: str, root: str = "", limit: int = LIMIT + 1, flush: bool = False) -> Part | None:
    """Return a configuration as `Host.read_part` does; the paths in it are named by its owner. Raises Unobservable."""
    found = host.read_part(path, root, limit, flush=flush)
    if found:
        named_by.followed(host, found.status)
    return found


def names(host: Host, path: str, root: str = "") -> list[str]:
    """Return the sorted names in a directory. Raises Unobservable, also if it is not there."""
    found = host.list_names(path, root)
    if found is None:
        raise Unobservable(f"{path}: No such file or directory")
    return found
