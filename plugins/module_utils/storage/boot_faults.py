# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that prevent the next boot from mounting a line of fstab: checked against kernel, devices, other lines.

systemd makes a unit of each line (systemd-fstab-generator(8)); local-fs.target requires those without `noauto` and
`nofail` that are not of the network, and the boot ends in emergency mode where one of them fails.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Union

from ..facts.boot_causes import FAULT_OF
from ..facts.classes import BootFaultFacts
from ..host import units
from ..host.mount_api.options import split as split_options
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable
from . import boot_images, boot_loader, fstab, known_options, mount_units, refused_options
from .fstab import Entry
from .shown_options import FLAGS, KEYS, PATHS, PRIVATE, shown, without_login

_BIND = frozenset(("bind", "rbind", "move", "remount"))
#: What a line calls the file system -> what udev may find on the device for it (blkid(8)).
HOLDS = {
    **{
        name: (name,) for name in "btrfs erofs ext3 f2fs hfs hfsplus jfs nilfs2 reiserfs squashfs xfs".split()
    },
    "ext2": ("ext2", "ext3"),
    "ext4": ("ext2", "ext3", "ext4"),
    "exfat": ("exfat",),
    **dict.fromkeys(("ntfs", "ntfs3", "ntfs-3g"), ("ntfs",)),
    **dict.fromkeys(("msdos", "vfat"), ("vfat",)),
    **dict.fromkeys(("iso9660", "udf"), ("iso9660", "udf")),
}
#: What is no file system -> the cause of a fault.
_CONTAINERS = {
    "crypto_LUKS": "holds_luks",
    "LVM2_member": "holds_lvm",
    "linux_raid_member": "holds_raid",
    "swap": "holds_swap",
}
#: The kernel's own, for the nearest name of one that nobody knows.
_OTHERS = (
    "9p autofs bcachefs binfmt_misc cgroup2 configfs debugfs devpts devtmpfs efivarfs fuse fuseblk hugetlbfs mqueue none overlay"
    " proc pstore ramfs securityfs swap sysfs tmpfs tracefs virtiofs zfs"
).split()
_ALIKE = 0.7
#: Tag of fstab -> the property of udev's that has its value.
TAGGED = {
    "UUID": "ID_FS_UUID",
    "LABEL": "ID_FS_LABEL",
    "PARTUUID": "ID_PART_ENTRY_UUID",
    "PARTLABEL": "ID_PART_ENTRY_NAME",
}
_UNITS = "/etc/systemd/system"
_NO_TEXT = re.compile("[\udc80-\udcff]")
_REQUIRES = "x-systemd.requires"
_AFTER, _BEFORE, _MOUNTS_FOR = "x-systemd.after", "x-systemd.before", "x-systemd.requires-mounts-for"


#: A value of a cause.
Value = Union[str, list[str]]


class Fault(NamedTuple):
    """Why a line mounts nothing, or not what it should.

    `cause` is one of facts/boot_causes.py, with its `parameters`; `state` is refused, or unknown if this host cannot show it;
    `options` are the options of the line that are wrong; `effect`, one of EFFECTS of the facts, is what it does to a boot that
    needs the line.
    """

    line: Entry
    cause: str
    state: str
    parameters: Mapping[str, Value]
    options: tuple[str, ...] = ()
    effect: str = "required"

    @property
    def fault(self) -> str:
        """Return the setting of the report that its cause belongs to."""
        return FAULT_OF[self.cause]

    def as_dict(self) -> BootFaultFacts:
        """Return it as JSON takes it, without what may be a password."""
        line = self.line
        return {
            "source": line.source,
            "target": line.target,
            "fstype": line.fstype,
            "boot": self._boot(),
            "cause": self.cause,
            "state": self.state,
            "parameters": dict(self.parameters),
            "options": shown(self.options),
        }

    def _boot(self) -> str:
        """Return the result of the next boot, one of EFFECTS in facts/storage.py.

        The root is mounted before fstab is read: its line is for the remount, by which it is made writable.
        """
        if self.line.boot != "required":
            return "optional"
        is_root = self.line.target == "/" and not self.line.unit
        return "read_only" if is_root and self.effect == "required" else self.effect


