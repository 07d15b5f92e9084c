# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The matrix: profile x device x file system x workload, each safe cell with a control that must lose commits.

A cell's name is `profile/device/file system[/engine][/plant]/workload`. All workloads of one setting are recorded in one boot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from proof.engines import ENGINES
from proof.errors import ProofError

SAFE = "safe"
LOSES = "loses"
#: A device whose emulation may ignore FUA: what is seen is told, and nothing is concluded.
UNTRUSTED = "untrusted"
#: What keeps commits where the file system and the disk do as they should, by the engine that writes so.
SAFE_WORKLOADS = {
    "direct_dsync": "SQL Server, FUA",
    "direct_fdatasync": "SQL Server, forced flush",
    "rwf_dsync": "direct, RWF_DSYNC",
    "osync": "FairCom DB, LOG_WRITETHRU",
    "dsync": "Firebird, forced writes",
    "append_fsync": "a log that grows, fsync",
}
#: What no setting but a cache that is off makes safe; without a flush not even that.
UNSAFE_WORKLOADS = {"direct": "SQL Server, 0/0", "no_sync": "an engine's sync turned off"}
#: A boot's files, whole each time: what the collection does with each of its own, and what must lose.
REPLACE, REWRITE = "replace_file", "rewrite_file"
FILE_WORKLOADS = {REPLACE: "fstab and its like, as harden-db writes them", REWRITE: "the same, written over"}
#: Of a real engine: what its own client asks for.
COMMITS = "commits"
WORKLOADS = SAFE_WORKLOADS | UNSAFE_WORKLOADS | FILE_WORKLOADS | {COMMITS: "through the engine's own client"}
FILE_SYSTEMS = ("ext4", "xfs")
DEVICES = ("virtio", "scsi", "scsi-fua", "sata")
#: The guest's own NBD client: the one device here that passes FUA on as FUA. harden-db has no rule for it.
NBD = "nbd"
#: The kernel sends FUA to these.
WITH_FUA = ("scsi-fua", NBD)
#: QEMU's NVMe disk says that it has FUA; some versions do not do it.
NVME = "nvme"
#: Profiles of which a commit must survive, and the one that gives commits away.
SAFE_PROFILES = ("strict", "flush", "protected")
DISPOSABLE = "disposable"
#: Left as the kernel made it, where harden-db has no rule.
DEFAULTS = "defaults"
#: One pattern stands for all where the cell is about something else.
PLAIN = "direct_fdatasync"
#: What is written before a moment: fsync leaves nothing to a later commit of the journal, which would flush by itself.
MOMENT = "append_fsync"


@dataclass(frozen=True)
class Plant:
    """What the rig does to a setting that has been made. A plant with a second part does it when the commits are made.

    Scripts for sh get the disk's kernel name, its device type and the mount point. `hardens` is harden-db once more.
    `sync_off`: the engine's own script of that name, instead of `before`.
    """

    what: str
    before: str
    after: str = ""
    hardens: bool = False
    sync_off: bool = False

    @property
    def has_second_part(self) -> bool:
        """Whether something happens to commits that are made already, so that only later cuts count."""
        return bool(self.after) or self.hardens


_BARRIERS_OFF = """
mount -o remount,barrier=0 "$3"
grep -qE '^(nobarrier|barrier=0)$' "/proc/fs/ext4/$1/options" || { echo "barriers of $3 stay on"; exit 1; }
"""
_WRITE_THROUGH = """
echo "write through" > "/sys/block/$1/queue/write_cache"
grep -qx "write through" "/sys/block/$1/queue/write_cache" || { echo "the kernel cache mode of $1 stays"; exit 1; }
"""
# udev would call what harden-db has left there, and that would turn the cache off again.
_CACHE_COMES_BACK = """
systemctl stop systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udevd.service
case $2 in
    sata) hdparm -q -W1 "/dev/$1"; sleep 5 ;;  # libata asks the disk anew, a moment later
    scsi*) sdparm --quiet --set=WCE=1 "/dev/$1" ;;
    virtio) echo "write back" > "/sys/block/$1/cache_type" ;;
    *) echo "no way is known to turn the cache of a $2 disk on"; exit 1 ;;
esac
"""
_BARRIERS_ON_AND_IDLE = """
mount -o remount,barrier=1 "$3"
sleep 8
"""
PLANTS = {
    "": Plant("as harden-db left it", ""),
    "barrier0": Plant("remounted with barrier=0 over a cache that is on", _BARRIERS_OFF),
    "write-through": Plant("queue/write_cache says write through over a cache that is on", _WRITE_THROUGH),
    "cache-back": Plant(
        "the cache came back on, queue/write_cache says write through", _CACHE_COMES_BACK + _WRITE_THROUGH
    ),
    "tightened": Plant(
        "commits made under barrier=0, then barrier=1 without a flush, then idle",
        _BARRIERS_OFF,
        _BARRIERS_ON_AND_IDLE,
    ),
    "sync-off": Plant("the engine's own sync turned off", "", sync_off=True),
    "mended": Plant(
        "commits made under barrier=0, then harden-db, then more commits", _BARRIERS_OFF, hardens=True
    ),
}


