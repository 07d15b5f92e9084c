# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules that a boot does not load: modprobe.d(5), and the kernel's command line."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..host.seam import Host, Unobservable

#: Directories that outlive a boot, the strongest first.
DIRECTORIES = ("/etc/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
_ON_COMMAND_LINE = re.compile(
    r"(?:^|\s)((?:module_blacklist|modprobe\.blacklist|rd\.driver\.blacklist)=(\S+))"
)
#: Programs that load nothing.
_NOTHING = re.compile(r"(?:/usr)?(?:/bin/)?(?:true|false|:)(?:\s|$)")


class Blocked(NamedTuple):
    """A module, the file and line that name it, the line's text, and whether it is certain that it is not loaded.

    `is_word`: the text is a word of the kernel's command line.
    """

    module: str
    source: str
    text: str
    is_certain: bool
    is_word: bool = False


def blocked(host: Host, command_line: str = "", place: str = "") -> list[Blocked]:
    """Return the modules that are not loaded for a device: `blacklist` and `install` lines. Raises Unobservable.

    `command_line` is the kernel's of the next boot, and `place` its file and line.
    """
    found = [each for path in files(host) for each in parse(host.read(path), path)]
    for word, reported in _ON_COMMAND_LINE.findall(command_line):
        found += [Blocked(normal(name), place, word, True, is_word=True) for name in reported.split(",")]
    return found


def files(host: Host) -> list[str]:
    """Return the files that modprobe(8) reads: of those with one name the strongest directory's. Raises Unobservable."""
    found: dict[str, str] = {}
    for directory in DIRECTORIES:
        for name in host.names(directory) if host.exists(directory) else ():
            if name.endswith(".conf"):
                found.setdefault(name, f"{directory}/{name}")
    return [found[name] for name in sorted(found) if host.resolve(found[name]) != "/dev/null"]


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1; one that a backslash continues has that of its first part."""
    row = 1
    for line in re.split(r"(?<!\\)\n", text):
        yield row, line.replace("\\\n", "  ")
        row += line.count("\n") + 1


def parse(text: str, path: str) -> list[Blocked]:
    """Return the modules that a file keeps from being loaded."""
    found = []
    for row, line in lines(text):
        words = line.split(None, 2)
        source = f"{path} line {row}"
        if words[:1] == ["blacklist"] and len(words) > 1:
            found.append(Blocked(normal(words[1]), source, " ".join(words), True))
        elif words[:1] == ["install"] and len(words) > 2 and not _loads(normal(words[1]), words[2]):
            is_certain = bool(_NOTHING.match(words[2]))
            found.append(Blocked(normal(words[1]), source, " ".join(words), is_certain))
    return found


def _loads(module: str, command: str) -> bool:
    """Return whether the command of an `install` line loads the module after all."""
    words = [normal(word) for word in command.split()]
    is_plain = bool({"__ignore_install", "_i"} & set(words)) and module in words
    return not _NOTHING.match(command) and is_plain


def normal(name: str) -> str:
    """Return a module's name as the kernel spells it."""
    return name.replace("-", "_")


def drivers(host: Host, names: Iterable[str]) -> dict[str, str]:
    """Return {module: block device} of the modules by which block devices are driven, of those that are no part of the kernel.

    `names`: kernel names of block devices; devices below them count.
    """
    found: dict[str, str] = {}
    for name in below(host, names):
        path = host.resolve(f"/sys/class/block/{name}")
        while path.startswith("/sys/devices/"):
            module = _module(host, path)
            if module:
                found.setdefault(module, name)
            path = posixpath.dirname(path)
    return found


def below(host: Host, names: Iterable[str]) -> list[str]:
    """Return block devices with those below them: slaves of layers, disks of partitions."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = None
        path = f"/sys/class/block/{name}"
        if host.exists(f"{path}/partition"):
            waiting.append(posixpath.basename(posixpath.dirname(host.resolve(path))))
        elif host.exists(f"{path}/slaves"):
            waiting += _names(host, f"{path}/slaves")
    return list(found)


def is_loadable(host: Host, module: str) -> bool:
    """Return whether a module was loaded, rather than being a part of the kernel."""
    return host.exists(f"/sys/module/{normal(module)}/initstate")


def _names(host: Host, path: str) -> list[str]:
    try:
        return host.names(path)
    except Unobservable:
        return []


def _module(host: Host, path: str) -> str:
    try:
        module = normal(posixpath.basename(host.link(f"{path}/driver/module")))
    except Unobservable:
        return ""
    return module if is_loadable(host, module) else ""
