# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redaction of udev's database and rules, and of the output of tools about devices. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..host import json_text, udev
from ..next_boot import generators, udev_rules
from ..storage import drbd_84, ext4
from ..storage.cache_rules import HEADER as CACHE_HEADER
from ..storage.caches import CONTROLS, DEFAULTS, DISABLED, ENABLED, PROGRAMS
from ..storage.scheduler_rules import HEADER as SCHEDULER_HEADER
from ..storage.shown_options import HIDDEN
from .identities import Identities
from .redact_mounts import options

#: udev properties whose values are keywords or numbers of the kernel or of udev.
PLAIN_PROPERTIES = frozenset(
    "DEVNAME DEVTYPE DM_LV_LAYER DM_SUSPENDED ID_ATA ID_ATA_FEATURE_SET_AAM ID_ATA_ROTATION_RATE_RPM ID_ATA_SATA"
    " ID_ATA_WRITE_CACHE ID_ATA_WRITE_CACHE_ENABLED ID_BUS ID_CDROM ID_DRIVE_FLASH_SD ID_FS_TYPE ID_FS_USAGE"
    " ID_FS_VERSION ID_PART_ENTRY_NUMBER ID_PART_ENTRY_SCHEME ID_PART_TABLE_TYPE ID_SCSI ID_TYPE ID_USB_DRIVER"
    " ID_USB_INTERFACE_NUM ID_USB_TYPE MAJOR MD_DEVICES MD_LEVEL MD_METADATA MINOR NVME_TRTYPE PARTN SUBSYSTEM"
    " DM_MULTIPATH_DEVICE_PATH DM_TYPE ID_NVME SCSI_TPGS SCSI_TYPE".split()
)
#: udev properties that people or makers chose, and that name no single device.
NAME_PROPERTIES = frozenset(
    "DM_LV_NAME DM_NAME DM_VG_NAME ID_FS_LABEL ID_MODEL ID_REVISION ID_USB_MODEL ID_USB_VENDOR ID_VENDOR MD_DEVNAME"
    " SCSI_MODEL SCSI_VENDOR".split()
)
#: udev properties that name one device or file system.
IDENTITY_PROPERTIES = frozenset(
    "DM_SERIAL DM_WWN ID_FS_UUID ID_FS_UUID_SUB ID_PART_ENTRY_UUID ID_PART_TABLE_UUID ID_SCSI_SERIAL ID_SERIAL"
    " ID_SERIAL_SHORT ID_WWN ID_WWN_VENDOR_EXTENSION ID_WWN_WITH_EXTENSION MD_UUID SCSI_IDENT_SERIAL".split()
)
#: Links to the disks of a cloud's machine by their place; what follows a last name is one's own.
_CLOUD_LINK = re.compile(
    r"(/dev/disk/(?:cloud|azure)/(?:azure_)?(?:(?:os|root|resource)(?:-part\d+)?"
    r"|(?:data|local|scsi\d|datadisks)/(?:by-lun/|by-index/)?(?:lun)?\d+(?:-part\d+)?|(?:data|local)/by-[a-z]+/))(.*)"
)
_PLAIN = re.compile(r"[\w .,:;/+@-]*")
#: Keys of udev's rules whose values are programs, or text for them.
_OF_PROGRAMS = ("RUN", "PROGRAM", "IMPORT", "RESULT")

_TABLE = re.compile(r"(?P<name>.*)(?P<place>: \d+ \d+ )(?P<target>[a-z0-9_-]+)(?: (?P<arguments>.*))?")
#: Targets whose arguments hold nothing but devices, numbers and the kernel's keywords. crypt's contain a key.
_OPEN_TARGETS = (
    *(
        "linear",
        "striped",
        "raid",
        "multipath",
        "mirror",
        "zero",
        "error",
        "thin",
        "thin-pool",
        "cache",
        "writecache",
    ),
    *("snapshot", "snapshot-origin", "snapshot-merge"),
)
#: Of these the first arguments alone do: integrity's others may hold keys.
_FIRST_ARGUMENTS = {"integrity": 4}
_ARGUMENT = re.compile(r"[A-Za-z0-9_]{1,20}|\d+:\d+|-")
#: Fields of `nvme id-ctrl` that are about the sort of controller.
_NVME_FIELDS = ("cntrltype", "fuses", "mdts", "nn", "oacs", "oncs", "sgls", "ver", "vid", "vwc")

