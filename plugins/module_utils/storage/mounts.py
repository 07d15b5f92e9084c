# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The present mounts, the mounts of the next boot, and their disks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

# pylint: disable-next=unused-import
from ..facts.classes import BootFaultFacts, CauseFacts, MountFacts, MountPersisted, ViewFacts
from ..host import bounds, namespaces
from ..host.mountinfo import Mount, covered, parse_mountinfo, visible, why_absent
from ..host.observation import (
    UNKNOWN,
    Because,
    Observation,
    Undecided,
    because_of,
    caused,
    observe,
    unknown,
)
from ..host.seam import Host, Unobservable
from ..next_boot import unit_files
from . import (
    boot_blockers,
    boot_faults,
    boot_loader,
    device_names,
    ext4,
    extra_mounts,
    fstab,
    mount_settings,
    mount_units,
    nfs,
    nfs_conf,
    zfs,
)
from .blockstack import Blocks, Holder
from .boot_loader import Rootflags
from .filesystems import DEVICELESS, EXT, JFS, NO_DATA_MODE, FileSystems
from .mount_units import MountUnit
from .shown_options import shown, without_login

_PERSISTED = ("barrier", "data_mode", "atime")
#: File systems whose bytes lie on one device with a readahead of its own (btrfs has one for all).
_ONE_CARRIER = (*EXT, "xfs")


class Superblock(NamedTuple):
    """One mounted file system: all its mounts, and who sees it where this process does not.

    `hidden_in` is None if it is also mounted here. `waits`: it is not mounted until a process accesses its path; its
    options are those of the line or unit.
    """

    mounts: list[Mount]
    views: list[ViewFacts]
    hidden_in: str | None = None
    waits: bool = False


class Persisted(NamedTuple):
    """Where the next boot's options come from, and the options in the order they apply.

    `place` is fstab, unit (a systemd mount unit or its drop-in), rootflags or command_line (systemd.mount-extra=); `target`
    is the mount point. `before`: how the initramfs mounts the root that a line of fstab remounts, None elsewhere.
    """

    place: str
    target: str
    source: str
    options: tuple[str, ...]
    before: tuple[str, ...] | None = None


