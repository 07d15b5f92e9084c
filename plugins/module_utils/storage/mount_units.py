# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's mount units that override fstab, and our drop-ins that override them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..host import system_conf, unit_names
from ..host.seam import Host, Unobservable
from ..next_boot import command_lines

#: Where units lie that outlive a boot, the strongest first (systemd.unit(5)); what systemd makes
#: of fstab comes between the two groups.
_ABOVE_FSTAB = ("/etc/systemd/system.control", "/etc/systemd/system")
_BELOW_FSTAB = ("/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
#: Sorts after others' drop-ins, override.conf of `systemctl edit` too: the last word on Options= wins.
DROP_IN = "zz-durable-dbhost.conf"
_ETC = "/etc/systemd/system"
_HEADER = "# Managed by durable.dbhost. playbooks/release_db.yml takes it away.\n"
#: What is read of a unit's [Mount] section.
KEYS = ("What", "Where", "Type", "Options")
_BLANKS = " \t\n\r"
#: How a path's bytes are written in a unit's name where they are not plain.
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_STRANGE = re.compile("[\0\r\ufeff\udc80-\udcff]")


class MountUnit(NamedTuple):
    """What decides a mount's options in addition to fstab.

    `source` is the file with the last word, `options` what it says; `starts`: whether
    anything mounts it at boot; `is_unit`, whether it is a separate unit rather than what
    systemd makes of fstab. `what` and `fstype` are that unit's device and type, '' where it names
    none.
    """

    source: str
    options: tuple[str, ...]
    starts: bool
    is_unit: bool
    what: str = ""
    fstype: str = ""


def unit_name(target: str) -> str:
    """Return the name of the systemd mount unit of a mount point (systemd.unit(5), escaping)."""
    path = "/".join(part for part in target.split("/") if part)
    if not path:
        return "-.mount"
    escaped = "".join(
        "-" if char == "/" else char if _plain(index, char) else _escaped(char)
        for index, char in enumerate(path)
    )
    return f"{escaped}.mount"


def mount_point(name: str) -> str:
    """Return the mount point of a mount unit's name: what `unit_name` was given, without needless slashes."""
    stem = name[: -len(".mount")]
    if stem == "-":
        return "/"
    text = "/" + stem.replace("-", "/")
    raw = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    # A name is made of bytes; those of no ASCII stand there as escapes only.
    return raw.encode("latin-1", "replace").decode("utf-8", "surrogateescape")


def started(host: Host) -> list[str]:
    """Return the mount points of all units that a target, a service or the kernel's command line asks for at boot, or whose
    automount it asks for.

    Raises Unobservable.
    """
    linked = [name for directory in _asking(host) for name in host.names(directory)]
    named = (name.rpartition(".") for name in (*linked, *_by_line(host)))
    return sorted(
        {mount_point(f"{stem}.mount") for stem, _dot, kind in named if kind in ("mount", "automount")}
    )


def is_masked(host: Host, path: str) -> bool:
    """Return whether a file that is there masks a unit: an empty one does as a link to /dev/null does. Raises Unobservable."""
    return host.resolve(path) == "/dev/null" or not host.read(path)


def find(host: Host, target: str, in_fstab: bool) -> MountUnit | None:
    """Return what overrides fstab for a mount point, or None where fstab decides.

    Raises Unobservable when a file cannot be read or uses what is not understood here.
    """
    name = unit_name(target)
    directories = _ABOVE_FSTAB if in_fstab else (*_ABOVE_FSTAB, *_BELOW_FSTAB)
    unit = next((f"{base}/{name}" for base in directories if host.exists(f"{base}/{name}")), None)
    if unit and is_masked(host, unit):
        return MountUnit(unit, (), False, True)
    said: dict[str, str] = {}
    sources: dict[str, str] = {}
    for path in (*([unit] if unit else ()), *_drop_ins(host, name)):
        found = _read(host, path)
        said.update(found)
        sources.update(dict.fromkeys(found, path))
    if unit:
        _expect_usable(unit, name, said)
    elif in_fstab and set(sources) - {"Options"}:
        other = next(path for key, path in sources.items() if key != "Options")
        raise Unobservable(
            f"{other}: observed another What=, Where= or Type= over fstab's; expected Options= alone"
        )
    source = sources.get("Options", unit)
    if source is None:
        return None
    options = split_options(said.get("Options", "")) or ("defaults",)
    starts = in_fstab or _is_started(host, name)
    return MountUnit(source, options, starts, unit is not None, said.get("What", ""), said.get("Type", ""))


def drop_in(target: str) -> str:
    """Return the path of our drop-in for a mount point."""
    return f"{_ETC}/{unit_name(target)}.d/{DROP_IN}"


def render(options: tuple[str, ...]) -> str:
    """Return the text of our drop-in. A percent sign would be read as a specifier.

    Raises ValueError for options that are no line of a unit: a backslash at the end takes the next line in.
    """
    text = ",".join(options)
    if "\n" in text or text.endswith("\\"):
        raise ValueError(f"Options={text}: expected one line without a backslash at its end")
    return f"{_HEADER}[Mount]\nOptions={text.replace('%', '%%')}\n"


def ours(host: Host) -> list[str]:
    """Return the paths of all our drop-ins. Raises Unobservable."""
    if not host.exists(_ETC):
        return []
    paths = [f"{_ETC}/{name}/{DROP_IN}" for name in host.names(_ETC) if name.endswith(".mount.d")]
    return [path for path in paths if host.exists(path)]


def parse(text: str) -> dict[str, str]:
    """Return {key: its last value} of a unit's [Mount] section, of the keys in KEYS.

    Raises ValueError for what systemd refuses or may read differently, and for a specifier, which only
    systemd can expand.
    """
    if _STRANGE.search(text):
        raise ValueError("observed a NUL, a carriage return, a byte order mark or bytes that are no UTF-8")
    section, found = "", {}
    for _row, line in system_conf.logical_lines(text):
        if line.startswith("["):
            if not line.endswith("]"):
                raise ValueError(f"observed {line[:80]!r}; expected a section's name in brackets")
            section = line[1:-1]
        key, equals, value = (part.strip(_BLANKS) for part in line.partition("="))
        if section == "Mount" and equals and key in KEYS:
            if "%" in value.replace("%%", ""):
                raise ValueError(f"{key}=: only systemd can expand the specifier in it")
            found[key] = value.replace("%%", "%")
    return found


def split_options(value: str) -> tuple[str, ...]:
    """Return the options in the value of Options=."""
    return tuple(word.strip(_BLANKS) for word in value.split(",") if word.strip(_BLANKS))


def _expect_usable(unit: str, name: str, said: dict[str, str]) -> None:
    """Raise Unobservable for a unit that systemd refuses: it mounts nothing."""
    if not said.get("What"):
        raise Unobservable(f"{unit}: observed no What=; expected the device: systemd refuses this unit")
    if said.get("Where") and unit_name(said["Where"]) != name:
        raise Unobservable(
            f"{unit}: observed Where={said['Where']}; expected what its name says: systemd refuses it"
        )


def _read(host: Host, path: str) -> dict[str, str]:
    try:
        return parse(host.read(path))
    except ValueError as error:
        raise Unobservable(f"{path}: {error}") from error


def _drop_ins(host: Host, name: str) -> Iterator[str]:
    """Yield a unit's drop-ins in the order in which they are read: by file name.

    Of those with one name only one is read. Releases of systemd ask in two ways which: for the unit's
    own, path by path, and then for those of shorter names; or the path first. Those for all mounts come
    last in both. Raises Unobservable where it matters.
    """
    bases = (*_ABOVE_FSTAB, *_BELOW_FSTAB)
    *scopes, kind = unit_names.scopes(name)
    of_kind = [f"{base}/{kind}.d" for base in bases]
    by_name = [*(f"{base}/{scope}.d" for scope in scopes for base in bases), *of_kind]
    by_path = [*(f"{base}/{scope}.d" for base in bases for scope in scopes), *of_kind]
    entries = {directory: _entries(host, directory) for directory in by_name}
    for entry in sorted({entry for found in entries.values() for entry in found}):
        first, other = (_first(order, entries, entry) for order in (by_name, by_path))
        if first != other and _read(host, f"{first}/{entry}") != _read(host, f"{other}/{entry}"):
            raise Unobservable(
                f"{first}/{entry}, {other}/{entry}: one name; which counts depends on the release"
            )
        yield f"{first}/{entry}"


def _first(order: list[str], entries: dict[str, list[str]], entry: str) -> str:
    return next(directory for directory in order if entry in entries[directory])


def _entries(host: Host, directory: str) -> list[str]:
    names = host.names(directory) if host.exists(directory) else []
    return [name for name in names if name.endswith(".conf") and not name.startswith(".")]


def _is_started(host: Host, name: str) -> bool:
    """Return whether a target, a service or the kernel's command line asks for the unit at boot, or for its automount.

    Raises Unobservable if only some of the entries of the boot loader do.
    """
    names = (name, f"{name[: -len('.mount')]}.automount")
    if any(host.exists(f"{directory}/{unit}") for directory in _asking(host) for unit in names):
        return True
    by_line = _by_line(host)
    found = [by_line[unit] for unit in names if unit in by_line]
    if found and not any(found):
        raise Unobservable(
            f"{name}: observed systemd.wants= in some of the entries of the boot loader; expected all or none"
        )
    return bool(found)


def _by_line(host: Host) -> Mapping[str, bool]:
    """Return what the next boot's command line asks for; if it cannot be read, a fault of the boot reports that."""
    try:
        return command_lines.wants(host)
    except Unobservable:
        return {}


def _asking(host: Host) -> Iterator[str]:
    """Yield the directories of links to what a unit asks for. Raises Unobservable."""
    observed = set()
    for base in (*_ABOVE_FSTAB, *_BELOW_FSTAB):
        # /lib is a link to /usr/lib on most hosts.
        place = host.resolve(base) if host.exists(base) else None
        if place is not None and place not in observed:
            observed.add(place)
            yield from (
                f"{base}/{name}" for name in host.names(base) if name.endswith((".wants", ".requires"))
            )


def _plain(index: int, char: str) -> bool:
    return (char.isascii() and char.isalnum()) or char in ":_" or (char == "." and index > 0)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
