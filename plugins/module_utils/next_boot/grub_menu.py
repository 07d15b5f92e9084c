# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The menu of a grub.cfg, and the entry that its default names. Pure.

The file is a script; its text is read as grub-mkconfig(8) writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_KINDS = ("menuentry", "submenu", "function")
_TITLE = re.compile(r"""^(?:"([^"]*)"|'([^']*)'|(\S+))""")
_ID = re.compile(r"""(?:--id[ =]|\$\{?menuentry_id_option\}?)\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")
#: Lines with the kernel's command line, and those with what unpacks it. A kernel begins an entry, also without a menu.
_KERNEL = re.compile(r"^\s*(?P<command>linux(?:16|efi)?|module2?)\s+(?P<said>.*)$")
_IMAGE = re.compile(r"^\s*(?:initrd(?:16|efi)?)\s+(?P<said>.*)$")
_DEFAULT = re.compile(r"""^[ \t]*set[ \t]+default=(?:"([^"\n]*)"|'([^'\n]*)'|(\S*))[ \t]*$""", re.M)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
#: A number as strtoul(3) reads it.
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0(?P<octal>[0-7]*)|[1-9][0-9]*")
_CONDITION = re.compile(r"(?m)^\s*(?:if|for|while|until|return|exit)\b")
_ENTRY = re.compile(r"(?ms)^[ \t]*(?:menuentry|submenu)\b.*?^\}")
#: A file whose commands are those of the configuration, as 41_custom has custom.cfg beside it.
_SOURCED = re.compile(r"""^\s*(?:source|\.)\s+["']?(?P<path>[^\s"']+)""")


class Item(NamedTuple):
    """One row of a menu: an entry, a submenu with `items`, or the place of the entries of the specification or of a file.

    `kernel` and `images`: row and text of the lines that load them. `specified`: the name of an entry of the
    specification. `sourced`: the file whose entries are there. `path`: the file of an entry, '' for the configuration.
    """

    title: str
    names: tuple[str, ...] = ()
    specified: str = ""
    kernel: tuple[int, str] | None = None
    images: tuple[tuple[int, str], ...] = ()
    items: tuple[Item, ...] = ()
    is_blscfg: bool = False
    sourced: str = ""
    path: str = ""


class _Open:
    """A block whose end is not read yet."""

    def __init__(self, kind: str, title: str = "", names: tuple[str, ...] = ()) -> None:
        self.kind, self.title, self.names = kind, title, names
        self.commands: list[tuple[int, str]] = []
        self.images: list[tuple[int, str]] = []
        self.items: list[Item] = []

    def close(self) -> Item:
        """Return the whole item."""
        kernel = next((each for each in self.commands if "root=" in each[1] or "$" in each[1]), None)
        first = self.commands[0] if self.commands else None
        return Item(self.title, self.names, "", kernel or first, tuple(self.images), tuple(self.items))


def parse_menu(text: str) -> list[Item]:
    """Return the rows of a menu; a kernel that stands outside of every entry is one."""
    stack = [_Open("")]
    for row, line in enumerate(text.split("\n"), 1):
        kind, _blank, rest = line.strip().replace("\t", " ").partition(" ")
        if kind in _KINDS and rest.endswith("{"):
            stack.append(_Open(kind, *_named(rest[:-1].strip())))
        elif line.strip() == "}":
            _close(stack)
        else:
            _take(stack, row, line)
    while len(stack) > 1:
        _close(stack)
    _end_bare(stack[0])
    return stack[0].items


def default_names(text: str, environment: Mapping[str, list[str]]) -> list[str]:
    """Return the values that the default of a configuration may have.

    `environment`: {variable: values} of GRUB's environment block. An entry for the next boot alone goes first.
    """
    once = [value for value in environment.get("next_entry", []) if value]
    if once and "next_entry" in text:
        return once
    found: dict[str, None] = {}
    reported = [a or b or c for a, b, c in _DEFAULT.findall(text)]
    for value in (each for each in reported if "next_entry" not in each):
        found.update(dict.fromkeys(_filled(value, environment)))
    return list(found) or ["0"]


def sets_default(text: str) -> tuple[bool, bool]:
    """Return whether a file sets the default, and whether it does so on no condition."""
    bare = _ENTRY.sub("", text)
    return bool(_DEFAULT.search(bare)), not _CONDITION.search(bare)


def resolve(items: list[Item], name: str, is_patched: bool = True) -> Iterator[Item]:
    """Yield the entries of which a default's value names one: all of a submenu that it names alone.

    GRUB takes the first row for a value that names none. A value that begins with digits is a number; with Red Hat's
    patch (`is_patched`), one of digits alone is.
    """
    if not items:
        return
    head, _sign, rest = name.partition(">")
    found = next((item for item in items if head in (item.title, *item.names)), None)
    number = _NUMBER.match(head)
    if number and (number[0] == head or not is_patched):
        row = int(number["octal"] or "0", 8) if number["octal"] is not None else int(number[0], 0)
        found = items[row] if row < len(items) else None
    found = found or items[0]
    if not found.items:
        yield found
    elif rest:
        yield from resolve(list(found.items), rest, is_patched)
    else:
        for item in found.items:
            yield from resolve([item], "0")


def _filled(value: str, environment: Mapping[str, list[str]]) -> list[str]:
    names = [found[1] or found[2] for found in _VARIABLE.finditer(value)]
    if not names:
        return [value or "0"]
    values = environment.get(names[0]) or [""]
    return [_VARIABLE.sub(lambda _found, each=each: each, value) or "0" for each in values]  # type: ignore[misc]


def _named(rest: str) -> tuple[str, tuple[str, ...]]:
    """Return title and names of a row."""
    title = _TITLE.match(rest)
    ids = [a or b or c for a, b, c in _ID.findall(rest)]
    return (title[1] or title[2] or title[3] or "") if title else "", tuple(ids)


def _take(stack: list[_Open], row: int, line: str) -> None:
    block = stack[-1]
    kernel, image, sourced = _KERNEL.match(line), _IMAGE.match(line), _SOURCED.match(line)
    if line.split()[:1] == ["blscfg"]:
        stack[0].items.append(Item("", is_blscfg=True))
    elif sourced and block.kind in ("", "submenu"):
        block.items.append(Item("", sourced=sourced["path"]))
    elif kernel:
        if len(stack) == 1:
            _end_bare(block)
        block.commands.append((row, kernel["said"].strip()))
    elif image:
        block.images.append((row, image["said"].strip()))


def _end_bare(block: _Open) -> None:
    """Make an item of a kernel that stands outside of every entry."""
    if block.commands:
        block.items.append(block.close()._replace(items=()))
        block.commands, block.images = [], []


def _close(stack: list[_Open]) -> None:
    if len(stack) == 1:
        return
    block = stack.pop()
    if block.kind != "function":
        _end_bare(stack[-1]) if len(stack) == 1 else None
        stack[-1].items.append(block.close())
