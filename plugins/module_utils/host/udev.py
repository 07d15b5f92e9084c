# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""udev's database of block devices, and the rule files that persist their settings."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from . import device_names

#: udev's own replacement for odd characters leaves these; anything else could be read as a
#: pattern or end the quotes of a rule.
_SAFE = re.compile(r"[A-Za-z0-9#+.:=@_-]+")

#: Kind of name -> the udev property that holds it, best first. The extension distinguishes
#: the volumes of one array, which share a plain WWN.
_OWN = {
    "wwn": "ID_WWN_WITH_EXTENSION",
    "nvme": "ID_WWN",
    "serial": "ID_SERIAL",
    "dm": "DM_UUID",
    "md": "MD_UUID",
}
#: The same of substitutes for a name: it is not the device's own, but what was written to it, or where it is.
#: All members of an md array or of btrfs have its UUID, and each one of its own besides.
_SUBSTITUTES = {
    "ptuuid": "ID_PART_TABLE_UUID",
    "member": "ID_FS_UUID_SUB",
    "fsuuid": "ID_FS_UUID",
    "path": "ID_PATH",
}
#: Kind of name -> udev property, for all kinds.
PROPERTIES = {**_OWN, **_SUBSTITUTES}
_COPIED = "a copy of the disk has the same name, so the findings of this disk apply to the copy in its place"
_RISKS = {
    **dict.fromkeys(("ptuuid", "member", "fsuuid"), _COPIED),
    "path": "another disk in the same place has the same name, so the findings of this disk apply to that one",
}
#: Layers over disks show what is written to the disks, or a part of it.
_LAYERS = "/devices/virtual/"

_RULE = re.compile(rf"^# (?P<id>(?:{'|'.join(PROPERTIES)}):\S+) (?P<values>.+)$", re.M)


def parse_database(text: str) -> dict[str, dict[str, str]]:
    """Return {kernel name: properties} of block devices, of what `udevadm info` prints of them or of all devices."""
    disks = {}
    for record in text.split("\n\n"):
        properties = dict(
            line[3:].partition("=")[::2] for line in record.splitlines() if line.startswith("E: ")
        )
        if properties.get("SUBSYSTEM") == "block" and "DEVNAME" in properties:
            # In a kernel name a slash of the device node's is an exclamation mark.
            disks[properties["DEVNAME"][len("/dev/") :].replace("/", "!")] = properties
    return disks


def identify(properties: dict[str, str]) -> str | None:
    """Return the name of a block device that stays (`wwn:...`, `nvme:...`, `serial:...`, `dm:...`,
    `md:...`), a substitute for one (`ptuuid:...`, `member:...`, `fsuuid:...`, `path:...`), or None.

    An NVMe namespace goes by its own identifier: what udev makes of its serial number differs
    between versions, and on some holds blanks. Other disks may share a WWN without extension. A value that many
    devices have alike, such as zeros, is no name.
    """
    for kind, key in _OWN.items():
        if kind == "nvme" and not properties.get("DEVNAME", "").startswith("/dev/nvme"):
            continue
        value = properties.get(key, "")
        if _SAFE.fullmatch(value) and device_names.names(kind, value, properties):
            return f"{kind}:{value}"
    return _substitute(properties)


def risk_of(device_id: str) -> str | None:
    """Return in which way a name can come to mean another disk, or None for a disk's own name."""
    return _RISKS.get(device_id.partition(":")[0])


def _substitute(properties: dict[str, str]) -> str | None:
    """Return the best substitute for the name of a disk, by the same conditions as its rule."""
    if properties.get("DEVPATH", _LAYERS).startswith(_LAYERS) or any(map(properties.get, _OWN.values())):
        return None
    kind, value = next(
        ((kind, properties[key]) for kind, key in _SUBSTITUTES.items() if properties.get(key)), ("", "")
    )
    is_name = _SAFE.fullmatch(value) and device_names.names(kind, value, properties)
    return f"{kind}:{value}" if is_name else None


#: From the values behind an id in a rule file's comment to what each of its rules does.
#: Raises ValueError for unknown values.
Assign = Callable[[str], "list[list[str]]"]
#: A way to read one of our rule files.
Parse = Callable[[str, str, Assign], "dict[str, str]"]


def parse_rules(text: str, header: str, assign: Assign) -> dict[str, str]:
    """Return {id: values} of the devices whose settings one of our rule files keeps.

    None is returned if a line that is not ours is among them: it may undo what they do.
    """
    whole = written_rules(text, header, assign)
    ours = {line for known, values in whole.items() for line in _lines(known, assign(values))}
    acting = {line for line in text.split("\n") if line and not line.startswith("#")}
    return whole if acting <= ours else {}


def written_rules(text: str, header: str, assign: Assign) -> dict[str, str]:
    """Return {id: values} of the devices whose rules stand whole in one of our rule files.

    A comment names the device and its settings for us, the lines below act; a comment whose lines
    were edited or removed does not count, because udev would do something else than it says.
    Nor does anything where the file does not begin as we wrote it.
    """
    if not text.startswith(header):
        return {}
    lines = set(text.split("\n"))
    found = {match["id"]: match["values"] for match in _RULE.finditer(text)}
    return {known: values for known, values in found.items() if _stands(known, values, assign, lines)}


def render_rules(rules: dict[str, str], header: str, assign: Assign) -> str:
    """Return the rule file for these devices, sorted by id; empty when there are none. Raises ValueError."""
    if not rules:
        return ""
    blocks = [
        "".join(f"{line}\n" for line in [f"# {known} {values}", *_lines(known, assign(values))])
        for known, values in rules.items()
    ]
    return "\n".join([header, *sorted(blocks)])


def _stands(known: str, values: str, assign: Assign, lines: set[str]) -> bool:
    if not _SAFE.fullmatch(known.partition(":")[2]):
        return False
    try:
        return set(_lines(known, assign(values))) <= lines
    except ValueError:
        return False


def _lines(device_id: str, rules: list[list[str]]) -> list[str]:
    """Return the lines that act on a device, by its id, whenever it appears or changes.

    Raises ValueError for an id that `identify` does not return: a device's serial number can be any text.
    """
    kind, _colon, value = device_id.partition(":")
    if kind not in PROPERTIES or not _SAFE.fullmatch(value):
        raise ValueError(f"{device_id!r}: no device id that a udev rule can have")
    match = [
        'ACTION=="add|change"',
        'SUBSYSTEM=="block"',
        'ENV{DEVTYPE}=="disk"',
        f'ENV{{{PROPERTIES[kind]}}}=="{value}"',
        *conditions(kind),
    ]
    return [", ".join([*match, *actions]) for actions in rules]


def conditions(kind: str) -> list[str]:
    """Return what keeps a rule by a substitute from every device that has a better name, and from layers."""
    if kind not in _SUBSTITUTES:
        return []
    better = itertools.takewhile(lambda each: each != kind, PROPERTIES)
    return [f'DEVPATH!="{_LAYERS}*"', *(f'ENV{{{PROPERTIES[each]}}}!="?*"' for each in better)]
