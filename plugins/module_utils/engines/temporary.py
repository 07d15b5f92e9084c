# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories whose content an engine creates again at each start. Unknown content counts as data."""

from __future__ import annotations

from collections.abc import Callable

from ..host.seam import Host, Unobservable

#: Made by mkfs, for fsck: no engine's.
_OF_FILE_SYSTEM = "lost+found"


def names_in(host: Host, directory: str, root: str) -> list[str] | None:
    """Return the names in a directory, None if they are unknown; `root` is where this process finds it."""
    try:
        found = host.list_names(directory, root)
    except Unobservable:
        return None
    return None if found is None else [name for name in found if name != _OF_FILE_SYSTEM]


def holds_only(host: Host, directory: str, root: str, is_temporary: Callable[[str], object]) -> bool:
    """Return whether all names in a directory are temporary files', also if it is empty."""
    found = names_in(host, directory, root)
    return found is not None and all(map(is_temporary, found))
