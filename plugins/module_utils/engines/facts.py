# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts of one instance: its location, its open files and settings, and its manager."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from .. import catalog
from ..facts.classes import InstanceFacts, SettingFacts
from ..host import boot_environment, named_by, tmpfiles_d, units
from ..host.observation import UNKNOWN, Because, Observation, because_of, caused, unknown, unread, why_of
from ..host.paths import of_databases
from ..host.process_context import Place, Places, cgroup_of, resolve, unit_of
from ..host.processes import Process, Processes
from ..host.seam import Host, Unobservable
from ..next_boot import generators
from . import config_writes, next_preloads, next_start, other_files, others, own_names, quadlets
from .contract import ENGINES
from .instance import Instance, Observed, Why, reasons_and
from .managers import Managers
from .open_files import OpenFiles, group
from .start_commands import Commands

#: What a runtime calls a container, as process_context.py shows it.
_ID = re.compile(r"[0-9a-f]{12}")
#: Files in a data directory that ALTER SYSTEM and SET PERSIST write.
_WRITTEN_BY_SERVERS = ("postgresql.auto.conf", "mysqld-auto.cnf")


class Starter(NamedTuple):
    """An undocumented program that starts a server; `is_roots`: root named its path, and its text is read."""

    path: str
    is_roots: bool

    @classmethod
    def of_unit(cls, unit: units.Unit) -> Starter:
        """Return the program of a unit; a shell is none, its command is."""
        is_shell = os.path.basename(unit.program) in next_start.SHELLS
        return cls(f"ExecStart of {unit.name}" if is_shell else unit.program, True)

    @property
    def decides(self) -> dict[str, Observation]:
        """Return that it alone decides the arguments of the next start, as `evidence` has it."""
        whose = "script" if self.is_roots else "script_of_user"
        return {"start_arguments": caused(UNKNOWN, self.path, whose)}


