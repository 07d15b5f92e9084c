# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files other than fstab that keep the next boot from mounting its lines, or mount another file system.

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
from .boot_faults import Devices, Fault, boot_lines, names_a_device
from .fstab import Entry

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
_IN_ENTRIES = "the boot loader's entry (grubby --remove-args, /etc/default/grub and update-grub, or /etc/kernel/cmdline)"


class Boot(NamedTuple):
    """What is needed of a host to find what blocks its boot. `lines`: of fstab and of units; `here`: {mount point: mount}."""

    host: Host
    lines: list[Entry]
    here: Mapping[str, Mount]
    devices: Devices

    def matters(self, line: Entry) -> bool:
        """Tell whether a line is one that the boot or a mount of now needs."""
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
    checks: tuple[tuple[str, str, Callable[[Boot], Iterator[Fault]]], ...] = (
        ("masked", "units of systemd", _masked),
        ("link", "rules of udev", _links),
        ("rules", "rules of udev", _rules),
        ("driver", "modprobe.d", _drivers),
        ("start", "the target of the boot", _start),
        ("start", "the kernel's command line", _options),
        ("requires", "units that the mounts wait for", _required),
        ("generator", "generators of units", _generators),
    )
    found: list[Fault] = []
    for fault, what, check in checks:
        try:
            found += check(boot)
        except Unobservable as error:
            why = f"{what} cannot be read: {error}"
            found.append(
                _of_host("the next boot", fault, UNKNOWN, why, "make the file readable, or remove it")
            )
    return found


def _of_host(source: str, fault: str, state: str, why: str, remedy: str, effect: str = "required") -> Fault:
    """Return a fault of the whole boot rather than of a line."""
    line = Entry(-1, "", "/", "auto", ("defaults",), source)
    return Fault(line, fault, state, why, remedy, effect=effect)


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
                yield Fault(
                    line._replace(options=("defaults",)) if is_required else line,
                    "masked",
                    "refused",
                    f"{path} masks {each}, by which {line.source} is mounted at {line.target}",
                    f"run systemctl unmask '{each}'",
                    effect="read_only",
                )
    for name, effect in _CORE.items():
        path = unit_files.mask(boot.host, name)
        if path:
            why = f"{path} masks {name}, without which no boot makes its mounts as it should"
            yield _of_host(path, "masked", "refused", why, f"run systemctl unmask {name}", effect)


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
        name: udev_rules.assignments(rules, udev_rules.Device.of_block(boot.host, name, said))
        for name, said in boot.devices.properties.items()
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
    names = {_READY, *_PASSED_OVER, *(name for said in _NAMED_BY.values() for name in said)}
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
        yield Fault(
            line,
            "link",
            "refused" if is_sure else UNKNOWN,
            f"{each.rule.source} gives {other} the name {link}, by which {line.source} mounts {name} at {line.target}",
            f"remove that SYMLINK from {each.rule.path}",
        )
        return


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
            yield Fault(
                line,
                "link",
                "refused" if removes and each.is_certain else UNKNOWN,
                f"{each.rule.source} sets {each.key}{f'{{{each.name}}}' if each.name else ''}, and {line.source} mounts"
                f" {line.target} by the name that udev makes of it ({link})",
                f"remove that assignment from {each.rule.path}",
            )
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
        said = f"{each.key}{f'{{{each.name}}}' if each.name else ''}{each.op}{each.value}"
        yield Fault(
            line,
            "link",
            "refused" if each.is_certain else UNKNOWN,
            f"{each.rule.source} sets {said} for {device}, so systemd does not find the device that {line.source} mounts"
            f" at {line.target}",
            f"remove that assignment from {each.rule.path}",
        )


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
            yield Fault(
                line,
                "rules",
                "refused" if is_masked else UNKNOWN,
                f"{path} {'masks' if is_masked else 'replaces'} the rules {name}, by which {device}, that {line.source} mounts"
                f" at {line.target}, gets its name or its unit",
                f"remove {path}",
            )


