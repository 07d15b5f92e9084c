# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs in the guest: writes down each content that the files below some paths have, as soon as they have it.

    python3 boot_watcher.py OUTPUT PATH...

A line of OUTPUT is {"path": ..., "content": ...}: base64 of the bytes, `-> target` of a symbolic link, null of a file that is
gone, or was not there before. OUTPUT should lie in memory. The kernel tells when a file gets another content (inotify(7)); it is
read at once: between two writes of one file lies an fsync, on a disk that takes its time for that.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import select
import stat
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

#: How harden-db calls a file that is not yet in its place.
UNFINISHED = ".durable-"
#: Images of some hundred MiB in which mount options are tried: no boot reads them.
TRIAL = "/var/lib/durable-dbhost/trial"
#: Seconds after which all is looked at though the kernel told nothing.
PAUSE = 0.1
#: sys/inotify.h: IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE; and a head of what is read.
_EVENTS = 0x8 | 0x40 | 0x80 | 0x100 | 0x200
_HEAD = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)

State = tuple[int, int, int, int]


class Watcher:
    """Tells what has changed since it looked last."""

    def __init__(self, output: TextIO, roots: Sequence[str]) -> None:
        """Look for the first time: what is there now is not new."""
        self._output, self._roots = output, roots
        self._events = _libc.inotify_init1(os.O_NONBLOCK)
        if self._events < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._directories: dict[int, str] = {}
        self._seen: dict[str, State] = {}
        self._follow()
        for path, state in states(roots):
            self._seen[path] = state
            self._tell(path, content(path))
        output.flush()

    def look(self, seconds: float) -> None:
        """Wait until something changes, not longer than that, and tell it; all is looked at where the kernel has told nothing."""
        if select.select([self._events], [], [], seconds)[0]:
            for path in self._changed():
                if os.path.isdir(path):
                    self._follow()
                    self._look_at([found for found, _ in states([path])])
                elif self._is_ours(path):
                    self._look_at([path])
        else:
            self._follow()
            self._look_at([*self._seen, *(path for path, _ in states(self._roots) if path not in self._seen)])
        self._output.flush()

    def _is_ours(self, path: str) -> bool:
        """Tell whether a file is one of those that are watched: the kernel tells of all in a directory."""
        is_left_out = os.path.basename(path).startswith(UNFINISHED) or path.startswith(f"{TRIAL}/")
        return not is_left_out and any(path == root or path.startswith(f"{root}/") for root in self._roots)

    def _look_at(self, paths: Sequence[str]) -> None:
        for path in paths:
            state = dict(states([path])).get(path)
            if state == self._seen.get(path):
                continue
            if path not in self._seen:
                self._tell(path, None)
            self._tell(path, content(path))
            if state is None:
                del self._seen[path]
            else:
                self._seen[path] = state

    def _changed(self) -> Iterator[str]:
        """Yield what the kernel names."""
        told = os.read(self._events, 1 << 16)
        while told:
            number, _mask, _cookie, length = _HEAD.unpack_from(told)
            name = told[_HEAD.size : _HEAD.size + length].rstrip(b"\0").decode()
            told = told[_HEAD.size + length :]
            yield f"{self._directories.get(number, '')}/{name}"

    def _follow(self) -> None:
        """Ask the kernel for each directory; one that it knows it takes again."""
        for root in self._roots:
            place = root if os.path.isdir(root) else os.path.dirname(root)
            for directory, _, _ in os.walk(place) if place == root else [(place, [], [])]:
                number = _libc.inotify_add_watch(self._events, os.fsencode(directory), _EVENTS)
                if number >= 0:
                    self._directories[number] = directory

    def _tell(self, path: str, what: str | None) -> None:
        self._output.write(json.dumps({"path": path, "content": what}) + "\n")


def states(roots: Sequence[str]) -> Iterator[tuple[str, State]]:
    """Yield each file and link, and what changes when another takes its place or it is written to."""
    for root in roots:
        try:
            found = os.lstat(root)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode) and root != TRIAL:
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


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as lines:
        watcher = Watcher(lines, sys.argv[2:])
        while True:
            watcher.look(PAUSE)
