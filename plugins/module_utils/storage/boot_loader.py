# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options with which the initramfs mounts the root, at this boot and at the next."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from ..host.boot_files import existing, text_of
from ..host.observation import Undecided
from ..host.seam import Host, Unobservable
from ..next_boot import boot_entries
from ..next_boot import command_lines as next_lines
from ..next_boot.boot_entries import ENTRIES, REPAIR, Entry
from . import mount_settings
from .shown_options import as_written

__all__ = [
    "ENTRIES",
    "REPAIR",
    "Entry",
    "Rootflags",
    "command_lines",
    "entries",
    "of_the_next",
    "of_this_boot",
    "roots",
]
_ROOTFLAGS = re.compile(r"(?:^|\s)rootflags=(\S+)")
_NAMED_ROOT = re.compile(r"(?:^|\s)root=(\S+)")
_SUBVOLUME = ("subvol", "subvolid")
#: What dracut.conf(5) and initramfs-tools(7) store in the next initramfs that is made, for a command line without rootflags=.
_INITRAMFS = (
    ("/etc/dracut.conf", "/etc/dracut.conf.d", ".conf", re.compile(r"kernel_cmdline\s*\+?=(?P<line>.*)")),
    (
        "/etc/initramfs-tools/initramfs.conf",
        "/etc/initramfs-tools/conf.d",
        "",
        re.compile(r"(?:export\s+)?ROOTFLAGS=['\"]?-o\s*(?P<options>[^\s'\"]+).*"),
    ),
)
#: From what grub-mkconfig(8) makes the command lines of the next configuration.
_GRUB = (
    "/etc/default/grub",
    "/etc/default/grub.d",
    ".cfg",
    re.compile(r"(?:export\s+)?GRUB_CMDLINE_LINUX(?:_DEFAULT)?\s*\+?=(?P<line>.*)"),
)


class Rootflags(NamedTuple):
    """The options in the order in which they apply, and where they were read."""

    options: tuple[str, ...]
    source: str


def of_this_boot(host: Host) -> tuple[str, ...]:
    """Return the options with which the initramfs mounted the root at this boot. Raises Unobservable."""
    return _flags(host.read("/proc/cmdline"))


def of_the_next(host: Host) -> Rootflags:
    """Return those of the next boot: of the entry that boots by default; without a boot loader those of this boot.

    Raises Unobservable if several entries may be next and differ, or the next one starts another system.
    """
    now = host.read("/proc/cmdline")
    found = boot_entries.find(host)
    ours = [entry for entry in found.entries if not _is_anothers(entry.line, now)]
    if found.entries and not ours and found.is_decided:
        raise Undecided("other_system", entry=found.entries[0].at)
    if not found.is_decided:
        # Which one is next is unknown: those for repairs are chosen by hand.
        ours = [entry for entry in ours if not entry.is_repair]
    lost = next((entry for entry in ours if entry.lost), None)
    if lost:
        raise Undecided("no_command_line", entry=lost.at, variable=str(lost.lost))
    flags = {_flags(entry.line): entry for entry in reversed(ours)}
    for entry in ours:
        _expect_one_reading(entry.line, entry.at)
    if len(flags) > 1:
        raise _differ([(entry.at, reported) for reported, entry in flags.items()])
    options, source = _flags(now), "this boot"
    for reported, entry in flags.items():
        options, source = reported, entry.at
    _expect_same_of_next_kernel(host, options)
    _expect_same_of_next_update(host, options, source)
    return Rootflags(options, f"rootflags of {source}")


def for_a_trial(host: Host) -> tuple[str, ...]:
    """Return the options of the next boot, or of this one if those are unknown. Raises Unobservable."""
    try:
        return of_the_next(host).options
    except Unobservable:
        return of_this_boot(host)


def roots(host: Host) -> list[tuple[str, str]]:
    """Return, for each entry that may be next, its place and the root that it names ('' for none).

    Raises Unobservable.
    """
    found = boot_entries.find(host)
    entries = [each for each in found.entries if found.is_decided or not each.is_repair]
    return [(each.at, (_NAMED_ROOT.findall(each.line) or [""])[-1]) for each in entries if not each.lost]


def command_lines(host: Host) -> list[tuple[str, str]]:
    """Return the kernel's command lines of which the next boot's is one, each with its place; without a boot loader this
    boot's. Raises Unobservable if a part of one is unknown.
    """
    may_be = next_lines.candidates(host)
    lost = next((entry for entry in may_be if entry.lost), None)
    if lost:
        raise Undecided("no_command_line", entry=lost.at, variable=str(lost.lost))
    return [(each.line, each.at) for each in may_be] or [next_lines.of_this_boot(host)]