def _is_by_rule(name: str, line: Entry) -> bool:
    """Tell whether a line needs what a file of rules makes: by a tag, a link, or any device's unit."""
    spec = fstab.device_path(line.spec)
    return name == "99-systemd.rules" or spec.startswith(("/dev/disk/", "/dev/mapper/", "/dev/md/"))


def _makes(text: str, name: str, line: Entry) -> bool:
    """Tell whether a file that replaces packaged rules makes the same names."""
    if name == "99-systemd.rules":
        return 'SUBSYSTEM=="block"' in text and "systemd" in text
    link = posixpath.dirname(fstab.device_path(line.spec))[len("/dev/") :]
    return link in text


def _drivers(boot: Boot) -> Iterator[Fault]:
    """Yield modules that drive disks of mounts, or are their file systems, and that the next boot does not load."""
    blocked = modprobe.blocked(boot.host, *_command_line(boot.host))
    if not blocked:
        return
    needed: dict[str, tuple[Entry, str]] = {}
    early: set[str] = set()
    for line, name in boot.devices_of():
        modules = modprobe.drivers(boot.host, [name])
        if line.target == "/":
            early |= set(modules)
        for module, device in modules.items():
            needed.setdefault(module, (line, f"the driver of {device}"))
    for line in (each for each in boot.lines if boot.matters(each) and each.target in boot.here):
        module = modprobe.normal(boot.here[line.target].fstype)
        if modprobe.is_loadable(boot.host, module):
            needed.setdefault(module, (line, f"the file system of {line.target}"))
            early |= {module} if line.target == "/" else set()
    for each in blocked:
        if each.module in needed:
            line, what = needed[each.module]
            # The initramfs has its own copy of modprobe.d, of the time when it was made.
            is_sure = each.is_certain and each.module not in early
            yield Fault(
                line,
                "driver",
                "refused" if is_sure else UNKNOWN,
                f"{each.source}: {each.text}. The module {each.module} is {what}, which {line.source} needs",
                f"remove {each.text} from {_IN_ENTRIES}"
                if each.is_word
                else f"remove that line from {each.source}, then run update-initramfs -u or dracut -f",
            )


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
    said = [_MODES[word] for word in line.split() if word in _MODES]
    named = [*_UNIT.findall(line), *said]
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
        what = "nothing" if is_masked else f"{target}{', which is not there' if is_missing else ''}"
        yield _of_host(
            source,
            "start",
            "refused",
            f"{source} has the next boot start {what}: no database is started",
            f"remove systemd.unit=, init= and options for repairs from {_IN_ENTRIES}"
            if named
            else "run systemctl set-default multi-user.target",
        )


def _options(boot: Boot) -> Iterator[Fault]:
    """Yield options of the kernel's command line that leave out mounts, mask units, or change how systemd runs."""
    line, place = _command_line(boot.host)
    units = {mount_units.unit_name(each.target) for each in boot.lines if boot.matters(each)} | set(_CORE)
    for word in line.split():
        key, _equals, value = word.partition("=")
        what = ""
        if key == "systemd.mask" and value in units:
            what = f"masks {value}"
        elif key in ("fstab", "rd.fstab") and value in ("no", "0", "off", "false"):
            what = "has the next boot make no mount of fstab"
        elif (key == "systemd.volatile" and value != "no") or key == "rd.break":
            what = "has the next boot use another root, or stop before it"
        elif key == "init" and not _SHELL.search(word) and not _INIT.fullmatch(boot.host.resolve(value)):
            what = f"has the next boot start {value} instead of systemd"
        elif key == "systemd.run":
            what = "has the next boot run one command, and power off"
        elif key == "systemd.setenv" and value.startswith("LD_PRELOAD"):
            what = "has systemd load a library into each program"
        if what:
            remedy = f"remove {key} from {_IN_ENTRIES}"
            yield _of_host(place, "start", "refused", f"{place}: {word} {what}", remedy)


