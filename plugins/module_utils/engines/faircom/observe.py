# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FairCom DB (c-tree): its instances and their settings.

It is never logged in to: ctsrvr.cfg, and CTSTATUS.FCS, the log of its status, tell.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence

from ...enforce import ownership
from ...host import bounded_read, units
from ...host.observation import (
    UNKNOWN,
    Because,
    Observation,
    Undecided,
    because_of,
    caused,
    unknown,
    unread,
    why_of,
)
from ...host.paths import normal
from ...host.process_context import Place, Places, is_there
from ...host.processes import Process, Processes, argv_of
from ...host.seam import ChangeFailed, Host, Unobservable
from ...host.textfile import Line, Malformed, line_ends, without_content
from .. import fixes, start_files
from ..instance import Instance, Observed, Refusal, Why, Whys, of_mains, several
from ..next_start import NextStart
from ..open_files import Opened, write_through
from ..start_files import Word
from . import ctsrvr
from . import status as status_log
from .status import Status

NAME = "faircom"
PROGRAMS = ("faircom", "ctreesql", "ctsrvr", "ctreeace")
UNITS = re.compile(r"(faircom|ctree|ctsrvr)[^/]*\.service")
_CONFIG = "ctsrvr.cfg"
#: The keyword on the command line, and the environment variable, that name another file.
_KEYWORD, _VARIABLE = "CTSRVR_CFG", "FCSRVR_CFG"
#: Environment variables that decide what it reads at its start.
VARIABLES = (_VARIABLE,)
_DATA = "LOCAL_DIRECTORY"
_COMPATIBILITY = "COMPATIBILITY"

#: Options behind COMPATIBILITY, on or off, and keywords with what they are where they are absent.
OPTIONS = (
    "LOG_WRITETHRU",
    "TDATA_WRITETHRU",
    "TINDEX_WRITETHRU",
    "SYNC_LOG",
    "NO_SYS_FLUSH_ON_CLOSE",
    "NO_FLUSH_DIR",
)
KEYWORDS = {
    "DELAYED_DURABILITY": "0",
    "SUPPRESS_LOG_FLUSH": "NO",
    "SUPPRESS_LOG_SYNC": "NO",
    "COMMIT_DELAY": "1",
}
#: Characters of the text about slips: a file may hold thousands.
_MOST_OF_SLIPS = 1000
#: Goes before ctsrvr.cfg, encrypted: "FairCom DB Configuration File", Settings File.
_SETTINGS_FILE = "ctsrvr.set"


def find(host: Host, processes: Processes) -> list[Instance]:
    """Return the instances that run. Several may run one program with a configuration each."""
    places, mains = Places(host), processes.mains(PROGRAMS)
    return of_mains(NAME, processes, mains, lambda main: _instance(processes, places, main))


def installed(host: Host, names: list[str]) -> list[Instance]:
    """Return an instance for each unit; only its unit has the places of its files. `names`: those of UNITS."""
    shown, why = units.show(host, names, starts=True)
    return [_stopped(host, name, shown.get(name), why) for name in names]


def base(program: str) -> str:
    """Return the directory of an installation, above `server`, `config` and `data`."""
    directory = posixpath.dirname(program)
    return posixpath.dirname(directory) if posixpath.basename(directory) == "server" else directory


def _stopped(host: Host, name: str, unit: units.Unit | None, why: str | None) -> Instance:
    """Return what a unit starts: the same name and configuration as when it runs."""
    if not unit or posixpath.basename(unit.program) not in PROGRAMS or not unit.directory.startswith("/"):
        reason = why or Because("unit_without_place")
        return Instance(NAME, name, unit=name, evidence=(("config", unknown("systemd", reason)),))
    home, cwd = base(unit.program), unit.directory
    try:
        argv = units.next_arguments(host, unit)
        named = _keyword(argv, _KEYWORD) or units.variables(host, unit, {_VARIABLE}).get(_VARIABLE)
    except Unobservable as error:
        return Instance(NAME, name, unit=name, evidence=(("config", unread(name, error)),))
    data = _keyword(argv, _DATA)
    found = Instance(NAME, home, unit=name, directories=(_from(cwd, data) if data else cwd,))
    if named:
        return found._replace(name=_from(cwd, named), config=_from(cwd, named))
    for path in _configs(home, cwd):
        if is_there(host, path):
            return found._replace(config=path)
    why_none = caused(UNKNOWN, home, "no_config", file=_CONFIG, paths=[f"{home}/config", cwd])
    return found._replace(evidence=(("config", why_none),))


def _configs(home: str, cwd: str) -> list[str]:
    """Return where the configuration lies, as the documentation has it: the first one counts."""
    return list(dict.fromkeys((f"{home}/config/{_CONFIG}", f"{cwd}/{_CONFIG}")))


