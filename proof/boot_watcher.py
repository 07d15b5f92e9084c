# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs in the guest: writes down each content that the files below some paths have, as soon as they have it.

    python3 boot_watcher.py OUTPUT PATH...

A line of OUTPUT is {"path": ..., "content": ...}: base64 of the bytes, `-> target` of a symbolic link, null of a file that is
gone, or was not there before. OUTPUT should lie in memory. It looks all the time: between two writes of one file lies an fsync
on a disk that takes its time for that.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TextIO

#: How harden-db calls a file that is not yet in its place.
UNFINISHED = ".durable-"
PAUSE = 0.0005

State = tuple[int, int, int, int]


def watch(output: TextIO, roots: Sequence[str]) -> None:
    """Look until this process is ended."""
    seen: dict[str, State] = {}
    is_first = True
    while True:
        found = dict(states(roots))
        for path, state in found.items():
            if seen.get(path) == state:
                continue
            if path not in seen and not is_first:
                _tell(output, path, None)
            _tell(output, path, content(path))
        for path in seen.keys() - found.keys():
            _tell(output, path, None)
        seen, is_first = found, False
        output.flush()
        time.sleep(PAUSE)


def states(roots: Sequence[str]) -> Iterator[tuple[str, State]]:
    """Yield each file and link, and what changes when another takes its place or it is written to."""
    for root in roots:
        try:
            found = os.lstat(root)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode):
            yield from states([f"{root}/{name}" for name in _names(root)])
        elif stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
            yield root, (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


def content(path: str) -> str | None:
    """Return what a line says of it."""
    try:
        if os.path.islink(path):
            return f"-> {os.readlink(path)}"
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with open(descriptor, "rb") as handle:
            return base64.b64encode(handle.read()).decode()
    except OSError:
        return None


def _names(directory: str) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if not name.startswith(UNFINISHED)]
    except OSError:
        return []


def _tell(output: TextIO, path: str, what: str | None) -> None:
    output.write(json.dumps({"path": path, "content": what}) + "\n")


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as lines:
        watch(lines, sys.argv[2:])
