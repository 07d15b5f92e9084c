# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories that other components read at boot."""

from __future__ import annotations

from .seam import DIRECTORY, NO_FILE, Host, Unobservable
from .system_conf import names_in


def existing(host: Host, directory: str, ending: str = "") -> list[str]:
    """Return the files in a directory whose names end so, sorted; none if it is not there. Raises Unobservable."""
    names = names_in(host, directory)
    return [f"{directory}/{name}" for name in names if name.endswith(ending) and not name.startswith(".")]


def text_of(host: Host, path: str) -> str:
    """Return a file's text, '' if it is not there or a directory. Raises Unobservable."""
    if not host.exists(host.resolve(path)):
        return ""
    try:
        return host.read(path)
    except Unobservable as error:
        if any(why in str(error) for why in (NO_FILE, DIRECTORY)):
            return ""
        raise