def _instance(processes: Processes, places: Places, main: Process) -> Instance:
    argv, cwd = processes.argv(main), processes.directory(main)
    named = _keyword(argv, _KEYWORD) or processes.environment(main, [_VARIABLE]).get(_VARIABLE)
    data = _keyword(argv, _DATA)
    home = base(processes.program(main))
    found = Instance(
        engine=NAME,
        name=home,
        processes=processes.family(main, PROGRAMS),
        directories=(_from(cwd, data) if data else cwd,),
    )
    if named:
        path = _from(cwd, named)
        return found._replace(name=path, config=path)
    for path in _configs(home, cwd):
        if is_there(places.host, path, places.of(main).root):
            return found._replace(config=path)
    why = caused(UNKNOWN, home, "defaults", paths=_configs(home, cwd))
    return found._replace(evidence=(("config", why),))


def _keyword(argv: list[str], keyword: str) -> str | None:
    """Return the word behind a keyword on the command line; keywords have no case."""
    words = [word.upper() for word in argv]
    where = words.index(keyword) + 1 if keyword in words else len(words)
    return argv[where] if where < len(argv) else None


def _from(cwd: str, path: str) -> str:
    return normal(posixpath.join(cwd, path))


def observe(host: Host, found: Instance, place: Place | None) -> Observed:
    """Return the settings, the version and the directories of an instance. Never raises for what it says."""
    root = place.root if place else ""
    main = found.processes[0] if found.processes else None
    text, lines, why = _lines(host, root, found)
    persisted = words(lines, found.config or _CONFIG, why)
    runs = None
    if main:
        runs = start_files.running(host, NAME, found.config, main, persisted, root) if found.config else None
        runs = runs or start_files.Running(
            {name: word.value for name, word in persisted.items()}, "its defaults"
        )
    argv, lost = _argv(host, main, found.begins)
    cwd = found.directories[0] if found.directories else ""
    places = _places(lines or [], cwd, argv)
    status = status_log.read(host, root, [cwd, places[0].directory], main)
    beaten = _beaten(host, root, found, argv, lost)
    if runs:
        runs = _with_status(runs, status, beaten)
    persisted = {
        name: Word(UNKNOWN, word.origin, beaten[name]) if name in beaten else word
        for name, word in persisted.items()
    }
    settings = start_files.settings(persisted, runs)
    evidence = _evidence(found, text, lines, places, why)
    evidence.append(("recovery", status.recovered))
    if status.damage:
        evidence.append(("damage", status.damage))
    if main:
        evidence.append(("write_through", write_through(_logs(found.opened, lines or []), "no_log_open")))
    return Observed(
        version=status.version,
        settings=settings,
        directories=tuple(where.directory for where in places if where.directory),
        pending_restart=start_files.waiting(settings),
        writes=(found.config,) if found.config else (),
        refused=_refused(host, found) if not root else None,
        evidence=tuple(evidence),
    )


def writer(host: Host, path: str, pids: Collection[int], restores: bool = False) -> int:
    """Return the user as whom a configuration is written; `restores`: by release. Raises ChangeFailed."""
    try:
        user = ownership.user_of(host, pids, path)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    return ownership.writer(host, path, user, [posixpath.dirname(path)], (_CONFIG,), restores)


def no_file(home: str) -> Refusal:
    """Return why nothing is written for an instance that has no configuration file; an empty one says what none says."""
    create = fixes.fix("create_file", path=f"{home}/config/{_CONFIG}")
    return Refusal(fixes.refusal("no_file", file=_CONFIG), create)


def _refused(host: Host, found: Instance) -> Refusal | None:
    """Return why a run would write nothing, None where it would."""
    if not found.config:
        return no_file(found.name)
    try:
        writer(host, found.config, [process.pid for process in found.processes])
    except ChangeFailed as error:
        return Refusal.of(error)
    return None


def words(lines: list[Line] | None, file: str, why: Why) -> dict[str, Word]:
    """Return what ctsrvr.cfg says of each setting; `lines` is None where it could not be read, and
    `why` the reason."""
    if lines is None:
        return {name: Word(UNKNOWN, reason=why) for name in (*OPTIONS, *KEYWORDS)}
    flags = ctsrvr.compatibility(lines, file)
    found = {
        name: Word("on", f"{file}:{flags[name].line}") if name in flags else Word("off") for name in OPTIONS
    }
    for name, default in KEYWORDS.items():
        try:
            where = ctsrvr.value(lines, name, file)
        except Malformed as error:
            found[name] = Word(UNKNOWN, reason=str(error))
            continue
        # YES and NO in any letter case; all others are numbers.
        found[name] = (
            Word((where.value or "")[:80].upper(), f"{file}:{where.line}") if where else Word(default)
        )
    return found


