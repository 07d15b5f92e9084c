# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's services and their properties."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from . import boot_environment, bounded_read, named_by, read_budget, unit_reload
from .observation import Observation, unknown
from .processes import breaks_fsync
from .seam import Host, Unobservable
from .textfile import Malformed, Read, split
from .unit_names import template

#: Where units lie (systemd.unit(5)), those that a generator or an administrator made meanwhile too; the strongest first.
DIRECTORIES = (
    "/run/systemd/transient",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
#: Where `systemctl set-property` and `systemctl edit` of a running unit write.
_CONTROLS = ("/etc/systemd/system.control", "/run/systemd/system.control")
#: Units that start this one.
_STARTERS = ("WantedBy", "RequiredBy", "BoundBy", "UpheldBy", "TriggeredBy")
_PROPERTIES = (
    *_STARTERS,
    "Id",
    "Names",
    "LoadState",
    "ActiveState",
    "UnitFileState",
    "TimeoutStopUSec",
    "WorkingDirectory",
    "ExecStart",
    "MainPID",
    "NeedDaemonReload",
    "FragmentPath",
    "SourcePath",
    "DropInPaths",
    "Environment",
    "EnvironmentFiles",
    "After",
    "Requires",
    "Requisite",
    "BindsTo",
)
#: Without those units this one does not start.
_NEEDS = ("Requires", "Requisite", "BindsTo")
#: Lines of these add to each other; of others the first one counts.
_LISTS = ("EnvironmentFiles",)
#: A variable in a command: systemd.service(5), "Command lines".
_VARIABLE = re.compile(r"\$\{(?P<braced>\w+)\}|^\$(?P<word>\w+)$")
#: Variables that a start sets by itself, for a node to join its cluster.
_OF_ONE_START = re.compile(r"_WSREP_\w+")
_PRELOAD = "LD_PRELOAD"
_FILE = re.compile(r"(?P<path>/.*?)(?P<ignore> \(ignore_errors=(?:yes|no)\))?")
_PROGRAM = re.compile(r"(?:^|[{;]) path=(?P<path>.*?) ; argv\[\]=(?P<argv>.*?) ; ignore_errors=")
#: systemd's units of time in seconds: systemd.time(7).
_SECONDS = {
    "us": 0.000001,
    "ms": 0.001,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "month": 2629800.0,
    "y": 31557600.0,
}
_NAME = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)+)"|[^\s"]+')
#: What systemctl says where another program is process 1, as in most containers: systemd's sd_booted(3).
_NOT_BOOTED = "not been booted with systemd"
#: Letters of a command that is not understood.
_SHOWN = 80
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|min|h|d|w|month|y)", re.ASCII)


class Unit(NamedTuple):
    """One service. `load`, `active` and `enabled` are systemd's values; `argv` is that of its first
    command, as systemd prints it (without quotes around arguments). `main` is the process that systemd
    takes for the service, 0 where it knows none. `stale`: its files may have changed since systemd read them. `environment` is
    as systemd prints it, and may hold passwords: for this module alone; `files` are more of it. `starters`: units that
    start it, as far as systemd has them loaded. `mounts`: mount units without which it does not start, and for which it
    waits. `manager`: the environment of systemd itself, None if it was not read or is unknown."""

    name: str
    names: tuple[str, ...]
    load: str
    active: str
    enabled: str
    stop_timeout: Observation
    directory: str
    program: str
    argv: str
    main: int
    stale: bool = False
    loaded: unit_reload.Loaded = unit_reload.Loaded("", "", (), False)
    environment: str = ""
    files: tuple[str, ...] = ()
    starters: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    manager: str | None = None

    @property
    def starts_at_boot(self) -> str:
        """Yes, no or unknown: whether the next boot starts it. No only if nothing is left that could."""
        if self.load == "masked" or self.enabled == "masked":
            return "no"
        if self.enabled == "disabled" and self.active in ("inactive", "failed") and not self.starters:
            return "no"
        return "yes" if self.enabled == "enabled" or self.starters else "unknown"