class Facts:
    """Collects the instances of one host; `databases`: as in the inventory."""

    def __init__(
        self, host: Host, processes: Processes, places: Places, files: OpenFiles, databases: Any
    ) -> None:
        self.host, self.processes, self.places, self.files = host, processes, places, files
        self.managers = Managers(host, processes)
        self.paths = {
            each.name: of_databases(databases, each.name) for each in catalog.ENGINES if each.has_databases
        }
        #: Unit -> how it will start its server, of those that do not run, if that is known.
        self.begins: dict[str, next_start.NextStart] = {}
        self._mains: dict[str, list[Process]] | None = None
        self.commands = Commands(host)
        self._tmpfiles: list[tmpfiles_d.Line] | None = None
        self._own_names: frozenset[str] | None = None

    def of_instance(
        self,
        found: Instance,
        place: Place | str | None,
        name: str | None,
        shown: dict[str, units.Unit],
        why: str | None,
    ) -> InstanceFacts:
        """Return the facts of one instance. Nothing here raises.

        `place` is None for a stopped one, or why it is unknown; `name` is that of its unit; `shown`
        is what systemd says of units, and `why` the reason where it says nothing.
        """
        unit = shown.get(name or "")
        facts = blank(found, unit.name if unit else name)
        evidence: dict[str, Observation] = dict(found.evidence)
        evidence["version"] = found.version or caused(UNKNOWN, "none", "not_queried")
        try:
            facts["starts_at_boot"] = self._starts_at_boot(found, unit)
            if unit:
                facts["requires_mounts"] = UNKNOWN if unit.stale else list(unit.mounts)
            if isinstance(place, Place):
                opened, evidence["files"] = self.files.written(found.processes, place)
                facts["files"], found = group(opened), found._replace(opened=opened)
            if not (isinstance(place, Place) and place.root):
                # The inventory names paths of the host.
                directories = (*found.directories, *self.paths.get(found.engine, ()))
                found = found._replace(directories=directories)
            found = self._with_settings(facts, evidence, found, place, unit or name)
            if isinstance(place, str):
                evidence["namespace"] = unknown("/proc/PID", place)
                facts["namespace"] = UNKNOWN
            else:
                beside = self._beside(found, name) if place and name else None
                pattern = ENGINES[found.engine].observer.UNITS
                manager = self.managers.of(found, place, facts["unit"], unit, pattern, beside)
                evidence["managed_by"] = _of_cluster(manager, evidence.get("cluster"))
                evidence.update(self._next_preloads(found, place, unit))
                evidence["stop_timeout"] = _stop_timeout(evidence["managed_by"].value, name, unit, why)
                self._add_paths(facts, evidence, found, place)
                if place:
                    self._add_running(facts, evidence, found, place)
        except Exception as error:  # An unexpected error of one instance must not hide the others.
            evidence["observation"] = unknown("none", error_text(error))
        for field in ("managed_by", "stop_timeout", "version"):
            facts[field] = evidence[field].value if field in evidence else UNKNOWN
        facts["evidence"] = {field: value.as_dict() for field, value in evidence.items()}
        return facts

    def _with_settings(
        self,
        facts: InstanceFacts,
        evidence: dict[str, Observation],
        found: Instance,
        place: Place | str | None,
        unit: units.Unit | str | None,
    ) -> Instance:
        """Add the settings of an instance, now and after its next start; return it with the directories that they name."""
        shown = unit if isinstance(unit, units.Unit) else None
        found, why_next, starter = self._with_next_start(found, place, shown)
        evidence.update(starter.decides if starter else {})
        observed = self._observe(found, place)
        if not observed:
            return found
        why_next = why_next or self._other_files(found, place, shown, observed)
        observed = observed if why_next is None else _next_start_unknown(observed, why_next)
        observed = self._with_others(found, place, unit, observed, starter)
        evidence["version"] = observed.version
        evidence.update(observed.evidence)
        facts["files"] = group(file for file in found.opened if file.path not in observed.passing)
        _add_observed(facts, observed)
        return found._replace(directories=tuple(dict.fromkeys((*found.directories, *observed.directories))))

    def _starts_at_boot(self, found: Instance, unit: units.Unit | None) -> str:
        word = unit.starts_at_boot if unit else UNKNOWN
        if word != "no" or unit is None:
            return word
        engine = ENGINES[found.engine]
        own = engine.observer
        wrappers = (name for name in getattr(own, "WRAPPERS", {}) if name not in next_start.SHELLS)
        try:
            with named_by.one(self.host, None):
                is_hidden = self.commands.may_start(unit, (*own.PROGRAMS, *wrappers), own.UNITS)
        except Unobservable:
            return UNKNOWN
        return UNKNOWN if is_hidden or engine.may_start(self.host, found) else word

    def _with_next_start(
        self, found: Instance, place: Place | str | None, unit: units.Unit | None
    ) -> tuple[Instance, Why, Starter | None]:
        """Return an instance with what its next start gives it, why what it reads then is unknown, and the script that alone
        decides its arguments.

        Nothing is returned of a unit of another manager, or of a container without a Quadlet: there the next start is assumed to
        be as this one.
        """
        engine = ENGINES[found.engine].observer
        main = found.processes[0] if found.processes else None
        try:
            if isinstance(place, Place) and place.namespace == "container":
                with named_by.one(self.host, None):
                    return found, quadlets.changed(self.host, place, main) if main else None, None
            supervised = next_start.supervised(self.processes, main) if main else None
        except Unobservable as error:
            return found, why_of(error), None
        if supervised or not unit:
            return found, None, Starter(*supervised) if supervised else None
        try:
            # These are variables of all services, also of what starts a server in its stead.
            boot_environment.read(self.host)
            generators.collect(self.host)
            if not (unit.program or main is None):
                return found, None, None
            if main is None:
                self.begins[unit.name] = next_start.of_unit(self.host, engine, unit)
                return found._replace(begins=self.begins[unit.name]), None, None
            if next_start.is_starter(unit, main, self.processes.all.get(main.ppid), engine):
                environment = self.processes.environment(main, engine.VARIABLES)
                argv = self.processes.argv(main)
                why = next_start.differs(self.host, engine, unit, argv, environment)
                begins = next_start.of_unit(self.host, engine, unit) if why is None else None
                return found._replace(begins=begins), why, None
        except next_start.Undocumented as error:
            return (found, why_of(error), None) if main is None else (found, None, Starter.of_unit(unit))
        except Unobservable as error:
            return found, why_of(error), None
        return found, None, None

    def _other_files(
        self, found: Instance, place: Place | str | None, unit: units.Unit | None, observed: Observed
    ) -> Why:
        """Return why the next start reads other files than those that were read on the host, None if it reads these."""
        if isinstance(place, Place) and (place.root or place.namespace == "container"):
            return None
        paths = dict.fromkeys((*filter(None, [found.config]), *observed.reads))
        try:
            if unit:
                with named_by.one(self.host, None):
                    why = other_files.of_unit(self.host, unit, paths)
                if why:
                    return why
            if isinstance(place, Place):
                return other_files.of_process(self.host, found.processes[0], place, paths)
        except Unobservable as error:
            return why_of(error)
        return None

    def _next_preloads(
        self, found: Instance, place: Place | None, unit: units.Unit | None
    ) -> dict[str, Observation]:
        """Return the libraries that the next start loads and that make fsync do nothing, {} for none."""
        is_contained = place is not None and place.namespace == "container"
        main = found.processes[0] if found.processes else None
        is_own = unit is not None and (
            main is None
            or next_start.is_starter(
                unit, main, self.processes.all.get(main.ppid), ENGINES[found.engine].observer
            )
        )
        its = unit if is_own and not is_contained else None
        # Those of an engine with databases are in the databases.
        has_settings = not catalog.engine(found.engine).has_databases
        loaded = next_preloads.find(self.host, place.root if place else "", its, has_settings)
        return {"next_preloads": loaded} if loaded else {}

    def _with_others(
        self,
        found: Instance,
        place: Place | str | None,
        unit: units.Unit | str | None,
        observed: Observed,
        starter: Starter | None,
    ) -> Observed:
        """Return what an instance says, with what other components set at its next start.

        `unit` is its name if systemd does not describe it; `starter`: an undocumented script that starts it. What starts a
        container is not read here.
        """
        if isinstance(place, Place) and (place.root or place.namespace == "container"):
            return observed
        if self._own_names is None:
            self._own_names = own_names.read(self.host)
        reads = _reader(found, observed, self._own_names)
        by_server = (f"{each}/{name}" for each in found.directories[:1] for name in _WRITTEN_BY_SERVERS)
        config = config_writes.of_instance(
            found.config,
            observed.writes,
            [row["from"] for row in observed.settings.values()],
            [*observed.reads, *by_server],
            observed.includes,
        )
        config = config_writes.followed(self.host, config)
        settings = observed.settings
        try:
            # Root's units and tables name these files.
            with named_by.one(self.host, None):
                texts = self.commands.of_server(unit)
                if starter and starter.is_roots:
                    texts += self.commands.of_starter(starter.path, unit)
                if self._tmpfiles is None:
                    self._tmpfiles = tmpfiles_d.collect(self.host)
                changes = [
                    *config_writes.by_tmpfiles(self.host, self._tmpfiles, config, settings, reads),
                    *config_writes.by_commands(self.host, texts, config, settings, reads),
                    *(change for text in texts for change in reads(text)),
                ]
        except Unobservable as error:
            unread = Because("next_start_unread", {"why": [because_of(error).as_dict()]})
            return _next_start_unknown(observed, unread)
        observed = others.changed(observed, changes)
        after = getattr(ENGINES[found.engine].observer, "databases_after", None)
        return observed._replace(databases=after(observed.databases, texts)) if after else observed

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
            return None  # It ended meanwhile, or nothing is known about it either way.

    def _observe(self, found: Instance, place: Place | str | None) -> Observed | None:
        """Return what the engine itself says, None if its location cannot be read."""
        return (
            None
            if isinstance(place, str)
            else ENGINES[found.engine].observer.observe(self.host, found, place)
        )

    def _add_paths(
        self, facts: InstanceFacts, evidence: dict[str, Observation], found: Instance, place: Place | None
    ) -> None:
        """Add the configured paths as this process sees them, links of directories followed."""
        root = place.root if place else ""
        reasons = []
        found_at: dict[str, list[str]] = {}
        for field, paths in (("directories", found.directories), ("temporary", facts["temporary"])):
            directories = []
            for path in paths:
                real = path
                try:
                    real = resolve(self.host, root, path)
                except Unobservable as error:
                    reasons.append(str(error))
                directories.append(self.places.on_host(place, real) if place else real)
            found_at[field] = directories
        facts["directories"], facts["temporary"] = found_at["directories"], found_at["temporary"]
        if reasons:
            evidence["directories"] = unknown("links", "; ".join(reasons))
        if found.config and place:
            facts["config"] = self.places.on_host(place, found.config)
        if place:
            facts["writes"] = [self.places.on_host(place, path) for path in facts["writes"]]
        for database in facts.get("databases", ()):
            # An entry that could not be read may have another name than a path.
            if place and database["path"].startswith("/"):
                database["path"] = self.places.on_host(place, database["path"])

    def _add_running(
        self, facts: InstanceFacts, evidence: dict[str, Observation], found: Instance, place: Place
    ) -> None:
        """Add what only a running instance has."""
        main = found.processes[0]
        facts["namespace"], facts["root"] = place.namespace, place.root
        if place.reason:
            evidence["namespace"] = unknown(f"/proc/{main.pid}/ns/mnt", place.reason)
        where = _apart(place, next(iter(facts["directories"]), ""))
        if where:
            facts["name"] = f"{where} {found.name}"
        source = f"/proc/{main.pid}/maps"
        try:
            facts["preloads"] = self.processes.preloads(main)
            evidence["preloads"] = Observation(" ".join(facts["preloads"]) or "none", source)
        except Unobservable as error:
            evidence["preloads"] = unread(source, error)


