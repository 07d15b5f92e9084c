# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs other than systemd that start and stop an instance, for example cluster managers."""

from __future__ import annotations

import re

from ..host import bounded_read, named_by
from ..host.observation import UNKNOWN, Observation, caused
from ..host.process_context import Place
from ..host.processes import FIRST_PERSON, Process, Processes
from ..host.seam import Host, Unobservable
from ..host.textfile import LIMIT
from ..host.units import Unit
from .instance import Instance

#: Pacemaker leaves this in the directory of drop-ins of a unit that it has started.
_OVERRIDE = "/run/systemd/system/{}.d/50-pacemaker.conf"
PACEMAKER_UNITS = ("pacemaker.service", "pacemaker_remote.service")
#: What starts a server, watches it, and is the unit's main process in its stead.
_WRAPPERS = ("pg_ctl", "mysqld_safe", "mariadbd-safe", "fbguard")
_PACEMAKERS = ("pacemakerd", "pacemaker_remoted", "pacemaker-remoted")


class Managers:
    """Finds what manages the instances of one host."""

    def __init__(self, host: Host, processes: Processes) -> None:
        self.host = host
        self.processes = processes
        self._patronis = [process for process in processes.all.values() if process.name == "patroni"]
        # Anybody can call a program so; Pacemaker is root's.
        named = (
            process
            for process in processes.all.values()
            if process.program in _PACEMAKERS and self._user(process) in ("0", UNKNOWN)
        )
        self._pacemaker = next(named, None)

    def of(
        self,
        instance: Instance,
        place: Place | None,
        name: str | None,
        unit: Unit | None,
        units: re.Pattern[str],
        other: str | None = None,
    ) -> Observation:
        """Return container, patroni, pacemaker, systemd or none, or `unknown`.

        `place` is None for a stopped instance; `name` is that of its unit, `unit` what systemd says
        of it; `units` are the names of its engine's, and `beside` another server in the same unit.
        """
        if place and place.namespace == "container":
            return Observation("container", f"{place.container or 'a separate namespace'} {place.cgroup}")
        found = self._patroni(instance, name) if instance.engine == "postgresql" else None
        return found or self._cluster(name) or self._systemd(instance, place, name, unit, units, other)

    def _patroni(self, instance: Instance, unit: str | None) -> Observation | None:
        if unit and re.fullmatch(r"patroni([@-].*)?\.service", unit):
            return Observation("patroni", f"its unit is {unit}")
        main = instance.processes[0] if instance.processes else None
        for parent in self.processes.ancestors(main) if main else ():
            if parent in self._patronis:
                return Observation("patroni", f"process {parent.pid} started it")
        trusted = (patroni for patroni in self._patronis if self._may_manage(patroni, main))
        return next(filter(None, (self._names(patroni, instance) for patroni in trusted)), None)

    def _may_manage(self, patroni: Process, main: Process | None) -> bool:
        """Return whether a Patroni may be that of a cluster: of the same user, or root's; of a stopped one,
        any of the system's. Others only have the name, and prevent no repair of the cluster."""
        user = self._user(patroni)
        if user in ("0", UNKNOWN):
            return True
        return user == self._user(main) if main else int(user) < FIRST_PERSON

    def _user(self, process: Process) -> str:
        try:
            return self.processes.user(process)
        except Unobservable:
            return UNKNOWN

    def _names(self, patroni: Process, instance: Instance) -> Observation | None:
        """Return what a running Patroni says: whether its configuration names the data directory."""
        source = f"/proc/{patroni.pid}/cmdline"
        try:
            with named_by.by_process(self.host, patroni):
                files = [
                    word for word in self.processes.argv(patroni)[1:] if word.endswith((".yml", ".yaml"))
                ]
                texts = [self._text(path) for path in files if path.startswith("/")]
        except Unobservable as error:
            if self.processes.is_gone(patroni):
                return None
            return caused(UNKNOWN, source, "patroni_unread", error=str(error))
        if not texts:
            return caused(UNKNOWN, source, "patroni_without_file")
        for directory in instance.directories:
            pattern = rf"""(?m)^[ \t]*data_dir:[ \t]*["']?{re.escape(directory)}/?["']?[ \t\r]*(#.*)?$"""
            if any(re.search(pattern, text) for text in texts):
                return Observation("patroni", f"{', '.join(files)} names {directory}")
        return None

    def _text(self, path: str) -> str:
        text = bounded_read.read(self.host, path)
        if text is None:
            raise Unobservable(f"{path}: No such file or directory")
        if len(text) > LIMIT:
            raise Unobservable(f"{path}: longer than {LIMIT} bytes")
        return text

    def _cluster(self, unit: str | None) -> Observation | None:
        if unit in PACEMAKER_UNITS:
            return Observation("pacemaker", f"its unit is {unit}")
        override = _OVERRIDE.format(unit)
        if unit and self.host.exists(override):
            return Observation("pacemaker", override)
        if self._pacemaker:
            return caused(UNKNOWN, f"process {self._pacemaker.pid}", "maybe_pacemaker")
        return None

    def _systemd(
        self,
        instance: Instance,
        place: Place | None,
        name: str | None,
        unit: Unit | None,
        units: re.Pattern[str],
        other: str | None,
    ) -> Observation:
        if name and not place and unit is None:
            return caused(UNKNOWN, name, "manager_not_queried")
        if name and place:
            if other:
                return Observation("none", f"{name}: {other} is in it as well, and a restart would end both")
            if not units.fullmatch(name) and not self._is_main(instance.processes[0], unit):
                return Observation("none", f"{name}: what it starts is not this server, which is only in it")
        if name and (place or (unit and unit.load != "not-found")):
            state = f"{unit.active}, {unit.enabled or 'no unit file'}" if unit else "not asked"
            return Observation("systemd", f"{name}: {state}")
        if place and "/user@" in place.cgroup:
            return caused(UNKNOWN, place.cgroup, "systemd_of_user")
        return Observation("none", place.cgroup if place else "no unit starts it")

    def _is_main(self, main: Process, unit: Unit | None) -> bool:
        """Return whether a process is what a unit starts, or was started by its wrapper."""
        if unit is None:
            return False
        parent = self.processes.all.get(main.ppid)
        wrapped = parent is not None and parent.name in _WRAPPERS and parent.pid == unit.main
        return main.pid == unit.main or wrapped or (main.exe is not None and unit.program == main.exe)