class Devices:
    """The block devices of a host by every name that udev gives them; `properties` is its database."""

    def __init__(self, host: Host, properties: Mapping[str, dict[str, str]]) -> None:
        self.host, self.properties = host, properties
        self._by_path = {
            path: name
            for name, reported in properties.items()
            for path in (reported["DEVNAME"], *reported.get("DEVLINKS", "").split())
        }

    def find(self, spec: str) -> str | None:
        """Return the kernel's name of the device that a line means, None if it is missing."""
        path = fstab.device_path(spec)
        if path in self._by_path:
            return self._by_path[path]
        name = posixpath.basename(self.host.resolve(path))
        if name in self.properties or self.host.is_block_device(path):
            return name
        tag, _equals, value = fstab.unquoted(spec).partition("=")
        return self.tagged(tag).get(value) if tag in TAGGED else None

    def is_named_by(self, line: Entry) -> bool:
        """Return whether a line names a block device."""
        return names_a_device(line)

    def holds(self, name: str) -> str:
        """Return what udev found on a device (ID_FS_TYPE), '' where it found nothing or was not asked."""
        return self.properties.get(name, {}).get("ID_FS_TYPE", "")

    def tagged(self, tag: str) -> dict[str, str]:
        """Return {value: kernel name} of a tag of fstab, as udev knows it."""
        key = TAGGED[tag]
        return {reported[key]: name for name, reported in self.properties.items() if reported.get(key)}


def of_fstab(
    host: Host,
    entries: Iterable[Entry],
    mounted: Iterable[Mount],
    properties: Mapping[str, dict[str, str]],
) -> list[Fault]:
    """Return what is wrong with the lines of fstab, except those that a unit of systemd's replaces.

    `mounted`: the mounts that are visible; `properties`: {kernel name: what udev knows of the block device}. Raises
    Unobservable where the kernel's release cannot be read.
    """
    devices = Devices(host, properties)
    here = {mount.target: mount for mount in mounted}
    lines = boot_lines(host, entries, here)
    types = {line: _type_of_options(line, devices, here) for line in lines}
    read = [(types[line], options) for line in lines for options in fstab.readings(line.options)]
    kernel = refused_options.query(host, read)
    found: list[Fault] = []
    for line in lines:
        found += [*_of_letters(line), *_of_options(line, types[line], kernel, here)]
        found += _of_type(line, devices, host)
        found += _of_source(line, devices, host, here, lines)
        found += [
            *(_of_root(host, line, devices, here) if line.target == "/" else ()),
            *_of_read_only(line, here),
        ]
        found += _of_requirements(line, devices, host)
    found += [*_duplicates(lines), *_loops(lines), *_of_images(host, devices, here)]
    return [_as_remounted(fault) for fault in found if not _is_replaced(host, fault.line)]


def boot_lines(host: Host, entries: Iterable[Entry], here: Mapping[str, Mount]) -> list[Entry]:
    """Return the lines of fstab, and units that replace or add to them; `here`: {mount point: mount}."""
    # systemd passes a line by whose mount point is no path; a swap space that is missing stops nothing.
    lines = [line for line in entries if line.target.startswith("/") and line.fstype != "swap"]
    return [*(_with_unit(host, line, here) for line in lines), *_required_units(host)]


def _as_remounted(fault: Fault) -> Fault:
    """Return a fault as the boot meets it: of the line of / its remount asks for the options and looks a tag up, and passes
    type and path by. This host does not show what an initramfs makes of those."""
    line = fault.line
    is_tagged = line.spec.partition("=")[0] in fstab.TAGS
    is_passed = fault.fault == "type" or (fault.fault == "source" and not is_tagged)
    is_root = line.target == "/" and not line.unit
    return fault._replace(state=UNKNOWN) if is_root and is_passed else fault


def _with_unit(host: Host, line: Entry, here: Mapping[str, Mount]) -> Entry:
    """Return what mounts a file system that is there now: its line, or what a unit or drop-in of systemd's makes of it.

    Of others it is read only if something is wrong.
    """
    is_asked = line.target in here and bool({*line.fstype.split(",")} & {*HOLDS, "auto"})
    unit = _unit_of(host, line.target) if is_asked else None
    if unit is None or not unit.options:
        return line
    found = line._replace(options=unit.options, unit=unit.source)
    return found._replace(spec=unit.what, fstype=unit.fstype or "auto") if unit.is_unit else found


