# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fstab(5), edited without touching a byte that is not ours."""

from __future__ import annotations

import re
from typing import NamedTuple

from .mountinfo import unescape

PATH = "/etc/fstab"
#: A managed line is preceded by a comment that starts like this: a comment is safe for every
#: reader of fstab (libmount, systemd, an initramfs's own mount), an unknown option is not.
MARK = "# durable.dbhost"

#: Tag of a device -> where udev keeps the links.
TAGS = {"UUID": "by-uuid", "LABEL": "by-label", "PARTUUID": "by-partuuid", "PARTLABEL": "by-partlabel"}

_FIELD = re.compile(r"[^ \t]+")
_MOST_FIELDS = 6
#: A file of another system, or a damaged one: readers of fstab differ over these.
_STRANGE = re.compile("[\r\0]")


class MalformedFstab(ValueError):
    """A line that mount(8) could not use. The message names the line and what was wanted."""


class Entry(NamedTuple):
    """One file system line: its row in the file's lines, and its fields, unescaped; of `options` the
    words as they stand there. `spec` has no quotes around the value of a tag."""

    row: int
    spec: str
    target: str
    fstype: str
    options: tuple[str, ...]


def parse(text: str) -> list[Entry]:
    """Return the entries of an fstab.

    Behind all six fields a comment may follow. Raises MalformedFstab for a line with fewer than three
    or more than six fields, or with a fifth or sixth field that is no number: libmount would skip it, so
    a boot may lack that mount. A comment before the sixth field is such a line: systemd takes it,
    libmount does not. Raises it as well for a line with a carriage return or a NUL.
    """
    entries = []
    for row, line in enumerate(text.split("\n")):
        fields = _FIELD.findall(line)
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) > _MOST_FIELDS and fields[_MOST_FIELDS].startswith("#"):
            fields = fields[:_MOST_FIELDS]
        numbers_are_numbers = all(field.isascii() and field.isdigit() for field in fields[4:])
        if not 3 <= len(fields) <= _MOST_FIELDS or not numbers_are_numbers or _STRANGE.search(line):
            # Never the line itself: a password with a blank in it makes one that is malformed.
            raise MalformedFstab(
                f"/etc/fstab line {row + 1}: seen {_what_is_wrong(line, fields)}; wanted 'device target type options"
                " [dump] [pass]', and a comment behind all six only; mend that line, then run again"
            )
        entries.append(
            Entry(
                row=row,
                spec=unquoted(unescape(fields[0])),
                target=_normal(unescape(fields[1])),
                fstype=fields[2],
                options=tuple((fields[3] if len(fields) > 3 else "defaults").split(",")),
            )
        )
    return entries


def _what_is_wrong(line: str, fields: list[str]) -> str:
    if _STRANGE.search(line):
        return "a carriage return or a NUL"
    if 3 <= len(fields) <= _MOST_FIELDS:
        return "a fifth or sixth field that is no number"
    return f"{len(fields)} field{'' if len(fields) == 1 else 's'}"


def unquoted(spec: str) -> str:
    """Return a device as fstab or a mount unit names it, without quotes around a tag's value (blkid(8))."""
    tag, equals, value = spec.partition("=")
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return f"{tag}={value[1:-1]}" if equals and tag in TAGS and is_quoted else spec


def find(entries: list[Entry], target: str) -> list[Entry]:
    """Return the entries for a target. With more than one, systemd takes the first and `mount -a`
    mounts all of them, one upon the other: nobody should rely on either."""
    return [entry for entry in entries if entry.target == _normal(target)]


def is_marked(text: str, entry: Entry) -> bool:
    """Tell whether our comment stands above an entry's line."""
    return entry.row > 0 and text.split("\n")[entry.row - 1].startswith(MARK)


def set_options(text: str, entry: Entry, options: tuple[str, ...], note: str | None) -> str:
    """Return the text with one entry's options replaced and its marking comment set.

    `note` is what the comment above the line says after the mark; None removes our comment.
    All other bytes stay as they are.
    """
    lines = text.split("\n")
    line = lines[entry.row]
    fields = list(_FIELD.finditer(line))
    joined = ",".join(options)
    if len(fields) > 3:
        changed = line[: fields[3].start()] + joined + line[fields[3].end() :]
    else:
        changed = line[: fields[2].end()] + " " + joined + line[fields[2].end() :]
    start = entry.row - 1 if is_marked(text, entry) else entry.row
    comment = [] if note is None else [f"{MARK}: {note}"]
    return "\n".join([*lines[:start], *comment, changed, *lines[entry.row + 1 :]])


def _normal(target: str) -> str:
    return target.rstrip("/") or "/"
