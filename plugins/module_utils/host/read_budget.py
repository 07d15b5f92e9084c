# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits for one configuration over all its files with their includes, because its owner can try to use all memory."""

from __future__ import annotations

from . import bounds
from .seam import Host, Unobservable
from .textfile import Read


def within(host: Host, read: Read) -> Read:
    """Return a way of reading the files of one configuration that ends where they are too much.

    Each reading counts, that of the same file too: its lines are stored each time. What is returned raises
    Unobservable with the file at which that was, and who answers for it.
    """
    files = size = lines = 0

    def counted(path: str) -> str | None:
        nonlocal files, size, lines
        text = read(path)
        # One that is too long by itself is refused, as that, where it is split into lines.
        counted = text if text and len(text) <= bounds.FILE else ""
        files, size, lines = files + 1, size + len(counted), lines + counted.count("\n")
        for used, most, what in (
            (size, bounds.CONFIGURATION, "bytes"),
            (lines, bounds.LINES, "lines"),
            (files, bounds.FILES, "files"),
        ):
            if used > most:
                who = f" of {host.whose}" if host.whose else ""
                raise Unobservable(
                    f"{path}: with it the configuration{who} has more than {most} {what}: remove what nothing"
                    " needs, or end who has been started with it"
                )
        return text

    return counted