class Mounts:
    """Reads the mounted file systems of one host, one entry for each superblock."""

    def __init__(self, host: Host, blocks: Blocks | None = None) -> None:
        self.host = host
        self.blocks = blocks or Blocks(host)
        self.filesystems = FileSystems(host, self.blocks)
        self.blocks.holder_of = self._holder
        self._holders: dict[str, Holder | None] = {}
        self._nodev = self._read_nodev()
        self._resolved: dict[str, str] = {}
        self._started: list[tuple[str, MountUnit]] | None = None
        self.fstab, self.fstab_error = self._read_fstab()
        self._of_names: list[boot_faults.Fault] = []
        self._extras: list[extra_mounts.Extra] | None = None

    def superblocks(self) -> list[Superblock]:
        """Return the file systems that could hold data, those mounted here first.

        Raises Unobservable or ValueError when the mount table itself cannot be read.
        """
        here: dict[str, list[Mount]] = {}
        for mount in self._visible():
            if self._may_hold_data(mount):
                here.setdefault(mount.device, []).append(mount)
        groups = {device: sorted(seen, key=self._stands_for_all) for device, seen in here.items()}
        mine = {device: _atime(group[0].options) for device, group in groups.items()}
        views: dict[str, list[ViewFacts]] = {}
        hidden: dict[str, Superblock] = {}

        def kind(mount: Mount) -> tuple[str, str] | None:
            counts = mount.device in here or self._is_on_disk(mount)
            return (mount.device, _atime(mount.options)) if counts else None

        for namespace in namespaces.others(self.host, kind):
            for mount in namespace.mounts:
                if mount.device in here:
                    view: ViewFacts = {
                        "pid": namespace.pid,
                        "command": namespace.command,
                        "target": mount.target,
                        "atime": _atime(mount.options),
                    }
                    found = views.setdefault(mount.device, [])
                    if view["atime"] != mine[mount.device] and len(found) < bounds.VIEWS:
                        found.append(view)
                elif self._is_on_disk(mount) and mount.device not in hidden:
                    where = f"process {namespace.pid} ({namespace.command})"
                    hidden[mount.device] = Superblock([mount], [], where)
        mounted_here = [Superblock(group, views.get(device, [])) for device, group in groups.items()]
        return [*mounted_here, *hidden.values()]

    def _stands_for_all(self, mount: Mount) -> tuple[bool, bool, bool, str]:
        """Sort first what a remount may go through: no read-only view of it, what the next boot mounts, and all of it.

        A boot mounts subvolumes in any order.
        """
        lines = fstab.find(self.fstab, mount.target)
        boots = mount.target == "/" or any(self._names(line, mount) for line in lines)
        is_part = mount.root != "/"
        return mount.read_only_by_itself, not boots, is_part, mount.target if is_part else ""

    def waiting(self, properties: Mapping[str, dict[str, str]]) -> list[Superblock]:
        """Return the file systems on disks that systemd mounts at the first access to a path (systemd.automount(5)).

        No path is accessed for it. `properties`: {kernel name: what udev knows of the block device}.
        """
        visible = self._visible()
        mounted = {mount.device for mount in visible}
        found = []
        for place in (mount for mount in visible if mount.fstype == "autofs"):
            line = self._mounted_on_access(place.target)
            number = self.blocks.number_of(fstab.device_path(line.spec)) if line else None
            if line is None or number is None or number in mounted:
                continue
            name = self.blocks.name_of(number) or ""
            held = properties.get(name, {}).get("ID_FS_TYPE", "") if line.fstype == "auto" else line.fstype
            if held and held not in self._nodev:
                mount = Mount(number, "/", place.target, (), held, f"/dev/{name}", line.options)
                found.append(Superblock([mount], [], waits=True))
        return found

    def _mounted_on_access(self, target: str) -> fstab.Entry | None:
        """Return the line or unit that an automount of systemd's mounts, as a line; None for one of another program."""
        lines = fstab.find(self.fstab, target)
        try:
            unit = mount_units.find(self.host, target, bool(lines))
        except Unobservable:
            return None
        if unit and unit.is_unit:
            kind = unit.fstype or "auto"
            return fstab.Entry(-1, unit.what, target, kind, unit.options, unit.source) if unit.what else None
        if len(lines) != 1 or lines[0].boot != "automount":
            return None
        return lines[0]._replace(options=unit.options) if unit else lines[0]

    def other_mounts(self) -> dict[str, str]:
        """Return {mount point: type} of the file systems that hold no data, or hold it in memory."""
        passed = (mount for mount in self._visible() if not self._may_hold_data(mount))
        return {mount.target: mount.fstype for mount in passed}

    def covered(self) -> dict[str, str]:
        """Return {mount point: mount point of what was mounted over it, or over a directory above} of the file
        systems that could hold data and that no path leads to. Raises ValueError and Unobservable."""
        pairs = covered(self._table())
        return {mount.target: cover.target for mount, cover in pairs if self._may_hold_data(mount)}

    def absent(self, target: str) -> str:
        """Return why no file system that could hold data is at a path, as text."""
        return why_absent(target, self.covered(), {mount.target: mount.fstype for mount in self._visible()})

    def collect(self, superblock: Superblock) -> MountFacts:
        """Return the facts of one superblock. Nothing here raises."""
        group, first = superblock.mounts, superblock.mounts[0]
        ext, ext_reason = self.filesystems.superblock(first)
        numbers, beside, missing = self.filesystems.devices(first, ext, ext_reason)
        stack = nfs.stack(first) if nfs.is_nfs(first.fstype) else self.blocks.walk(numbers)
        causes = [each.as_dict() for each in (*missing, *stack.causes)]
        entry = self.entry(group)
        ways, why = self._ways(superblock)
        persisted = self._persisted(superblock, ways, why, ext, ext_reason)
        running = _on_access(persisted) if superblock.waits else self._running(first)
        seen = {**running, **{f"persisted.{name}": value for name, value in persisted.items()}}
        disks = Observation(" ".join(stack.disks), "/sys/dev/block")
        if causes:
            disks = caused(UNKNOWN, disks.source, "stack", why=causes)
        facts: MountFacts = {
            "target": first.target,
            "targets": [mount.target for mount in group] if superblock.hidden_in is None else [],
            "hidden_in": superblock.hidden_in,
            "views": superblock.views,
            "source": _shown_source(first),
            "device": first.device,
            "carrier": self._carrier(first),
            # The next three are known of its devices: storage/collect.py.
            "carrier_id": None,
            "readahead": {},
            "fua_path": UNKNOWN,
            "fstype": first.fstype,
            "barrier": running["barrier"].value,
            "data_mode": running["data_mode"].value,
            "atime": running["atime"].value,
            "sync": "yes" if "sync" in (*first.super_options, *first.options) else "no",
            "options_running": [] if superblock.waits else shown([*first.options, *first.super_options]),
            "options_fstab": shown(entry.options) if entry else None,
            "options_boot": shown(ways[0].options) if ways else None,
            "persisted": cast(MountPersisted, {name: value.value for name, value in persisted.items()}),
            "boots": self._boots(superblock),
            "stack": stack.as_list(),
            "disks": UNKNOWN if causes else list(stack.disks),
            "disks_seen": list(stack.disks),
            "devices_missing": cast(
                "list[CauseFacts]", [each.as_dict() for each in (*missing, *stack.missing)]
            ),
            "external_log": ", ".join(beside) or None,
            "write_hole": [*stack.write_hole, *self.filesystems.write_hole(first)],
            "evidence": {name: value.as_dict() for name, value in {**seen, "disks": disks}.items()},
        }
        if ext:
            facts["dir_index"] = "yes" if ext.dir_index else "no"
        if "recovery" in running:
            facts["recovery"] = running["recovery"].value
        return facts

    def _persisted(
        self,
        superblock: Superblock,
        ways: list[Persisted],
        why: Because | None,
        ext: ext4.Superblock | None,
        ext_reason: str | None,
    ) -> dict[str, Observation]:
        mask = self._mask(superblock) if not ways and not why else ""
        persisted = _persisted(superblock, ways, why, ext, ext_reason, mask)
        mount = superblock.mounts[0]
        if mount.fstype == "zfs" and superblock.hidden_in is None:
            # It keeps its settings itself, and mounts by itself.
            persisted["barrier"] = zfs.persisted(self.host, mount.source, mount.target, bool(ways))
            persisted["data_mode"] = NO_DATA_MODE
        if nfs.is_nfs(mount.fstype) and ways:
            added = nfs_conf.recovery(self.host, mount, [way.target for way in ways])
            persisted["recovery"] = added or persisted["recovery"]
        return persisted

    def _running(self, mount: Mount) -> dict[str, Observation]:
        atime = observe("/proc/self/mountinfo", lambda: _atime(mount.options))
        return {**self.filesystems.running(mount), "atime": atime}

    def faults(self, properties: Mapping[str, dict[str, str]]) -> list[BootFaultFacts]:
        """Return what keeps the next boot from mounting lines of fstab; `properties`: what udev knows of block devices."""
        visible = self._visible()
        units = self._units_beside_fstab()
        extras = self._extra_mounts()
        planned = {line.target for line in (*self.fstab, *units)}
        added_lines = [extra.line for extra in extras if extra.line.target not in planned]
        found = boot_faults.of_fstab(self.host, [*self.fstab, *added_lines], visible, properties)
        sources = {fault.line.source for fault in found}
        targets = {mount.target for mount in visible}
        added = [unit for unit in units if unit.source not in sources and unit.target in targets]
        found += boot_faults.of_units(self.host, added, visible, properties)
        found += boot_blockers.of_host(self.host, self.fstab, visible, properties)
        here = {mount.target: mount for mount in visible}
        found += extra_mounts.faults(self.host, extras, [*self.fstab, *units], here, self._names)
        return [fault.as_dict() for fault in [*found, *self._of_names]]

    def check_names(self, properties: Mapping[str, dict[str, str]]) -> None:
        """Find the names by which the next boot may mount another file system: what they persist is unknown."""
        units = self._units_beside_fstab()
        replaced = {unit.target for unit in units}
        lines = [line for line in self.fstab if line.target not in replaced]
        self._of_names = device_names.faults(self.host, [*lines, *units], self._visible(), properties)

    def _extra_mounts(self) -> list[extra_mounts.Extra]:
        """Return the mounts that the next boot's command line adds; if it cannot be read, a fault reports that."""
        if self._extras is None:
            try:
                self._extras = extra_mounts.of_host(self.host)
            except Unobservable:
                self._extras = []
        return self._extras

    def _units_beside_fstab(self) -> list[fstab.Entry]:
        """Return the mount units that a boot starts, in the form of lines of fstab."""
        try:
            started = self._started_units()
        except Unobservable:
            return []  # The rows of their mounts say so.
        return [
            fstab.Entry(-1, unit.what, target, unit.fstype or "auto", unit.options, unit.source)
            for target, unit in started
        ]

    def entry(self, group: list[Mount]) -> fstab.Entry | None:
        """Return the fstab entry that mounts a superblock at the first of its targets.

        A bind mount's line mounts no superblock, and a line may be about another device.
        """
        for mount in group:
            found = fstab.find(self.fstab, mount.target)
            if len(found) == 1 and self._names(found[0], mount):
                return found[0]
        return None

    def boot(self, group: list[Mount]) -> list[Persisted]:
        """Return all that mounts a superblock at the next boot, at its present targets and elsewhere.

        What mounts first decides for all, and which that is, is unknown except for the root. Empty
        if nothing mounts it at one of its present targets. Raises Unobservable if that is unknown.
        """
        if self.fstab_error:
            raise Unobservable(self.fstab_error)
        here = [mount.target for mount in group]
        lines = [entry.target for entry in self.fstab if self._names(entry, group[0])]
        units = [target for target, unit in self._started_units() if self._is_of(unit, group[0])]
        targets = ["/"] if "/" in here else list(dict.fromkeys([*here, *lines, *units]))
        found = [way for way in (self._way(target, group[0]) for target in targets) if way]
        if not any(way.target in here for way in found):
            return []
        extras = (extra.line for extra in self._extra_mounts() if self._names(extra.line, group[0]))
        return [
            *found,
            *(Persisted("command_line", line.target, line.source, line.options) for line in extras),
        ]

    def _way(self, target: str, mount: Mount) -> Persisted | None:
        """Return what mounts the superblock of a mount at a target at the next boot, if anything does."""
        lines = fstab.find(self.fstab, target)
        # The root and /usr are mounted before systemd's units are, and then as fstab says.
        unit = None if target in ("/", "/usr") else mount_units.find(self.host, target, bool(lines))
        if unit and self._decides(unit, target, mount, lines):
            return Persisted("unit", target, unit.source, unit.options) if unit.starts else None
        if len(lines) > 1:
            raise Undecided("two_lines", lines=[str(line.row + 1) for line in lines], target=target)
        flags = boot_loader.of_the_next(self.host) if target == "/" else None
        if lines and self._names(lines[0], mount):
            return _of_line(lines[0], flags)
        # Without a line the root is still mounted: by the kernel's command line.
        return Persisted("rootflags", "/", flags.source, flags.options) if flags else None

    def _boots(self, superblock: Superblock) -> dict[str, str]:
        """Return {mount point: whether a boot needs what is mounted there}, of those that anything mounts at boot.

        Required: it stops without; automount: the first access waits for it; optional: it goes on without.
        """
        targets = [mount.target for mount in superblock.mounts] if superblock.hidden_in is None else []
        words = {target: self._boot_word(target) for target in targets}
        return {target: word for target, word in words.items() if word}

    def _boot_word(self, target: str) -> str:
        if target in ("/", "/usr"):
            return "required"
        lines = fstab.find(self.fstab, target)
        try:
            unit = mount_units.find(self.host, target, bool(lines))
        except Unobservable:
            return UNKNOWN
        if unit and unit.is_unit:
            # One that only other units start, or that is masked, is not of the boot.
            return "optional" if unit.what else ""
        return lines[0].boot if lines else ""

    def _mask(self, superblock: Superblock) -> str:
        """Return the file that masks the unit of one of a superblock's mounts, '' without one."""
        targets = [mount.target for mount in superblock.mounts if mount.target not in ("/", "/usr")]
        try:
            masks = [unit_files.mask(self.host, mount_units.unit_name(target)) for target in targets]
        except Unobservable:
            return ""
        return next(filter(None, masks), "")

    def _visible(self) -> list[Mount]:
        return visible(self._table())

    def _table(self) -> list[Mount]:
        return parse_mountinfo(self.host.read("/proc/self/mountinfo"))

    def _may_hold_data(self, mount: Mount) -> bool:
        return mount.fstype not in self._nodev or mount.fstype in DEVICELESS

    def _is_on_disk(self, mount: Mount) -> bool:
        """Return whether a file system that only another namespace sees has a block device. `fuse.NAME` is a kind of fuse,
        which any user can mount by thousands."""
        return mount.fstype.partition(".")[0] not in self._nodev

    def _holder(self, number: str) -> Holder | None:
        """Return the file system of a device number that could hold data, and that a path leads to."""
        if number not in self._holders:
            # One may hold the files of a hundred loop devices.
            self._holders[number] = self._find_holder(number)
        return self._holders[number]

    def _find_holder(self, number: str) -> Holder | None:
        found = (mount for mount in self._visible() if mount.device == number and self._may_hold_data(mount))
        mount = next(found, None)
        if mount is None:
            return None
        numbers, _beside, missing = self.filesystems.devices(mount, *self.filesystems.superblock(mount))
        return Holder(mount.fstype, tuple(numbers), tuple(missing))

    def _carrier(self, mount: Mount) -> str | None:
        """Return the kernel name of the one whole device below a file system."""
        name = self.blocks.name_of(mount.device)
        return self.blocks.whole(name) if name and mount.fstype in _ONE_CARRIER else None

    def _decides(self, unit: MountUnit, target: str, mount: Mount, lines: list[fstab.Entry]) -> bool:
        """Return whether a unit, or drop-ins over what systemd makes of fstab, mount this superblock.

        A bind mount's unit mounts none. Raises Unobservable for one that is about another device.
        """
        if not unit.is_unit:
            return len(lines) == 1 and self._names(lines[0], mount)
        if _binds(unit):
            return False
        if unit.what and not self._is_of(unit, mount):
            values = {"holds": without_login(unit.what), "target": target, "device": _shown_source(mount)}
            raise Undecided("other_unit", unit=unit.source, **values)
        return True

    def _started_units(self) -> list[tuple[str, MountUnit]]:
        """Return the mount points that units of their own will mount at the next boot, with these. Raises Unobservable."""
        if self._started is None:
            found = (
                (target, mount_units.find(self.host, target, bool(fstab.find(self.fstab, target))))
                for target in mount_units.started(self.host)
            )
            self._started = [(target, unit) for target, unit in found if unit and unit.is_unit and unit.what]
        return self._started

    def _is_of(self, unit: MountUnit, mount: Mount) -> bool:
        """Return whether a unit mounts a superblock."""
        return not _binds(unit) and self._is_device(unit.what, unit.fstype or "auto", mount)

    def _names(self, entry: fstab.Entry, mount: Mount) -> bool:
        """Return whether an fstab line is about the device that is mounted."""
        return self._is_device(entry.spec, entry.fstype, mount)

    def _is_device(self, spec: str, fstype: str, mount: Mount) -> bool:
        if nfs.is_nfs(mount.fstype):
            return nfs.is_nfs(fstype) and nfs.is_same(spec, mount.source)
        if mount.fstype == "zfs":
            return fstype == "zfs" and spec == mount.source
        if not (fstype in ("auto", mount.fstype) or {fstype, mount.fstype} <= set(EXT)):
            return False
        link = fstab.device_path(spec)
        mounted = {self.blocks.name_of(mount.device)}
        if mount.fstype == "btrfs":
            # Any member names the whole.
            mounted = set(map(self.blocks.name_of, self.filesystems.devices(mount, None)[0]))
        if link not in self._resolved:
            # Each line is held against each file system.
            self._resolved[link] = self.host.resolve(link)
        path = self._resolved[link]
        if not path.startswith("/dev/"):
            # A file, and mount(8) has made a loop device of it.
            return path in {self.blocks.file_of(name) for name in mounted if name}
        return path[len("/dev/") :] in mounted

    def _read_nodev(self) -> set[str]:
        text = self.host.read("/proc/filesystems")
        fields = (line.split() for line in text.splitlines())
        return {words[1] for words in fields if len(words) == 2 and words[0] == "nodev"}

    def _read_fstab(self) -> tuple[list[fstab.Entry], str | None]:
        if not self.host.exists("/etc/fstab"):
            return [], None
        try:
            return fstab.parse(self.host.read("/etc/fstab")), None
        except (Unobservable, fstab.MalformedFstab) as error:
            return [], str(error)

    def _ways(self, superblock: Superblock) -> tuple[list[Persisted], Because | None]:
        """Return what `boot` does of a superblock that is mounted here, and why that is unknown."""
        targets = {mount.target for mount in superblock.mounts}
        for fault in self._of_names:
            is_either = fault.fault == device_names.COPIES and fault.state == UNKNOWN
            if is_either and fault.line.target in targets:
                return [], Because(
                    "copies", {key: fault.parameters[key] for key in ("names", "tag", "value")}
                )
        try:
            return [] if superblock.hidden_in else self.boot(superblock.mounts), None
        except Unobservable as error:
            return [], because_of(error)


