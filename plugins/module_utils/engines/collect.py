# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines of one host: which run, which could, what they have open, and who manages them."""

from __future__ import annotations

import contextlib
import math
import os
import posixpath
import time
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from .. import catalog
from ..host import bounds, units
from ..host.observation import UNKNOWN, Observation, unknown
from ..host.paths import of_databases
from ..host.printable import line
from ..host.process_context import Place, Places, cgroup_of, resolve, unit_of, whose
from ..host.processes import Process, Processes
from ..host.seam import Host, Unobservable
from .contract import ENGINES
from .instance import Instance, Observed
from .managers import Managers
from .open_files import OpenFiles, group

#: Program, and name of a process that runs it, -> engine.
_PROGRAMS = {program: name for name, engine in ENGINES.items() for program in engine.observer.PROGRAMS}


def collect(host: Host, now: str, databases: Any = None) -> dict[str, Any]:
    """Return `durable_engines`; `now` is the host's UTC time in ISO 8601.

    `databases` as the inventory says, [{engine, paths}]: those of engines that have databases (catalog.py) are looked for
    there as well.

    What goes wrong with one instance is its own: it is told as unknown, with the reason.

    Raises Unobservable where the processes cannot be listed: then nothing can be said.
    """
    engines = Engines(host, databases=databases)
    instances = engines.instances()
    return {
        "boot_id": host.read("/proc/sys/kernel/random/boot_id").strip(),
        "time": now,
        "engines": instances,
        "paths": _paths(instances),
        "stop_timeouts": [
            {"engine": each["engine"], "unit": each["unit"], "seconds": each["stop_timeout"]}
            for each in instances
        ],
        "unattributed": engines.unattributed(),
        "writers": engines.writers(),
    }