#: Fields of drbdsetup's answers that are recorded: structure and DRBD's own keywords. Of others, one is a password.
_DRBD_FIELDS = frozenset(
    "resource name _this_host volumes volume_nr device_minor backing-disk meta-disk disk disk-flushes md-flushes connections"
    " net protocol write-ordering devices minor disk-state peer_devices volume peer-disk-state".split()
)

_DRBD_OPTION = re.compile(
    r"drbdsetup(?:-84)?|[a-z-]{3,20}|\d{1,7}|--(?:protocol|disk-flushes|md-flushes)=\w{1,5}"
)
_DRBD_WORD = re.compile(
    r"(write-ordering|volume|minor|disk|connection|replication|peer-disk):[A-Za-z0-9]{1,20}"
)

_TUNED = ("devices", "disable_barriers", "elevator", "include", "readahead", "type")

#: What one of our rules says beyond naming its device.
_ACTIONS = frozenset(
    action
    for control in CONTROLS.values()
    for state in (ENABLED, DISABLED)
    for program, every in PROGRAMS.items()
    for path in every
    for rule in control.rules(state, {**DEFAULTS, program: path})
    for action in rule
)
_CONDITIONS = frozenset(condition for kind in udev.PROPERTIES for condition in udev.conditions(kind))
_SCHEDULING = re.compile(r'ATTR\{queue/[a-z_]+\}="[\w-]+"')
_RULE = re.compile(
    r'(ACTION=="add\|change", SUBSYSTEM=="block", ENV\{DEVTYPE\}=="disk", '
    rf'ENV\{{({"|".join(udev.PROPERTIES.values())})\}}==")([^"]*)(")((?:, .*)?)'
)
_RULE_COMMENT = re.compile(rf"(# ({'|'.join(udev.PROPERTIES)}):)(\S+)((?: [\w=. -]+)?)")
_HEADER_LINES = frozenset(f"{CACHE_HEADER}\n{SCHEDULER_HEADER}".split("\n"))
_NOT_OURS = "# another line"
#: Does nothing, and is no comment: nothing of ours counts beside it.
_ACTS = 'LABEL="another_line"'


def records(text: str) -> list[dict[str, str]]:
    """Return the properties of each block device in what `udevadm info` prints."""
    found = []
    for record in text.split("\n\n"):
        lines = (line for line in record.split("\n") if line.startswith("E: "))
        properties = dict(line[3:].partition("=")[::2] for line in lines)
        if properties.get("SUBSYSTEM") == "block" and "DEVNAME" in properties:
            found.append(properties)
    return found


def database(text: str, names: Identities) -> str:
    """Return the block devices of what `udevadm info` prints, with the properties that are known."""
    return "\n".join(_record(properties, names) for properties in records(text))


def _record(properties: dict[str, str], names: Identities) -> str:
    redacted = ((key, property_value(key, value, names)) for key, value in properties.items())
    return "".join(f"E: {key}={value}\n" for key, value in redacted if value is not None)


def property_value(key: str, value: str, names: Identities) -> str | None:
    """Return a property with stand-ins, or None for one that is not recorded."""
    if key in PLAIN_PROPERTIES:
        return value if _PLAIN.fullmatch(value) else names.of(value)
    if key in NAME_PROPERTIES:
        return names.scrub(value)
    if key in IDENTITY_PROPERTIES:
        return names.identity(value)
    special = {
        "DEVPATH": names.text,
        "DM_UUID": names.mapped,
        "ID_PATH": names.path,
        "MD_NAME": names.array,
    }
    if key == "DEVLINKS":
        return " ".join(filter(None, (_link(link, names) for link in value.split(" "))))
    return special[key](value) if key in special else None


def _link(path: str, names: Identities) -> str:
    """Return a link of those that tell what a disk is, or by which fstab may name it, '' for another."""
    if path.startswith(("/dev/disk/by-id/", "/dev/disk/by-uuid/", "/dev/disk/by-partuuid/")):
        return names.text(path)
    found = _CLOUD_LINK.fullmatch(path)
    return f"{found[1]}{names.of(found[2])}" if found else ""


def rules(text: str, names: Identities) -> str:
    """Return one of our rule files with stand-ins; of a line that is not ours that it is there."""
    return "\n".join(_rule_line(line, names) for line in text.split("\n"))