def _persisted(
    superblock: Superblock,
    ways: list[Persisted],
    unread: Because | None,
    ext: ext4.Superblock | None,
    ext_reason: str | None,
    mask: str = "",
) -> dict[str, Observation]:
    """Return what the ways of mounting a superblock make of each setting; `unread` is why they are unknown.

    `mask` is the file that masks the unit of the mount, '' without one.
    """
    mount = superblock.mounts[0]
    names = (*_PERSISTED, "recovery") if nfs.is_nfs(mount.fstype) else _PERSISTED
    if superblock.hidden_in is not None:
        return dict.fromkeys(names, caused(UNKNOWN, "/proc", "hidden_in", process=superblock.hidden_in))
    if mount.fstype == "raw":
        return dict.fromkeys(_PERSISTED, caused(UNKNOWN, mount.target, "raw"))
    if unread is not None:
        return dict.fromkeys(names, Observation(UNKNOWN, "fstab, mount units", because=unread))
    if not ways:
        cause = caused("unset", mask, "masked") if mask else caused("unset", "/etc/fstab", "unmounted")
        return dict.fromkeys(names, cause)
    seen = [_settings(mount.fstype, way, ext, ext_reason) for way in ways]
    shared = {name: _agreed(ways, [found[name] for found in seen]) for name in names if name != "atime"}
    # Of each mount its own.
    return {**shared, "atime": seen[0]["atime"]}


