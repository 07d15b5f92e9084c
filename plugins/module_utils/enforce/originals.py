# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The original values, which a release restores. One file contains them all."""

from __future__ import annotations

import json

from ..host import json_text, our_paths, trusted_path
from ..host.seam import ChangeFailed, Host, Unobservable
from . import our_files

#: {mount point: the options of its fstab line before the first change}. Layers of engines have a file
#: of their own beside it, {what was changed: what it was}.
PATH = our_paths.ORIGINALS


def load(host: Host, path: str = PATH) -> dict[str, str]:
    """Return {what was changed: what it was}; of `PATH`, {mount point: fstab options}.

    Another `path` is another layer's, with other keys. Raises ChangeFailed on a damaged file, and on one that others
    than root could have written.
    """
    if not host.exists(path):
        return {}
    try:
        why = trusted_path.weakness(host, path)
        if why:
            raise Unobservable(f"observed that {why}, expected a file that root alone can change")
        found = json_text.loads(host.read(path))
        if not isinstance(found, dict):
            raise ValueError("not a mapping")
        return {str(target): str(options) for target, options in found.items()}
    except (Unobservable, ValueError) as error:
        raise ChangeFailed(
            f"{path}: {error}. Release restores settings from this file. Fix: restore it from a backup, with root as the owner"
            " of file and directory and mode go-w, or move it away to begin again"
        ) from error


def save(host: Host, entries: dict[str, str], path: str = PATH, mode: int = 0o644) -> None:
    """Write the originals durably, with `mode` for a new file; an empty set removes the file, and the directory if it was
    the last there."""
    if entries:
        text = json.dumps(entries, indent=2, sort_keys=True) + "\n"
        host.write_file(path, text.encode("utf-8", "surrogateescape"), mode=mode)
    elif host.exists(path):
        host.remove_file(path)
        our_files.remove_directories(host, (our_paths.PERSISTENT,))