def _rule_line(line: str, names: Identities) -> str:
    if line in _HEADER_LINES:
        return line
    comment = _RULE_COMMENT.fullmatch(line)
    if comment:
        known = property_value(udev.PROPERTIES[comment[2]], comment[3], names)
        return f"{comment[1]}{known}{comment[4]}"
    rule = _RULE.fullmatch(line)
    if rule and all(map(_is_of_rule, rule[5].split(", ")[1:])):
        return f"{rule[1]}{property_value(rule[2], rule[3], names)}{rule[4]}{rule[5]}"
    return _NOT_OURS if line.startswith("#") else _ACTS


def _is_of_rule(rule: str) -> bool:
    return rule in _ACTIONS or rule in _CONDITIONS or _SCHEDULING.fullmatch(rule) is not None


def superblock(text: str, names: Identities) -> str:
    """Return a superblock with nothing but features and options."""
    try:
        raw = ext4.as_bytes(text)
    except ValueError:
        return ""
    block = bytearray(ext4.SIZE)
    for field in ext4.MEANING:
        block[field] = raw[field]
    text = raw[ext4.MOUNT_OPTIONS].partition(b"\0")[0].decode("utf-8", "surrogateescape")
    room = ext4.MOUNT_OPTIONS.stop - ext4.MOUNT_OPTIONS.start
    redacted = options(text, names).encode("utf-8", "surrogateescape")[:room]
    block[ext4.MOUNT_OPTIONS] = redacted.ljust(room, b"\0")
    return ext4.shown(bytes(block))


def table(text: str, names: Identities) -> str:
    """Return `dmsetup table` without keys: arguments only of targets that have none."""
    return "\n".join(_table_line(line, names) for line in text.split("\n"))


def _table_line(line: str, names: Identities) -> str:
    found = _TABLE.fullmatch(line)
    if not found:
        return ""
    start = f"{names.scrub(found['name'])}{found['place']}{found['target']}"
    first = _FIRST_ARGUMENTS.get(found["target"], 0 if found["target"] not in _OPEN_TARGETS else None)
    if found["arguments"] is None or first == 0:
        return start
    arguments = found["arguments"].split(" ")[:first]
    shown = (word if _ARGUMENT.fullmatch(word) else names.of(word) for word in arguments)
    return f"{start} {' '.join(shown)}"


def nvme_identity(text: str, _names: Identities) -> str:
    """Return `nvme id-ctrl --output-format=json` without names and numbers of the one device."""
    try:
        fields = json_text.loads(text)
    except ValueError:
        return ""
    if not isinstance(fields, dict):
        return ""
    return json.dumps({key: fields[key] for key in _NVME_FIELDS if isinstance(fields.get(key), int)})


def queueing(text: str, names: Identities) -> str:
    """Return what multipathd says of the queueing of its maps, by their WWIDs."""
    rows = (line.rpartition(":") for line in text.split("\n"))
    redacted = (
        (wwid, text)
        for wwid, colon, text in rows
        if colon and re.fullmatch(r"on|off|-|\d+ (?:chk|sec)", text)
    )
    return "".join(f"{names.identity(wwid)}:{text}\n" for wwid, text in redacted)


def drbd(text: str, names: Identities) -> str:
    """Return an answer of `drbdsetup --json` without names of nodes and resources, addresses and passwords."""
    try:
        return json.dumps(_drbd(json_text.loads(text), "", names))
    except ValueError:
        return ""


def _drbd(value: Any, field: str, names: Identities) -> Any:
    if isinstance(value, dict):
        return {key: _drbd(inner, key, names) for key, inner in value.items() if key in _DRBD_FIELDS}
    if isinstance(value, list):
        return [_drbd(inner, field, names) for inner in value]
    if isinstance(value, str) and field in ("resource", "name"):
        return names.of(value)
    return names.text(value) if isinstance(value, str) else value


def drbd_84_shown(text: str, names: Identities) -> str:
    """Return an answer of `drbdsetup show` that is in sections: what is read of it, with stand-ins."""
    try:
        found = _drbd(drbd_84.shown(text), "", names)
    except (ValueError, IndexError):
        return ""
    return "".join(_sections(resource) for resource in found)