def _on_access(persisted: Mapping[str, Observation]) -> dict[str, Observation]:
    """Return the running values of a file system that the first access mounts, as `persisted` has them.

    It loses nothing while it is not mounted: values that are unsafe are unknown now.
    """
    safe = {"barrier": ("on",), "data_mode": ("none", *mount_settings.DATA_MODES)}
    found = {}
    for name, value in persisted.items():
        source = f"{value.source} (automount)"
        is_safe = name not in safe or value.value in safe[name]
        found[name] = (
            value._replace(source=source)
            if is_safe
            # pylint: disable-next=kwarg-superseded-by-positional-arg
            else caused(UNKNOWN, source, "on_access", setting=name, value=value.value)
        )
    return found


def _of_line(line: fstab.Entry, flags: Rootflags | None) -> Persisted:
    """Return what a line mounts. Raises Unobservable for one that readers of fstab read differently."""
    why = fstab.ambiguity(line)
    if why:
        raise Undecided(why, line=line.source)
    if flags is None:
        return Persisted("fstab", line.target, line.source, line.options)
    source = f"{line.source}, {flags.source}" if flags.options else line.source
    return Persisted("fstab", line.target, source, (*flags.options, *line.options), flags.options)


def _settings(
    fstype: str, way: Persisted, ext: ext4.Superblock | None, ext_reason: str | None
) -> dict[str, Observation]:
    """Return what one way of mounting a file system makes of each setting."""
    source, said = way.source, mount_settings.fold(way.options)
    atime = Observation(said.get("atime", "relatime"), source)
    if nfs.is_nfs(fstype):
        return {**nfs.persisted(way.options, source), "atime": atime}
    if fstype == "xfs":
        return {"barrier": _xfs_persisted(said, source), "data_mode": NO_DATA_MODE, "atime": atime}
    if fstype == "btrfs":
        barrier = mount_settings.observed(said, "barrier", "on", source)
        return {"barrier": barrier, "data_mode": NO_DATA_MODE, "atime": atime}
    if fstype == "jfs":
        return {"barrier": caused("off", source, JFS), "data_mode": NO_DATA_MODE, "atime": atime}
    if ext is None:
        lost = (
            unknown(source, ext_reason) if ext_reason else caused(UNKNOWN, source, "no_rule", fstype=fstype)
        )
        named = mount_settings.observed(said, "barrier", UNKNOWN, source)
        return {"barrier": named if "barrier" in said else lost, "data_mode": lost, "atime": atime}
    words = ext4.persisted(ext, way.options)
    return {
        "barrier": mount_settings.observed(words, "barrier", "on", f"{source}, superblock defaults"),
        "data_mode": _journal_mode(way, ext),
        "atime": atime,
    }


