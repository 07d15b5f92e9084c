# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device names by which the next boot may mount another file system: unstable names, and names of two devices.

T (FACTS 82): of two devices with one UUID a boot mounts either; after a disk was removed, /dev/sdX was another disk; an array
without an ARRAY line got the number 127 after a change of the host's name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from ..facts.classes import BootFaultFacts, MountFacts
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable
from . import boot_loader, fstab
from .boot_faults import HOLDS, TAGGED, Devices, Fault, Value
from .fstab import Entry
from .shown_options import without_login

#: That several devices have a name, as faults have it.
COPIES = "copies"
#: Names in the order in which a kernel finds devices. Those of Xen (xvda) come from the configuration of the machine.
_NUMBERED = re.compile(
    r"(?P<kind>sd|vd|hd|ubd|dasd)[a-z]+\d*|(?P<nvme>nvme)\d+n\d+(?:p\d+)?|(?P<mmc>mmcblk)\d+(?:p\d+)?"
    r"|(?:dm-|loop|bcache|nbd|rbd|zd|ram|zram)\d+(?:p\d+)?"
)
_ARRAY = re.compile(r"(md_?d?\d+)(?:p\d+)?")
#: Links that are named by the number of a device, or by the order of its appearance.
_BY_NUMBER = ("/dev/block/", "/dev/disk/by-diskseq/")
_MDADM = ("/etc/mdadm.conf", "/etc/mdadm/mdadm.conf")
_DIRECTORIES = {directory: tag for tag, directory in fstab.TAGS.items()}
#: Devices that are gone after a boot, until a process makes them again.
_PASSING = re.compile(r"(?:loop|ram|zram|nbd)\d")
#: Links that name one device: what it calls itself, and volumes by their names.
_OWN_LINKS = ("/dev/mapper/", "/dev/disk/by-id/wwn-", "/dev/disk/by-id/")
_PLAIN = re.compile(r"[\w.:+=@/-]+", re.ASCII)
_PV = "LVM2_member"
#: What lies in these is mounted, and not they themselves.
_CONTAINERS = ("crypto_LUKS", _PV)


def faults(
    host: Host, lines: Iterable[Entry], mounted: Iterable[Mount], properties: Mapping[str, dict[str, str]]
) -> list[Fault]:
    """Return the names in lines, units and boot entries by which the next boot may mount another file system.

    `lines`: those of fstab, and units; those count whose mount point is in use. `properties`: {kernel name: what udev
    knows of the block device}. No boot stops because of them.
    """
    if not properties:
        return []
    here, devices = {mount.target: mount for mount in mounted}, Devices(host, properties)
    lines = list(lines)
    found: list[Fault] = []
    for line in lines:
        if line.target != "/" and line.target in here and devices.is_named_by(line):
            found += _of_line(host, line, here[line.target], devices, is_renamed=True)
    if "/" in here:
        for line, has_initramfs in _roots(host, here["/"]):
            found += _of_line(host, line, here["/"], devices, has_initramfs)
    found += _without_line(host, lines, here.values(), devices)
    return [fault._replace(effect="optional") for fault in found]