def _required_units(host: Host) -> list[Entry]:
    """Return the mount units of their own without which the boot stops."""
    directory = f"{_UNITS}/local-fs.target.requires"
    names = host.names(directory) if host.exists(directory) else []
    found = []
    for name in (name for name in names if name.endswith(".mount")):
        path = f"{_UNITS}/{name}"
        if not _is_dependency(host, f"{directory}/{name}"):
            continue
        try:
            reported = mount_units.parse(host.read(path)) if host.exists(path) else {}
        except (Unobservable, ValueError):
            continue  # What only systemd can expand is not judged.
        if reported.get("What") and reported.get("Where"):
            options = mount_units.split_options(reported.get("Options", "")) or ("defaults",)
            found.append(
                Entry(-1, reported["What"], reported["Where"], reported.get("Type", "auto"), options, path)
            )
    return found


def _is_dependency(host: Host, path: str) -> bool:
    """Return whether systemd takes an entry of a directory of requirements: a link, but one to /dev/null or an empty file."""
    try:
        host.link(path)
        # One that leads to nothing is no mask.
        return not (host.exists(path) and mount_units.is_masked(host, path))
    except Unobservable:
        return False


def _of_letters(line: Entry) -> Iterator[Fault]:
    """Yield that systemd cannot read the unit that it makes of a line. It writes the value of a tag in ASCII."""
    spec = "" if line.spec.partition("=")[0] in fstab.TAGS else line.spec
    if _NO_TEXT.search("".join((spec, line.target, *line.options))):
        yield Fault(line, "encoding", "refused", {}, effect="read_only")


def of_units(
    host: Host, lines: Iterable[Entry], mounted: Iterable[Mount], properties: Mapping[str, dict[str, str]]
) -> list[Fault]:
    """Return the options that the kernel refuses, of units that no boot requires. Raises Unobservable."""
    here, devices, lines = {mount.target: mount for mount in mounted}, Devices(host, properties), list(lines)
    if not lines:
        return []
    types = {line: _type_of_options(line, devices, here) for line in lines}
    kernel = refused_options.query(host, [(types[line], line.options) for line in lines])
    found = (fault for line in lines for fault in _of_options(line, types[line], kernel, here))
    return [fault._replace(effect="optional") for fault in found]


def _type_of_options(line: Entry, devices: Devices, here: Mapping[str, Mount]) -> str:
    """Return the type of file system that gets a line's options."""
    if line.target == "/" and not line.unit and "/" in here:
        # The remount of / goes to the file system that is there, whatever its line calls it.
        return here["/"].fstype
    name = devices.find(line.spec) if line.fstype == "auto" and names_a_device(line) else None
    return (devices.holds(name) if name else "") or line.fstype


def _of_options(
    line: Entry, fstype: str, kernel: refused_options.Options, here: Mapping[str, Mount]
) -> Iterator[Fault]:
    """Yield the options that the file system refuses; of a file system without a table, what looks like a slip."""
    states = _states(line, fstype, kernel, here.get(line.target))
    refused = [word for word, state in states.items() if state == refused_options.REFUSED]
    unsure = [word for word, state in states.items() if state == UNKNOWN]
    if refused:
        yield _wrong_options(line, "unknown_option", fstype, refused)
    if unsure:
        release = {"release": kernel.releases.boots}
        if not kernel.releases.is_same:
            named = {**release, "running": kernel.releases.running}
            yield _wrong_options(line, "unsure_option.other_kernel", fstype, unsure, named)
        elif kernel.is_queried(fstype):
            yield _wrong_options(line, "unsure_option.quotes", fstype, unsure, release)
        else:
            yield _wrong_options(line, "unsure_option", fstype, unsure, release)
    types = set(fstype.split(","))
    if not types & {*known_options.KNOWN, "auto", "none"} and not any(map(kernel.is_queried, types)):
        slips = known_options.slips(line.options, FLAGS | KEYS | PATHS | PRIVATE)
        if slips:
            yield _wrong_options(line, "suspect_option", fstype, slips)


def _states(line: Entry, fstype: str, kernel: refused_options.Options, mount: Mount | None) -> dict[str, str]:
    """Return {option: state} of a line, by each way in which mount(8) may read it; `mount` is at its target now."""
    is_same = mount is not None and mount.fstype == fstype
    shown_now = {*mount.options, *mount.super_options} if mount and is_same else set()
    words = dict.fromkeys(
        word for reading in fstab.readings(line.options) for word in split_options(",".join(reading))
    )
    return {word: kernel.state(fstype, word, shown_now) for word in words}


