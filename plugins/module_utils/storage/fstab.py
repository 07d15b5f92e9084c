# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Editing of fstab(5): bytes of other lines and fields stay unchanged."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..host.mount_api.options import split as split_options
from ..host.mountinfo import unescape
from . import mount_settings
from .shown_options import shown, without_login

PATH = "/etc/fstab"
#: A managed line is preceded by a comment that starts like this: a comment is safe for every
#: reader of fstab (libmount, systemd, an initramfs's own mount), an unknown option is not.
MARK = "# durable.dbhost"

#: Tag of a device -> where udev keeps the links.
TAGS = {"UUID": "by-uuid", "LABEL": "by-label", "PARTUUID": "by-partuuid", "PARTLABEL": "by-partlabel"}

#: Pairs of options of which the last one counts: whether a boot goes on without the mount.
_OPTIONAL = (("noauto", "auto"), ("nofail", "fail"))
#: remote-fs.target waits for these, and a boot goes on without it (mount(8), systemd.mount(5)).
NETWORK = frozenset(
    "_netdev afs ceph cifs davfs gfs gfs2 glusterfs lustre ncp ncpfs nfs nfs4 ocfs2 pvfs2 smb3 smbfs sshfs".split()
)

_FIELD = re.compile(r"[^ \t]+")
_MOST_FIELDS = 6
#: What getmntent(3) expands.
_EXPANDED = {"040": " ", "011": "\t", "012": "\n", "134": "\\", "\\": "\\"}
_GETMNTENT = re.compile(r"\\(040|011|012|134|\\)")
#: A file of another system, or a damaged one: readers of fstab differ over these.
_STRANGE = {
    "a carriage return or a NUL": re.compile("[\r\0]"),
    "a byte order mark": re.compile("\ufeff"),
}
#: Bytes of a line: getmntent(3), by which systemd reads it, drops what is above.
_LONGEST = 4095


class MalformedFstab(ValueError):
    """A line that mount(8) could not use. The message has the line, the observed and the expected value."""


class Entry(NamedTuple):
    """One file system line: its row in the file's lines, and its fields, unescaped; `options`
    as they are written. `spec` has no quotes around the value of a tag. `unit`: the file of systemd's that has the
    last word instead of the line, or that stands alone ('' for none)."""

    row: int
    spec: str
    target: str
    fstype: str
    options: tuple[str, ...]
    unit: str = ""

    @property
    def source(self) -> str:
        """The place of the line or unit, as text."""
        return self.unit or f"{PATH} line {self.row + 1}"

    @property
    def boot(self) -> str:
        """Required where the boot stops without it, automount where the first access waits for it, else optional."""
        if "x-systemd.automount" in self.options:
            return "automount"
        goes_on = any(self.has(*pair) for pair in _OPTIONAL) or self.fstype == "swap"
        return "optional" if goes_on or NETWORK & {self.fstype, *self.options} else "required"

    def has(self, yes: str, no: str) -> bool:
        """Return whether the last of two options that contradict each other says yes."""
        return next((word for word in reversed(self.options) if word in (yes, no)), no) == yes


def parse(text: str) -> list[Entry]:
    """Return the entries of an fstab.

    Behind all six fields a comment may follow. Raises MalformedFstab for a line with fewer than three
    or more than six fields, or with a fifth or sixth field that is no number: libmount would skip it, so
    a boot may lack that mount. A comment before the sixth field is such a line: systemd takes it,
    libmount does not. Raises it as well for a line that is too long, or has a carriage return, a NUL or a
    byte order mark, and for a device, mount point or type that mount(8) and systemd read differently.
    """
    entries = []
    for row, line in enumerate(text.split("\n")):
        if _is_comment(line):
            continue
        strange = _what_is_strange(line)
        if strange:
            raise _refusal(row, strange, "none, over which readers of fstab differ")
        fields = _FIELD.findall(line)
        if len(fields) > _MOST_FIELDS and fields[_MOST_FIELDS].startswith("#"):
            fields = fields[:_MOST_FIELDS]
        numbers_are_numbers = all(field.isascii() and field.isdigit() for field in fields[4:])
        if not 3 <= len(fields) <= _MOST_FIELDS or not numbers_are_numbers:
            wanted = "'device target type options [dump] [pass]', and a comment behind all six only"
            raise _refusal(row, _what_is_wrong(fields), wanted)
        if any(_as_libmount(field) != _as_systemd(field) for field in fields[:3]):
            seen = "an escape that mount(8) and systemd read differently"
            raise _refusal(row, seen, "none but \\040, \\011 and \\134")
        if any(map(_breaks_a_unit, fields[:3])):
            seen = "a newline, or a backslash at the end of a field"
            raise _refusal(row, seen, "neither: systemd makes a line of a unit of it")
        spec, target, fstype = map(unescape, fields[:3])
        options = (fields[3] if len(fields) > 3 else "defaults").split(",")
        entries.append(Entry(row, unquoted(spec), _normal(target), fstype, tuple(options)))
    return entries


