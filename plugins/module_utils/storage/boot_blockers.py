# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files other than fstab that prevent the next boot from mounting its lines, or mount another file system.

Masked units, udev rules of other owners, modules that are not loaded, the target of the boot, units that the mounts wait for,
and generators of units.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..host import our_paths, processes
from ..host.mountinfo import Mount
from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable
from ..next_boot import boot_entries, command_lines, generators, modprobe, udev_rules, unit_files
from ..next_boot.udev_rules import Assignment, Rule
from . import fstab, mount_units
from .boot_faults import Devices, Fault, Value, boot_lines, names_a_device
from .fstab import Entry

#: Values of a command line that systemd takes for no (parse_boolean()).
_NO = frozenset("no n false f off 0".split())
#: Options by which an initramfs ends in a shell or in another target than the root's.
_ENDS_EARLY = frozenset("rd.break rdbreak break rd.systemd.unit rd.emergency rd.rescue".split())
#: Options that name another root or /usr than this boot's, if this boot did not have them.
_OTHER_ROOT = frozenset("mount.usr mount.usrfstype mount.usrflags usrhash roothash".split())
#: Units of an initramfs with systemd, without which it does not mount the root.
_OF_INITRAMFS = re.compile(r"(?:sysroot\.mount|initrd-.*|sysinit\.target|basic\.target|systemd-udev.*)")
#: Credentials of which systemd's components make mounts, units, rules, and values of /sys: systemd.system-credentials(7).
_CREDENTIAL = re.compile(
    r"fstab\.extra|systemd\.(?:extra-unit|unit-dropin)\..+|udev\.(?:rules|conf)\..+|tmpfiles\.extra"
)
#: Where systemd has those that firmware, hypervisor, boot loader and command line give it at each boot.
_CREDENTIALS = ("/run/credentials/@system", "/run/credentials/@encrypted")
#: Units without which no mount of fstab is made as it should: what a boot comes to if one is masked.
_CORE = {
    "systemd-remount-fs.service": "read_only",
    "local-fs.target": "read_only",
    "systemd-udevd.service": "required",
    "systemd-udev-trigger.service": "required",
    "sysinit.target": "required",
    "basic.target": "required",
}
#: Units in which no database is started, and units that end the boot.
_NO_BOOT = frozenset(
    f"{name}.target"
    for name in (
        *("rescue", "emergency", "runlevel1", "initrd"),
        *("runlevel0", "runlevel6", "poweroff", "reboot", "halt", "shutdown", "kexec", "exit", "soft-reboot"),
    )
)
_UNIT = re.compile(r"(?:^|\s)systemd\.unit=(\S+)")
_SHELL = re.compile(r"(?:^|\s)(?:rd)?init=(?:\S*/)?(?:ba|da|a)?sh(?=\s|$)")
_INIT = re.compile(r"(?:/usr)?/(?:s?bin/init|lib/systemd/systemd)")
#: Other words of the kernel's command line for systemd's rescue and emergency modes.
_MODES = {
    **dict.fromkeys(("1", "s", "S", "single", "rescue", "-s"), "rescue.target"),
    **dict.fromkeys(("-b", "emergency"), "emergency.target"),
}
#: Packaged rules that make the names and units of devices -> which kernel names they are for.
_RULES = {
    "60-persistent-storage.rules": re.compile(r"(?!dm-|md\d)"),
    "60-persistent-storage-dm.rules": re.compile("dm-"),
    "13-dm-disk.rules": re.compile("dm-"),
    "10-dm.rules": re.compile("dm-"),
    "55-dm.rules": re.compile("dm-"),
    "63-md-raid-arrays.rules": re.compile(r"md\d"),
    "99-systemd.rules": re.compile(""),
}
#: Properties by which a rule has systemd, or udev's own rules, pass over a device.
_READY = "SYSTEMD_READY"
_PASSED_OVER = (
    "UDEV_DISABLE_PERSISTENT_STORAGE_RULES_FLAG",
    "DM_UDEV_DISABLE_DISK_RULES_FLAG",
    "DM_UDEV_DISABLE_OTHER_RULES_FLAG",
)
#: Properties from which udev makes the names of fstab's tags.
_NAMED_BY = {
    "UUID": ("ID_FS_UUID", "ID_FS_UUID_ENC", "ID_FS_USAGE"),
    "LABEL": ("ID_FS_LABEL", "ID_FS_LABEL_ENC", "ID_FS_USAGE"),
    "PARTUUID": ("ID_PART_ENTRY_UUID",),
    "PARTLABEL": ("ID_PART_ENTRY_NAME",),
}
_PERSISTENT = "60-persistent-storage.rules"
#: Of Ubuntu's and Debian's package overlayroot: its script in the initramfs, and its files on the root, the strongest last.
_OVERLAY_SCRIPT = "/usr/share/initramfs-tools/scripts/init-bottom/overlayroot"
_OVERLAYS = ("/etc/overlayroot.conf", "/etc/overlayroot.local.conf")