@dataclass(frozen=True, order=True)
class Setting:
    """What one boot is: a profile that harden-db makes, a device, a file system, and what the rig then plants.

    `engine` is a real one, whose machine has its server.
    """

    profile: str
    device: str
    file_system: str
    plant: str = ""
    engine: str = ""

    @property
    def name(self) -> str:
        """Return its name, which is the begin of those of its cells."""
        parts = (self.profile, self.device, self.file_system, self.engine, self.plant)
        return "/".join(part for part in parts if part)

    @property
    def directory(self) -> str:
        """Return its name as that of a directory."""
        return self.name.replace("/", "-")

    @property
    def cache_is_off(self) -> bool:
        """Whether nothing at all may be volatile."""
        return self.profile == "strict" and not self.plant


@dataclass(frozen=True, order=True)
class Cell:
    """One workload in one setting, and what must come of it. `control` names the cell that must lose, of a safe one."""

    setting: Setting
    workload: str
    expects: str
    control: str = ""

    @property
    def name(self) -> str:
        """Return its name."""
        return f"{self.setting.name}/{self.workload}"


def matrix() -> list[Cell]:
    """Return all cells, safe ones and controls."""
    cells = list(_cells())
    names = {cell.name for cell in cells}
    for cell in cells:
        if cell.control and cell.control not in names:
            raise ProofError(f"{cell.name} has the control {cell.control}, which is no cell")
    return cells


def chosen(cells: Iterable[Cell], patterns: Iterable[str]) -> list[Cell]:
    """Return the cells that match any of these patterns (as in a shell; * also spans /), and their controls.

    With a ! in front a pattern leaves cells out; if all have one, the others are meant. ProofError: a pattern that matches none.
    """
    patterns = list(patterns)
    less = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    everything = {
        cell.name: cell for cell in cells if not any(fnmatchcase(cell.name, pattern) for pattern in less)
    }
    names = dict[str, None]()
    for pattern in [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]:
        found = [name for name in everything if fnmatchcase(name, pattern)]
        if not found:
            raise ProofError(f"no cell is called {pattern!r}: --list shows them all")
        names.update(dict.fromkeys(found))
    names.update({everything[name].control: None for name in list(names) if everything[name].control})
    return [cell for name, cell in everything.items() if name in names]


def to_boot(cells: Iterable[Cell]) -> set[str]:
    """Return the cells that are booted from what a cut left: one safe one of each profile, file system and engine."""
    first = dict[tuple[str, str, str], str]()
    for cell in cells:
        if cell.expects == SAFE:
            setting = cell.setting
            first.setdefault((setting.profile, setting.file_system, setting.engine), cell.name)
    return set(first.values())


def by_setting(cells: Iterable[Cell]) -> dict[Setting, list[Cell]]:
    """Group cells by what can be recorded in one boot."""
    found = dict[Setting, list[Cell]]()
    for cell in cells:
        found.setdefault(cell.setting, []).append(cell)
    return found