def is_private(row: str) -> bool:
    """Return whether a line of fstab, also one that is a comment, or `Options=` of a mount unit, can contain a secret.

    It is one with a login, with an option that may hold a password, or of a network file system other than NFS.
    A blank in a password moves the fields, so that all from the fourth on count as options.
    """
    content = row.lstrip("# \t")
    fields = content.split()
    if content.startswith("Options="):
        fields = ["", "", "", content[len("Options=") :]]
    lists = [field.split(",") for field in fields[3:]]
    is_network = bool((NETWORK - {"nfs", "nfs4"}) & set(fields[2:3]))
    return is_network or without_login(content) != content or any(shown(each) != each for each in lists)


def _refusal(row: int, observed: str, wanted: str) -> MalformedFstab:
    """Return the error. It never shows the line: a password with a blank in it makes one that is malformed."""
    return MalformedFstab(f"/etc/fstab line {row + 1}: observed {observed}; expected {wanted}")


def _is_comment(line: str) -> bool:
    return line.lstrip(" \t")[:1] in ("", "#")


def _what_is_strange(line: str) -> str | None:
    """Return what of a line its readers take in different ways, whatever its fields are."""
    if len(line.encode("utf-8", "surrogateescape")) > _LONGEST:
        return f"a line longer than {_LONGEST} bytes"
    return next((what for what, letters in _STRANGE.items() if letters.search(line)), None)


def _what_is_wrong(fields: list[str]) -> str:
    if 3 <= len(fields) <= _MOST_FIELDS:
        return "a fifth or sixth field that is no number"
    return f"{len(fields)} field{'' if len(fields) == 1 else 's'}"


def unquoted(spec: str) -> str:
    """Return a device as fstab or a mount unit names it, without quotes around a tag's value (blkid(8))."""
    tag, equals, value = spec.partition("=")
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return f"{tag}={value[1:-1]}" if equals and tag in TAGS and is_quoted else spec


def device_path(spec: str) -> str:
    """Return the path of a device as fstab or a mount unit names it: of a tag, the link that udev keeps."""
    tag, equals, value = unquoted(spec).partition("=")
    return f"/dev/disk/{TAGS[tag]}/{_as_link(value)}" if equals and tag in TAGS else spec


def readings(options: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return what the readers of fstab make of a line's options, each in its own way.

    libmount expands octal escapes, and takes a comma in double quotes for a part of an option; systemd
    hands on what getmntent(3) makes of the text, which expands four of them and a doubled backslash.
    """
    text = ",".join(options)
    texts = (text, _as_libmount(text), _as_systemd(text))
    split = (each for text in texts for each in (text.split(","), split_options(text)))
    return list(dict.fromkeys(map(tuple, split)))


def ambiguity(entry: Entry) -> str | None:
    """Return why it is unknown what a line sets at the next boot, a cause of facts/value_causes.py; None if it is known."""
    # Not shown: a password may stand in them.
    reported = readings(entry.options)
    if any(mount_settings.fold(each) != mount_settings.fold(entry.options) for each in reported):
        return "quoted_options"
    if _breaks_a_unit(",".join(entry.options)):
        return "broken_options"
    return None


def find(entries: list[Entry], target: str) -> list[Entry]:
    """Return the entries for a target. With more than one, systemd takes the first and `mount -a`
    mounts all of them, one upon the other: neither is reliable."""
    return [entry for entry in entries if entry.target == _normal(target)]


def is_marked(text: str, entry: Entry) -> bool:
    """Return whether our comment stands above an entry's line."""
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


def _as_libmount(text: str) -> str:
    """Return a field as libmount decodes it: it takes three octal digits for a byte, and ends at a NUL."""
    return unescape(re.sub(r"\\([4-7])(?=[0-7]{2})", lambda match: f"\\{int(match[1]) - 4}", text)).partition(
        "\0"
    )[0]


def _as_systemd(text: str) -> str:
    """Return a field as getmntent(3) gives it."""
    return _GETMNTENT.sub(lambda match: _EXPANDED[match[1]], text)


def _breaks_a_unit(text: str) -> bool:
    """Return whether a field is no line of a unit, as systemd writes it: a backslash at its end takes the next line in."""
    reported = _as_systemd(text)
    return "\n" in reported or reported.endswith("\\")


def _as_link(label: str) -> str:
    """Return a label as udev spells it in the name of a link."""
    return "".join(
        char if char.isalnum() or char in "#+-.:=@_" or not char.isascii() else f"\\x{ord(char):02x}"
        for char in label
    )


def _normal(target: str) -> str:
    """Return a mount point as systemd has it; a word without a slash is none."""
    return (
        "/" + "/".join(part for part in target.split("/") if part not in ("", "."))
        if "/" in target
        else target
    )
