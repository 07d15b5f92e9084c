# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The acts of other components at boot: a write below /sys, a command, options of a mount, or a script. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..host.observation import UNKNOWN

#: Settings of a disk that an act can set.
CACHE, MODE, SCHEDULER, READAHEAD = "write_cache", "kernel_cache_mode", "scheduler", "readahead"
#: Settings of a mount. That of ZFS is its barrier.
BARRIER, DATA_MODE, ATIME, SYNC, ZFS = "barrier", "data_mode", "atime", "sync", "zfs"
WRITE_BACK, WRITE_THROUGH = "write back", "write through"
#: Words of a script -> settings that it can set.
_MENTIONS = (
    (re.compile(r"\bhdparm\b[^\n;|&]*(?:\s-[a-zA-Z]*W|\$)"), (CACHE,)),
    (
        re.compile(
            r"\bsdparm\b[^\n;|&]*(?:WCE|\$)|\bnvme\s+set-feature|\bsg_wr_mode\b|\bwcache(?:-sct)?,|WriteCache"
            r"|\bnvme\s+admin-passthru\b[^\n;|&]*\s(?:--opcode|-[oO])[ =]?(?:0x0*)?9\b"
        ),
        (CACHE,),
    ),
    (re.compile(r"\bcache_type\b"), (CACHE, MODE)),
    (re.compile(r"\bwrite_cache\b"), (MODE,)),
    (re.compile(r"\bqueue/scheduler\b|/scheduler\b"), (SCHEDULER,)),
    (re.compile(r"\bread_ahead_kb\b|--setra\b|\bhdparm\b[^\n;|&]*\s-a\s?\d"), (READAHEAD,)),
    (re.compile(r"\bremount\b"), (BARRIER, DATA_MODE, ATIME, SYNC)),
    (re.compile(r"\bnobarrier\b|\bbarrier=\S"), (BARRIER,)),
    (
        re.compile(
            r"\bzfs\s+(?:set|inherit)\b[^\n;|&]*(?:\b(?:sync|canmount|mountpoint)\b|\$)|\bz(?:fs|il)_nocacheflush\b"
        ),
        (ZFS,),
    ),
)
_ECHO = r"(?:echo|printf)\s+(?:-n\s+)?['\"]?(%s)['\"]?\s*(?:>|\|\s*tee\s)\s*\S*"
_MODES = f"{WRITE_BACK}|{WRITE_THROUGH}"
#: Setting -> a statement whose value is literal, whatever names the device.
_STATED = {
    CACHE: re.compile(
        rf"\bhdparm\s+-[qI ]*W\s?([01])\s|\bsdparm\s(?:[^;|&]*\s)?--(clear|set)[= ]WCE(?![\w=,])|{_ECHO % _MODES}cache_type"
    ),
    MODE: re.compile(rf"{_ECHO % _MODES}(?:cache_type|write_cache)"),
    SCHEDULER: re.compile(rf"{_ECHO % '[a-z-]+'}scheduler"),
    READAHEAD: re.compile(rf"{_ECHO % '[0-9]{1,9}'}read_ahead_kb"),
}
_NEVER = re.compile(r"(?!)")
_DEVICE = re.compile(r"/dev/[^\s;'\"|&()<>,`]+|/sys/(?:class/|dev/)?block/[^\s;'\"|&()<>,`]+")
#: Devices that are no disks.
_NO_DISKS = re.compile(r"/dev/(?:null|zero|std\w+|fd(?:/.*)?|tty.*|console|u?random|kmsg|log|shm.*)")
_VARIABLE = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$\w+|%[a-zA-Z]")
#: Names that a script does not have in itself: of a command's output, or of its arguments.
_FROM_ELSEWHERE = re.compile(r"\$\(|`|\$[@*\d]|\bread\s+\w")
#: Paths in a script that are no mount points: of programs, and of what the kernel shows.
_NO_MOUNTS = re.compile(r"/(?:usr/)?s?bin/|/dev/(?:null|std\w+)|/proc/|/sys/")
_PARTITION = re.compile(r"(?:p|-part)?\d+")
#: Directories of /sys in which a device has the paths that are compared, its attributes, kernel names, and an address of SCSI.
_DIRECT = re.compile(r"/sys/(?:(?:class/)?block|dev/block|devices|class/(?:scsi_disk|bdi))/")
_ATTRIBUTES = ("write_cache", "cache_type", "scheduler", "read_ahead_kb")
_DISK = re.compile(r"(?:sd|x?vd)[a-z]+\d*|nvme\d+(?:c\d+)?n\d+(?:p\d+)?|mmcblk\d+(?:p\d+)?")
_ADDRESS = re.compile(r"(?<=/)\d+:\d+:\d+:\d+(?=/)")
#: What a shell makes several words of, and sets of characters that it does not have.
_BRACES, _NOT = re.compile(r"\{[^}/]*,[^}/]*\}"), re.compile(r"\[\^")