def entries(host: Host) -> list[Entry]:
    """Return the entries that start a system: those that may be next first. Raises Unobservable."""
    found = boot_entries.find(host)
    every = (*found.entries, *(each for each in found.others if not each.is_repair))
    # One for each: variants of its command line load the same files.
    return [each for each in {each.source: each for each in reversed(every)}.values() if each.kernel][::-1]


def _expect_same_of_next_kernel(host: Host, options: tuple[str, ...]) -> None:
    """Raise Unobservable if the next kernel that is installed gets other options of the same root."""
    now = host.read("/proc/cmdline")
    for path, line in boot_entries.of_next_kernel(host):
        if not _is_anothers(line, now) and _flags(line) != options:
            raise _differ(
                [(f"{path} (for the next kernel that is installed)", _flags(line)), ("now", options)]
            )


def _expect_one_reading(line: str, at: str) -> None:
    """Raise Unobservable for several rootflags= of which an initramfs with systemd makes other options than the last has.

    systemd-fstab-generator(8) joins all of them; the kernel and other initramfs take the last.
    """
    found = [tuple(each.split(",")) for each in _ROOTFLAGS.findall(line)]
    joined = tuple(option for each in found for option in each)
    if found and _effects(joined) != _effects(found[-1]):
        raise _differ([(at, found[-1]), (f"{at} (with systemd in the initramfs)", joined)])


def _expect_same_of_next_update(host: Host, options: tuple[str, ...], source: str) -> None:
    """Raise Unobservable if the next initramfs or configuration of GRUB that is made gets other options of ours."""
    grub = [_GRUB] if any(map(host.exists, boot_entries.GRUB)) else []
    for place, directory, ending, key in (*(_INITRAMFS if not options else ()), *grub):
        for path in (place, *existing(host, directory, ending)):
            for row, flags in parse_stored(text_of(host, path), key):
                if _effects(flags) != _effects(options):
                    raise _differ([(f"{path} line {row} (at its next update)", flags), (source, options)])


def parse_stored(text: str, key: re.Pattern[str]) -> list[tuple[int, tuple[str, ...]]]:
    """Return the lines of a shell's file that set options of the root, each with its number."""
    found = []
    for row, line in enumerate(text.split("\n"), 1):
        match = key.fullmatch(line.strip())
        if match:
            groups = match.groupdict()
            said = groups.get("line", "").replace("'", " ").replace('"', " ")
            flags = tuple(groups["options"].split(",")) if "options" in groups else _flags(said)
            found += [(row, flags)] if flags else []
    return found


def _effects(options: tuple[str, ...]) -> dict[str, str]:
    """Return the settings of options, with the kernel's defaults of those that no superblock sets."""
    return {"barrier": "on", "atime": "relatime", "sync": "async", **mount_settings.fold(options)}


def _differ(found: list[tuple[str, tuple[str, ...]]]) -> Undecided:
    flags = [f"rootflags={as_written(options)}" if options else "no rootflags" for _at, options in found]
    return Undecided("rootflags_differ", entries=[at for at, _options in found], options=flags)


def _flags(line: str) -> tuple[str, ...]:
    """Return the options of a kernel's command line: its last value counts."""
    found = _ROOTFLAGS.findall(line)
    return tuple(found[-1].split(",")) if found else ()


def _is_anothers(line: str, now: str) -> bool:
    """Return whether an entry starts another system: its root or subvolume is another."""
    ours, other = _root(now), _root(line)
    # Names of two kinds can lead to one device.
    if all(ours) and all(other) and ours[0] == other[0] and ours != other:
        return True
    return _subvolume(_flags(line)) != _subvolume(_flags(now))


def _root(line: str) -> tuple[str, str]:
    """Return the kind of name by which a command line names its root, a tag or a directory, and the name."""
    spec = (_NAMED_ROOT.findall(line) or [""])[-1]
    tag, equals, value = spec.partition("=")
    if equals:
        return tag, value.lower() if tag.endswith("UUID") else value
    return posixpath.dirname(spec), posixpath.basename(spec)


def _subvolume(options: tuple[str, ...]) -> list[str]:
    words = (option.partition("=") for option in options)
    return sorted(value.lstrip("/") for name, _equals, value in words if name in _SUBVOLUME)