def listed(host: Host) -> list[str]:
    """Return the names of the services that have a file or are started by something.

    Aliases are left out, templates as well. Without systemd there are none.
    """
    found: dict[str, str] = {}
    for base in DIRECTORIES:
        for entry in _names(host, base):
            if entry.endswith((".wants", ".requires")):
                for name in _names(host, f"{base}/{entry}"):
                    found.setdefault(name, f"{base}/{entry}/{name}")
            else:
                found.setdefault(entry, f"{base}/{entry}")
    services = (name for name in found if name.endswith(".service") and not name.endswith("@.service"))
    return sorted(name for name in services if not _is_alias(host, name, found[name]))


def has_file(host: Host, name: str) -> bool:
    """Return whether a unit, or the template of an instance, has a file anywhere; a link to nothing counts."""
    return any(host.exists(f"{base}/{each}") for base in DIRECTORIES for each in (name, template(name)))


def show(host: Host, names: Iterable[str], starts: bool = False) -> tuple[dict[str, Unit], str | None]:
    """Return {name: what systemd reports}, by each of a unit's names, and why nothing could be read.

    One call for all of them, none for none. `starts`: whether one more call reads what their next start gets
    from systemd's own environment.
    """
    requested = sorted(set(names))
    if not requested:
        return {}, None
    argv = ["systemctl", "show", f"--property={','.join(_PROPERTIES)}", "--", *requested]
    try:
        result = host.run(argv)
    except Unobservable as error:
        return {}, str(error)
    if result.rc != 0 and not result.stdout and _NOT_BOOTED in result.stderr:
        return {}, f"this host has {_NOT_BOOTED}, and nothing else says what starts and stops its services"
    if result.rc != 0 and not result.stdout:
        return {}, f"systemctl: {' '.join(result.stderr.split()) or f'exit {result.rc}'}"
    manager = _environment(host) if starts else None
    units = [
        unit._replace(
            manager=manager,
            stale=unit.load == "loaded"
            and unit_reload.is_due(host, (unit.name, *unit.names), unit.loaded, (*_CONTROLS, *DIRECTORIES)),
        )
        for unit in parse(result.stdout)
    ]
    return {name: unit for unit in units for name in (unit.name, *unit.names)}, None


def _environment(host: Host) -> str | None:
    """Return the environment that systemd hands on to all services, as it prints it; None where it does not tell.

    It has what `systemctl set-environment` and `DefaultEnvironment=` in system.conf set.
    """
    try:
        result = host.run(["systemctl", "show", "--property=Environment"])
    except Unobservable:
        return None
    key, _equals, value = result.stdout.strip().partition("=")
    return value if result.rc == 0 and key == "Environment" else None


def parse(text: str) -> list[Unit]:
    """Return the units of `systemctl show`; one without an Id is passed over."""
    found = []
    for block in text.split("\n\n"):
        fields: dict[str, str] = {}
        for line in block.split("\n"):
            key, _equals, value = line.partition("=")
            # Of several commands the first one counts: it is printed first.
            if key in _LISTS and value:
                value = "\n".join(filter(None, (fields.pop(key, ""), value)))
            fields.setdefault(key, value)
        if fields.get("Id"):
            found.append(_unit(fields))
    return found


def seconds(text: str) -> str:
    """Return a time span as systemd prints it (`1min 30s`) in seconds, or `infinity`.

    Raises ValueError for anything else.
    """
    fields = text.split()
    if fields == ["infinity"]:
        return "infinity"
    parts = [_SPAN.fullmatch(field) for field in fields]
    if text == "0":
        return "0"
    if not parts or not all(parts):
        raise ValueError(f"not a time span: {text!r}")
    return f"{sum(float(part[1]) * _SECONDS[part[2]] for part in parts if part):.6f}".rstrip("0").rstrip(".")


