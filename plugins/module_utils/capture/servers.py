# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Database servers and the state of the system in a recording.

The facts about servers are recorded, and no files of them: an assessment needs no more. Of files and command lines the
names of options are recorded, never values.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from typing import Any

from ..engines.collect import collect
from ..host.seam import Host, Unobservable
from . import redact_mounts
from .identities import Identities

#: A word after which a value may be secret, and that value.
_SECRET = re.compile(
    r"""((?:pass(?:word|wd|phrase)?|pwd|secret|token|credential)s?[\w-]*["']?\s*(?:=|:|\s)\s*|\bidentified\s+by\s+)"""
    r"""("[^"]*"|'[^']*'|\S+)""",
    re.I,
)
_HIDDEN = "..."
#: Properties of a unit that are recorded as systemd shows them.
_PLAIN = (
    *("Id", "Names", "LoadState", "ActiveState", "UnitFileState", "Type", "User", "Group", "DynamicUser"),
    *("FragmentPath", "DropInPaths", "NeedDaemonReload", "TimeoutStopUSec", "KillMode", "Restart"),
    *(
        "RequiresMountsFor",
        "ProtectSystem",
        "ReadWritePaths",
        "RootDirectory",
        "PrivateTmp",
        "EnvironmentFiles",
    ),
)
#: Those of which the names of options and variables are recorded.
_WITH_VALUES = ("ExecStart", "Environment")
#: An option in a file: its name, and what separates it from its value.
_OPTION = re.compile(r"(?P<name>[A-Za-z][\w.\-]{0,80})(?:\s*=|\s+\S)", re.ASCII)
_SECTION = re.compile(r"\[[\w .\-]{1,80}\]", re.ASCII)
#: Most files, and options of each.
_FILES, _OPTIONS = 60, 300
#: Boot entries and the files of boot loaders, also those of the EFI system partition.
_ENTRIES = tuple(f"{place}/loader/entries" for place in ("/boot", "/efi", "/boot/efi"))
_LOADERS = tuple(
    f"{place}/EFI{below}" for place in ("/boot", "/efi", "/boot/efi") for below in ("", "/Linux")
)


def facts(host: Host, now: str, databases: Any) -> dict[str, Any]:
    """Return `durable_engines` of a host, or {"error": why} if it could not be collected."""
    try:
        return {**collect(host, now, databases)}
    except Unobservable as error:
        return {"error": str(error)}
    except Exception as error:  # Its message can hold anything.
        return {"error": type(error).__name__}


def without_names(found: dict[str, Any]) -> dict[str, Any]:
    """Return `durable_engines` with numbers for the users and databases that have settings of their own."""
    if "engines" not in found:
        return found
    return {
        **found,
        "engines": [{**each, "overrides": _numbered(each["overrides"])} for each in found["engines"]],
    }


def _numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known: dict[str, str] = {}
    numbered = []
    for row in rows:
        for name in filter(None, (row.get("role"), row.get("database"))):
            known.setdefault(name, f"name{len(known) + 1}")
        shown = {
            key: known.get(value, value) if key in ("role", "database") else None
            for key, value in row.items()
        }
        scope = " in ".join(filter(None, (shown.get("role"), shown.get("database")))) or "all"
        numbered.append(
            {
                **row,
                **{key: shown.get(key) for key in ("role", "database")},
                "scope": scope,
            }
        )
    return numbered


def redacted(value: Any, names: Identities) -> Any:
    """Return facts with stand-ins for all that names the host, and without what may be secret."""
    if isinstance(value, dict):
        return {_text(key, names): redacted(each, names) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted(each, names) for each in value]
    return _text(value, names) if isinstance(value, str) else value


def _text(text: str, names: Identities) -> str:
    return names.text(_SECRET.sub(rf"\1{_HIDDEN}", text))


