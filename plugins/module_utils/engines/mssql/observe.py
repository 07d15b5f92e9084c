# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SQL Server on Linux: its instance and its settings.

It is never logged in to. mssql.conf and the log of its errors tell, and trace flags on its command
line; what DBCC TRACEON did since is unknown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from ...host import bounded_read, bounds
from ...host.observation import UNKNOWN, Observation, caused, unknown, unread
from ...host.process_context import Place
from ...host.processes import Process, Processes, argv_of, variables
from ...host.seam import ChangeFailed, Host, Unobservable
from ...host.textfile import Line, Malformed, without_content
from .. import fixes, since_start, start_files, temporary
from ..instance import Gift, Instance, Observed, of_mains
from ..next_start import NextStart
from ..open_files import write_through
from ..start_files import Word
from . import conf, databases, tool
from .tool import CONFIG, HOME

NAME = "mssql"
PROGRAMS = ("sqlservr",)
UNITS = re.compile(r"mssql-server(@.+)?\.service")
_PROGRAM = "/opt/mssql/bin/sqlservr"
#: Environment variables that go before mssql.conf: those that name directories, and files.
_DIRECTORIES = ("MSSQL_BACKUP_DIR", "MSSQL_DATA_DIR", "MSSQL_DUMP_DIR", "MSSQL_LOG_DIR")
_FILES = ("MSSQL_MASTER_DATA_FILE", "MSSQL_MASTER_LOG_FILE")
_ERROR_LOG_VARIABLE = "MSSQL_ERROR_LOG_FILE"
#: Environment variables that decide what it reads, and where it writes, from its start on.
VARIABLES = (*_DIRECTORIES, *_FILES, _ERROR_LOG_VARIABLE)