def _journal_mode(way: Persisted, ext: ext4.Superblock) -> Observation:
    """Return what data= will be; `refused` where the line of the root names another than it is mounted with before."""
    source = f"{way.source}, superblock defaults"
    mode = ext4.persisted(ext, way.options).get("data_mode", "none")
    first = mode if way.before is None else ext4.persisted(ext, way.before).get("data_mode", mode)
    if UNKNOWN in (mode, first):
        return mount_settings.observed({"data_mode": UNKNOWN}, "data_mode", "", source)
    if mode != first:
        return caused("refused", source, "first_mode", mode=first)
    return Observation(mode, source)


def _agreed(ways: list[Persisted], seen: list[Observation]) -> Observation:
    """Return the one value that all ways of mounting a file system agree on, or that they do not."""
    source = seen[0].source.replace(ways[0].source, ", ".join(way.source for way in ways), 1)
    if len({found.value for found in seen}) > 1:
        values = {
            "observed": [found.value for found in seen],
            "sources": [way.source for way in ways],
            "targets": [way.target for way in ways],
        }
        return caused(UNKNOWN, source, "ways_differ", **values)
    return seen[0]._replace(source=source)


def _binds(unit: MountUnit) -> bool:
    """Return whether a unit mounts a directory of what is mounted elsewhere."""
    return unit.fstype == "none" or bool({"bind", "rbind"} & set(unit.options))


def _shown_source(mount: Mount) -> str:
    return nfs.shown_source(mount.source) if nfs.is_nfs(mount.fstype) else without_login(mount.source)


def _atime(options: tuple[str, ...]) -> str:
    """The kernel prints no word for strictatime."""
    return mount_settings.fold(options).get("atime", "strictatime")


def _xfs_persisted(said: dict[str, str], source: str) -> Observation:
    if "barrier" in said or "data_mode" in said:
        return caused("refused", source, "xfs_refuses")
    return Observation("on", source)
