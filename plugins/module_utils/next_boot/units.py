# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd units that a boot starts and whose commands set a setting of this collection."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator

from ..host import system_conf
from ..host.boot_files import existing, text_of
from ..host.seam import Host
from ..host.unit_names import SECTIONS
from . import programs, unit_files
from .acts import Act
from .starts import DIRECTORIES, GENERATED, Starts

BY = "systemd unit"
_OURS = "durable-dbhost"
_EXEC = re.compile(r"Exec(?:Start|StartPre|StartPost|Stop|StopPre|StopPost|Condition)")
#: Users as whom a command can set what is set here; of another one the result is unknown.
_ROOT = ("", "root", "0")
_CONDITION = re.compile(r"(?:Condition|Assert)\w+\s*=")


def collect(host: Host, starts: Starts) -> list[Act]:
    """Return what the services and sockets do that a boot starts, with the drop-ins. Raises Unobservable."""
    found: list[Act] = []
    for name, paths in sorted(_files(host).items()):
        if name.startswith(_OURS) or host.resolve(paths[0]) == "/dev/null":
            continue
        acts = _of_unit(host, name, paths)
        # Those of all units of a type (named by it), and of those whose names begin so, are not of one that is known.
        if name in SECTIONS or name.rpartition(".")[0].endswith("-"):
            found += [act._replace(is_certain=False) for act in acts]
        else:
            found += starts.of_unit(acts, (name, posixpath.basename(host.resolve(paths[0]))))
    return found


def _files(host: Host) -> dict[str, list[str]]:
    """Return {unit: its file and drop-ins, in the order in which they are read}."""
    units: dict[str, str] = {}
    drop_ins: dict[str, dict[str, str]] = {}
    for directory in DIRECTORIES:
        for path in existing(host, directory):
            name = posixpath.basename(path)
            of, _dot, ending = name.rpartition(".")
            if ending in SECTIONS:
                units.setdefault(name, path)
            elif ending == "d" and of.rpartition(".")[2] in SECTIONS:
                for each in existing(host, path, ".conf"):
                    drop_ins.setdefault(of, {}).setdefault(posixpath.basename(each), each)
    names = {*units, *drop_ins}
    return {
        name: [
            *([units[name]] if name in units else []),
            *(drop_ins.get(name, {})[each] for each in sorted(drop_ins.get(name, {}))),
        ]
        for name in names
    }


def _of_unit(host: Host, name: str, paths: list[str]) -> list[Act]:
    """Return what the commands of a unit do; `paths` are its file and drop-ins."""
    texts = [(path, text_of(host, path)) for path in paths]
    section = SECTIONS[name.rpartition(".")[2]]
    lines = [line for path, text in texts for line in system_conf.parse(text, path)]
    is_oneshot = any(re.search(r"(?m)^Type\s*=\s*oneshot", text) for _path, text in texts)
    # A unit in /etc may be a link to one of a package, and systemd's own generators make units of packaged programs.
    packaged = {path: host.resolve(path).startswith((*unit_files.PACKAGED, GENERATED)) for path in paths}
    acts = []
    for line in _commands(lines, section, is_oneshot):
        is_packaged = packaged[line.source.rpartition(" line ")[0]]
        command = line.value.lstrip("@-:+!|").replace("$$", "$")
        acts += programs.of_words(host, command, line.source, BY, packaged=not is_packaged)
    is_conditional = any(_CONDITION.search(text) for _path, text in texts)
    is_roots = all(line.value in _ROOT for line in lines if (line.section, line.key) == (section, "User"))
    has_specifiers = any("%" in word for act in acts for word in act.words)
    is_certain = not is_conditional and is_roots and not has_specifiers
    return acts if is_certain else [act._replace(is_certain=False) for act in acts]


def _commands(lines: list[system_conf.Line], section: str, is_oneshot: bool) -> Iterator[system_conf.Line]:
    """Return the lines whose commands run as the unit starts, key by key."""
    found: dict[str, list[system_conf.Line]] = {}
    for line in lines:
        if line.section != section or not _EXEC.fullmatch(line.key):
            continue
        if not line.value:
            found[line.key] = []  # An empty line takes back those before it.
        # A stop runs as the host goes down.
        elif is_oneshot or not line.key.startswith("ExecStop"):
            found.setdefault(line.key, []).append(line)
    return itertools.chain.from_iterable(found.values())