def _required(boot: Boot) -> Iterator[Fault]:
    """Yield units of others without which the mounts are not made, unless this boot has shown that they start."""
    names = dict.fromkeys(("local-fs.target", "sysinit.target", "basic.target"), "")
    for line in boot.lines:
        if boot.matters(line) and line.target != "/":
            names[mount_units.unit_name(line.target)] = line.target
    of_lines = {line.target: line for line in boot.lines}
    for name, target in names.items():
        for unit, path, source in unit_files.required_by(boot.host, name):
            why = _why_it_may_fail(boot.host, unit, path) if _is_foreign(boot.host, unit) else ""
            if why:
                said = f"{source} has {name} wait for {unit}, and {why}"
                yield _of_unit(of_lines.get(target), source, said, _let_start(boot.host, unit, path, source))
        for condition, source in unit_files.conditions(boot.host, name):
            said = f"{source} starts {name} only if {condition} holds"
            yield _of_unit(of_lines.get(target), source, said, f"remove {condition} from {source}")


def _let_start(host: Host, unit: str, path: str, source: str) -> str:
    """Return what has a boot go on where a unit that is required may not start; a unit that is there may prepare a device."""
    if not unit_files.find(host, unit):
        return f"remove {source}" if source == path else f"remove {unit} from {source}"
    if unit_files.mask(host, unit):
        return f"run systemctl unmask '{unit}'"
    return f"have {source} want {unit} instead of requiring it (Wants=, WantedBy=)"


def _of_unit(line: Entry | None, source: str, why: str, remedy: str) -> Fault:
    if line is None:
        return _of_host(source, "requires", UNKNOWN, why, remedy, "undecided")
    return Fault(line, "requires", UNKNOWN, why, remedy, effect="undecided")


def _is_foreign(host: Host, unit: str) -> bool:
    """Tell whether another owner's unit is required: no mount, no device, no check of a file system by systemd."""
    is_systemds = unit.startswith("systemd-") and unit_files.find(host, unit).startswith(unit_files.PACKAGED)
    return unit.rpartition(".")[2] in ("service", "socket", "path", "timer") and not is_systemds


def _why_it_may_fail(host: Host, unit: str, path: str) -> str:
    """Return why a unit may not start at the next boot, '' if it did at this one and was not changed since."""
    own = unit_files.find(host, unit)
    if not own:
        return "that unit has no file"
    if unit_files.mask(host, unit):
        return "that unit is masked"
    since = processes.booted(host)
    for each in dict.fromkeys((own, *unit_files.drop_ins(host, unit), path)):
        status = host.locate(each).status
        if status is None or max(status.modified, status.changed) > since:
            return f"{each} was changed after this boot"
    said = host.run(
        ["systemctl", "show", "--property=ActiveState,Result,ExecMainStartTimestampMonotonic", "--", unit]
    )
    fields = dict(line.partition("=")[::2] for line in said.stdout.splitlines())
    ran = fields.get("ActiveState") == "active" or fields.get("ExecMainStartTimestampMonotonic", "0") not in (
        "",
        "0",
    )
    if fields.get("Result") == "success" and ran:
        return ""
    return f"systemd has for it ActiveState={fields.get('ActiveState')}, Result={fields.get('Result')} at this boot"


def _generators(boot: Boot) -> Iterator[Fault]:
    """Yield the programs of others that make units at each boot, if they can change what is managed here."""
    for each in unit_files.generators(boot.host):
        if each.is_masked and posixpath.basename(each.path) == "systemd-fstab-generator":
            why = f"{each.path} masks systemd-fstab-generator, and nothing makes units of {fstab.PATH}"
            yield _of_host(each.path, "generator", "refused", why, f"remove {each.path}", "read_only")
    for each in generators.acting(boot.host, (line.target for line in boot.lines if len(line.target) > 1)):
        what = f"in the place of {each.masks}" if each.masks else "of units"
        yield _of_host(
            each.path,
            "generator",
            UNKNOWN,
            f"{each.path} is a generator {what} that no package of the distribution has in its directory: the units that it"
            " makes at the next boot can change each mount, disk and server",
            "copy the units that it makes, and the links to them, from /run/systemd/generator to /etc/systemd/system, then remove"
            f" {each.path}",
        )
