# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts, commands of cron and systemd units that a boot starts. Each file is read once."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from ..host import boot_scripts, shell_lines, system_conf
from ..host.boot_files import existing, text_of
from ..host.seam import Host
from ..host.system_conf import Line
from ..host.unit_names import KINDS, STARTS, askers, template
from . import command_lines
from .acts import Act

#: Where generators make units.
GENERATED = "/run/systemd/generator"
#: The strongest first.
DIRECTORIES = (
    "/etc/systemd/system.control",
    "/etc/systemd/system",
    GENERATED,
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
#: Targets that a boot does not reach.
_NO_BOOT = re.compile(
    r"(?:shutdown|reboot|halt|poweroff|kexec|final|umount|rescue|emergency|exit|soft-reboot)\.target\."
)
#: Directories of udev rules of administrators.
_RULES = ("/etc/udev/rules.d", "/usr/local/lib/udev/rules.d")
#: Keys whose units are not started.
_NO_START = frozenset(
    "After Before Conflicts Description Documentation PartOf PropagatesReloadTo PropagatesStopTo ReloadPropagatedFrom"
    " RequiresMountsFor StopPropagatedFrom SyslogIdentifier".split()
)


class Script(NamedTuple):
    """A script that a boot runs, the component that runs it, and its text."""

    path: str
    by: str
    text: str


class Starts:
    """What a boot of one host runs and starts. Each property raises Unobservable."""

    def __init__(self, host: Host) -> None:
        self.host = host

    @cached_property
    def scripts(self) -> list[Script]:
        """The scripts that a boot runs."""
        return [Script(path, by, text_of(self.host, path)) for path, by in boot_scripts.scripts(self.host)]

    @cached_property
    def commands(self) -> list[boot_scripts.Command]:
        """The commands that cron runs at a boot."""
        return boot_scripts.commands(self.tables)

    @cached_property
    def tables(self) -> list[boot_scripts.Table]:
        """The tables of cron."""
        return boot_scripts.tables(self.host)

    def certainty(self, names: Iterable[str]) -> bool | None:
        """Return whether a boot starts one of these units: a target, a timer, a socket or another unit asks for it.

        None if it may: only some of the entries of the boot loader of which the next boot is one ask for it.
        """
        found: list[bool] = []
        for name in names:
            if any(self.host.resolve(f"{directory}/{name}") == "/dev/null" for directory in DIRECTORIES):
                continue
            requested = askers(name)
            if any(template(each) in requested for each in self._wanted) or self._is_named(name):
                return True
            by_line = [
                certain for unit, certain in self._of_command_line.items() if template(unit) in requested
            ]
            if any(by_line):
                return True
            found += by_line
        return None if found else False

    def of_unit(self, acts: list[Act], names: Iterable[str]) -> list[Act]:
        """Return what a unit with these names does, [] if a boot does not start it. Raises Unobservable."""
        certainty = self.certainty(names) if acts else False
        if certainty is None:
            return [act._replace(is_certain=False) for act in acts]
        return acts if certainty else []

    @cached_property
    def _wanted(self) -> set[str]:
        """The units that others ask for by links, except as a host goes down."""
        found: set[str] = set()
        for directory in DIRECTORIES:
            for entry in self.host.names(directory) if self.host.exists(directory) else ():
                if entry.endswith(STARTS) and not _NO_BOOT.match(entry):
                    found.update(self.host.names(f"{directory}/{entry}"))
        return found

    @cached_property
    def _of_command_line(self) -> Mapping[str, bool]:
        return command_lines.wants(self.host)

    def _is_named(self, name: str) -> bool:
        """Return whether something else than a link asks for a unit: a unit or drop-in of an administrator, a udev rule, or a
        script or command of a boot."""
        stem, _dot, kind = template(name).rpartition(".")
        ending = r"(?:\.service)?" if kind == "service" else re.escape(f".{kind}")
        named = re.compile(rf"(?<![\w@./-]){re.escape(stem)}(?:(?<=@)[^\s;'\"]*)?{ending}(?![\w@-])")
        return any(named.search(line.value) for of, line in self._unit_lines if of != template(name)) or any(
            named.search(line) for line in self._texts
        )

    @cached_property
    def _unit_lines(self) -> list[tuple[str, Line]]:
        """The lines of units and drop-ins of administrators that can start another unit, with the unit's template."""
        found = []
        for directory in DIRECTORIES[:4]:
            for path in existing(self.host, directory):
                of = posixpath.basename(path)
                unit = of.removesuffix(".d")
                if unit.rpartition(".")[2] not in KINDS or self.host.resolve(path) == "/dev/null":
                    continue
                for file in existing(self.host, path, ".conf") if of.endswith(".d") else [path]:
                    lines = system_conf.parse(text_of(self.host, file), file)
                    found += [(template(unit), line) for line in lines if line.key not in _NO_START]
        return found

    @cached_property
    def _texts(self) -> list[str]:
        """ENV{SYSTEMD_WANTS}, and commands that can start a unit."""
        rules = (path for directory in _RULES for path in existing(self.host, directory, ".rules"))
        scripts = (each.text for each in self.scripts if each.by != boot_scripts.SYSV)
        texts = (*(text_of(self.host, path) for path in rules), *scripts)
        lines = (line for text in texts for _row, line in shell_lines.lines(text))
        return [*lines, *(command.text for command in self.commands)]