class Engines:
    """Reads the engines of one host; `names`: of these alone; `databases` as the inventory says."""

    def __init__(self, host: Host, names: Collection[str] = tuple(ENGINES), databases: Any = None) -> None:
        self.host = host
        self.engines = [engine.observer for name, engine in ENGINES.items() if name in names]
        self.paths = {
            each.name: of_databases(databases, each.name) for each in catalog.ENGINES if each.has_databases
        }
        self._end = time.monotonic() + bounds.PATIENCE_FOR_ALL
        self._left: dict[str, float] = {}
        self._room: dict[str, int] = {"": bounds.ANSWER // 2}
        self._mains: dict[str, list[Process]] | None = None
        self.processes = Processes(host)
        self.places = Places(host)
        self.files = OpenFiles(host, self.places.mounts)
        self.managers = Managers(host, self.processes)
        self.failed: dict[str, str] = {}
        self._claimed: set[int] = set()
        self._passed: dict[int, str] = {}

    def instances(self) -> list[dict[str, Any]]:
        """Return all instances, those that run first, engine by engine."""
        running = self._chosen([found for engine in self.engines for found in self._find(engine)])
        places = {found.processes[0].pid: self._place(found) for found in running}
        own = {pid: place.unit for pid, place in places.items() if isinstance(place, Place)}
        listed = units.listed(self.host)
        matching = {
            engine.NAME: [unit for unit in listed if engine.UNITS.fullmatch(unit)] for engine in self.engines
        }
        stopped = [
            found for engine in self.engines for found in self._installed(engine, matching[engine.NAME])
        ]
        asked = {*own.values(), *(found.unit for found in stopped)} - {None}
        shown, why = units.show(self.host, filter(None, asked))
        facts = {}
        for found in sorted(running, key=lambda found: self._is_foreign(found, places)):
            pid = found.processes[0].pid
            who = whose(self.host, found.processes[0]) if self._is_foreign(found, places) else ""
            with self._patience(who, found):
                said = self._within(who, found, self._told(found, places[pid], own.get(pid), shown, why))
            if not self.processes.is_gone(found.processes[0]):
                facts[pid] = said
        pids = [found.processes[0].pid for found in running]
        told = [facts[pid] for pid in pids if pid in facts]
        first = [*facts.values()]
        for found in stopped:
            unit = shown.get(found.unit or "")
            if not any(_is_same(found, unit, other) for other in told):
                with self._patience():
                    told.append(self._within("", found, self._told(found, None, found.unit, shown, why)))
        # The plain name is that of the service, whoever else runs such a program.
        _name_apart([*first, *told[len(first) :]])
        return told

    def unattributed(self) -> list[dict[str, Any]]:
        """Return the processes that look like an engine and belong to no instance, with the reason.

        An engine that could not be looked for is one of them, with the process null. Of very many of one user the
        last row says how many more there are.
        """
        strays: dict[tuple[str, str], list[Process]] = {}
        for process in self.processes.all.values():
            engine = _PROGRAMS.get(process.program) or _PROGRAMS.get(process.name)
            if engine and process.pid not in self._claimed and not self.processes.is_gone(process):
                strays.setdefault((engine, whose(self.host, process)), []).append(process)
        groups = list(strays.items())
        found = [row for group in groups[: bounds.STRAYS] for row in self._rows_of(*group)]
        if len(groups) > bounds.STRAYS:
            why = f"it looks like an engine, as processes of {len(groups) - bounds.STRAYS} users more do, which are not listed"
            (_engine, _who), processes = groups[bounds.STRAYS]
            found.append({"pid": processes[0].pid, "name": processes[0].name, "why": why})
        return found + [{"pid": None, "name": name, "why": why} for name, why in self.failed.items()]

    def _rows_of(self, kind: tuple[str, str], processes: list[Process]) -> Iterator[dict[str, Any]]:
        """Yield rows of processes that look like one engine and are one user's."""
        engine, who = kind
        more = len(processes) - bounds.STRAYS_OF_ONE
        for count, process in enumerate(processes[: bounds.STRAYS_OF_ONE], start=1):
            why = bounds.short(
                self.failed.get(engine) or self._passed.get(process.pid) or _why(process, engine)
            )
            if count == bounds.STRAYS_OF_ONE and more > 0:
                why += f"; {more} more of {who} are as this one"
            yield {"pid": process.pid, "name": process.name, "why": why}

    def writers(self) -> list[dict[str, Any]]:
        """Return who else has files open for writing, a row for each name of a process and device.

        Of one that ends meanwhile, or that cannot be looked into, nothing is told, and not of those for whom there is
        no time.
        """
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        end = time.monotonic() + bounds.PATIENCE
        for process in self.processes.all.values():
            if len(rows) >= bounds.WRITERS or time.monotonic() > end:
                break
            # A thread of the kernel runs no file.
            if process.pid in self._claimed or process.exe is None or process.program in _PROGRAMS:
                continue
            with contextlib.suppress(Unobservable):
                for file in self.files.of(process, self.places.of(process)):
                    row = {
                        "pid": process.pid,
                        "name": process.name,
                        "device": file.device,
                        "example": bounds.short(file.path),
                    }
                    rows.setdefault((process.name, file.device), row)
        return list(rows.values())[: bounds.WRITERS]

    def _chosen(self, running: list[Instance]) -> list[Instance]:
        """Return the instances that are looked at: the system's users' first, then of each the first, the second, ..."""
        if len(running) <= bounds.INSTANCES:
            return running
        count: Counter[str] = Counter()
        ranks = {}
        for found in running:
            main = found.processes[0]
            who = whose(self.host, main)
            count[who] += 1
            ranks[main.pid] = (self.processes.is_of_a_person(main), count[who])
        best = sorted(running, key=lambda found: ranks[found.processes[0].pid])[: bounds.INSTANCES]
        kept = {found.processes[0].pid for found in best}
        for found in running:
            if found.processes[0].pid not in kept:
                pids = {process.pid for process in found.processes}
                self._claimed -= pids
                why = f"more than {bounds.INSTANCES} servers run here, and it was not looked at"
                self._passed.update(dict.fromkeys(pids, why))
        return [found for found in running if found.processes[0].pid in kept]

    def _within(self, who: str, found: Instance, facts: dict[str, Any]) -> dict[str, Any]:
        """Return the facts of an instance, or of one that would fill the answer that nothing is known of it.

        `who` answers for it, '' for one of the system's: those have half of the answer to themselves.
        """
        room = self._room.setdefault(who, bounds.INSTANCE)
        most = min(room, bounds.INSTANCE)
        if who:
            most = min(most, self._room.setdefault("all others", bounds.ANSWER // 4))
        # Its directories are told twice.
        taken = bounds.size(facts) + bounds.size(facts["directories"])
        if taken > most:
            main = found.processes[0] if found.processes else None
            by = f" by process {main.pid} ({main.name}) of {whose(self.host, main)}" if main else ""
            why = f"its answer was refused: {taken} bytes{by}, where {most} were left: end it, or make what it has smaller"
            facts = _blank(
                Instance(found.engine, bounds.short(found.name), found.processes[:1], unit=found.unit),
                found.unit,
            )
            refused = unknown("none", why)
            facts["evidence"] = {
                field: refused.as_dict() for field in ("managed_by", "stop_timeout", "version", "observation")
            }
            taken = bounds.size(facts)
        for name in (who, "all others") if who else ("",):
            self._room[name] -= taken
        return facts

    def _is_foreign(self, found: Instance, places: dict[int, Place | str]) -> bool:
        """Tell whether an instance is a person's, or a container's: it may not take the time of the others."""
        main = found.processes[0]
        place = places[main.pid]
        in_container = isinstance(place, Place) and place.namespace == "container"
        return in_container or self.processes.is_of_a_person(main)

    @contextlib.contextmanager
    def _patience(self, who: str = "", found: Instance | None = None) -> Iterator[None]:
        """Have commands not run any more once one part of the work has taken too long.

        All that one of the people, or a container, runs is one part.
        """
        began = time.monotonic()
        left = self._left.get(who, bounds.PATIENCE) if who else bounds.PATIENCE
        self.host.until = min(began + left, self._end)
        main = found.processes[0] if found and found.processes else None
        self.host.whose = f"process {main.pid} ({main.name}) of {whose(self.host, main)}" if main else ""
        try:
            yield
        finally:
            self.host.until, self.host.whose = math.inf, ""
            if who:
                self._left[who] = left - (time.monotonic() - began)

    def _find(self, engine: Any) -> list[Instance]:
        try:
            with self._patience():
                found: list[Instance] = engine.find(self.host, self.processes)
        except Exception as error:  # Of what nobody foresaw, the other engines must still be told.
            self.failed[engine.NAME] = f"looking for its instances failed: {_said(error)}"
            return []
        self._claimed.update(process.pid for instance in found for process in instance.processes)
        return found

    def _installed(self, engine: Any, names: list[str]) -> list[Instance]:
        try:
            with self._patience():
                found: list[Instance] = engine.installed(self.host, names)
        except Exception as error:
            self.failed[engine.NAME] = f"looking for stopped instances failed: {_said(error)}"
            return []
        return found

    def _place(self, found: Instance) -> Place | str:
        """Return where a running instance lives, or why that cannot be told."""
        try:
            return self.places.of(found.processes[0])
        except Unobservable as error:
            return str(error)

    def _told(
        self,
        found: Instance,
        place: Place | str | None,
        name: str | None,
        shown: dict[str, units.Unit],
        why: str | None,
    ) -> dict[str, Any]:
        """Return the facts of one instance. Nothing here raises.

        `place` is None for a stopped one, or why it is not known; `name` is that of its unit; `shown`
        is what systemd says of units, and `why` the reason where it says nothing.
        """
        unit = shown.get(name or "")
        facts = _blank(found, unit.name if unit else name)
        seen: dict[str, Observation] = dict(found.evidence)
        seen["version"] = found.version or unknown("none", "the engine was not asked")
        try:
            facts["starts_at_boot"] = self._starts_at_boot(found, unit)
            if isinstance(place, Place):
                opened, seen["files"] = self.files.written(found.processes, place)
                facts["files"], found = group(opened), found._replace(opened=opened)
            if found.engine in self.paths and not (isinstance(place, Place) and place.root):
                found = found._replace(directories=(*found.directories, *self.paths[found.engine]))
            found, why_next = self._with_next_start(found, unit)
            observed = self._observe(found, place)
            if observed:
                observed = observed if why_next is None else _next_start_unknown(observed, why_next)
                directories = dict.fromkeys((*found.directories, *observed.directories))
                found = found._replace(directories=tuple(directories))
                seen["version"] = observed.version
                seen.update(observed.evidence)
                facts["files"] = group(file for file in found.opened if file.path not in observed.passing)
                _add_observed(facts, observed)
            if isinstance(place, str):
                seen["namespace"] = unknown("/proc/PID", place)
                facts["namespace"] = UNKNOWN
            else:
                beside = self._beside(found, name) if place and name else None
                pattern = ENGINES[found.engine].observer.UNITS
                seen["managed_by"] = self.managers.of(found, place, facts["unit"], unit, pattern, beside)
                # Of a cluster's node systemd may not be told to restart it: the others have to be up.
                if "cluster" in seen and seen["managed_by"].value in ("systemd", "none"):
                    seen["managed_by"] = seen["cluster"]
                seen["stop_timeout"] = _stop_timeout(seen["managed_by"].value, name, unit, why)
                self._add_paths(facts, seen, found, place)
                if place:
                    self._add_running(facts, seen, found, place)
        except Exception as error:  # Of what nobody foresaw, the other instances must still be told.
            seen["observation"] = unknown("none", _said(error))
        for field in ("managed_by", "stop_timeout", "version"):
            facts[field] = seen[field].value if field in seen else UNKNOWN
        facts["evidence"] = {field: value.as_dict() for field, value in seen.items()}
        return facts

    def _starts_at_boot(self, found: Instance, unit: units.Unit | None) -> str:
        word = unit.starts_at_boot if unit else UNKNOWN
        is_hidden = word == "no" and ENGINES[found.engine].may_start(self.host, found)
        return UNKNOWN if is_hidden else word

    def _with_next_start(self, found: Instance, unit: units.Unit | None) -> tuple[Instance, str | None]:
        """Return an instance with the words of its next start, and why what it reads then is not known.

        What a wrapper starts, only that knows: there this start's arguments stand for the next one's.
        """
        engine = ENGINES[found.engine].observer
        main = found.processes[0] if found.processes else None
        if not unit or posixpath.basename(unit.program) not in engine.PROGRAMS:
            return found, None
        try:
            if main is None:
                return found._replace(begins=tuple(units.next_words(self.host, unit))), None
            if unit.main in (0, main.pid):
                environment = self.processes.environment(main, engine.VARIABLES)
                why = units.differs(self.host, unit, self.processes.argv(main), engine.VARIABLES, environment)
                return found, why
        except Unobservable as error:
            return found, str(error)
        return found, None

    def _beside(self, found: Instance, unit: str) -> str | None:
        """Return a server of any engine that is in the same unit as a running instance, None without one."""
        own = {process.pid for process in found.processes}
        if self._mains is None:
            self._mains = {}
            for main in (
                main for engine in ENGINES.values() for main in self.processes.mains(engine.observer.PROGRAMS)
            ):
                self._mains.setdefault(self._unit_of(main) or "", []).append(main)
        for main in self._mains.get(unit, ()):
            if main.pid not in own:
                return f"process {main.pid} ({main.name})"
        return None

    def _unit_of(self, process: Process) -> str | None:
        try:
            return unit_of(cgroup_of(self.host.read(f"/proc/{process.pid}/cgroup")))
        except Unobservable:
            return None  # It ended meanwhile, or nothing is known of it either way.

    def _observe(self, found: Instance, place: Place | str | None) -> Observed | None:
        """Return what the engine itself says, None where nobody can look where it lives."""
        return (
            None
            if isinstance(place, str)
            else ENGINES[found.engine].observer.observe(self.host, found, place)
        )

    def _add_paths(
        self, facts: dict[str, Any], seen: dict[str, Observation], found: Instance, place: Place | None
    ) -> None:
        """Add the configured paths as this process sees them, links of directories followed."""
        root = place.root if place else ""
        directories, reasons = [], []
        for path in found.directories:
            real = path
            try:
                real = resolve(self.host, root, path)
            except Unobservable as error:
                reasons.append(str(error))
            directories.append(self.places.on_host(place, real) if place else real)
        facts["directories"] = directories
        if reasons:
            seen["directories"] = unknown("links", "; ".join(reasons))
        if found.config and place:
            facts["config"] = self.places.on_host(place, found.config)
        if place:
            facts["writes"] = [self.places.on_host(place, path) for path in facts["writes"]]
        for database in facts.get("databases", ()):
            # What could not be read may be told by another name than a path.
            if place and database["path"].startswith("/"):
                database["path"] = self.places.on_host(place, database["path"])

    def _add_running(
        self, facts: dict[str, Any], seen: dict[str, Observation], found: Instance, place: Place
    ) -> None:
        """Add what only a running instance has."""
        main = found.processes[0]
        facts["namespace"], facts["root"] = place.namespace, place.root
        if place.reason:
            seen["namespace"] = unknown(f"/proc/{main.pid}/ns/mnt", place.reason)
        if place.namespace == "container":
            facts["name"] = f"{place.container or 'container'} {found.name}"
        source = f"/proc/{main.pid}/maps"
        try:
            facts["preloads"] = self.processes.preloads(main)
            seen["preloads"] = Observation(" ".join(facts["preloads"]) or "none", source)
        except Unobservable as error:
            seen["preloads"] = unknown(source, str(error))


def _blank(found: Instance, unit: str | None) -> dict[str, Any]:
    """Return the facts of an instance before anything was read."""
    facts: dict[str, Any] = {
        "engine": found.engine,
        "name": found.name,
        "state": "running" if found.processes else "stopped",
        "pids": [process.pid for process in found.processes],
        "version": UNKNOWN,
        "config": found.config,
        "unit": unit,
        "managed_by": UNKNOWN,
        "starts_at_boot": UNKNOWN,
        "namespace": "host" if not found.processes else UNKNOWN,
        "root": "",
        "stop_timeout": UNKNOWN,
        "preloads": [],
        "directories": list(found.directories),
        "writes": [],
        "files": [],
        "settings": {},
        "pending_restart": [],
        "overrides": [],
    }
    engine = catalog.engine(found.engine)
    if len(engine.checks) > 1:
        facts["flavour"] = found.flavour or UNKNOWN
    if engine.has_databases:
        facts["databases"] = []
    return facts


def _add_observed(facts: dict[str, Any], observed: Observed) -> None:
    facts["settings"] = observed.settings
    facts["pending_restart"] = list(observed.pending_restart)
    facts["overrides"] = list(observed.overrides)
    facts["writes"] = list(observed.writes)
    if observed.flavour:
        facts["flavour"] = observed.flavour
    if "databases" in facts:
        facts["databases"] = list(observed.databases)


def _next_start_unknown(observed: Observed, why: str) -> Observed:
    """Return what an instance says, without what its files say of the next start: its command line goes before them."""
    settings = {
        name: {**row, "persisted": UNKNOWN, "reason": "; ".join(filter(None, (row["reason"], why)))}
        for name, row in observed.settings.items()
    }
    return observed._replace(settings=settings, pending_restart=())


def _paths(engines: list[dict[str, Any]]) -> list[str]:
    """Return the directories of all instances, for storage_facts to look where they lie."""
    return list(dict.fromkeys(path for facts in engines for path in facts["directories"]))


def _stop_timeout(manager: str, name: str | None, unit: units.Unit | None, why: str | None) -> Observation:
    """Return how long a clean stop may take before the instance is killed, in seconds."""
    if manager not in ("systemd", "patroni"):
        return unknown(name or "none", f"managed by {manager}: its unit does not decide it")
    if unit is None:
        return unknown("systemctl show", why or f"systemd does not know {name}")
    return unit.stop_timeout


def _is_same(stopped: Instance, unit: units.Unit | None, told: dict[str, Any]) -> bool:
    """Tell whether what could be started is what runs, or was told before."""
    if stopped.engine != told["engine"]:
        return False
    name = unit.name if unit else stopped.unit
    same_config = stopped.config is not None and stopped.config == told["config"] and not told["unit"]
    return stopped.name == told["name"] or (name is not None and name == told["unit"]) or same_config


def _name_apart(told: list[dict[str, Any]]) -> None:
    """Add something to names that several instances of one engine have. They are told, and asked for, as lines."""
    seen: set[tuple[str, str]] = set()
    for facts in told:
        name = line(facts["name"])
        apart = [
            name,
            *(line(f"{name} ({more})") for more in (facts["config"], facts["unit"], *facts["pids"]) if more),
        ]
        facts["name"] = next((text for text in apart if (facts["engine"], text) not in seen), name)
        seen.add((facts["engine"], facts["name"]))


def _why(process: Process, engine: str) -> str:
    if process.exe is None:
        return f"it calls itself {process.name}, and what it runs cannot be read: {process.reason}"
    if process.program not in _PROGRAMS:
        return f"it calls itself {process.name}, and runs {process.exe}"
    return f"it runs {process.exe}, and belongs to no instance of {engine} that was found"


def _said(error: Exception) -> str:
    """Return an error's message if it is of our own making, else only its kind and place.

    The message of another can hold anything.
    """
    if isinstance(error, Unobservable):
        return str(error)
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    place = f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else ""
    return type(error).__name__ + place