def of_container(
    host: Host, devices: Devices, name: str, line: tuple[str, str]
) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield what is wrong with the name by which a LUKS container is opened at boot: which cause, with its values.

    `line`: the name, and the file and line that have it.
    """
    spec, _source = line
    stable, kind = _stable(host, devices, name), devices.holds(name)
    because = _why_temporary(host, spec, name, devices) if spec else ""
    if because:
        cause, values = _temporary("temporary_container", host, devices, name, stable)
        yield cause, {"spec": spec, "because": because, **values}
    tag, value = tag_of(spec)
    found = _with_tag(host, devices, tag, value, kind) if tag else []
    if len(found) > 1:
        shared: dict[str, Value] = {"names": found, "tag": tag, "value": value}
        if stable:
            yield "copied_container", {**shared, "spec": spec, "device": name, "stable": stable}
        else:
            yield "copied_container.no_name", {**shared, **_others(found, name, devices)}


def _temporary(
    cause: str, host: Host, devices: Devices, name: str, stable: str
) -> tuple[str, dict[str, Value]]:
    """Return the cause of a name that changes, by how the device can be named, with the values of that."""
    if stable:
        return cause, {"stable": stable}
    uuid = devices.properties.get(name, {}).get(TAGGED["UUID"], "")
    found = _with_tag(host, devices, "UUID", uuid, devices.holds(name)) if uuid else []
    if any(each != name for each in found):
        return f"{cause}.copied", {**_others(found, name, devices), "device": name, "uuid": uuid}
    return f"{cause}.no_uuid", {"device": name}


def _others(found: list[str], name: str, devices: Devices) -> dict[str, Value]:
    """Return the other devices that share a tag with one, and what is on them."""
    others = [each for each in found if each != name]
    return {"others": others, "holds": devices.holds(others[0])}


def of_volumes(host: Host, mounts: Iterable[MountFacts], devices: Devices) -> list[BootFaultFacts]:
    """Return the copies of LVM's physical volumes below mounts (facts), as Fault.as_dict has them."""
    found = {}
    for mount in (each for each in mounts if each["boots"]):
        names = {name for layer in mount["stack"] for name in layer["below"] if devices.holds(name) == _PV}
        for name in sorted(names):
            uuid = devices.properties[name].get(TAGGED["UUID"], "")
            same = _with_tag(host, devices, "UUID", uuid, _PV) if uuid else []
            if len(same) > 1:
                entry = Entry(-1, "", mount["target"], mount["fstype"], ("defaults",), f"/dev/{name}")
                values: dict[str, Value] = {"names": same, "uuid": uuid, **_others(same, name, devices)}
                fault = Fault(entry, "copied_volume", UNKNOWN, values, effect="optional")
                found[mount["target"], uuid] = fault.as_dict()
    return list(found.values())


def _without_line(
    host: Host, lines: list[Entry], mounted: Iterable[Mount], devices: Devices
) -> Iterator[Fault]:
    """Yield the mounts that no line is about and that a line by UUID would not bring back: other devices have it."""
    groups: dict[str, list[Mount]] = {}
    for mount in mounted:
        groups.setdefault(mount.device, []).append(mount)
    for group in groups.values():
        targets = [mount.target for mount in group]
        is_on_device = "/" not in targets and group[0].source.startswith("/dev/")
        name = _mounted(group[0], devices) if is_on_device else None
        uuid = devices.properties[name].get(TAGGED["UUID"], "") if name else ""
        found = _with_tag(host, devices, "UUID", uuid) if uuid else []
        if name is None or len(found) < 2:
            continue
        here = [line for line in lines if line.target in targets]
        if any(tag_of(line.spec) == ("UUID", uuid) or devices.find(line.spec) == name for line in here):
            continue  # What is wrong with the line's name was said.
        stable, target = _stable(host, devices, name), targets[0]
        entry = Entry(-1, "", target, group[0].fstype, ("defaults",), fstab.PATH)
        shared: dict[str, Value] = {"names": found, "uuid": uuid}
        if stable:
            yield Fault(entry, "no_line", "refused", {**shared, "device": name, "stable": stable})
        else:
            yield Fault(entry, "no_line.no_name", "refused", {**shared, **_others(found, name, devices)})


def _roots(host: Host, root: Mount) -> list[tuple[Entry, bool]]:
    """Return what names the root at the next boot, each with whether an initramfs is there to find it by UUID."""
    try:
        named = [(source, spec) for source, spec in boot_loader.roots(host) if spec]
        entries = boot_loader.entries(host)
    except Unobservable:
        named, entries = [], []
    has_initramfs = bool(entries) and all(entry.initramfs for entry in entries)
    if not named:
        try:
            words = [word.partition("=") for word in host.read("/proc/cmdline").split()]
        except Unobservable:
            return []  # What reads the kernel's command line for the root's options says so.
        named = [("the kernel's command line", value) for key, _equals, value in words if key == "root"][-1:]
    lines = {
        spec: Entry(-1, spec, "/", root.fstype, ("defaults",), source) for source, spec in reversed(named)
    }
    return [(line, has_initramfs) for line in lines.values()]


def _of_line(host: Host, line: Entry, mount: Mount, devices: Devices, is_renamed: bool) -> Iterator[Fault]:
    """Yield what is wrong with the name in a line. `is_renamed`: whether a UUID can be used in its place."""
    name = _mounted(mount, devices) or devices.find(line.spec)
    if name is None:
        return
    because = _why_temporary(host, line.spec, name, devices)
    if because:
        stable = _stable(host, devices, name, by_uuid=is_renamed)
        values: dict[str, Value] = {"spec": without_login(line.spec), "because": because}
        if line.target != "/":
            cause, named = _temporary("temporary_name", host, devices, name, stable)
            yield Fault(line, cause, UNKNOWN, {**values, **named})
        elif stable:
            yield Fault(line, "temporary_root", UNKNOWN, {**values, "stable": stable})
        else:
            yield Fault(line, "temporary_root.no_initramfs", UNKNOWN, values)
    yield from _copies(host, line, name, devices)


