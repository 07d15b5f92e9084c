# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines of one host, running and stopped. Each has its own limits of time and memory."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..facts.classes import EnginesFacts, InstanceFacts, Stray, Writer
from ..host import bounds, named_by, units
from ..host.observation import Because, unknown
from ..host.printable import line
from ..host.process_context import Place, Places, whose
from ..host.processes import Process, Processes
from ..host.seam import Host, Unobservable
from .contract import ENGINES
from .facts import Facts, blank, error_text
from .instance import Instance
from .open_files import OpenFiles

#: Program, and name of a process that runs it, -> engine.
_PROGRAMS = {program: name for name, engine in ENGINES.items() for program in engine.observer.PROGRAMS}


def collect(host: Host, now: str, databases: Any = None) -> EnginesFacts:
    """Return `durable_engines`; `now` is the host's UTC time in ISO 8601.

    `databases` as the inventory says, [{engine, paths}]: those of engines that have databases (catalog.py) are searched for
    there as well.

    What goes wrong with one instance is its own: it is reported as unknown, with the reason.

    Raises Unobservable where the processes cannot be listed: then nothing is known.
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
        self._end = time.monotonic() + bounds.PATIENCE_FOR_ALL
        self._left: dict[str, float] = {}
        self._room: dict[str, int] = {"": bounds.ANSWER // 2}
        self.processes = Processes(host)
        self.places = Places(host)
        self.files = OpenFiles(host, self.places.mounts)
        self._facts = Facts(host, self.processes, self.places, self.files, databases)
        #: Unit -> how it will start its server, of those that do not run, if that is known.
        self.begins = self._facts.begins
        self.failed: dict[str, Because] = {}
        self._claimed: set[int] = set()
        self._passed: dict[int, Because] = {}

    def instances(self) -> list[InstanceFacts]:
        """Return all instances, those that run first, engine by engine."""
        running = self._chosen([found for engine in self.engines for found in self._find(engine)])
        places = {found.processes[0].pid: self._place(found) for found in running}
        own = {pid: place.unit for pid, place in places.items() if isinstance(place, Place)}
        stopped = self._stopped()
        queried = {*own.values(), *(found.unit for found in stopped)} - {None}
        shown = units.show(self.host, filter(None, queried), starts=True)
        first = self._running(running, places, shown)
        # In the order in which they were found.
        reported = [first[pid] for pid in places if pid in first]
        foreign = {found.processes[0].pid for found in running if self._is_foreign(found, places)}
        for found in stopped:
            unit = shown[0].get(found.unit or "")
            if not any(_is_same(found, unit, other, foreign) for other in reported):
                with self._patience(found=found):
                    reported.append(
                        self._within("", found, self._facts.of_instance(found, None, found.unit, *shown))
                    )
        _name_apart([*first.values(), *reported[len(first) :]])
        return reported

    def _stopped(self) -> list[Instance]:
        """Return the instances that are installed, engine by engine."""
        listed = units.listed(self.host)
        return [
            found
            for engine in self.engines
            for found in self._installed(engine, [unit for unit in listed if engine.UNITS.fullmatch(unit)])
        ]

    def _running(
        self,
        running: Iterable[Instance],
        places: Mapping[int, Place | str],
        shown: tuple[dict[str, units.Unit], str | None],
    ) -> dict[int, InstanceFacts]:
        """Return {process: facts} of instances that run, those of the system's users first, without those that have ended."""
        facts: dict[int, InstanceFacts] = {}
        for found in sorted(running, key=lambda found: self._is_foreign(found, places)):
            pid = found.processes[0].pid
            place = places[pid]
            unit = place.unit if isinstance(place, Place) else None
            who = whose(self.host, found.processes[0]) if self._is_foreign(found, places) else ""
            with self._patience(who, found):
                instance = self._within(who, found, self._facts.of_instance(found, place, unit, *shown))
                instance["name"] = self._name_of(found, instance["name"], unit)
            if not self.processes.is_gone(found.processes[0]):
                facts[pid] = instance
        return facts

    def unattributed(self) -> list[Stray]:
        """Return the processes that look like an engine and belong to no instance, with the reason.

        An engine that could not be searched for is one of them, with the process null. Of very many of one user the
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
            (_engine, _who), processes = groups[bounds.STRAYS]
            users = str(len(groups) - bounds.STRAYS)
            found.append(_stray(processes[0].pid, processes[0].name, Because("not_listed", {"users": users})))
        return found + [_stray(None, name, why) for name, why in self.failed.items()]

    def _rows_of(self, kind: tuple[str, str], processes: list[Process]) -> Iterator[Stray]:
        """Yield rows of processes that look like one engine and are one user's."""
        engine, who = kind
        more = len(processes) - bounds.STRAYS_OF_ONE
        for count, process in enumerate(processes[: bounds.STRAYS_OF_ONE], start=1):
            why = self.failed.get(engine) or self._passed.get(process.pid) or _why(process, engine)
            if count == bounds.STRAYS_OF_ONE and more > 0:
                why = Because("and_more", {"why": [why.as_dict()], "number": str(more), "user": who})
            yield _stray(process.pid, process.name, why)

    def writers(self) -> list[Writer]:
        """Return who else has files open for writing, a row for each name of a process and device.

        Of one that ends meanwhile, or that cannot be examined, no row is returned, and none for those for whom there is
        no time.
        """
        rows: dict[tuple[str, str], Writer] = {}
        end = time.monotonic() + bounds.PATIENCE
        for process in self.processes.all.values():
            if len(rows) >= bounds.WRITERS or time.monotonic() > end:
                break
            # A thread of the kernel runs no file.
            if process.pid in self._claimed or process.exe is None or process.program in _PROGRAMS:
                continue
            with contextlib.suppress(Unobservable):
                for file in self.files.of(process, self.places.of(process)):
                    row: Writer = {
                        "pid": process.pid,
                        "name": process.name,
                        "device": file.device,
                        "example": bounds.short(file.path),
                    }
                    rows.setdefault((process.name, file.device), row)
        return list(rows.values())[: bounds.WRITERS]

    def _chosen(self, running: list[Instance]) -> list[Instance]:
        """Return the instances that are examined: the system's users' first, then of each the first, the second, ..."""
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
        listed = {found.processes[0].pid for found in best}
        for found in running:
            if found.processes[0].pid not in listed:
                pids = {process.pid for process in found.processes}
                self._claimed -= pids
                why = Because("too_many_servers", {"most": str(bounds.INSTANCES)})
                self._passed.update(dict.fromkeys(pids, why))
        return [found for found in running if found.processes[0].pid in listed]

    def _within(self, who: str, found: Instance, facts: InstanceFacts) -> InstanceFacts:
        """Return the facts of an instance, or of one that would fill the answer that nothing is known about it.

        `who` answers for it, '' for one of the system's: those have half of the answer to themselves.
        """
        room = self._room.setdefault(who, bounds.INSTANCE)
        most = min(room, bounds.INSTANCE)
        if who:
            most = min(most, self._room.setdefault("all others", bounds.ANSWER // 4))
        # Its directories are in the facts twice.
        used_bytes = bounds.size(facts) + bounds.size([*facts["directories"], *facts["temporary"]])
        if used_bytes > most:
            main = found.processes[0] if found.processes else None
            process = f"process {main.pid} ({main.name}) of {whose(self.host, main)}" if main else found.name
            of = {"used": str(used_bytes), "process": bounds.short(process), "left": str(most)}
            why = Because("too_large", of)
            facts = blank(
                Instance(found.engine, bounds.short(found.name), found.processes[:1], unit=found.unit),
                found.unit,
            )
            refused = unknown("none", why)
            facts["evidence"] = {
                field: refused.as_dict() for field in ("managed_by", "stop_timeout", "version", "observation")
            }
            used_bytes = bounds.size(facts)
        for name in (who, "all others") if who else ("",):
            self._room[name] -= used_bytes
        return facts

    def _name_of(self, found: Instance, name: str, unit: str | None) -> str:
        """Return the name of a running instance: one that a person runs by hand never has that of a service.

        A name comes from arguments and variables, which a person chooses.
        """
        main = found.processes[0]
        by_hand = unit is None and self.processes.is_of_a_person(main)
        return f"{name} ({whose(self.host, main)})" if by_hand else name

    def _is_foreign(self, found: Instance, places: Mapping[int, Place | str]) -> bool:
        """Return whether an instance is a person's, or a container's: it may not take the time of the others."""
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
            with named_by.one(self.host, found.named_by if found else None):
                yield
        finally:
            self.host.until, self.host.whose = math.inf, ""
            if who:
                self._left[who] = left - (time.monotonic() - began)

    def _find(self, engine: Any) -> list[Instance]:
        try:
            with self._patience():
                found: list[Instance] = engine.find(self.host, self.processes)
        except Exception as error:  # An unexpected error of one engine must not hide the others.
            self.failed[engine.NAME] = Because("search_failed", {"error": bounds.short(error_text(error))})
            return []
        self._claimed.update(process.pid for instance in found for process in instance.processes)
        return found

    def _installed(self, engine: Any, names: list[str]) -> list[Instance]:
        try:
            with self._patience():
                found: list[Instance] = engine.installed(self.host, names)
        except Exception as error:
            self.failed[engine.NAME] = Because(
                "search_failed.stopped", {"error": bounds.short(error_text(error))}
            )
            return []
        return found

    def _place(self, found: Instance) -> Place | str:
        """Return where a running instance lives, or why that is unknown."""
        try:
            return self.places.of(found.processes[0])
        except Unobservable as error:
            return str(error)


def _paths(engines: list[InstanceFacts]) -> list[str]:
    """Return the directories of all instances, for storage_facts to look where they lie."""
    found = (path for facts in engines for path in (*facts["directories"], *facts["temporary"]))
    return list(dict.fromkeys(found))


def _is_same(stopped: Instance, unit: units.Unit | None, other: InstanceFacts, foreign: set[int]) -> bool:
    """Return whether what could be started is what runs, or was reported before.

    `foreign`: main processes of people and containers. They can name any configuration, and hide no service by that.
    """
    if stopped.engine != other["engine"]:
        return False
    name = unit.name if unit else stopped.unit
    if stopped.name == other["name"] or (name is not None and name == other["unit"]):
        return True
    same_config = stopped.config is not None and stopped.config == other["config"]
    return same_config and not other["unit"] and foreign.isdisjoint(other["pids"])


def _name_apart(reported: list[InstanceFacts]) -> None:
    """Add something to names that several instances of one engine have. Each name is one line.

    None of them has the plain name, so that each has one that means it alone.
    """
    used_names: set[tuple[str, str]] = set()
    count = Counter((facts["engine"], line(facts["name"])) for facts in reported)
    for facts in reported:
        name = line(facts["name"])
        apart = [
            line(f"{name} ({more})") for more in (facts["config"], facts["unit"], *facts["pids"]) if more
        ]
        if count[facts["engine"], name] == 1:
            apart.insert(0, name)
        facts["name"] = next((text for text in apart if (facts["engine"], text) not in used_names), name)
        used_names.add((facts["engine"], facts["name"]))


def _stray(pid: int | None, name: str, why: Because) -> Stray:
    return {
        "pid": pid,
        "name": name,
        "why": None,
        "causes": [{"cause": why.cause, "parameters": dict(why.parameters)}],
    }


def _why(process: Process, engine: str) -> Because:
    if process.exe is None:
        error = bounds.short(str(process.reason))
        return Because("program_unread", {"process": process.name, "error": error})
    path = bounds.short(process.exe)
    if process.program not in _PROGRAMS:
        return Because("other_program", {"process": process.name, "path": path})
    return Because("no_instance", {"path": path, "engine": engine})
