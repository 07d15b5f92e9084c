# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories at paths that somebody else chose: what of them is read at most."""

from __future__ import annotations

from .seam import Host, Unobservable
from .textfile import LIMIT


def read(host: Host, path: str, root: str = "", limit: int = LIMIT + 1) -> str | None:
    """Return a file's text, `limit` bytes at most; None where there is no such file.

    Links are followed inside `root`. Raises Unobservable, also for what is no regular file, and where
    its disk does not answer in time.
    """
    part = host.read_part(path, root, limit)
    return part.text if part else None


def names(host: Host, path: str, root: str = "") -> list[str]:
    """Return the sorted names in a directory. Raises Unobservable, also where it is not there."""
    found = host.list_names(path, root)
    if found is None:
        raise Unobservable(f"{path}: No such file or directory")
    return found