class Act(NamedTuple):
    """One thing that a component does.

    `kind` and `words`: `write` (path, value), `command` (its arguments), `options` (mount point or device, options),
    `barriers` (TuneD's value), or `script` (text that is not understood). `is_certain`: it is done at each boot.
    `is_resolved`: the component names the disks by what outlives a boot, and `words` has the kernel names of this one.
    """

    by: str
    source: str
    kind: str
    words: tuple[str, ...]
    is_certain: bool = True
    is_resolved: bool = False

    @property
    def text(self) -> str:
        """The act for people, cut: of a command its program, of options their mount, of a script nothing. The rest can hold
        passwords."""
        shown = {"write": self.words, "script": ()}.get(self.kind, self.words[:1])
        return " ".join(" ".join(shown).split())[:80]


class Device(NamedTuple):
    """A block device as other components name it: by kernel name, links in /dev, directories and numbers in /sys.

    `peers`: kernel name and number of each other disk of its driver. The kernel gives these in the order in which it finds
    the disks, which another boot can change.
    """

    name: str
    number: str = ""
    links: frozenset[str] = frozenset()
    places: tuple[str, ...] = ()
    address: str = ""
    scsi_place: str = ""
    control: str | None = None
    model: str = ""
    serial: str = ""
    peers: tuple[tuple[str, str], ...] = ()

    def under_each_name(self) -> list[Device]:
        """Return the device under each kernel name that it can have at the next boot: its own, and those of its peers."""
        return [
            self._replace(
                name=name,
                number=number,
                places=tuple(f"{posixpath.dirname(place)}/{name}" for place in self.places),
                peers=(),
            )
            for name, number in ((self.name, self.number), *self.peers)
        ]

    def is_named(self, word: str) -> bool:
        """Return whether a path in /dev, which may be a pattern, names the device, or a partition or controller of it."""
        paths = {f"/dev/{self.name}", f"/dev/block/{self.number}", *self.links}
        pattern = _pattern(word)
        if any(fnmatchcase(path, pattern) for path in paths):
            return True
        if re.match(r"/dev/(?:sg\d|bsg/)", word):
            return self.control in ("sata", "scsi")
        controller = re.fullmatch(r"/dev/(?:nvme(\d+)|ng(\d+)n\d+)", word)
        if controller and self.name.startswith("nvme"):
            return self.name.startswith(f"nvme{controller[1] or controller[2]}n")
        return any(word.startswith(path) and _PARTITION.fullmatch(word[len(path) :]) for path in paths)

    def attribute(self, pattern: str) -> str:
        """Return which attribute of the device a path in /sys is, '' for none; the path may be a pattern."""
        requested = plain(_pattern(pattern)).split("/")
        for path, attribute in self._attributes():
            parts = path.split("/")
            if len(parts) == len(requested) and all(map(fnmatchcase, parts, requested)):
                return attribute
        return ""

    def may_be(self, pattern: str) -> str:
        """Return which attribute of the device a path in /sys by its host, bus or partition may be, '' for none."""
        path = plain(_pattern(pattern))
        name = posixpath.basename(path)
        own = re.match(r"/sys/(?:class/)?block/([^/]+)/(?:device|\.\.)/", pattern)
        is_elsewhere = path.startswith("/sys/") and (
            self.is_named(f"/dev/{own[1]}") if own else not _DIRECT.match(path)
        )
        addresses = _ADDRESS.findall(path)
        if not is_elsewhere or name not in _ATTRIBUTES or (addresses and self.address not in addresses):
            return ""
        # A path of NVMe's native multipath has the number of its controller too.
        names = [re.sub(r"c\d+(?=n)", "", part) for part in path.split("/") if _DISK.fullmatch(part)]
        return "" if names and not any(self.is_named(f"/dev/{each}") for each in names) else name

    def _attributes(self) -> Iterable[tuple[str, str]]:
        own = [
            "queue/write_cache",
            "queue/scheduler",
            "queue/read_ahead_kb",
            "bdi/read_ahead_kb",
            "cache_type",
        ]
        if self.address:
            own.append(f"device/scsi_disk/{self.address}/cache_type")
            yield f"/sys/class/scsi_disk/{self.address}/cache_type", "cache_type"
            yield f"{self.scsi_place}/cache_type", "cache_type"
        if self.number:
            yield f"/sys/class/bdi/{self.number}/read_ahead_kb", "read_ahead_kb"
            yield f"/sys/devices/virtual/bdi/{self.number}/read_ahead_kb", "read_ahead_kb"
        places = (f"/sys/block/{self.name}", f"/sys/class/block/{self.name}", f"/sys/dev/block/{self.number}")
        for place in (*places, *self.places):
            for attribute in own:
                yield f"{place}/{attribute}", attribute.rpartition("/")[2]