def _cells() -> Iterator[Cell]:
    for file_system in FILE_SYSTEMS:
        for device in DEVICES:
            # With its cache off a disk has no use for FUA: scsi would be there twice.
            if device != "scsi-fua":
                yield from _strict(device, file_system)
            yield from _cached("flush", device, file_system)
        yield from _cached(DEFAULTS, NBD, file_system)
        yield from _files(Setting("flush", "virtio", file_system))
    # Mount and disk are as `flush` leaves them; one of each kind stands for all.
    for device, file_system in (("virtio", "ext4"), ("sata", "xfs")):
        yield from _safe("protected", device, file_system, "flush", _liar(device, file_system))
    for device in ("virtio", "sata"):
        yield from _moments(device)
    for workload in ("direct_dsync", "direct_fdatasync"):
        yield Cell(Setting("flush", NVME, "ext4"), workload, UNTRUSTED)
    # XFS has this control on each device.
    yield from _losing(Setting("flush", "virtio", "ext4", "write-through"), (PLAIN,))
    for name in ENGINES:
        yield from _engine(name)
    yield Cell(Setting(DISPOSABLE, "virtio", "ext4"), PLAIN, LOSES)


def _files(setting: Setting) -> Iterator[Cell]:
    """A boot's files: as harden-db writes them, the same over a file system that lies, and written over."""
    liar = replace(setting, plant=_liar(setting.device, setting.file_system))
    yield Cell(setting, REPLACE, SAFE, f"{liar.name}/{REPLACE}")
    yield from _losing(liar, (REPLACE,))
    yield from _losing(setting, (REWRITE,))


def _liar(device: str, file_system: str) -> str:
    """XFS has no barriers to turn off; and without them a direct write to a disk with FUA carries it all the same."""
    return "barrier0" if file_system == "ext4" and device not in WITH_FUA else "write-through"


def _strict(device: str, file_system: str) -> Iterator[Cell]:
    yield from _safe("strict", device, file_system, "strict", "cache-back")
    # With the cache off a direct write is durable as it is: SQL Server's 0/0 is safe here, and only here.
    yield Cell(Setting("strict", device, file_system), "direct", SAFE, f"flush/{device}/{file_system}/direct")
    yield from _losing(Setting("strict", device, file_system, "cache-back"), SAFE_WORKLOADS)


def _cached(profile: str, device: str, file_system: str) -> Iterator[Cell]:
    liar = _liar(device, file_system)
    yield from _safe(profile, device, file_system, profile, liar)
    yield from _losing(Setting(profile, device, file_system), UNSAFE_WORKLOADS)
    yield from _losing(Setting(profile, device, file_system, liar), SAFE_WORKLOADS)


def _engine(name: str) -> Iterator[Cell]:
    """A real engine for each safe profile, and on each file system; controls are its sync off, and a file system that lies."""
    for file_system, device in (("ext4", "virtio"), ("xfs", "sata")):
        flush = Setting("flush", device, file_system, engine=name)
        off = replace(flush, plant="sync-off")
        yield Cell(flush, COMMITS, SAFE, f"{off.name}/{COMMITS}")
        yield Cell(off, COMMITS, LOSES)
    flush = Setting("flush", "virtio", "ext4", engine=name)
    liar = replace(flush, plant="barrier0")
    yield Cell(replace(flush, profile="protected"), COMMITS, SAFE, f"{liar.name}/{COMMITS}")
    yield Cell(liar, COMMITS, LOSES)
    back = replace(flush, profile="strict", plant="cache-back")
    yield Cell(replace(back, plant=""), COMMITS, SAFE, f"{back.name}/{COMMITS}")
    yield Cell(back, COMMITS, LOSES)


def _moments(device: str) -> Iterator[Cell]:
    tightened = Setting("flush", device, "ext4", "tightened")
    yield Cell(Setting("flush", device, "ext4", "mended"), MOMENT, SAFE, f"{tightened.name}/{MOMENT}")
    yield Cell(tightened, MOMENT, LOSES)


def _safe(profile: str, device: str, file_system: str, control: str, plant: str) -> Iterator[Cell]:
    for workload in SAFE_WORKLOADS:
        paired = Setting(control, device, file_system, plant)
        yield Cell(Setting(profile, device, file_system), workload, SAFE, f"{paired.name}/{workload}")


def _losing(setting: Setting, workloads: Iterable[str]) -> Iterator[Cell]:
    for workload in workloads:
        yield Cell(setting, workload, LOSES)