def _sections(resource: Mapping[str, Any]) -> str:
    peer = "".join(
        f"net {{ {_statements(one['net'])}}} _remote_host {{ }} " for one in resource["connections"] or ()
    )
    volumes = "".join(
        f'volume {volume.get("volume_nr", 0)} {{ device minor {volume["device_minor"]}; disk "{volume["backing-disk"]}"; '
        f'meta-disk "{volume.get("meta-disk", "internal")}"; disk {{ {_statements(volume.get("disk", {}))}}} }} '
        for volume in resource["_this_host"]["volumes"]
        if {"device_minor", "backing-disk"} <= set(volume)
    )
    return f"resource {resource['resource']} {{ {peer}_this_host {{ {volumes}}} }}\n"


def _statements(options: dict[str, str]) -> str:
    return "".join(f"{name} {value}; " for name, value in options.items())


def drbd_adjusted(text: str, names: Identities) -> str:
    """Return the arguments that are read of `drbdadm --dry-run adjust`: the fourth may be a password."""
    redacted = (
        " ".join(word for word in line.split() if _DRBD_OPTION.fullmatch(word)) for line in text.split("\n")
    )
    return "\n".join(redacted)


def drbd_84_status(text: str, names: Identities) -> str:
    """Return the fields that are read of `drbdsetup status` in its line format, with stand-ins."""
    redacted = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))]
        fields = [word for word in line.split() if _DRBD_WORD.fullmatch(word)]
        if not indent:
            fields = [names.of(name) for name in line.split()[:1]] + fields
        redacted.append(indent + " ".join(fields))
    return "\n".join(redacted)


def settings(text: str, names: Identities) -> str:
    """Return of a TuneD profile what it includes and what it sets for disks, in unchanged lines."""
    redacted = []
    for line in text.split("\n"):
        key, equals, value = line.partition("=")
        if re.fullmatch(r"\[[\w.-]+\]\s*", line):
            redacted.append(names.scrub(line.strip()))
        elif equals and key.strip() in _TUNED:
            redacted.append(f"{key.strip()}={names.scrub(value.strip())}")
        else:
            redacted.append("")
    return "\n".join(redacted)


def lines(pattern: str, text: str, names: Identities) -> str:
    """Return the lines of a text that are of a known form, with stand-ins."""
    return "".join(
        f"{names.text(line)}\n" for line in text.split("\n") if line and re.fullmatch(pattern, line)
    )


def foreign_rules(text: str, names: Identities) -> str:
    """Return the rules of others with stand-ins, without comments and without the programs that they run."""
    return "\n".join(_rule(line, names) for line in text.split("\n"))


def _rule(line: str, names: Identities) -> str:
    if line.lstrip().startswith("#"):
        return ""
    redacted = []
    for found in udev_rules.TOKEN.finditer(line):
        name = f"{{{names.text(found['name'])}}}" if found["name"] else ""
        # No name of a program: a replay searches for none.
        value = f"({HIDDEN})" if found["key"] in _OF_PROGRAMS else names.text(found["value"])
        redacted.append(f'{found["key"]}{name}{found["op"]}{found["prefix"]}"{value}"')
    return ", ".join(redacted) + (", \\" if line.rstrip().endswith("\\") else "")


def modules(text: str, names: Identities) -> str:
    """Return the modules that a file of modprobe.d keeps from being loaded, without other commands."""
    redacted = []
    for line in text.split("\n"):
        parts = line.split(None, 2)
        if parts[:1] == ["blacklist"] and len(parts) > 1:
            redacted.append(" ".join(parts[:2]))
        elif parts[:1] == ["install"] and len(parts) > 2:
            is_plain = re.fullmatch(r"(?:/usr)?(?:/bin/)?(?:true|false)\s*", parts[2])
            is_own = "--ignore-install" in parts[2].split()
            command = f"modprobe --ignore-install {parts[1]}" if is_own else HIDDEN
            redacted.append(f"install {parts[1]} {parts[2].strip() if is_plain else command}")
        else:
            redacted.append("")
    return "\n".join(redacted)


def generator(text: str, names: Identities) -> str:
    """Return of a generator of units whether it is a script, and the text in it by which it is assessed."""
    parts = sorted({found.lower() for found in re.findall(generators.ACTS_ON, text)})
    return f"{'#!/bin/sh' if text.startswith('#!') else HIDDEN}\n{' '.join(parts)}\n" if text else ""