def _mounted(mount: Mount, devices: Devices) -> str | None:
    """Return the kernel name of the device that is mounted, None if udev has none."""
    major, _colon, minor = mount.device.partition(":")
    for name, said in devices.properties.items():
        if (said.get("MAJOR"), said.get("MINOR")) == (major, minor):
            return name
    name = posixpath.basename(devices.host.resolve(mount.source))
    return name if name in devices.properties else None


def _why_temporary(host: Host, spec: str, name: str, devices: Devices) -> str:
    """Return the keyword of why a name may be another device's after the next boot, '' if it may not."""
    if spec.startswith(_BY_NUMBER):
        return "boot"
    if spec.startswith("/dev/md/"):
        return "" if _is_named_array(host, name, devices) else "other_host"
    short = spec[len("/dev/") :] if spec.startswith("/dev/") else ""
    if _ARRAY.fullmatch(short):
        return "" if _has_array_line(host, name, devices) else "no_array_line"
    found = _NUMBERED.fullmatch(short)
    if not found:
        return ""
    kind = found["kind"] or found["nvme"] or found["mmc"]
    if kind and len([each for each in devices.properties if _is_whole(each, kind, devices)]) < 2:
        return ""  # It is the only disk that can have the name.
    return "number"


def _is_whole(name: str, kind: str, devices: Devices) -> bool:
    said = devices.properties[name]
    return name.startswith(kind) and said.get("DEVTYPE", "disk") == "disk"


def _arrays(host: Host) -> Iterator[tuple[str, str]]:
    """Yield (device, UUID) of the ARRAY lines of mdadm.conf, both '' if not named. Raises Unobservable."""
    for path in _MDADM:
        text = host.read(path) if host.exists(path) else ""
        # A line that begins with a blank continues the one before.
        for line in re.sub(r"\n[ \t]+", " ", text).split("\n"):
            words = line.partition("#")[0].split()
            if words and words[0].upper() == "ARRAY":
                uuids = [word[5:] for word in words[1:] if word[:5].lower() == "uuid="]
                device = words[1] if len(words) > 1 and "=" not in words[1] else ""
                yield device, _plain_uuid(uuids[-1]) if uuids else ""


def _plain_uuid(text: str) -> str:
    return re.sub("[^0-9a-f]", "", text.lower())


def _array(name: str, devices: Devices) -> dict[str, str]:
    """Return what udev knows of the array that a device is, or is a partition of."""
    found = _ARRAY.fullmatch(name)
    return devices.properties.get(found[1] if found else name, {})


def _has_array_line(host: Host, name: str, devices: Devices) -> bool:
    """Return whether mdadm.conf gives an array the number that it has now."""
    said, found = _array(name, devices), _ARRAY.fullmatch(name)
    number = re.sub(r"\D", "", found[1]) if found else ""
    names = {f"/dev/md{number}", f"md{number}", f"/dev/md/{number}", number}
    uuid = _plain_uuid(said.get("MD_UUID", ""))
    try:
        return any(device in names and uuid and each == uuid for device, each in _arrays(host))
    except Unobservable:
        return False


def _is_named_array(host: Host, name: str, devices: Devices) -> bool:
    """Return whether an array keeps its name: by a line of mdadm.conf, or because it is this host's own."""
    said = _array(name, devices)
    uuid = _plain_uuid(said.get("MD_UUID", ""))
    try:
        own = host.read("/proc/sys/kernel/hostname").strip()
        lines = [each for _device, each in _arrays(host)]
    except Unobservable:
        return True  # The name is one that is meant to last.
    owner, colon, _name = said.get("MD_NAME", "").partition(":")
    return bool(uuid and uuid in lines) or not colon or owner in (own, own.partition(".")[0], "any")