def _wrong_options(
    line: Entry, cause: str, fstype: str, words: list[str], named: Mapping[str, Value] | None = None
) -> Fault:
    near = {word: known_options.nearest(fstype, word) or "" for word in words}
    meant = {word: spelled for word, spelled in near.items() if spelled} or dict.fromkeys(words, "")
    state = "refused" if cause == "unknown_option" else UNKNOWN
    values = {"type": fstype, **(named or {}), **_meant(meant)}
    return Fault(line, cause, state, values, tuple(words))


def _meant(meant: Mapping[str, str]) -> dict[str, Value]:
    """Return the options of a line that are wrong, and the probable ones; `meant`: {option: '' if none is like it}."""
    return {"wrong": shown(meant), "near": shown(word for word in meant.values() if word)}


def _of_type(line: Entry, devices: Devices, host: Host) -> Iterator[Fault]:
    """Yield that the device holds another file system, or that none is called so."""
    if line.fstype == "none":
        if not _BIND & set(line.options):
            meant = _near_word(line.options, _BIND) or {"none": ""}
            yield Fault(line, "no_bind", "refused", _meant(meant))
        return
    types = line.fstype.split(",")
    name = devices.find(line.spec) if names_a_device(line) else None
    real = devices.holds(name) if name else ""
    taken = {held for each in types for held in HOLDS.get(each, ())}
    if real in _CONTAINERS and (taken or line.fstype == "auto"):
        yield Fault(line, _CONTAINERS[real], "refused", {"spec": _spec(line)})
    elif real and taken and real not in taken:
        values: dict[str, Value] = {"spec": _spec(line), "holds": real, "near": [real]}
        yield Fault(line, "other_type", "refused", values)
    elif not taken and len(types) == 1 and not _is_known(host, line.fstype):
        near = difflib.get_close_matches(line.fstype, [*HOLDS, *_OTHERS], 1, _ALIKE)
        if near or real:
            yield Fault(line, "unknown_type", "refused", {"near": [real or near[0]]})


def _is_known(host: Host, fstype: str) -> bool:
    """Return whether the kernel has a file system of a name now, or mount(8) a program for it."""
    kinds = {words[-1] for words in map(str.split, host.read("/proc/filesystems").splitlines()) if words}
    known = {*kinds, *HOLDS, *_OTHERS, *fstab.NETWORK, "auto"}
    helpers = (f"/sbin/mount.{fstype}", f"/usr/sbin/mount.{fstype}")
    return fstype.partition(".")[0] in known or any(map(host.exists, helpers))


def _of_source(
    line: Entry, devices: Devices, host: Host, here: Mapping[str, Mount], lines: list[Entry]
) -> Iterator[Fault]:
    """Yield that what a line mounts is not there."""
    if names_a_device(line):
        # Without udev's database nobody can tell.
        if devices.properties and not devices.find(line.spec):
            yield _missing(line, "no_device", _nearest_device(line, devices))
    elif _is_path(line) and line.spec not in here and line.target not in here:
        # A path on a file system that is not mounted now cannot be looked at.
        away = [
            other.target
            for other in lines
            if other.target not in here and _is_within(line.spec, other.target)
        ]
        if not away and not _is_there(host, line.spec):
            fault = _missing(line, "no_path", "")
            yield fault._replace(effect="empty") if _BIND & set(line.options) else fault
    elif set(line.fstype.split(",")) & set(HOLDS) and not line.spec.startswith("/"):
        near = difflib.get_close_matches(line.spec.partition("=")[0].upper(), fstab.TAGS, 1, _ALIKE)
        value = line.spec.partition("=")[2]
        yield _missing(line, "no_tag", f"{near[0]}={value}" if near and value else "")


def _of_root(host: Host, line: Entry, devices: Devices, here: Mapping[str, Mount]) -> Iterator[Fault]:
    """Yield that no entry of the boot loader names a root that is there, where all name a device."""
    try:
        roots = boot_loader.roots(host)
    except Unobservable:
        return  # The root's own rows say so.
    plain = all(spec.startswith("/dev/") or spec.partition("=")[0] in fstab.TAGS for _source, spec in roots)
    if roots and plain and devices.properties and not any(devices.find(spec) for _source, spec in roots):
        source, spec = roots[0]
        tag, value = _root_now(host, devices, here)
        values = {"spec": spec, "tag": tag, "value": value}
        yield Fault(line._replace(unit=source), "no_root", "refused", values)


