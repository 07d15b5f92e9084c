# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of systemd whose commands set a setting of ours, and that a boot starts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from ..host import boot_scripts, shell_lines, system_conf
from ..host.seam import Host, Unobservable
from ..host.unit_names import template
from . import programs, unit_files
from .acts import Act
from .files import existing, text_of

BY = "systemd unit"
#: Where generators make units.
_GENERATED = "/run/systemd/generator"
#: The strongest first.
DIRECTORIES = (
    "/etc/systemd/system.control",
    "/etc/systemd/system",
    _GENERATED,
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
#: The name of the drop-ins that apply to each service.
_EACH = "service"
_STARTS = (".wants", ".requires", ".upholds")
_OURS = "durable-dbhost"
_EXEC = re.compile(r"Exec(?:Start|StartPre|StartPost|Stop|StopPost|Condition)")
#: Users as whom a command can set what is set here; of another one the result is unknown.
_ROOT = ("", "root", "0")
_CONDITION = re.compile(r"(?:Condition|Assert)\w+\s*=")


def collect(host: Host) -> list[Act]:
    """Return what the services do that a boot starts, with the drop-ins. Raises Unobservable."""
    found: list[Act] = []
    for name, paths in sorted(_files(host).items()):
        if name.startswith(_OURS) or host.resolve(paths[0]) == "/dev/null":
            continue
        acts = _of_unit(host, name, paths)
        # Those of all services, and of those whose names begin so, are not of one that is known.
        if acts and (name == _EACH or name.endswith("-.service")):
            found += [act._replace(is_certain=False) for act in acts]
        elif acts and starts_any(host, (name, posixpath.basename(host.resolve(paths[0])))):
            found += acts
    return found


def starts_any(host: Host, names: Iterable[str]) -> bool:
    """Tell whether a boot starts one of these services: a target, a timer, a socket or another unit asks for it."""
    for name in names:
        if any(host.resolve(f"{directory}/{name}") == "/dev/null" for directory in DIRECTORIES):
            continue
        stem = template(name).rpartition(".")[0]
        asked = {f"{stem}.{kind}" for kind in _KINDS}
        if any(template(each) in asked for each in _wanted(host)) or _is_named(host, name):
            return True
    return False


def _wanted(host: Host) -> set[str]:
    """Return the units that others ask for by links, except as a host goes down."""
    found: set[str] = set()
    for directory in DIRECTORIES:
        for entry in host.names(directory) if host.exists(directory) else ():
            if entry.endswith(_STARTS) and not _NO_BOOT.match(entry):
                found.update(host.names(f"{directory}/{entry}"))
    return found


def _is_named(host: Host, name: str) -> bool:
    """Tell whether something else than a link asks for a service: a unit or drop-in of an administrator, a udev rule, or a
    script or command of a boot."""
    stem = re.escape(template(name).rpartition(".")[0])
    named = re.compile(rf"(?<![\w@./-]){stem}(?:(?<=@)[^\s;'\"]*)?(?:\.service)?(?![\w@-])")
    for directory in DIRECTORIES[:4]:
        for path in existing(host, directory):
            of = posixpath.basename(path)
            is_drop_in = of.endswith(".d")
            if template(of.removesuffix(".d")) == template(name) or host.resolve(path) == "/dev/null":
                continue
            for file in existing(host, path, ".conf") if is_drop_in else [path]:
                lines = system_conf.parse(_text(host, file), file) if _is_unit(of) else ()
                if any(line.key not in _NO_START and named.search(line.value) for line in lines):
                    return True
    # ENV{SYSTEMD_WANTS}, and commands that start it.
    rules = (path for directory in _RULES for path in existing(host, directory, ".rules"))
    scripts = (path for path, by in boot_scripts.scripts(host) if by != boot_scripts.SYSV)
    texts = (_text(host, path) for path in (*rules, *scripts))
    lines_of = (line for text in texts for _row, line in shell_lines.lines(text))
    commands = (command.text for command in boot_scripts.commands(host))
    return any(named.search(line) for line in (*lines_of, *commands))


def _is_unit(name: str) -> bool:
    return name.removesuffix(".d").rpartition(".")[2] in _KINDS


_KINDS = ("service", "target", "timer", "path", "socket")
#: Keys whose units are not started.
_NO_START = frozenset(
    "After Before Conflicts Description Documentation PartOf PropagatesReloadTo PropagatesStopTo ReloadPropagatedFrom"
    " RequiresMountsFor StopPropagatedFrom SyslogIdentifier".split()
)


def _files(host: Host) -> dict[str, list[str]]:
    """Return {service: its file and drop-ins, in the order in which they are read}."""
    units: dict[str, str] = {}
    drop_ins: dict[str, dict[str, str]] = {}
    for directory in DIRECTORIES:
        for path in existing(host, directory):
            name = posixpath.basename(path)
            if name.endswith(".service"):
                units.setdefault(name, path)
            elif name.endswith(".service.d") or name == "service.d":
                for each in existing(host, path, ".conf"):
                    drop_ins.setdefault(name[: -len(".d")], {}).setdefault(posixpath.basename(each), each)
    names = {*units, *drop_ins}
    return {
        name: [
            *([units[name]] if name in units else []),
            *(drop_ins.get(name, {})[each] for each in sorted(drop_ins.get(name, {}))),
        ]
        for name in names
    }


def _of_unit(host: Host, name: str, paths: list[str]) -> list[Act]:
    texts = [(path, _text(host, path)) for path in paths]
    lines = [line for path, text in texts for line in system_conf.parse(text, path)]
    # A unit in /etc may be a link to one of a package, and systemd's own generators make units of packaged programs.
    packaged = {path: host.resolve(path).startswith((*unit_files.PACKAGED, _GENERATED)) for path in paths}
    is_conditional = any(_CONDITION.search(text) for _path, text in texts)
    is_roots = all(line.value in _ROOT for line in lines if (line.section, line.key) == ("Service", "User"))
    is_oneshot = any(re.search(r"(?m)^Type\s*=\s*oneshot", text) for _path, text in texts)
    found: dict[str, list[Act]] = {}
    for line in lines:
        if line.section != "Service" or not _EXEC.fullmatch(line.key):
            continue
        if not line.value:
            found[line.key] = []  # An empty line takes back those before it.
        # A stop runs as the host goes down.
        elif is_oneshot or not line.key.startswith("ExecStop"):
            is_packaged = packaged[line.source.rpartition(" line ")[0]]
            command = line.value.lstrip("@-:+!|").replace("$$", "$")
            acts = programs.of_words(host, command, line.source, BY, packaged=not is_packaged)
            found.setdefault(line.key, []).extend(acts)
    acts = [act for each in found.values() for act in each]
    is_certain = (
        not is_conditional and is_roots and "%" not in "".join(word for act in acts for word in act.words)
    )
    return acts if is_certain else [act._replace(is_certain=False) for act in acts]


def _text(host: Host, path: str) -> str:
    try:
        return text_of(host, path)
    except Unobservable:
        return ""  # A directory, or a link to nothing.