def _of_cluster(manager: Observation, cluster: Observation | None) -> Observation:
    """Return the manager, but the cluster for a node that systemd must not restart: the other nodes must be up."""
    return cluster if cluster and manager.value in ("systemd", "none") else manager


def _reader(found: Instance, observed: Observed, own_names_of_host: frozenset[str]) -> others.Reads:
    """Return what reads the settings of an engine in a command: its own reader, or one of names alone."""
    own = getattr(ENGINES[found.engine].observer, "reads", None)
    if own is None:
        return others.named(tuple(observed.settings))
    return lambda text: own(text._replace(text=own_names.as_local(text.text, own_names_of_host)), observed)


def _apart(place: Place, directory: str) -> str:
    """Return what distinguishes an instance from one with the same paths elsewhere, '' for one with the host's own paths.

    The name always has it, also if no other instance is there now: otherwise the next one would inherit the name. An id goes
    with its container, so the data directory on the host identifies it. `directory`: that, as far as this host has it.
    """
    if place.namespace == "container":
        kind, _colon, name = place.container.partition(":")
        is_on_host = directory.startswith("/") and not directory.startswith("/proc/")
        if kind and is_on_host and _ID.fullmatch(name):
            return f"{kind}:{directory}"
        return place.container or "container"
    if not place.root:
        return ""
    if place.top != "/" and place.namespace == "host":
        return f"chroot:{place.top}"
    return place.unit or "chroot"