class Boot(NamedTuple):
    """What is needed of a host to find what blocks its boot. `lines`: of fstab and of units; `here`: {mount point: mount}."""

    host: Host
    lines: list[Entry]
    here: Mapping[str, Mount]
    devices: Devices

    def matters(self, line: Entry) -> bool:
        """Return whether a line is one that the boot or a mount of now needs."""
        return line.boot == "required" or (line.target in self.here and not line.has("noauto", "auto"))

    def devices_of(self) -> Iterator[tuple[Entry, str]]:
        """Yield the lines that name a block device that is there, with its kernel name."""
        for line in self.lines:
            if names_a_device(line) and self.matters(line):
                # A name may lead to another device since a rule was written: what is mounted now is the right one.
                mount = self.here.get(line.target)
                name = (self.devices.find(mount.source) if mount else None) or self.devices.find(line.spec)
                if name:
                    yield line, name


def of_host(
    host: Host,
    entries: Iterable[Entry],
    mounted: Iterable[Mount],
    properties: Mapping[str, dict[str, str]],
) -> list[Fault]:
    """Return what keeps the next boot from what fstab and units have it mount, apart from their own lines.

    `properties`: {kernel name: what udev knows of the block device}.
    """
    here = {mount.target: mount for mount in mounted}
    boot = Boot(host, boot_lines(host, entries, here), here, Devices(host, properties))
    checks: tuple[tuple[str, Callable[[Boot], Iterator[Fault]]], ...] = (
        ("masks", _masked),
        ("links", _links),
        ("rules", _rules),
        ("modules", _drivers),
        ("target", _start),
        ("command_line", _options),
        ("credentials", _credentials),
        ("requirements", _required),
        ("generators", _generators),
    )
    found: list[Fault] = []
    for what, check in checks:
        try:
            found += check(boot)
        except Unobservable as error:
            found.append(_of_host("the next boot", f"unread.{what}", UNKNOWN, {"error": str(error)}))
    return found


def _of_host(
    source: str, cause: str, state: str, values: Mapping[str, Value], effect: str = "required"
) -> Fault:
    """Return a fault of the whole boot rather than of a line."""
    line = Entry(-1, "", "/", "auto", ("defaults",), source)
    return Fault(line, cause, state, values, effect=effect)


def _masked(boot: Boot) -> Iterator[Fault]:
    """Yield the masks of units that make mounts. local-fs.target is left out whole if one that it requires is masked."""
    for line in boot.lines:
        if line.target in ("/", "/usr") or not boot.matters(line):
            continue
        name = mount_units.unit_name(line.target)
        names = [name, *([f"{name[:-6]}.automount"] if line.boot == "automount" else [])]
        for each in names:
            path = unit_files.mask(boot.host, each)
            if path:
                is_required = line.boot == "required" or each.endswith(".automount")
                needed = line._replace(options=("defaults",)) if is_required else line
                values = {"path": path, "unit": each}
                yield Fault(needed, "masked_mount", "refused", values, effect="read_only")
    for name, effect in _CORE.items():
        path = unit_files.mask(boot.host, name)
        if path:
            yield _of_host(path, "masked_unit", "refused", {"path": path, "unit": name}, effect)