def _stable(host: Host, devices: Devices, name: str, by_uuid: bool = True) -> str:
    """Return a name that leads to this device alone at each boot, '' if none is known.

    Without an initramfs (`by_uuid` is false) the kernel itself finds the root, and knows PARTUUID alone.
    """
    said = devices.properties.get(name, {})
    tags = ("UUID", "PARTUUID") if by_uuid else ("PARTUUID",)
    for tag in tags:
        value = said.get(TAGGED[tag], "")
        leads_here = bool(_PLAIN.fullmatch(value)) and devices.find(f"{tag}={value}") == name
        if leads_here and len(_with_tag(host, devices, tag, value, devices.holds(name))) < 2:
            return f"{tag}={value}"
    links = said.get("DEVLINKS", "").split() if by_uuid else []
    for kind in _OWN_LINKS:
        for link in sorted(links):
            others = [
                each for each in devices.properties.values() if link in each.get("DEVLINKS", "").split()
            ]
            if link.startswith(kind) and _PLAIN.fullmatch(link) and len(others) == 1:
                return link
    return ""


def _copies(host: Host, line: Entry, name: str, devices: Devices) -> Iterator[Fault]:
    """Yield that several devices have the tag by which a line mounts one of them."""
    tag, value = tag_of(line.spec)
    found = _with_tag(host, devices, tag, value) if tag else []
    if len(found) < 2:
        return
    stable = _stable(host, devices, name) if line.target != "/" else ""
    shared: dict[str, Value] = {"names": found, "tag": tag, "value": value}
    if stable:
        named: dict[str, Value] = {"spec": without_login(line.spec), "device": name, "stable": stable}
        yield Fault(line, "copies", UNKNOWN, {**shared, **named})
        return
    others = _others(found, name, devices)
    # Another UUID gives the others no other label.
    holds = others["holds"] if tag == "UUID" and name in found else ""
    yield Fault(line, "copies.no_name", UNKNOWN, {**shared, **others, "holds": holds})


def tag_of(spec: str) -> tuple[str, str]:
    """Return the tag and the value by which a line names a device, also as the path of udev's link; ('', '') for none."""
    tag, equals, value = fstab.unquoted(spec).partition("=")
    if equals and tag in TAGGED:
        return tag, value
    directory, name = posixpath.split(spec)
    by_link = _DIRECTORIES.get(posixpath.basename(directory))
    if posixpath.dirname(directory) != "/dev/disk" or by_link is None:
        return "", ""
    return by_link, re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), name)


def _with_tag(host: Host, devices: Devices, tag: str, value: str, kind: str = "") -> list[str]:
    """Return the devices with a value of a tag, of which the next boot may mount any: each stack counts once.

    `kind`: what the device that is meant holds; containers are opened in place of being mounted.
    """
    found = {
        name: said
        for name, said in devices.properties.items()
        if value and said.get(TAGGED[tag]) == value and _may_be_mounted(name, said, tag, kind)
    }
    if len(found) < 2:
        return list(found)
    members = [said.get("ID_FS_UUID_SUB", "") for said in found.values()]
    is_btrfs = all(said.get("ID_FS_TYPE") == "btrfs" for said in found.values())
    if tag in ("UUID", "LABEL") and is_btrfs and "" not in members and len(set(members)) == len(members):
        return list(found)[:1]
    below = {lower for name in found for lower in _below(host, name, devices)}
    return [name for name in found if not {name, _whole(name, devices)} & below]


def _may_be_mounted(name: str, said: Mapping[str, str], tag: str, wanted: str) -> bool:
    if _PASSING.match(name) or said.get("DM_MULTIPATH_DEVICE_PATH") == "1":
        return False
    kind = said.get("ID_FS_TYPE", "")
    if tag in ("PARTUUID", "PARTLABEL"):
        return not kind.endswith("_member")
    return kind == wanted if wanted in _CONTAINERS else any(kind in held for held in HOLDS.values())


def _whole(name: str, devices: Devices) -> str:
    """Return the device that a partition is a part of; of others the device itself."""
    said = devices.properties.get(name, {})
    return (
        posixpath.basename(posixpath.dirname(said.get("DEVPATH", "")))
        if said.get("DEVTYPE") == "partition"
        else name
    )


def _below(host: Host, name: str, devices: Devices) -> set[str]:
    """Return the devices below one: of a partition those below its whole device."""
    found: set[str] = set()
    left = [name, _whole(name, devices)]
    while left:
        upper = left.pop()
        kind = _NUMBERED.fullmatch(upper)
        if kind and any(kind.groupdict().values()):
            continue  # A disk: nothing is below it.
        path = f"/sys/class/block/{upper}/slaves"
        try:
            names = host.names(path) if host.exists(path) else []
        except Unobservable:
            names = []
        new = {each for lower in names for each in (lower, _whole(lower, devices))} - found - {""}
        found |= new
        left += new
    return found - {name, _whole(name, devices)}