def _unit(fields: dict[str, str]) -> Unit:
    program = _PROGRAM.search(fields.get("ExecStart", ""))
    name, text = fields["Id"], fields.get("TimeoutStopUSec", "")
    main = fields.get("MainPID", "")
    source = f"systemctl show {name}"
    needed = {name for key in _NEEDS for name in _unit_names(fields.get(key, ""))}
    try:
        timeout = Observation(seconds(text), source)
    except ValueError as error:
        timeout = unknown(source, f"TimeoutStopUSec: {error}")
    return Unit(
        name=name,
        names=tuple(fields.get("Names", "").split()),
        load=fields.get("LoadState", ""),
        active=fields.get("ActiveState", ""),
        enabled=fields.get("UnitFileState", ""),
        stop_timeout=timeout,
        directory=fields.get("WorkingDirectory", ""),
        # One that is not understood is none that anybody knows.
        program=program["path"] if program else fields.get("ExecStart", "")[:_SHOWN],
        argv=program["argv"] if program else "",
        main=int(main) if re.fullmatch(r"\d{1,9}", main, re.ASCII) else 0,
        stale=fields.get("NeedDaemonReload") == "yes",
        loaded=unit_reload.Loaded(
            fields.get("FragmentPath", ""),
            fields.get("SourcePath", ""),
            tuple(_unit_names(fields.get("DropInPaths", ""))),
            fields.get("NeedDaemonReload") == "yes",
        ),
        environment=fields.get("Environment", ""),
        starters=tuple(name for key in _STARTERS for name in fields.get(key, "").split()),
        mounts=tuple(
            name
            for name in _unit_names(fields.get("After", ""))
            if name in needed and name.endswith(".mount")
        ),
        files=tuple(fields.get("EnvironmentFiles", "").split("\n")) if fields.get("EnvironmentFiles") else (),
    )


def _unit_names(text: str) -> list[str]:
    """Return the units of a property. Those with a backslash are printed in quotes, and the backslash twice."""
    return [
        re.sub(r"\\(.)", r"\1", found["quoted"]) if found["quoted"] else found[0]
        for found in _NAME.finditer(text)
    ]


def next_arguments(host: Host, unit: Unit) -> list[str]:
    """Return the arguments that a unit's next start gives its program, split at blanks.

    A variable that neither the unit nor systemd itself sets is empty. Raises Unobservable if they cannot be read, or
    where that start takes the server's flushes away.
    """
    if unit.stale:
        raise Unobservable(
            f"{unit.name}: its file has changed since systemd read it: systemctl daemon-reload, then run again"
        )
    return expanded(host, unit, unit.argv.split()[1:])


def expanded(host: Host, unit: Unit, arguments: list[str]) -> list[str]:
    """Return arguments with the variables in them replaced, as a unit's next start has them. Raises Unobservable."""
    names = {found["braced"] or found["word"] for word in arguments for found in _VARIABLE.finditer(word)}
    values = variables(host, unit, names | {_PRELOAD})
    expect_flushing(unit.name, values.get(_PRELOAD, ""))
    text = " ".join(
        _VARIABLE.sub(lambda found: values.get(found["braced"] or found["word"], ""), word)
        for word in arguments
    )
    return text.replace("$$", "$").split()


def expect_flushing(where: str, preloads: str) -> None:
    """Raise Unobservable if a server will be started with a library that makes fsync(2) do nothing."""
    if any(map(breaks_fsync, re.split("[: ]", preloads))):
        raise Unobservable(
            f"{where}: it preloads {preloads}, which makes fsync do nothing: remove that library"
        )


def otherwise(unit: Unit) -> str:
    """Return the note on a server whose unit would start it with other settings."""
    return (
        f"it was started with other arguments, or in another environment, than {unit.name} gives it next time: restart it,"
        " or take that change of its unit out, then run again"
    )