def _foreign_rules(host: Host) -> list[Rule]:
    """Return the rules of udev that are neither the distribution's nor ours. Raises Unobservable."""
    ours = (our_paths.CACHE_RULES, our_paths.SCHEDULER_RULES)
    paths = [path for path in udev_rules.files(host) if not path.startswith(udev_rules.PACKAGED)]
    return udev_rules.read(host, [path for path in paths if path not in ours])


def _links(boot: Boot) -> Iterator[Fault]:
    """Yield the rules of others that give a device the name of another, take its name, or have systemd pass it over."""
    rules = [rule for rule in _foreign_rules(boot.host) if any(map(_is_about_names, rule.tokens))]
    if not rules:
        return
    every = {
        name: udev_rules.assignments(rules, udev_rules.Device.of_block(boot.host, name, reported))
        for name, reported in boot.devices.properties.items()
    }
    for line, name in boot.devices_of():
        link = fstab.device_path(line.spec)
        tag = fstab.unquoted(line.spec).partition("=")[0]
        for other, made in every.items():
            if other != name:
                yield from _claims(line, link, made, (other, name), every)
        yield from _losses(line, link, every.get(name, []), tag)
        if line.target != "/":
            for device in modprobe.below(boot.host, [name]):
                yield from _passed_over(line, device, every.get(device, []), tag if device == name else "")


def _is_about_names(token: udev_rules.Token) -> bool:
    names = {_READY, *_PASSED_OVER, *(name for reported in _NAMED_BY.values() for name in reported)}
    return not token.is_match and (
        token.key in ("SYMLINK", "TAG") or (token.key == "ENV" and token.name in names)
    )


def _claims(
    line: Entry,
    link: str,
    made: list[Assignment],
    pair: tuple[str, str],
    every: Mapping[str, list[Assignment]],
) -> Iterator[Fault]:
    """Yield a rule that gives another device the name by which a line mounts its own."""
    other, name = pair
    for each in made:
        if each.key != "SYMLINK" or each.op not in ("=", "+=", ":="):
            continue
        is_named = each.value is not None and link in {f"/dev/{word}" for word in each.value.split()}
        values = [token.value for token in each.rule.tokens if token.key == "SYMLINK"]
        may_be = each.value is None and f"/dev/{values[0]}".startswith(posixpath.dirname(link) + "/")
        if not is_named and not may_be:
            continue
        is_above = _priority(made) > _priority(every.get(name, [])) and not name.startswith(("dm-", "md"))
        is_sure = is_named and each.is_certain and is_above and line.target != "/"
        named = {**_of_rule(each), "other": other, "link": link, "device": name}
        yield Fault(line, "claimed_name", "refused" if is_sure else UNKNOWN, named)
        return


def _of_rule(each: Assignment) -> dict[str, str]:
    return {"rule": each.rule.source, "path": each.rule.path}


def _priority(made: list[Assignment]) -> int:
    found = [
        re.fullmatch(r"link_priority=(-?\d+)", each.value or "") for each in made if each.key == "OPTIONS"
    ]
    return next((int(each[1]) for each in reversed(found) if each), 0)


def _losses(line: Entry, link: str, made: list[Assignment], tag: str) -> Iterator[Fault]:
    """Yield a rule that takes from a device the name by which a line mounts it."""
    for each in made:
        words = {f"/dev/{word}" for word in (each.value or "").split()}
        is_late = posixpath.basename(each.rule.path) > _PERSISTENT
        removes = each.key == "SYMLINK" and (
            (each.op == "-=" and link in words) or (each.op in ("=", ":=") and is_late and link not in words)
        )
        renames = each.key == "ENV" and each.name in _NAMED_BY.get(tag, ())
        if removes or renames:
            state = "refused" if removes and each.is_certain else UNKNOWN
            key = f"{each.key}{f'{{{each.name}}}' if each.name else ''}"
            yield Fault(line, "lost_name", state, {**_of_rule(each), "key": key, "link": link})
            return