def _root_now(host: Host, devices: Devices, here: Mapping[str, Mount]) -> tuple[str, str]:
    """Return a tag and its value, '' if unknown, by which the next boot finds the root that is mounted now.

    What its line says may be wrong.

    The kernel itself, without an initramfs, knows PARTUUID alone. With copies a UUID leads to either.
    """
    try:
        entries = boot_loader.entries(host)
    except Unobservable:
        entries = []
    tag = "UUID" if entries and all(entry.initramfs for entry in entries) else "PARTUUID"
    name = devices.find(here["/"].source) if "/" in here else None
    reported = devices.properties.get(name or "", {})
    value = reported.get(TAGGED[tag], "")
    same = [
        each
        for each in devices.properties.values()
        if each.get(TAGGED[tag]) == value and each.get("ID_FS_TYPE") == reported.get("ID_FS_TYPE")
    ]
    is_one = len(same) == 1 or reported.get("ID_FS_TYPE") == "btrfs"
    return tag, value if is_one else ""


def _of_images(host: Host, devices: Devices, here: Mapping[str, Mount]) -> Iterator[Fault]:
    """Yield that a kernel or an initramfs is missing, or cannot open the device of the root."""
    root = here.get("/")
    if root is None:
        return
    line = Entry(-1, root.source, "/", root.fstype, ("defaults",), "the boot loader")
    name = devices.find(root.source)
    try:
        for problem in boot_images.problems(host, name, devices.properties):
            yield Fault(line._replace(unit=problem.source), problem.cause, problem.state, problem.parameters)
    except Unobservable as error:
        yield Fault(line, "unread.images", UNKNOWN, {"error": str(error)})


def _missing(line: Entry, cause: str, near: str) -> Fault:
    return Fault(line, cause, "refused", {"spec": _spec(line), "near": [near] if near else []})


def names_a_device(line: Entry) -> bool:
    """Return whether a line is about a block device. /dev/root is the kernel's word for the root, and no device."""
    if set(line.options) & _BIND or any(option.partition("=")[0] == "loop" for option in line.options):
        return False
    tagged = line.spec.partition("=")[0] in fstab.TAGS and "=" in line.spec
    on_disk = line.fstype == "auto" or bool(set(line.fstype.split(",")) & set(HOLDS))
    return tagged or (on_disk and line.spec.startswith("/dev/") and line.spec != "/dev/root")


def _nearest_device(line: Entry, devices: Devices) -> str:
    tag, equals, value = line.spec.partition("=")
    if not equals or tag not in fstab.TAGS:
        return ""
    found = {each.lower(): each for each in devices.tagged(tag)}
    near = difflib.get_close_matches(value.lower(), found, 1, _ALIKE)
    return f"{tag}={found[near[0]]}" if near else ""


def _of_read_only(line: Entry, here: Mapping[str, Mount]) -> Iterator[Fault]:
    """Yield that what is mounted for writing now comes back read-only."""
    mount = here.get(line.target)
    if mount and line.has("ro", "rw") and "rw" in mount.options and "rw" in mount.super_options:
        yield Fault(
            line,
            "read_only",
            "refused",
            {},
            ("ro",),
            effect="required" if line.target == "/" else "optional",
        )


def _of_requirements(line: Entry, devices: Devices, host: Host) -> Iterator[Fault]:
    """Yield the devices and units that a line has systemd wait for, and that are not there."""
    for wanted in _values(line, _REQUIRES):
        is_device = wanted.startswith("/dev/") and devices.properties and not devices.find(wanted)
        is_service = wanted.endswith((".service", ".target", ".socket")) and not units.has_file(host, wanted)
        if is_device or is_service:
            effect = "undecided" if is_service else "required"
            yield Fault(line, "no_requirement", "refused", {"unit": wanted}, effect=effect)


def _duplicates(lines: list[Entry]) -> Iterator[Fault]:
    """Yield each second line for one mount point, where one of them is mounted at boot."""
    first: dict[str, Entry] = {}
    for line in lines:
        other = first.setdefault(line.target, line)
        if other is line or all(each.has("noauto", "auto") for each in (other, line)):
            continue
        values = {"first": other.source, "second": line.source}
        yield Fault(line if line.boot == "required" else other, "duplicate", UNKNOWN, values)


