# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With which options the initramfs mounts the root: at this boot, and at the next as the boot loader has it.

GRUB's configuration and the entries of the Boot Loader Specification
(https://uapi-group.org/specifications/specs/boot_loader_specification/) are read. Which entry comes next is decided at
the boot, by a menu or a saved choice: all of them have to agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..host.seam import Host, Unobservable
from .shown_options import as_written

GRUB = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
GRUB_VARIABLES = ("/boot/grub/grubenv", "/boot/grub2/grubenv")
ENTRIES = ("/boot/loader/entries", "/efi/loader/entries", "/boot/efi/loader/entries")
_ROOTFLAGS = re.compile(r"(?:^|\s)rootflags=(\S+)")
_ROOT = re.compile(r"(?:^|\s)root=UUID=(\S+)")
_NAMED_ROOT = re.compile(r"(?:^|\s)root=(\S+)")
_SET = re.compile(r"""^\s*(?:set\s+)?(\w+)=(?:"([^"]*)"|'([^']*)'|(.*))$""", re.M)
#: Where the kernel's command line stands: in grub.cfg, and in an entry of the specification.
_GRUB_LINE = re.compile(r"^\s*(?:linux(?:16|efi)?|module2?)\s+(.*)$", re.M)
_ENTRY_LINE = re.compile(r"^\s*options\s+(.*)$", re.M)
#: What an entry loads. In grub.cfg a kernel begins it, and what unpacks it follows.
_LOADS = re.compile(r"^[ \t]*(linux|initrd)(?:16|efi)?[ \t]+(.+)$", re.M)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
#: Words of an entry for repairs, which nobody's database starts from.
REPAIR = {
    "single",
    "rescue",
    "emergency",
    "recovery",
    "systemd.unit=rescue.target",
    "systemd.unit=emergency.target",
}


class Entry(NamedTuple):
    """An entry of the boot loader that starts a system: where it stands, what it loads, and where those paths begin."""

    source: str
    kernel: str
    initramfs: tuple[str, ...]
    top: str = ""


class Rootflags(NamedTuple):
    """The options in the order in which they apply, and where they were read."""

    options: tuple[str, ...]
    source: str


def of_this_boot(host: Host) -> tuple[str, ...]:
    """Return the options with which the initramfs mounted the root at this boot. Raises Unobservable."""
    return _flags(host.read("/proc/cmdline"))


def of_the_next(host: Host) -> Rootflags:
    """Return those of the next boot: this boot's, where no boot loader's configuration says otherwise.

    Raises Unobservable where an entry of the boot loader gives the root other ones than this boot had.
    """
    now = host.read("/proc/cmdline")
    options, found = _flags(now), False
    for source, line in _command_lines(host):
        if REPAIR & set(line.split()) or _is_anothers(line, now):
            continue
        found = True
        if _flags(line) != options:
            raise Unobservable(
                f"{source}: seen {_said(_flags(line))}, at this boot {_said(options)}; which the next boot gets is not"
                " known: give all entries of the boot loader the same"
            )
    return Rootflags(options, "rootflags of the boot loader" if found else "rootflags of this boot")


def roots(host: Host) -> list[tuple[str, str]]:
    """Return where each entry of the boot loader stands that starts a system, and the root that it names ('' for none).

    Raises Unobservable.
    """
    found = []
    for source, line in _command_lines(host):
        if not REPAIR & set(line.split()):
            named = _NAMED_ROOT.findall(line)
            found.append((source, named[-1] if named else ""))
    return found


def entries(host: Host) -> list[Entry]:
    """Return the entries that start a system, as they stand in their files; those of the specification the newest name first.

    Of others than this one too. Raises Unobservable.
    """
    texts = _grub(host)
    variables = _variables(texts)
    found = [entry for path, text in texts.items() for entry in _of_grub(path, text, variables)]
    for path in sorted(_entries(host), reverse=True):
        text = host.read(path)
        loads = [(kind, _partly_filled(said, variables)) for kind, said in _LOADS.findall(text)]
        options = " ".join(_filled(line, variables) for line in _ENTRY_LINE.findall(text))
        kernels = [said.strip() for kind, said in loads if kind == "linux"]
        if kernels and not REPAIR & set(options.split()):
            images = tuple(word for kind, said in loads if kind == "initrd" for word in said.split())
            found.append(Entry(path, kernels[0], images, path.partition("/loader/entries/")[0]))
    return found


def _of_grub(path: str, text: str, variables: Mapping[str, str]) -> Iterator[Entry]:
    entry, is_repair = None, False
    for found in _LOADS.finditer(text):
        words = [word.strip("\"'") for word in _partly_filled(found[2], variables).split()]
        if found[1] == "linux":
            if entry and not is_repair:
                yield entry
            row = text.count("\n", 0, found.start(1)) + 1
            entry = Entry(f"{path} line {row}", words[0] if words else "", ())
            is_repair = bool(REPAIR & set(words))
        elif entry:
            entry = entry._replace(initramfs=(*entry.initramfs, *words))
    if entry and not is_repair:
        yield entry


def _flags(line: str) -> tuple[str, ...]:
    """Return the options of a kernel's command line: its last word counts."""
    found = _ROOTFLAGS.findall(line)
    return tuple(found[-1].split(",")) if found else ()


def _said(options: tuple[str, ...]) -> str:
    return f"rootflags={as_written(options)}" if options else "no rootflags"


def _is_anothers(line: str, now: str) -> bool:
    """Tell whether an entry starts another system: it has a root of its own."""
    ours, other = _ROOT.findall(now), _ROOT.findall(line)
    return bool(ours and other) and ours[-1].lower() != other[-1].lower()


def _command_lines(host: Host) -> Iterator[tuple[str, str]]:
    """Return where each entry's command line stands, and the line with its variables filled in."""
    grub = _grub(host)
    variables = _variables(grub)
    entries = {path: host.read(path) for path in _entries(host)}
    for texts, is_line in ((grub, _GRUB_LINE), (entries, _ENTRY_LINE)):
        for path, text in texts.items():
            for found in is_line.finditer(text):
                row = text.count("\n", 0, found.start(1)) + 1
                yield f"{path} line {row}", _filled(found[1], variables)


def _grub(host: Host) -> dict[str, str]:
    """Return {path: text} of GRUB's files, empty where one is not there. Raises Unobservable."""
    return {path: _read(host, path) for path in (*GRUB, *GRUB_VARIABLES)}


def _variables(grub: Mapping[str, str]) -> dict[str, str]:
    return {name: a or b or c for text in grub.values() for name, a, b, c in _SET.findall(text)}


def _entries(host: Host) -> list[str]:
    """Return the paths of the entries of the specification. Raises Unobservable."""
    directories = [path for path in ENTRIES if host.exists(path)]
    return [f"{path}/{name}" for path in directories for name in host.names(path) if name.endswith(".conf")]


def _filled(line: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], ""), line)


def _partly_filled(line: str, variables: Mapping[str, str]) -> str:
    """Return a line in which a variable stays that nothing sets: what it stands for is not known."""
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), line)


def _read(host: Host, path: str) -> str:
    """Return a file's text, empty where it is not there. Raises Unobservable."""
    return host.read(path) if host.exists(path) else ""