def _passed_over(line: Entry, device: str, made: list[Assignment], tag: str) -> Iterator[Fault]:
    """Yield the last rule that has systemd, or udev's own rules, pass over a device that a line needs."""
    of_ready = [each for each in made if each.key == "ENV" and each.name == _READY][-1:]
    blocks = [each for each in of_ready if each.value == "0"]
    blocks += [
        each for each in made if each.key == "TAG" and each.op in ("-=", "=", ":=") and _is_untagged(each)
    ]
    if tag:
        blocks += [each for each in made if each.name in _PASSED_OVER and each.value == "1"]
    for each in blocks[:1]:
        reported = f"{each.key}{f'{{{each.name}}}' if each.name else ''}{each.op}{each.value}"
        values = {**_of_rule(each), "assignment": reported, "device": device}
        yield Fault(line, "hidden_device", "refused" if each.is_certain else UNKNOWN, values)


def _is_untagged(each: Assignment) -> bool:
    is_late = posixpath.basename(each.rule.path) > "99-systemd.rules"
    return (each.op == "-=" and each.value == "systemd") or (each.op != "-=" and is_late)


def _rules(boot: Boot) -> Iterator[Fault]:
    """Yield the packaged rules that make devices' names and units, and that a mask or another file replaces."""
    for name, kinds in _RULES.items():
        path = next(
            (f"{base}/{name}" for base in udev_rules.DIRECTORIES if boot.host.exists(f"{base}/{name}")), ""
        )
        if not path or path.startswith(udev_rules.PACKAGED):
            continue
        needing = [
            (line, device)
            for line, device in boot.devices_of()
            if kinds.match(device) and line.target != "/" and _is_by_rule(name, line)
        ]
        is_masked = bool(udev_rules.masked(boot.host, name))
        if needing and (is_masked or not _makes(boot.host.read(path), name, needing[0][0])):
            line, device = needing[0]
            cause, state = ("masked_rules", "refused") if is_masked else ("replaced_rules", UNKNOWN)
            yield Fault(line, cause, state, {"path": path, "rules": name, "device": device})


def _is_by_rule(name: str, line: Entry) -> bool:
    """Return whether a line needs what a file of rules makes: by a tag, a link, or any device's unit."""
    spec = fstab.device_path(line.spec)
    return name == "99-systemd.rules" or spec.startswith(("/dev/disk/", "/dev/mapper/", "/dev/md/"))


def _makes(text: str, name: str, line: Entry) -> bool:
    """Return whether a file that replaces packaged rules makes the same names."""
    if name == "99-systemd.rules":
        return 'SUBSYSTEM=="block"' in text and "systemd" in text
    link = posixpath.dirname(fstab.device_path(line.spec))[len("/dev/") :]
    return link in text


def _drivers(boot: Boot) -> Iterator[Fault]:
    """Yield modules that drive disks of mounts, or are their file systems, and that the next boot does not load."""
    blocked = modprobe.blocked(boot.host, *_command_line(boot.host))
    if not blocked:
        return
    needed: dict[str, tuple[Entry, str, str]] = {}
    early: set[str] = set()
    for line, name in boot.devices_of():
        modules = modprobe.drivers(boot.host, [name])
        if line.target == "/":
            early |= set(modules)
        for module, device in modules.items():
            needed.setdefault(module, (line, "driver", device))
    for line in (each for each in boot.lines if boot.matters(each) and each.target in boot.here):
        module = modprobe.normal(boot.here[line.target].fstype)
        if modprobe.is_loadable(boot.host, module):
            needed.setdefault(module, (line, "file_system", ""))
            early |= {module} if line.target == "/" else set()
    for each in blocked:
        if each.module in needed:
            line, of, device = needed[each.module]
            # The initramfs has its own copy of modprobe.d, of the time when it was made.
            is_sure = each.is_certain and each.module not in early
            cause = "blocked_module.command_line" if each.is_word else "blocked_module"
            values = {"module": each.module, "of": of, "device": device, "place": each.source}
            yield Fault(line, cause, "refused" if is_sure else UNKNOWN, {**values, "text": each.text})


def _command_line(host: Host) -> tuple[str, str]:
    """Return the kernel's command line of the next boot and its place, if it is known; else those of this boot.

    Raises Unobservable.
    """
    found = boot_entries.find(host)
    lines = {entry.line: entry.at for entry in found.entries}
    if len(lines) == 1 and found.is_decided:
        return lines.popitem()
    return command_lines.of_this_boot(host)


