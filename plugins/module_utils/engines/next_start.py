# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a server's unit starts it next: directly, or through a known wrapper.

A wrapper is what a unit starts in the server's stead: mysqld_safe, pg_ctl. Only an undocumented script decides what it gives
to a server. Of a running server, the arguments of this start then apply to the next one, and the facts name the script.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..host import bounded_read, named_by, shell_lines, units
from ..host.observation import Because, Undecided, why_of
from ..host.processes import Process, Processes
from ..host.seam import Host, Unobservable
from ..host.units import Unit

#: What runs a script that starts a server, and stays.
SHELLS = ("bash", "busybox", "dash", "ksh", "sh", "zsh")
#: Where SysV scripts are. Such a script can have the name of a server's program.
_SYSV = ("/etc/init.d/", "/etc/rc.d/init.d/")
#: Supervisors of one service each.
_SUPERVISORS = ("runsv", "s6-supervise", "supervise")
#: Supervisors of many services, by what they call themselves: they are scripts of Python. Their configuration has the commands.
_OF_MANY = ("circusd", "supervisord")
_CONFIGURED = re.compile(r"(?:-c|--configuration=?)(?P<path>.*)", re.S)


class NextStart(NamedTuple):
    """What a server is given at its next start: arguments, and of the variables that
    decide what it reads those that are set; None for one that a wrapper sets as it likes."""

    words: tuple[str, ...]
    variables: Mapping[str, str | None] = MappingProxyType({})


class Wrapper(NamedTuple):
    """A program that starts a server.

    `start(host, unit, given)` returns what it gives to the server, of what the unit gives to it. Raises
    Unobservable. `is_same(words, coming)` returns whether a server that was started with `words` will run as it does
    with `coming`: a wrapper adds its own arguments.
    """

    start: Callable[[Host, Unit, NextStart], NextStart]
    is_same: Callable[[Sequence[str], Sequence[str]], bool]


def of_unit(host: Host, engine: Any, unit: Unit) -> NextStart:
    """Return what a unit's next start gives to a server of an engine. Raises Unobservable if that is unknown."""
    variables = units.variables(host, unit, set(engine.VARIABLES))
    given = NextStart(tuple(units.next_arguments(host, unit)), dict(variables))
    if not unit.program or _is_server(engine, unit):
        return given  # Without a command it starts nothing.
    wrapper = _wrapper(engine, unit)
    if wrapper is None:
        raise not_known(unit)
    return wrapper.start(host, unit, given)


class Undocumented(Undecided):
    """A unit starts a program, and only that decides what it gives to the server."""


def not_known(unit: Unit) -> Undocumented:
    """Return what is raised for a unit that starts an undocumented program."""
    return Undocumented("undocumented_program", unit=unit.name, program=unit.program)


def supervised(processes: Processes, main: Process) -> tuple[str, bool] | None:
    """Return the file with which a supervisor starts a server, None without one; and whether root's supervisor named it.

    runsv(8), s6-supervise and supervise(8) run `run` in their working directory. Raises Unobservable.
    """
    for parent in processes.ancestors(main):
        if parent.program in _SUPERVISORS:
            return posixpath.join(processes.directory(parent), "run"), processes.user(parent) == "0"
        if parent.name in _OF_MANY:
            return _configuration(processes, parent), processes.user(parent) == "0"
    return None


def _configuration(processes: Processes, supervisor: Process) -> str:
    """Return the configuration that the command line of a supervisor names, else the process. Raises Unobservable."""
    words = processes.argv(supervisor)[1:]
    for word, behind in zip(words, (*words[1:], "")):
        named = _CONFIGURED.fullmatch(word)
        path = (named["path"] or behind) if named else word if word.endswith(".ini") else ""
        if path:
            return posixpath.join(processes.directory(supervisor), path)
    return f"process {supervisor.pid} ({supervisor.name})"


def expect_script(host: Host, unit: Unit, path: str, parts: Iterable[str], own: re.Pattern[str]) -> None:
    """Raise Unobservable unless a unit starts a known script: it has these parts, and none of its lines sets what `own`
    matches, or loads a library."""
    commands = commands_of(host, path) if unit.program == path else []
    known = all(any(part in line for line in commands) for part in parts)
    if not known or any(own.search(line) or "PRELOAD" in line or "eatmydata" in line for line in commands):
        raise not_known(unit)


def commands_of(host: Host, path: str) -> list[str]:
    """Return the commands of a script that root's unit names, none if it does not exist. Raises Unobservable."""
    # Whatever server is collected meanwhile.
    with named_by.one(host, None):
        text = bounded_read.read(host, path)
    return [line for _row, line in shell_lines.lines(text or "")]


def differs(
    host: Host, engine: Any, unit: Unit, argv: list[str], environment: Mapping[str, str]
) -> Because | str | None:
    """Return why the next start of a server by its unit is unknown to be as this one, None if it is. Raises Undocumented.

    `argv` are this one's arguments, `environment` those of the engine's variables that it was started with. Options that
    match the engine's UNRELATED may differ.
    """
    unrelated: re.Pattern[str] | None = getattr(engine, "UNRELATED", None)

    def related(words: Iterable[str]) -> list[str]:
        return [word for word in words if not (unrelated and unrelated.fullmatch(word))]

    if _is_server(engine, unit):
        return units.differs(host, unit, argv, engine.VARIABLES, environment, related)
    try:
        coming = of_unit(host, engine, unit)
    except Undocumented:
        raise
    except Unobservable as error:
        return why_of(error)
    wrapper = _wrapper(engine, unit)
    wanted = {name: coming.variables.get(name, "") for name in engine.VARIABLES}
    same = all(environment.get(name, "") == value for name, value in wanted.items() if value is not None)
    if wrapper and same and wrapper.is_same(related(argv[1:]), related(coming.words)):
        return None
    return units.otherwise(unit)


def is_starter(unit: Unit, main: Process, parent: Process | None, engine: Any) -> bool:
    """Return whether a unit is what starts a running server, and not merely what it is in."""
    if unit.main in (0, main.pid):
        # Without a main process (Type=oneshot, or forking without a file of its number) the unit's command has ended, and
        # the server is in its control group.
        return unit.main == main.pid or unit.name.endswith(".service")
    # Another server's unit, or a manager's, has a main process of its own that started others.
    if parent is None or parent.pid != unit.main or parent.program in engine.PROGRAMS:
        return False
    is_script = parent.program in SHELLS or _wrapper(engine, unit) is not None
    return is_script or bool(engine.UNITS.fullmatch(unit.name))


def _program(unit: Unit) -> str:
    return posixpath.basename(unit.program)


def _is_server(engine: Any, unit: Unit) -> bool:
    return _program(unit) in engine.PROGRAMS and not unit.program.startswith(_SYSV)


def _wrapper(engine: Any, unit: Unit) -> Wrapper | None:
    known: Mapping[str, Wrapper] = getattr(engine, "WRAPPERS", {})
    return known.get(_program(unit))
