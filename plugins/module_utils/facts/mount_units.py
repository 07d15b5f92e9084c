# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's mount units: what overrides fstab, and the drop-in that overrides them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..host import Host, Unobservable

#: Where units lie that outlive a boot, the strongest first (systemd.unit(5)); what systemd makes
#: of fstab comes between the two groups.
_ABOVE_FSTAB = ("/etc/systemd/system.control", "/etc/systemd/system")
_BELOW_FSTAB = ("/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
#: Sorts after others' drop-ins, override.conf of `systemctl edit` too: the last word on Options= wins.
DROP_IN = "zz-durable-dbhost.conf"
_ETC = "/etc/systemd/system"
_HEADER = "# Managed by durable.dbhost. playbooks/release_db.yml takes it away.\n"
_SECTION = re.compile(r"^\[(?P<name>[^\]]+)\]$")


class MountUnit(NamedTuple):
    """What decides a mount's options beside fstab.

    `source` is the file with the last word, `options` what it says; `starts` tells whether
    anything mounts it at boot; `is_unit`, whether a unit of its own stands there rather than what
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


def find(host: Host, target: str, in_fstab: bool) -> MountUnit | None:
    """Return what overrides fstab for a mount point, or None where fstab decides.

    Raises Unobservable when a file cannot be read or uses what is not understood here.
    """
    name = unit_name(target)
    directories = _ABOVE_FSTAB if in_fstab else (*_ABOVE_FSTAB, *_BELOW_FSTAB)
    unit = next((f"{base}/{name}" for base in directories if host.exists(f"{base}/{name}")), None)
    source, words = unit, {}
    options: tuple[str, ...] = ()
    if unit:
        # An empty file masks a unit as a link to /dev/null does.
        if host.resolve(unit) == "/dev/null" or not host.read(unit):
            return MountUnit(unit, (), False, True)
        words = parse(host.read(unit))
        options = _options(host, unit) or ("defaults",)
    for path in _drop_ins(host, name):
        said = _options(host, path)
        if said is not None:
            source, options = path, said or ("defaults",)
    if source is None:
        return None
    starts = in_fstab or _is_started(host, name)
    return MountUnit(source, options, starts, unit is not None, words.get("What", ""), words.get("Type", ""))


def drop_in(target: str) -> str:
    """Return the path of our drop-in for a mount point."""
    return f"{_ETC}/{unit_name(target)}.d/{DROP_IN}"


def render(options: tuple[str, ...]) -> str:
    """Return the text of our drop-in. A percent sign would be read as a specifier."""
    return f"{_HEADER}[Mount]\nOptions={','.join(options).replace('%', '%%')}\n"


def ours(host: Host) -> list[str]:
    """Return the paths of all our drop-ins. Raises Unobservable."""
    if not host.exists(_ETC):
        return []
    paths = [f"{_ETC}/{name}/{DROP_IN}" for name in host.names(_ETC) if name.endswith(".mount.d")]
    return [path for path in paths if host.exists(path)]


def parse(text: str) -> dict[str, str]:
    """Return {key: its last value} of a unit's [Mount] section."""
    section, found = "", {}
    # A comment is dropped before a line's end is looked at: its backslash continues nothing.
    kept = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(("#", ";")))
    for line in re.sub(r"\\\n", " ", kept).split("\n"):
        heading = _SECTION.match(line.strip())
        if heading:
            section = heading["name"]
        key, equals, value = line.partition("=")
        if section == "Mount" and equals:
            found[key.strip()] = value.strip()
    return found


def parse_options(text: str) -> tuple[str, ...] | None:
    """Return the last Options= of a unit's [Mount] section, () for an empty one, None without.

    Raises ValueError for a specifier, which only systemd can expand.
    """
    value = parse(text).get("Options")
    if value is None:
        return None
    if "%" in value.replace("%%", ""):
        raise ValueError("Options=: only systemd can expand the specifier in it")
    return tuple(word.strip() for word in value.replace("%%", "%").split(",") if word.strip())


def _options(host: Host, path: str) -> tuple[str, ...] | None:
    try:
        return parse_options(host.read(path))
    except ValueError as error:
        raise Unobservable(f"{path}: {error}") from error


def _drop_ins(host: Host, name: str) -> Iterator[str]:
    """Yield a unit's drop-ins in the order in which they are read: by file name, /etc before /usr."""
    paths: dict[str, str] = {}
    for base in (*_ABOVE_FSTAB, *_BELOW_FSTAB):
        for directory in (f"{base}/{scope}.d" for scope in _scopes(name)):
            for entry in host.names(directory) if host.exists(directory) else ():
                if entry.endswith(".conf"):
                    paths.setdefault(entry, f"{directory}/{entry}")
    for entry in sorted(paths):
        yield paths[entry]


def _scopes(name: str) -> list[str]:
    """Return whose drop-ins apply to a unit: its own, of a-b-c.mount a-b-.mount and a-.mount, of all mounts."""
    parts = name[: -len(".mount")].split("-")
    shorter = ["-".join(parts[:count]) + "-.mount" for count in range(len(parts) - 1, 0, -1) if parts[0]]
    return [name, *shorter, "mount"]


def _is_started(host: Host, name: str) -> bool:
    """Tell whether a target or service asks for the unit at boot."""
    for base in (*_ABOVE_FSTAB, *_BELOW_FSTAB):
        for entry in host.names(base) if host.exists(base) else ():
            if entry.endswith((".wants", ".requires")) and host.exists(f"{base}/{entry}/{name}"):
                return True
    return False


def _plain(index: int, char: str) -> bool:
    return (char.isascii() and char.isalnum()) or char in ":_" or (char == "." and index > 0)


def _escaped(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