def _loops(lines: list[Entry]) -> Iterator[Fault]:
    """Yield each ring of lines that wait for each other."""
    for ring in _rings(_waits(lines)):
        rows = [each.source.rpartition(" ")[2] for each in ring]
        values: dict[str, Value] = {"lines": rows, "targets": [each.target for each in ring]}
        first = next((each for each in ring if each.boot == "required"), ring[0])
        yield Fault(first, "order", "refused", values, effect="without")


def _waits(lines: list[Entry]) -> dict[Entry, list[Entry]]:
    """Return for each line those that must be mounted before it, as systemd orders them."""
    at = {line.target: line for line in lines}
    by_unit = {mount_units.unit_name(target): line for target, line in at.items()}
    waits: dict[Entry, dict[Entry, None]] = {line: {} for line in lines}
    for line in lines:
        paths = [posixpath.dirname(line.target), *_values(line, _MOUNTS_FOR)]
        if _is_path(line):
            paths.append(line.spec)
        above = (at[place] for path in paths for place in _with_parents(path) if place in at)
        named = (by_unit[name] for name in _unit_names(line, _REQUIRES, _AFTER) if name in by_unit)
        waits[line].update(dict.fromkeys((*above, *named)))
        for name in _unit_names(line, _BEFORE):
            if name in by_unit:
                waits[by_unit[name]][line] = None
    return {line: [other for other in found if other.target != line.target] for line, found in waits.items()}


def _with_parents(path: str) -> list[str]:
    """Return a path and the directories above it."""
    parts = path.rstrip("/").split("/")
    return ["/".join(parts[:count]) or "/" for count in range(1, len(parts) + 1)]


def _rings(waits: Mapping[Entry, list[Entry]]) -> Iterator[list[Entry]]:
    """Yield rings of lines, in the order of the file: each line is followed once, and one that leads into a ring that was
    yielded is in none."""
    done: set[Entry] = set()
    for start in waits:
        # The way so far, and what each line on it still waits for.
        way = {start: iter(waits[start])} if start not in done else {}
        while way:
            line, left = next(reversed(way.items()), (start, iter(())))
            other = next(left, None)
            if other is None:
                done.add(line)
                del way[line]
            elif other in way:
                ring = list(way)[list(way).index(other) :]
                yield sorted(ring)
                done.update(way)
                way = {}
            elif other not in done:
                way[other] = iter(waits[other])


def _unit_names(line: Entry, *options: str) -> list[str]:
    """Return the units that options of systemd's name; they take a path for the unit that mounts it."""
    values = [value for option in options for value in _values(line, option)]
    return [mount_units.unit_name(value) if value.startswith("/") else value for value in values]


def _values(line: Entry, option: str) -> list[str]:
    reported = (word.partition("=") for word in line.options)
    return [value for name, _equals, value in reported if name == option and value]


def _is_within(path: str, target: str) -> bool:
    return path == target or path.startswith(f"{target.rstrip('/')}/")


def _is_path(line: Entry) -> bool:
    """Return whether a line is about a directory or a file: a bind mount, or an image. The kernel's own file systems take
    any word for a device."""
    own = line.fstype in _OTHERS and line.fstype != "none" and not _BIND & set(line.options)
    return not own and line.spec.startswith("/") and not line.spec.startswith(("/dev/", "//"))


def _is_there(host: Host, path: str) -> bool:
    """Return whether a path leads to something; one whose disk does not answer may."""
    try:
        return host.locate(path).status is not None
    except Unobservable:
        return True


def _spec(line: Entry) -> str:
    return without_login(line.spec)


def _near_word(options: Iterable[str], words: Iterable[str]) -> dict[str, str]:
    """Return {option: the word that was probably meant} of the first that is like one."""
    for option in options:
        near = difflib.get_close_matches(option, words, 1, _ALIKE)
        if near:
            return {option: near[0]}
    return {}


def _is_replaced(host: Host, line: Entry) -> bool:
    """Return whether a separate unit, or a mask, replaces the one that systemd would make of a line."""
    unit = _unit_of(host, line.target) if not line.unit else None
    return unit is not None and unit.is_unit


def _unit_of(host: Host, target: str) -> mount_units.MountUnit | None:
    """Return what replaces a line of fstab, None for nothing, or what is unknown.

    The root and /usr are mounted before systemd reads units.
    """
    try:
        return mount_units.find(host, target, True) if target not in ("/", "/usr") else None
    except Unobservable:
        return None