def _start(boot: Boot) -> Iterator[Fault]:
    """Yield that the next boot starts a target for repairs, or none."""
    line, place = _command_line(boot.host)
    target, source = unit_files.default_target(boot.host)
    reported = [_MODES[word] for word in line.split() if word in _MODES]
    named = [*_UNIT.findall(line), *reported]
    if _SHELL.search(line):
        named, source, target = ["a shell"], place, "a shell"
    elif named:
        target, source = named[-1], place
    if not target:
        return
    is_gone = target.endswith(".target") and not unit_files.find(boot.host, target)
    is_masked = not named and bool(unit_files.mask(boot.host, "default.target"))
    is_missing = is_gone and bool(unit_files.find(boot.host, "multi-user.target"))
    if target in _NO_BOOT or target == "a shell" or is_masked or is_missing:
        starts = "missing" if is_missing else "shell" if target == "a shell" else "unit"
        cause = "other_target" if named else "no_default_target"
        values = {"starts": "nothing" if is_masked else starts, "unit": target}
        yield _of_host(source, cause, "refused", values)


def _options(boot: Boot) -> Iterator[Fault]:
    """Yield options of the kernel's command line that leave out mounts, mask units, or change how systemd runs.

    If several entries may be next, an option that one of them lacks is unknown.
    """
    units = {mount_units.unit_name(each.target) for each in boot.lines if boot.matters(each)} | set(_CORE)
    now = command_lines.split(command_lines.of_this_boot(boot.host)[0])
    for word, (key, value, place, is_sure) in command_lines.words(boot.host).items():
        cause, named = _option(boot.host, word, units)
        if not cause and key in _OTHER_ROOT and word not in now:
            cause = "other_root"
        if cause:
            state = "refused" if is_sure and cause != "credential" else UNKNOWN
            yield _of_host(place, cause, state, {"word": _shown(word, key, value), "key": key, **named})
    yield from _overlay(boot.host)


def _credentials(boot: Boot) -> Iterator[Fault]:
    """Yield the credentials of this boot from which systemd makes mounts, units or rules: the next boot has them too."""
    for directory in _CREDENTIALS:
        for name in boot.host.names(directory) if boot.host.exists(directory) else ():
            if _CREDENTIAL.fullmatch(name):
                yield _of_host(f"{directory}/{name}", "given_credential", UNKNOWN, {"unit": name})


def _option(host: Host, word: str, units: set[str]) -> tuple[str, dict[str, str]]:
    """Return the cause of a fault that an option of the kernel's command line is, '' if it is none, with its values."""
    key, _equals, value = word.partition("=")
    if key == "systemd.mask" and (value in units or value in our_paths.UNITS):
        return "masks_unit", {"unit": value}
    if key == "rd.systemd.mask" and _OF_INITRAMFS.fullmatch(value):
        return "masks_unit", {"unit": value}
    if key in ("fstab", "rd.fstab") and value.lower() in _NO:
        return "no_fstab", {}
    if (
        (key == "systemd.volatile" and value.lower() not in _NO)
        or key in _ENDS_EARLY
        or _is_overlay(key, value)
    ):
        return "other_root", {}
    if command_lines.plain(key) in ("systemd.set-credential", "systemd.set-credential-binary"):
        name = value.partition(":")[0]
        return ("credential", {"unit": name}) if _CREDENTIAL.fullmatch(name) else ("", {})
    if key == "init" and not _SHELL.search(word) and not _INIT.fullmatch(host.resolve(value)):
        return "other_init", {"unit": value}
    if key == "systemd.run":
        return "one_command", {}
    if key == "systemd.setenv" and value.startswith("LD_PRELOAD"):
        return "preload", {}
    return "", {}


def _is_overlay(key: str, value: str) -> bool:
    """Return whether an option has overlayroot(8) put an overlay over the root, and by default over each mount of fstab."""
    return key == "overlayroot" and value.strip("\"'") not in ("", "disabled")


def _overlay(host: Host) -> Iterator[Fault]:
    """Yield that a file has overlayroot do so; the last of its two files that sets it counts."""
    last = None
    for path in _OVERLAYS if host.exists(_OVERLAY_SCRIPT) else ():
        for row, line in enumerate(host.read(path).split("\n") if host.exists(path) else [], 1):
            key, equals, value = line.strip().partition("=")
            if equals and key == "overlayroot":
                last = (f"{path} line {row}", key, value)
    if last and _is_overlay(*last[1:]):
        yield _of_host(last[0], "overlay_root", "refused", {"word": _shown("=".join(last[1:]), *last[1:])})