def mentioned(text: str) -> tuple[str, ...]:
    """Return the settings that a text which is not understood can set."""
    found = (setting for pattern, settings in _MENTIONS if pattern.search(text) for setting in settings)
    return tuple(dict.fromkeys(found))


def stated(line: str, setting: str) -> str | None:
    """Return the value that a line which is not understood sets, if it is literal; None if not."""
    found = _STATED.get(setting, _NEVER).search(line)
    word = next((word for word in found.groups() if word), "") if found else ""
    if setting == CACHE:
        is_on = word in ("1", "set", WRITE_BACK)
        return {True: "enabled", False: "disabled"}[is_on] if word else None
    return word or None


def is_about(text: str, device: Device) -> bool:
    """Return whether a script can be about a device: it names it, or no device at all, or gets names from elsewhere."""
    if _FROM_ELSEWHERE.search(text):
        return True
    words = [word for word in _DEVICE.findall(text) if not _NO_DISKS.fullmatch(word)]
    return not words or any(_names(word, device) for word in words)


def is_about_mount(text: str, targets: Iterable[str], devices: Iterable[Device]) -> bool:
    """Return whether a script that remounts can be about a mount: it names mount point or device, or gets names from
    elsewhere."""
    if _FROM_ELSEWHERE.search(text):
        return True
    words = re.findall(r"(?<![\w/.])/[^\s;'\"|&()<>`]*", text)
    paths = [_pattern(word.rstrip("/") or "/") for word in words if not _NO_MOUNTS.match(word)]
    if not paths or any(fnmatchcase(target, path) for target in targets for path in paths):
        return True
    return any(device.is_named(path) for device in devices for path in paths if path.startswith("/dev/"))


def _names(word: str, device: Device) -> bool:
    if word.startswith("/dev/"):
        return device.is_named(word)
    # Of /sys/block/NAME/... the name counts: what follows may be put together elsewhere.
    head = re.match(r"/sys/(?:(?:class/)?block/([^/]+)|dev/block/([^/]+))", word)
    if not head:
        return False
    pattern = _pattern(head[1] or head[2])
    return fnmatchcase(device.name if head[1] else device.number, pattern)


def plain(path: str) -> str:
    """Return a path in its plainest form, a relative one too; normpath keeps two slashes at the beginning."""
    return re.sub("^//", "/", posixpath.normpath(path))


def _pattern(word: str) -> str:
    """Return a word of a shell as a pattern of fnmatch."""
    return _NOT.sub("[!", _BRACES.sub("*", _VARIABLE.sub("*", word)))


def scheduler(value: str) -> str | None:
    """Return the scheduler that the kernel takes a word for, None for one that it refuses."""
    word = {"deadline": "mq-deadline"}.get(value.strip(), value.strip())
    return word if word in ("none", "mq-deadline", "kyber", "bfq") else None


def number(value: str) -> str:
    """Return a number as text, `unknown` for anything else."""
    return str(int(value)) if re.fullmatch(r"\d{1,9}", value.strip(), re.ASCII) else UNKNOWN
