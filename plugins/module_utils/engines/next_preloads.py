# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Libraries that make fsync(2) do nothing and that the next start of a server loads: ld.so(8), and LD_PRELOAD of its unit."""

from __future__ import annotations

import re

from ..host import boot_environment, bounded_read, named_by, system_conf, unit_lines, units
from ..host.observation import Observation, unknown
from ..host.process_context import is_there
from ..host.processes import breaks_fsync
from ..host.seam import Host, Unobservable

_FILE = "/etc/ld.so.preload"
_VARIABLE = "LD_PRELOAD"


def find(host: Host, root: str, unit: units.Unit | None, has_settings: bool = True) -> Observation | None:
    """Return the libraries that the next start loads, with the file and line; None for none. Nothing here raises.

    `root` is the root directory of a container, or ''. Of a container the unit is not its own: it is None. `has_settings`:
    whether the server has settings that are unknown if its variables are.
    """
    try:
        found = [*_of_file(host, root), *(_of_unit(host, unit, has_settings) if unit else ())]
    except Unobservable as error:
        return unknown(_FILE, str(error))
    if not found:
        return None
    libraries = dict.fromkeys(library for library, _source in found)
    sources = dict.fromkeys(source for _library, source in found)
    return Observation(" ".join(libraries), "; ".join(sources))


def _of_file(host: Host, root: str) -> list[tuple[str, str]]:
    if not root and not host.exists(host.resolve(_FILE)):
        return []
    # A root directory is named by the user of its processes, and is only followed with the rights of that user.
    with named_by.one(host, host.named_by if root else None):
        text = bounded_read.read(host, _FILE, root) or ""
        return [
            (library, f"{_FILE} line {number}")
            for number, line in enumerate(text.split("\n"), 1)
            for library in re.split(r"[:\s]+", line.partition("#")[0])
            if _breaks(host, root, library)
        ]


def _of_unit(host: Host, unit: units.Unit, has_settings: bool) -> list[tuple[str, str]]:
    try:
        value = units.variables(host, unit, {_VARIABLE}).get(_VARIABLE, "")
    except Unobservable:
        if not has_settings:
            raise
        return []  # What its settings are next is unknown then, with that reason.
    found = [library for library in re.split(r"[:\s]+", value) if _breaks(host, "", library)]
    return [(library, _source(host, unit)) for library in found]


def _breaks(host: Host, root: str, library: str) -> bool:
    """Return whether a library makes fsync do nothing. ld.so goes on without one that is not there."""
    is_plain = library.startswith("/") and "$" not in library
    return breaks_fsync(library) and (not is_plain or is_there(host, library, root))


def _source(host: Host, unit: units.Unit) -> str:
    """Return the file and line that sets LD_PRELOAD for a unit, the strongest one."""
    lines = unit_lines.lines(host, dict.fromkeys((unit.name, *unit.names)))
    for line in reversed(lines):
        path = line.value.lstrip("-") if line.key == "EnvironmentFile" else ""
        if path.startswith("/") and _VARIABLE in system_conf.text_of(host, path):
            return f"{path} ({line.source})"
    for line in reversed(lines):
        if line.key == "Environment" and _VARIABLE in line.value:
            return line.source
    configured = boot_environment.read(host).get(_VARIABLE)
    return configured[1] if configured else f"environment of {unit.name}"