def _lines(host: Host, root: str, found: Instance) -> tuple[str, list[Line] | None, Why]:
    """Return the text of the configuration, its lines, and why there are none."""
    if not found.config:
        if found.processes and found.directories:
            return "", [], None  # Everything was examined: it runs with its defaults.
        why = dict(found.evidence)["config"]
        return "", None, why.because or why.reason
    try:
        text = bounded_read.read(host, found.config, root)
        if text is None:
            return "", None, f"{found.config}: No such file or directory"
        return text, ctsrvr.parse(text, found.config), None
    except (Unobservable, Malformed) as error:
        return "", None, error.because if isinstance(error, Undecided) else without_content(error)


def _argv(host: Host, main: Process | None, begins: NextStart | None) -> tuple[list[str], Why]:
    """Return the program's arguments, in capitals, and why they are unknown."""
    try:
        words: Sequence[str] = argv_of(host, main.pid)[1:] if main else begins.words if begins else ()
        return [word.upper() for word in words], None
    except Unobservable as error:
        return [], why_of(error)


def _places(lines: list[Line], cwd: str, argv: list[str]) -> list[ctsrvr.Place]:
    """Return where the logs lie, LOCAL_DIRECTORY first; `cwd` is already what the command line says."""
    if _DATA in argv:
        lines = [line for line in lines if line.name != _DATA]
    places = ctsrvr.log_places(lines, cwd)
    why = "the command line says it, and goes before the file"
    return [
        ctsrvr.Place(where.keyword, "", why) if where.keyword in argv and where.keyword != _DATA else where
        for where in places
    ]


def _beaten(host: Host, root: str, found: Instance, argv: list[str], lost: Why) -> dict[str, Because]:
    """Return the settings that something else than the configuration file decides, and what."""
    everything = (*OPTIONS, *KEYWORDS)
    if lost:
        return dict.fromkeys(everything, _may_not_run(lost))
    programs = [process.exe for process in found.processes[:1]]
    directories = [posixpath.dirname(path) for path in (found.config, *programs) if path]
    for directory in dict.fromkeys((*directories, *found.directories)):
        path = f"{directory}/{_SETTINGS_FILE}"
        try:
            there = is_there(host, path, root)
        except Unobservable as error:
            return dict.fromkeys(everything, _may_not_run(because_of(error)))
        if there:
            return dict.fromkeys(everything, Because("encrypted_settings", {"path": path}))
    options = [word for before, word in zip(argv, argv[1:]) if before == _COMPATIBILITY]
    return {
        **{name: Because("set_by_arguments", {"setting": name}) for name in KEYWORDS if name in argv},
        **{
            name: Because("set_by_arguments", {"setting": f"{_COMPATIBILITY} {name}"})
            for name in OPTIONS
            if name in options
        },
    }


def _may_not_run(why: Why) -> Because:
    inner = why if isinstance(why, Because) else Because("unread", {"error": str(why)})
    return Because("arguments_unread", {"why": [inner.as_dict()]})


def _logs(opened: Iterable[Opened], lines: list[Line]) -> list[Opened]:
    """Return the transaction logs among open files: wherever they lie, a number follows the name that is set."""
    names = "|".join(map(re.escape, ctsrvr.log_names(lines)))
    pattern = re.compile(rf"(?:{names})\d{{7}}\.FCS", re.I)
    return [file for file in opened if pattern.fullmatch(posixpath.basename(file.path))]


def _with_status(
    runs: start_files.Running, status: Status, beaten: dict[str, Because]
) -> start_files.Running:
    """Return the running values: the file's, except those that its arguments override, and the server's own."""
    found = {name: word for name, word in runs.words.items() if name not in beaten}
    reason: Whys = runs.reason or next(iter(beaten.values()), None)
    if status.synchronous != UNKNOWN:
        found["LOG_WRITETHRU"] = status.synchronous
    elif "LOG_WRITETHRU" in found:
        # What the file says and what the logs were opened with are two things.
        del found["LOG_WRITETHRU"]
        reason = (status.reason, *several(reason))
    return runs._replace(words=found, reason=reason)


def _evidence(
    found: Instance, text: str, lines: list[Line] | None, places: list[ctsrvr.Place], why: Why
) -> list[tuple[str, Observation]]:
    evidence = []
    file = found.config or _CONFIG
    slips = "; ".join(ctsrvr.slips(lines or [], KEYWORDS, OPTIONS))
    if slips:
        evidence.append(("slips", Observation("seen", file, slips[:_MOST_OF_SLIPS])))
    if line_ends(text) in ("dos", "mixed"):
        evidence.append(
            ("line_ends", Observation(line_ends(text), file, f"{line_ends(text)} line ends, expected Unix's"))
        )
    lost = [f"{where.keyword}: {where.reason}" for where in places if where.reason]
    if why or lost:
        evidence.append(("log_directories", unknown(file, why or "; ".join(lost))))
    return evidence