#: Where a setting stands that is in no file.
COMMAND_LINE = "command line"
#: Trace flags by the names of their settings, and what `control.NAME` is if it is absent.
FLAGS = {"traceflag3979": 3979, "traceflag3982": 3982}
SWITCHES = {"writethrough": "1", "alternatewritethrough": "1"}
#: [filelocation]: directories, and files, by the environment variable that goes before each.
_LOCATIONS = {
    "defaultbackupdir": "MSSQL_BACKUP_DIR",
    "defaultdatadir": "MSSQL_DATA_DIR",
    "defaultdumpdir": "MSSQL_DUMP_DIR",
    "defaultlogdir": "MSSQL_LOG_DIR",
}
_LOCATED_FILES = {
    "errorlogfile": _ERROR_LOG_VARIABLE,
    "masterdatafile": "MSSQL_MASTER_DATA_FILE",
    "masterlogfile": "MSSQL_MASTER_LOG_FILE",
}
_ERROR_LOG = f"{HOME}/log/errorlog"
#: What setup calls tempdb's files: nothing in that is to outlive a start. Under any other name they count as data.
_TEMPDB = re.compile(r"tempdb(_mssql_)?[0-9]{0,3}\.[mn]df|templog[0-9]{0,3}\.ldf", re.I)
#: What its databases' files are called by custom.
_DATABASE = re.compile(r".*\.[mnl]df", re.I | re.S)
_LONGEST = 80
#: Characters of the text about slips: a file may hold thousands.
_MOST_OF_SLIPS = 1000
_VERSION = re.compile(r"Microsoft (?P<name>SQL Server .{0,80}?) - (?P<number>\d+\.\d+\.\d+\.\d+) ")
_PARAMETERS = re.compile(r"(?:Registry|Command Line) startup parameters:", re.I)
_PARAMETER = re.compile(r"(?:[\d-]{10} [\d:.]+ Server)?\s+-(?P<option>[A-Za-z])\s*(?P<value>.*)")


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the instances that run. The parent watches; its child does the work."""
    return of_mains(NAME, processes, processes.mains(PROGRAMS), lambda main: _instance(processes, main))


def installed(host: Host, units: list[str]) -> list[Instance]:
    """Return the instance that could be started, whether or not it runs. `units`: those of UNITS."""
    names: list[str | None] = [*units]
    if not names and host.exists(_PROGRAM):
        names = [None]
    return [Instance(NAME, NAME, config=CONFIG, directories=(HOME,), unit=unit) for unit in names]


def _instance(processes: Processes, main: Process) -> Instance:
    directories = dict.fromkeys((HOME, *_named(processes.environment(main, (*_DIRECTORIES, *_FILES)))))
    return Instance(
        NAME, NAME, processes.family(main, PROGRAMS), config=CONFIG, directories=tuple(directories)
    )


def _named(locations: dict[str, str]) -> list[str]:
    """Return the directories that variables name."""
    named = [locations[name] for name in _DIRECTORIES if name in locations]
    named += [posixpath.dirname(locations[name]) for name in _FILES if name in locations]
    return [path for path in named if path.startswith("/")]


class Log(NamedTuple):
    """What the log of errors says: the version, and which trace flags the server began with (None where
    it does not list them)."""

    version: Observation
    flags: frozenset[int] | None = None


def observe(host: Host, found: Instance, place: Place | None) -> Observed:
    """Return the settings, the version and the directories of an instance. Never raises for what it says."""
    root = place.root if place else ""
    main = found.processes[0] if found.processes else None
    lines, why = _lines(host, root)
    persisted = words(lines, why)
    locations, on_line, slips = _started_with(host, main, found.begins)
    slips = [*conf.slips(lines or []), *slips]
    for name in on_line & set(persisted):
        persisted[name] = Word("on", COMMAND_LINE, held=fixes.fix("remove_trace_flag", flag=str(FLAGS[name])))
    log = read_log(host, root, _error_log(lines, locations), main)
    runs = None
    if main:
        runs = start_files.running(host, NAME, CONFIG, main, persisted, root)
        runs = _with_flags(runs, log.flags, on_line)
    settings = start_files.settings(persisted, runs)
    delayed = databases.delayed_durability(host, lines, bool(main and not root))
    evidence = [("delayed_durability", delayed)]
    twice = _unclear_locations(lines, locations)
    if main:
        files = (file for file in found.opened if _is_data(posixpath.basename(file.path)))
        evidence.append(("write_through", write_through(files, "no_database_open")))
    if slips:
        evidence.append(("slips", Observation("seen", CONFIG, "; ".join(slips)[:_MOST_OF_SLIPS])))
    if twice:
        evidence.append(("directories", unknown(CONFIG, twice)))
    if why:
        evidence.append(("configuration", unknown(CONFIG, why)))
    scratch = _temporary(host, root, found)
    return Observed(
        version=log.version,
        settings=settings,
        temporary=scratch,
        passing=tuple(file.path for file in found.opened if posixpath.dirname(file.path) in scratch),
        directories=(*_named(locations), *_directories(lines, locations)),
        pending_restart=start_files.waiting(settings),
        writes=(CONFIG,),
        refused=None if root else tool.refusal(host),
        gives=None if root else _gives(host),
        evidence=tuple(evidence),
    )


def _gives(host: Host) -> Gift | None:
    """Return the change of the owner of mssql.conf with which a run starts, None if it changes none."""
    try:
        found = tool.ownership(host)
    except (ChangeFailed, Unobservable):
        return None  # The refusal states the reason.
    return Gift(tool.OWNER, found.before, found.after) if found else None


def words(lines: list[Line] | None, why: str | None) -> dict[str, Word]:
    """Return what mssql.conf says of each setting; `lines` is None where it could not be read, and
    `why` the reason.

    A switch that is neither 0 nor 1 is reported as it is written: what SQL Server makes of it is not
    documented.
    """
    if lines is None:
        return {name: Word(UNKNOWN, reason=why) for name in (*FLAGS, *SWITCHES)}
    found = {name: _flag(lines, number) for name, number in FLAGS.items()}
    found.update({name: _switch(lines, name, default) for name, default in SWITCHES.items()})
    return found


def parse_log(text: str) -> tuple[str | None, str, frozenset[int] | None]:
    """Return the version's number and name, and the trace flags of the start-up parameters.

    None is what the text does not contain. The last start in it counts.
    """
    text = text.replace("\0", "")
    versions = list(_VERSION.finditer(text))
    flags: set[int] | None = None
    listing = False
    for line in text.splitlines():
        if _PARAMETERS.search(line):
            flags, listing = set() if flags is None else flags, True
            continue
        parameter = _PARAMETER.fullmatch(line.rstrip())
        if listing and parameter and flags is not None:
            number = parameter["value"].strip('"')
            if parameter["option"] == "T" and re.fullmatch(r"[0-9]{1,9}", number):
                flags.add(int(number))
        elif line.strip():
            listing = False
    number, name = (versions[-1]["number"], versions[-1]["name"]) if versions else (None, "")
    return number, name, None if flags is None else frozenset(flags)


def read_log(host: Host, root: str, path: str, main: Process | None) -> Log:
    """Return what the log of errors says of this start, or of a stopped server's last one."""
    try:
        part = host.read_part(path, root, bounds.ERROR_LOG)
        if part is None:
            return Log(caused(UNKNOWN, path, "no_log"))
        if main and part.status.modified < since_start.start_of(host, main).at:
            return Log(caused(UNKNOWN, path, "old_log"))
        number, name, flags = parse_log(part.text)
    except Unobservable as error:
        return Log(unread(path, error))
    if number is None:
        return Log(caused(UNKNOWN, path, "no_version"), flags)
    return Log(Observation(number, f"{path}: {name}"), flags)