def differs(
    host: Host,
    unit: Unit,
    argv: list[str],
    names: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    related: Callable[[Iterable[str]], list[str]] = list,
) -> str | None:
    """Return why it is unknown that the next start of a server by its unit equals this one, or None.

    `argv` are this one's arguments, and `environment` those of the variables `names` that it was started with. `related`
    returns the arguments that count.
    """
    try:
        wanted = next_arguments(host, unit)
        given = variables(host, unit, set(names))
    except Unobservable as error:
        return str(error)
    # Arguments may hold blanks, and systemd prints no quotes.
    arguments = " ".join(argv[1:]).split()
    if any(_OF_ONE_START.search(word) for word in unit.argv.split()):
        arguments = [word for word in arguments if not re.match(r"--wsrep[-_]", word)]
    if related(arguments) == related(wanted) and given == dict(environment or {}):
        return None
    return otherwise(unit)


def variables(host: Host, unit: Unit, names: set[str]) -> dict[str, str]:
    """Return these of the variables that the next start of a unit gets: files go before what it says itself, and that
    before what systemd hands on to all. Raises Unobservable."""
    found = _assigned(unit, unit.environment)
    read = read_budget.within(host, partial(bounded_read.read, host))
    # Root's unit names them, whatever server is collected meanwhile.
    with named_by.one(host, None):
        for file in unit.files:
            found.update(_of_file(read, unit, file, names))
    if names - found.keys():
        if unit.manager is None:
            raise Unobservable(f"{unit.name}: what it gets of systemd's own environment is unknown")
        found = {**_of_manager(host, unit, names - found.keys()), **found}
    return {name: value for name, value in found.items() if name in names}


def _of_manager(host: Host, unit: Unit, names: set[str]) -> dict[str, str]:
    """Return these of the variables that systemd hands on to all, now and from the next boot on. Raises Unobservable.

    systemd reads system.conf, and runs environment generators, at a boot and a re-exec. What they set now, and systemd does
    not, comes then.
    """
    found = _assigned(unit, unit.manager or "")
    for name, (value, source) in boot_environment.read(host).items():
        if name not in names or found.get(name) == value:
            continue
        if name != _PRELOAD:
            raise Unobservable(
                f"{unit.name}: {source} sets {name} from the next boot on, and systemd has not read it yet:"
                " run systemctl daemon-reexec, restart the server, then run again"
            )
        # Most libraries change no setting. One that makes fsync do nothing is refused by those who ask.
        found[name] = value
    return found


def _assigned(unit: Unit, text: str) -> dict[str, str]:
    """Return {variable: value} of an environment as systemd prints it. Raises Unobservable."""
    found: dict[str, str] = {}
    name = None
    try:
        parts = shlex.split(text)
    except ValueError:
        raise Unobservable(f"{unit.name}: its environment is not understood") from None
    for part in parts:
        key, equals, value = part.partition("=")
        if equals and re.fullmatch(r"\w+", key):
            name = key
            found[name] = value
        elif name:
            found[name] += f" {part}"  # Older releases print no quotes.
    return found


def _of_file(read: Read, unit: Unit, text: str, names: set[str]) -> dict[str, str]:
    file = _FILE.fullmatch(text)
    if not file or re.search(r"[*?\[\\]", file["path"]):
        raise Unobservable(f"{unit.name}: its EnvironmentFile {text} is not understood")
    try:
        lines = split(read(file["path"]) or "", file["path"])
    except Malformed as error:
        raise Unobservable(str(error)) from None
    found = {}
    for line in lines:
        name, equals, value = (part.strip() for part in line.partition("="))
        if equals and name in names:
            bare = re.fullmatch(r"""(["']?)([^"'\\$]*)\1""", value)
            if not bare:
                raise Unobservable(f"{file['path']}: what it sets {name} to is not understood")
            found[name] = bare[2]
    return found


def _names(host: Host, directory: str) -> list[str]:
    try:
        return host.names(directory)
    except Unobservable:
        return []


def _is_alias(host: Host, name: str, path: str) -> bool:
    """Return whether a file is a link to a unit of another name. One to /dev/null masks a unit."""
    real = posixpath.basename(host.resolve(path))
    return real not in (name, template(name), "null")
