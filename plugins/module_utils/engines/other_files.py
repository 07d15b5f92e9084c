# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a server has other files at the paths of its configuration than the host has: by its unit (systemd.exec(5)), or in its
own mount namespace."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ..host import unit_lines
from ..host.observation import Because
from ..host.paths import normal
from ..host.process_context import Place
from ..host.processes import Process
from ..host.seam import Host, Status, Withheld
from ..host.system_conf import Line
from ..host.units import Unit

#: `source:target`, and directories that are empty or closed to a server.
_BINDS, _HIDES = ("BindPaths", "BindReadOnlyPaths"), ("TemporaryFileSystem", "InaccessiblePaths")
#: Other trees in place of the host's, or over it.
_TREES = ("RootDirectory", "RootImage", "MountImages", "ExtensionImages", "ExtensionDirectories")


def of_unit(host: Host, unit: Unit, paths: Iterable[str]) -> Because | None:
    """Return why the next start of a unit has other files at one of these paths, None if it has none. Raises Unobservable."""
    found: dict[str, list[Line]] = {}
    for line in unit_lines.lines(host, dict.fromkeys((unit.name, *unit.names))):
        if line.key in (*_BINDS, *_HIDES, *_TREES):
            found[line.key] = [*found.get(line.key, ()), line] if line.value else []
    own = [normal(path) for path in paths]
    for line in (line for lines in found.values() for line in lines):
        for target in _targets(line):
            above = normal(target).rstrip("/") + "/"
            path = next((path for path in own if "%" in target or f"{path}/".startswith(above)), None)
            if path:
                return Because("other_files", {"place": f"{line.source}: {line.key}", "path": path})
    return None


def of_process(host: Host, main: Process, place: Place, paths: Iterable[str]) -> Because | None:
    """Return why a running server has another file at one of these paths, None if it has the host's. Raises Unobservable."""
    if place.root or place.namespace != "private":
        return None
    for path in paths:
        here, there = (_status(host, path, root) for root in ("", f"/proc/{main.pid}/root"))
        if (here and (here.device, here.inode)) != (there and (there.device, there.inode)):
            return Because("other_view", {"path": path})
    return None


def _status(host: Host, path: str, root: str) -> Status | None:
    """Return the status of a file, None also for one that the server's user cannot reach. Raises Unobservable."""
    try:
        return host.locate(path, root).status
    except Withheld:
        return None


def _targets(line: Line) -> Iterator[str]:
    """Yield the paths at which a line puts other files than the host has there."""
    if line.key in _TREES:
        yield "/"
        return
    try:
        words = shlex.split(line.value)
    except ValueError:
        words = line.value.split()
    for word in words:
        source, colon, rest = word.lstrip("-+").partition(":")
        target = rest.partition(":")[0] if line.key in _BINDS and colon else source
        if line.key in _HIDES or normal(target) != normal(source):
            yield target