def system(host: Host, found: dict[str, Any], names: Identities) -> dict[str, Any]:
    """Return the state of the system around the servers, redacted. Nothing here raises for what a host says."""
    engines = found.get("engines", [])
    paths = sorted(_paths(engines))[:_FILES]
    observed: dict[str, Any] = {
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "systemd": (_ran(host, ["systemctl", "--version"]) or "").partition("\n")[0],
        "selinux": {
            "enforce": _read(host, "/sys/fs/selinux/enforce"),
            "configured": _matches(r"^SELINUX(?:TYPE)?=\w+$", _read(host, "/etc/selinux/config")),
        },
        "apparmor": {"enabled": _read(host, "/sys/module/apparmor/parameters/enabled")},
        "labels": {
            str(pid): _read(host, f"/proc/{pid}/attr/current") for each in engines for pid in each["pids"][:1]
        },
        "units": {each["unit"]: _unit(host, each["unit"]) for each in engines if each["unit"]},
        "files": {path: _owner(host, path) for path in paths},
        "options": {path: options for path in paths if (options := _options(host, path))},
        "boot": {
            directory: listed for directory in (*_ENTRIES, *_LOADERS) if (listed := _listed(host, directory))
        },
    }
    entries = {
        f"{directory}/{name}": text
        for directory in _ENTRIES
        for name in observed["boot"].get(directory, ())
        if name.endswith(".conf") and (text := _read(host, f"{directory}/{name}"))
    }
    machine = _read(host, "/etc/machine-id")
    if machine:
        names.learn_identity(machine)
    shown: dict[str, Any] = redacted(observed, names)
    shown["entries"] = {
        _text(path, names): redact_mounts.boot_loader(text, names) for path, text in entries.items()
    }
    return shown


def _paths(engines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the configuration files and directories of servers, with the directory of each file."""
    named: set[str] = set()
    for each in engines:
        origins = (str(row.get("from") or "").rpartition(":")[0] for row in each["settings"].values())
        named |= {
            path for path in (each["config"], *each["writes"], *origins) if path and path.startswith("/")
        }
        named |= {path for path in each["directories"] if path.startswith("/")}
    yield from named | {path.rpartition("/")[0] or "/" for path in named}


def _owner(host: Host, path: str) -> str:
    try:
        status = host.locate(path).status
    except Unobservable as error:
        return str(error)
    return f"{status.user}:{status.group} {status.mode & 0o7777:04o}" if status else "missing"


def _options(host: Host, path: str) -> list[str]:
    """Return the names of the options of a file: none for a directory and for what is no text."""
    try:
        part = host.read_part(path)
    except Unobservable:
        return []
    return list(option_names(part.text))[:_OPTIONS] if part else []


def option_names(text: str) -> Iterator[str]:
    """Yield sections and names of options of a text. A line without a value may be a secret: it is not recorded."""
    for line in text.splitlines():
        section, option = _SECTION.match(line), _OPTION.match(line)
        if section:
            yield section[0]
        elif option:
            yield option["name"]


def _unit(host: Host, unit: str) -> dict[str, str]:
    printed = _ran(
        host, ["systemctl", "show", f"--property={','.join((*_PLAIN, *_WITH_VALUES))}", "--", unit]
    )
    shown = {}
    for line in (printed or "").splitlines():
        name, _equals, value = line.partition("=")
        if name in _PLAIN:
            shown[name] = value
        elif name in _WITH_VALUES:
            shown[name] = " ".join(map(_word, value.split()))
    return shown


def _word(word: str) -> str:
    """Return a word of a command line without a value: a path, an option's name, or nothing of it."""
    name, equals, value = word.partition("=")
    if name in ("path", "argv[]") and value.startswith("/"):
        return word
    if re.fullmatch(r"(?:--)?[A-Za-z][\w.\-]*", name, re.ASCII) and (equals or name.startswith("--")):
        return f"{name}={_HIDDEN}" if equals else name
    if re.match(r"-[A-Za-z]", word, re.ASCII):
        return word if len(word) == 2 else f"{word[:2]}{_HIDDEN}"
    return word if word in "{};" or word.startswith("/") else _HIDDEN


def _listed(host: Host, directory: str) -> list[str]:
    try:
        return host.list_names(directory) or []
    except Unobservable:
        return []


def _matches(pattern: str, text: str | None) -> list[str]:
    return re.findall(pattern, text or "", re.M)


def _read(host: Host, path: str) -> str | None:
    try:
        return host.read(path).strip().strip("\0")
    except Unobservable:
        return None


def _ran(host: Host, argv: list[str]) -> str | None:
    try:
        return host.run(argv).stdout
    except Unobservable:
        return None