def blank(found: Instance, unit: str | None) -> InstanceFacts:
    """Return the facts of an instance before anything was read."""
    facts: InstanceFacts = {
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
        "temporary": [],
        "requires_mounts": [],
        "writes": [],
        "files": [],
        "settings": {},
        "pending_restart": [],
        "overrides": [],
        "evidence": {},
    }
    engine = catalog.engine(found.engine)
    if len(engine.checks) > 1:
        facts["flavour"] = found.flavour or UNKNOWN
    if engine.has_databases:
        facts["databases"] = []
    return facts


def _add_observed(facts: InstanceFacts, observed: Observed) -> None:
    # What a run would refuse, a check does not promise.
    refused = observed.refused
    rows = {name: refused.keeps(row) if refused else row for name, row in observed.settings.items()}
    if observed.gives:
        rows = {name: observed.gives.adds(row) for name, row in rows.items()}
    facts["settings"] = {name: {**row, "by": others.by(row)} for name, row in rows.items()}
    facts["pending_restart"] = list(observed.pending_restart)
    facts["overrides"] = list(observed.overrides)
    facts["writes"] = list(observed.writes)
    facts["temporary"] = list(observed.temporary)
    if observed.flavour:
        facts["flavour"] = observed.flavour
    if "databases" in facts:
        facts["databases"] = list(observed.databases)


def _next_start_unknown(observed: Observed, why: Why) -> Observed:
    """Return what an instance says, without what its files say of the next start: its command line goes before them."""
    settings: dict[str, SettingFacts] = {
        name: {**reasons_and(row, why), "persisted": UNKNOWN} for name, row in observed.settings.items()
    }
    return observed._replace(settings=settings, pending_restart=())


def _stop_timeout(manager: str, name: str | None, unit: units.Unit | None, why: str | None) -> Observation:
    """Return how long a clean stop may take before the instance is killed, in seconds."""
    if manager not in ("systemd", "patroni"):
        return caused(UNKNOWN, name or "none", "other_manager", manager=manager)
    if unit is None:
        return (
            unknown("systemctl show", why)
            if why
            else caused(UNKNOWN, "systemctl show", "no_unit", unit=str(name))
        )
    return unit.stop_timeout


def error_text(error: Exception) -> str:
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