def _lines(host: Host, root: str) -> tuple[list[Line] | None, str | None]:
    try:
        # mssql-conf does not flush what it writes, whoever called it, and we may have been killed
        # before we did: what is reported as persisted is on the disk.
        part = bounded_read.part(host, CONFIG, root, flush=True)
        return conf.parse(part.text if part else "", CONFIG), None
    except (Unobservable, Malformed) as error:
        return None, without_content(error)


def _flag(lines: list[Line], number: int) -> Word:
    try:
        flags = conf.trace_flags(lines)
    except Malformed as error:
        return Word(UNKNOWN, reason=str(error))
    where = flags.get(number)
    return Word("on", f"{where.file}:{where.line}") if where else Word("off")


def _switch(lines: list[Line], name: str, default: str) -> Word:
    try:
        where = conf.get(lines, "control", name)
    except Malformed as error:
        return Word(UNKNOWN, reason=str(error))
    if where is None:
        return Word(default)
    value = where.value or "(empty)"
    return Word(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}...", f"{where.file}:{where.line}")


def _started_with(
    host: Host, main: Process | None, begins: NextStart | None
) -> tuple[dict[str, str], set[str], list[str]]:
    """Return the variables that go before mssql.conf, the settings whose trace flag is on the command line, and the slips
    there; of a stopped one, those that its unit gives it."""
    if main is None:
        coming = begins or NextStart(())
        locations = {name: value for name, value in coming.variables.items() if value}
        return locations, *_flags_in(" ".join(coming.words))
    names = VARIABLES
    try:
        locations, argv = variables(host, main.pid, names), argv_of(host, main.pid)
    except Unobservable:
        return {}, set(), []  # Whoever found the instance read both, and says why this one cannot.
    return locations, *_flags_in(" ".join(argv[1:]))


def _flags_in(text: str) -> tuple[set[str], list[str]]:
    words = re.findall(r"(?:^|\s)-T\s?([0-9]{1,9})(?=\s|$)", text)
    numbers = set(map(int, words))
    slips = [f"{COMMAND_LINE}: {slip}" for slip in conf.slipped_flags(words)]
    return {name for name, number in FLAGS.items() if number in numbers}, slips


def _with_flags(
    runs: start_files.Running, listed: frozenset[int] | None, on_line: set[str]
) -> start_files.Running:
    """Return what runs, with the trace flags that the server says it began with.

    A flag that it lists is on. One that it does not list is off if nothing better is known.
    """
    found = dict.fromkeys(on_line, "on")
    for name, number in FLAGS.items() if listed is not None else ():
        if listed and number in listed:
            found[name] = "on"
        elif name not in runs.words:
            found.setdefault(name, "off")
    return runs._replace(words={**runs.words, **found}) if found else runs


def _is_data(name: str) -> bool:
    return bool(_DATABASE.fullmatch(name)) and not _TEMPDB.fullmatch(name)


def _temporary(host: Host, root: str, found: Instance) -> tuple[str, ...]:
    """Return the directories in which nothing but tempdb's files lies: open files show their location."""
    split = (posixpath.split(file.path) for file in found.opened)
    places = dict.fromkeys(directory for directory, name in split if _TEMPDB.fullmatch(name))
    # One whose file has come since it was listed may hold more.
    others = {
        posixpath.dirname(file.path)
        for file in found.opened
        if not _TEMPDB.fullmatch(posixpath.basename(file.path))
    }
    return tuple(
        path
        for path in places
        if path not in others and temporary.holds_only(host, path, root, _TEMPDB.fullmatch)
    )


def _error_log(lines: list[Line] | None, locations: dict[str, str]) -> str:
    path = locations.get(_ERROR_LOG_VARIABLE) or _location(lines, "errorlogfile")
    return path if path and path.startswith("/") else _ERROR_LOG


def _directories(lines: list[Line] | None, locations: dict[str, str]) -> Iterator[str]:
    """Yield where mssql.conf puts files, unless the environment says it."""
    for key, variable in {**_LOCATIONS, **_LOCATED_FILES}.items():
        path = _location(lines, key)
        if variable not in locations and path and path.startswith("/"):
            yield path if key in _LOCATIONS else posixpath.dirname(path)


def _unclear_locations(lines: list[Line] | None, locations: dict[str, str]) -> str | None:
    """Return why it is unknown where mssql.conf puts files, None where it, or the environment, says so."""
    for key, variable in {**_LOCATIONS, **_LOCATED_FILES}.items():
        try:
            if variable not in locations:
                conf.get(lines or [], "filelocation", key)
        except Malformed as error:
            return f"filelocation.{key}: {without_content(error)}"
    return None


def _location(lines: list[Line] | None, key: str) -> str | None:
    try:
        found = conf.get(lines, "filelocation", key) if lines else None
    except Malformed:
        return None
    return found.value if found else None