def _shown(word: str, key: str, value: str) -> str:
    """Return an option for people; behind a colon overlayroot and a credential can have a password."""
    has_secret = key == "overlayroot" or "credential" in key
    return f"{key}={value.partition(':')[0]}" if has_secret else word


def _required(boot: Boot) -> Iterator[Fault]:
    """Yield units of others without which the mounts are not made, unless this boot has shown that they start."""
    names = dict.fromkeys(("local-fs.target", "sysinit.target", "basic.target"), "")
    for line in boot.lines:
        if boot.matters(line) and line.target != "/":
            names[mount_units.unit_name(line.target)] = line.target
    of_lines = {line.target: line for line in boot.lines}
    for name, target in names.items():
        for unit, path, source in unit_files.required_by(boot.host, name):
            found = _why_it_may_fail(boot.host, unit, path) if _is_foreign(boot.host, unit) else None
            if found:
                cause, values = found
                if cause == "no_unit" and source == path:
                    cause = "no_unit.link"
                named = {"unit": unit, "waiting": name, **values}
                yield _of_unit(of_lines.get(target), source, cause, named)
        for condition, source in unit_files.conditions(boot.host, name):
            named = {"condition": condition, "waiting": name}
            yield _of_unit(of_lines.get(target), source, "condition", named)


def _of_unit(line: Entry | None, source: str, cause: str, values: Mapping[str, Value]) -> Fault:
    """Return a fault of a unit that a mount waits for; `source`: the file that has it wait."""
    if line is None:
        return _of_host(source, cause, UNKNOWN, values, "undecided")
    return Fault(line._replace(unit=source), cause, UNKNOWN, values, effect="undecided")


def _is_foreign(host: Host, unit: str) -> bool:
    """Return whether another owner's unit is required: no mount, no device, no check of a file system by systemd."""
    is_systemds = unit.startswith("systemd-") and unit_files.find(host, unit).startswith(unit_files.PACKAGED)
    return unit.rpartition(".")[2] in ("service", "socket", "path", "timer") and not is_systemds


def _why_it_may_fail(host: Host, unit: str, path: str) -> tuple[str, dict[str, str]] | None:
    """Return the cause for which a unit may not start at the next boot, None if it did at this one and was not changed since."""
    own = unit_files.find(host, unit)
    if not own:
        return "no_unit", {}
    if unit_files.mask(host, unit):
        return "masked_requirement", {}
    since = processes.booted(host)
    for each in dict.fromkeys((own, *unit_files.drop_ins(host, unit), path)):
        status = host.locate(each).status
        if status is None or max(status.modified, status.changed) > since:
            return "changed_unit", {"changed": each}
    reported = host.run(
        ["systemctl", "show", "--property=ActiveState,Result,ExecMainStartTimestampMonotonic", "--", unit]
    )
    fields = dict(line.partition("=")[::2] for line in reported.stdout.splitlines())
    ran = fields.get("ActiveState") == "active" or fields.get("ExecMainStartTimestampMonotonic", "0") not in (
        "",
        "0",
    )
    if fields.get("Result") == "success" and ran:
        return None
    return "failed_unit", {
        "state": fields.get("ActiveState", UNKNOWN),
        "result": fields.get("Result", UNKNOWN),
    }


def _generators(boot: Boot) -> Iterator[Fault]:
    """Yield the programs of others that make units at each boot, if they can change what is managed here."""
    for each in unit_files.generators(boot.host):
        if each.is_masked and posixpath.basename(each.path) == "systemd-fstab-generator":
            yield _of_host(each.path, "masked_generator", "refused", {"path": each.path}, "read_only")
    for each in generators.acting(boot.host, (line.target for line in boot.lines if len(line.target) > 1)):
        cause, named = (
            ("replaced_generator", {"masks": each.masks}) if each.masks else ("foreign_generator", {})
        )
        yield _of_host(each.path, cause, UNKNOWN, {"path": each.path, **named})
