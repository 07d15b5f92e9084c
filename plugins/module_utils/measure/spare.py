# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A spare disk that a comparison of file systems overwrites: refused if any part of the host uses it.

The user names it twice by its permanent name. It is opened once, and each command gets that descriptor: no later
change of a name leads to another disk. What a killed run leaves is recorded, and removed by the next run.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeVar

from ..host import json_text, trusted_path, udev
from ..host.mountinfo import parse_mountinfo
from ..host.our_paths import COMPARISON
from ..host.processes import DELETED
from ..host.refusals import explained
from ..host.seam import ChangeFailed, Host, Unobservable
from ..storage import disk_kinds, fstab
from ..storage.disks import Disks, schedulers
from . import scratch, variants
from .limits import MIB, Refused

#: Directory of the permanent names, and a name in it.
BY_ID = "/dev/disk/by-id"
_NAME = re.compile(r"[\w.:+=@-]+", re.ASCII)
#: MiB of a disk at least: XFS needs 300, and each file system has a journal.
LEAST = 512
_WIPEFS = ["wipefs", "--no-act", "--noheadings", "--output", "TYPE,LABEL"]
#: Users of a disk that the kernel lets open it without a claim: files with its path, and what they are.
_EXPORTS = (
    ("/sys/block/loop*/loop/backing_file", "the file of a loop device"),
    ("/sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path", "exported by NVMe over Fabrics"),
    ("/sys/kernel/config/target/core/*/*/udev_path", "exported by the kernel's SCSI target"),
)
#: Files that can name a disk without a signature: a journal, a key, or the disk of a service or guest that is stopped.
_CONFIGURED = (
    *("/etc/fstab", "/etc/crypttab", "/etc/drbd.conf", "/etc/drbd.d/*.res", "/etc/libvirt/qemu/*.xml"),
    *("/etc/target/saveconfig.json", "/etc/rtslib-fb-target/saveconfig.json"),
)
#: No name of a device has more parts. Each is tried with those before it, so their number has a bound.
_MOST_COLONS = 32
_DEVICE = re.compile(r"/dev/[^\s,;\"'<>]+")
#: Files of sysfs with a disk's own name: of SCSI, NVMe and virtio. An NVMe serial number is that of all namespaces.
_OWN_NAMES = ("device/wwid", "wwid", "serial")
#: Seconds for a command that writes, and that the kernel may take to release the disk after an unmount.
_WRITES, _RELEASE = 120.0, 30.0

_Result = TypeVar("_Result")


class Spare(NamedTuple):
    """A disk that nothing uses: `device` is its permanent name, `number` major:minor, `size` in bytes."""

    device: str
    name: str
    number: str
    size: int
    scheduler: str
    schedulers: tuple[str, ...]

    @property
    def queue(self) -> str:
        """Return the path of the file with its scheduler."""
        return f"/sys/block/{self.name}/queue/scheduler"


class Left(NamedTuple):
    """What a run that was killed may have left: the label of its file systems, and the scheduler before it."""

    device: str
    label: str
    scheduler: str
    boot: str


def find(host: Host, device: Any, overwrite: Any) -> Spare:
    """Return the spare disk. Raises Refused unless it is named twice, has no content and no user; reads only."""
    if not isinstance(device, str) or not _is_permanent(device):
        raise Refused(
            f"device: observed {device!r}; expected the permanent name of a whole spare disk, such as"
            f" {BY_ID}/scsi-0QEMU_QEMU_HARDDISK_SCSI0002"
        )
    if overwrite != device:
        raise Refused(
            f"overwrite: observed {overwrite!r}, expected {device!r}: the same name again, because all data on that disk is"
            " destroyed"
        )
    try:
        spare = _disk(host, device)
        why = _use(host, spare)
        if not why:
            label = _label_on(host, spare)
            with opened(host, spare) as descriptor:
                why = _content(host, descriptor, label)
    except (Unobservable, ValueError) as error:
        raise Refused(f"{device}: {error}") from error
    if why:
        raise Refused(
            f"{device}: observed {why}; expected a disk without content that no part of this host uses. Nothing was written"
        )
    return spare


def _is_permanent(device: str) -> bool:
    directory, _slash, name = device.rpartition("/")
    return directory == BY_ID and bool(_NAME.fullmatch(name)) and name not in (".", "..")


def _disk(host: Host, device: str) -> Spare:
    """Return the facts of a whole disk. Raises Refused, Unobservable, ValueError."""
    if not host.exists(device):
        raise Refused(f"device: observed {device}: there is no such disk; expected one of {BY_ID}")
    why = trusted_path.weakness(host, BY_ID)
    if why:
        raise Refused(f"device: observed {why}; expected names that root alone can change")
    path = host.resolve(device)
    name = path.rpartition("/")[2]
    if path != f"/dev/{name}" or not host.exists(f"/sys/block/{name}/dev"):
        raise Refused(f"device: observed {device}, which is {path}; expected a whole disk, not a part of one")
    chosen, available = schedulers(host.read(f"/sys/block/{name}/queue/scheduler"))
    running = chosen or available
    return Spare(
        device,
        name,
        host.read(f"/sys/block/{name}/dev").strip(),
        int(host.read(f"/sys/block/{name}/size")) * 512,
        running[0] if running else "none",
        tuple(available),
    )


def _use(host: Host, spare: Spare) -> str:
    """Return which part of this host uses a disk, '' if none does."""
    own = f"/sys/block/{spare.name}"
    if host.read(f"{own}/ro").strip() != "0":
        return "a read-only disk"
    parts = [name for name in host.names(own) if host.exists(f"{own}/{name}/partition")]
    if parts:
        return f"partitions {', '.join(parts)}"
    for kind, what in (("holders", "used by"), ("slaves", "made of")):
        names = host.names(f"{own}/{kind}") if host.exists(f"{own}/{kind}") else []
        if names:
            return f"{what} {', '.join(names)}"
    mounted = [
        mount.target
        for mount in parse_mountinfo(host.read("/proc/self/mountinfo"))
        if mount.device == spare.number or host.resolve(mount.source) == f"/dev/{spare.name}"
    ]
    if mounted:
        return f"mounted at {', '.join(mounted)}"
    known_as = _listed_as(host, spare) or _exported(host, spare) or _shared(host, spare)
    if known_as:
        return known_as
    # As databases on raw devices need it.
    owner = trusted_path.statuses(host, [f"/dev/{spare.name}"])[f"/dev/{spare.name}"].owner
    if owner:
        return f"a device of user {owner}"
    users = _processes(spare.number)
    if users:
        return f"opened by process {', '.join(users)}"
    return "" if spare.size >= LEAST * MIB else f"{spare.size // MIB} MiB (at least {LEAST} are needed)"


def _listed_as(host: Host, spare: Spare) -> str:
    """Return as what a table of this host names a disk, '' if none does."""
    swaps = [line.split()[0] for line in host.read("/proc/swaps").splitlines()[1:] if line.split()]
    listed = [(path, "swap space") for path in swaps]
    listed += [(spec, "listed in /etc/fstab") for spec in _specs(host, "/etc/fstab", 0)]
    listed += [(spec, "listed in /etc/crypttab") for spec in _specs(host, "/etc/crypttab", 1)]
    listed += [
        (device, f"listed in {path}")
        for pattern in _CONFIGURED
        for path in _matches(host, pattern)
        for device in _devices(host.read(path))
    ]
    for spec, what in listed:
        if host.resolve(fstab.device_path(spec)) == f"/dev/{spare.name}":
            return what
    return ""


def _devices(text: str) -> Iterator[str]:
    """Yield the paths of devices in a text. A colon is a part of one, or the beginning of a key's path on a device."""
    for line in text.splitlines():
        for path in _DEVICE.findall(line) if not line.lstrip().startswith("#") else ():
            parts = path.split(":")
            yield from (":".join(parts[:number]) for number in range(1, min(len(parts), _MOST_COLONS) + 1))


def _exported(host: Host, spare: Spare) -> str:
    """Return which part of the kernel uses a disk without a claim, '' if none does. Raises Unobservable."""
    for pattern, what in _EXPORTS:
        for path in _matches(host, pattern):
            target = host.read(path).strip().removesuffix(DELETED)
            if target and (host.resolve(target) == f"/dev/{spare.name}" or _is_open(target, spare.number)):
                return f"{what}: {path}"
    return ""


def _matches(host: Host, pattern: str) -> list[str]:
    """Return the paths that match a pattern. Raises Unobservable: a directory that cannot be listed is not an empty one."""
    paths = [""]
    for part in pattern[1:].split("/"):
        if "*" in part:
            paths = [
                f"{path}/{name}" for path in paths for name in host.names(path) if fnmatchcase(name, part)
            ]
        else:
            paths = [path for path in (f"{path}/{part}" for path in paths) if host.exists(path)]
    return paths


def _shared(host: Host, spare: Spare) -> str:
    """Return which other disks have the same name of their own, '' if none has. Raises Unobservable.

    Such a disk is another path to this one, whose users the kernel does not know here, or a disk with a copied name.
    """
    disks = Disks(host)
    if disks.udev_error:
        raise Unobservable(disks.udev_error)
    names = host.names("/sys/block")
    own = {spare.name, *disk_kinds.nvme_paths(names).get(spare.name, [])}
    ours = _own_names(host, spare.name, disks.properties)
    others = [name for name in names if name not in own and ours & _own_names(host, name, disks.properties)]
    return f"its WWID or serial number on {', '.join(others)} too" if others else ""


def _own_names(host: Host, name: str, properties: Mapping[str, Mapping[str, str]]) -> set[str]:
    paths = [f"/sys/block/{name}/{each}" for each in _OWN_NAMES]
    found = {_own_name(host, path) for path in paths if host.exists(path)}
    return (found | {udev.identify(dict(properties.get(name, {}))) or ""}) - {""}


def _own_name(host: Host, path: str) -> str:
    """Return a name of a disk, '' if the disk has none. Raises Unobservable."""
    try:
        return host.read(path).strip()
    except Unobservable as error:
        cause = error.__cause__
        # scsi_vpd_lun_id: the disk's page of names is missing, or has no designator of the disk.
        if isinstance(cause, OSError) and cause.errno in (errno.EINVAL, errno.ENXIO):
            return ""
        raise


def _specs(host: Host, path: str, column: int) -> list[str]:
    """Return the devices that a table names, also on a line that is malformed in other columns."""
    text = host.read(path) if host.exists(path) else ""
    lines = [line.split() for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [fields[column] for fields in lines if len(fields) > column]


def _processes(number: str) -> list[str]:
    """Return the processes that have a disk open, such as a database on a raw device or a virtual machine."""
    found = []
    for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        with suppress(OSError):
            if any(_is_open(f"/proc/{pid}/fd/{each}", number) for each in os.listdir(f"/proc/{pid}/fd")):
                found.append(pid)
    return found


def _is_open(path: str, number: str) -> bool:
    try:
        return _number_of(os.stat(path)) == number
    except OSError:
        return False


def _number_of(status: os.stat_result) -> str:
    if not stat.S_ISBLK(status.st_mode):
        return ""
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


@contextmanager
def opened(host: Host, spare: Spare, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open the disk: the one that was found, and only if the kernel has no user of it. Raises Refused.

    O_EXCL of a block device fails with EBUSY if it is mounted, swap space, or part of another device. It must be
    dropped for mkfs and mount, so the yielded descriptor is another one of the same disk.
    """
    try:
        claim = os.open(f"/dev/{spare.name}", os.O_RDONLY | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        what = "in use by the kernel" if error.errno == errno.EBUSY else explained(error)
        raise Refused(f"{spare.device}: observed it {what}; expected a disk that nothing uses") from error
    try:
        status = os.fstat(claim)
        if _number_of(status) != spare.number:
            raise Refused(f"{spare.device}: another disk has its name now. Fix: run again")
        descriptor = os.open(f"/proc/self/fd/{claim}", flags | os.O_CLOEXEC)
    finally:
        os.close(claim)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def wait_until_unused(descriptor: int) -> None:
    """Wait until the kernel has released a disk after an unmount. Raises OSError."""
    with claimed(descriptor):
        pass


@contextmanager
def claimed(descriptor: int) -> Iterator[None]:
    """Claim a disk as a mount does, so that no other program mounts it or makes it a part of another device.

    Waits until the kernel has released it. It can still be written to by its path. Raises OSError.
    """
    path, flags = f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC
    claim = _patiently(lambda: os.open(path, flags))
    try:
        yield
    finally:
        os.close(claim)


def lock(descriptor: int) -> None:
    """Lock a disk, so that udev probes it only later. mkfs.btrfs takes the same lock. Raises OSError."""
    _patiently(lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB))


def unlock(descriptor: int) -> None:
    """Release the lock. Raises OSError."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _patiently(act: Callable[[], _Result]) -> _Result:
    """Do something once another process has released the disk. Raises OSError."""
    deadline = time.monotonic() + _RELEASE
    while True:
        try:
            return act()
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EWOULDBLOCK) or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _content(host: Host, descriptor: int, label: str) -> str:
    """Return the signatures on a disk, '' without any, and if all are of a file system of a killed run with this label."""
    result = host.run([*_WIPEFS, path_of(descriptor)], timeout=_WRITES)
    if result.rc != 0:
        raise Unobservable(f"wipefs: exit {result.rc}: {result.stderr.strip()[:200]}")
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    # A file system can have several signatures, of which one has the label.
    ours = {fields[0] for fields in lines if label and fields[1:] == [label]}
    found = dict.fromkeys(fields[0] for fields in lines)
    return "" if ours.issuperset(found) else f"a signature of {', '.join(found)}"


def path_of(descriptor: int) -> str:
    """Return a path by which a command reaches the open disk, and no other."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def remains(host: Host) -> Left | None:
    """Return what a run that was killed may have left; None without a record."""
    if not host.exists(COMPARISON):
        return None
    try:
        found = json_text.loads(host.read(COMPARISON))
        return Left(*(str(found[name]) for name in Left._fields))
    except (KeyError, TypeError, ValueError) as error:
        raise Unobservable(f"{COMPARISON}: {error}. Fix: remove the file") from error


def record(host: Host, spare: Spare, label: str) -> None:
    """Record what a run changes, before its first change. Raises ChangeFailed."""
    boot = host.read("/proc/sys/kernel/random/boot_id").strip()
    left = Left(spare.device, label, spare.scheduler, boot)
    host.write_file(COMPARISON, f"{json.dumps(left._asdict())}\n".encode("ascii"), mode=0o600)


def _label_on(host: Host, spare: Spare) -> str:
    """Return the label of what a killed run may have left on this disk, by whichever name; '' if it used another one."""
    left = remains(host)
    if left is None or not _is_permanent(left.device):
        return ""
    with suppress(Refused, Unobservable, ValueError):
        return left.label if _disk(host, left.device).number == spare.number else ""
    return ""


def clean(host: Host) -> str:
    """Remove what a killed run left: its file system by its label, and the scheduler that it set in this boot.

    A disk that has a use or other content by now is not changed: the result says so, '' otherwise. Raises ChangeFailed.
    """
    left = remains(host)
    if left is None:
        return ""
    why = ""
    if _is_permanent(left.device) and host.exists(left.device):
        try:
            why = _remove(host, left)
        except Refused as error:
            why = str(error)
        except (ChangeFailed, Unobservable, OSError, ValueError) as error:
            raise ChangeFailed(
                f"{left.device}: what an interrupted run left could not be removed: {error}. Fix: run again, or remove"
                f" {COMPARISON} to leave that disk as it is"
            ) from error
    host.remove_file(COMPARISON)
    if not why:
        return ""
    return (
        f"{left.device}: what an interrupted run left there was not removed, because the disk is not unused any more:"
        f" observed {why}. The scheduler before that run was {left.scheduler}"
    )


def _remove(host: Host, left: Left) -> str:
    """Remove what a killed run left on a disk. Return '', or why the disk was not changed."""
    spare = _disk(host, left.device)
    in_use = _use(host, spare)
    if in_use:
        return in_use
    with opened(host, spare, os.O_RDWR) as descriptor:
        other = _content(host, descriptor, left.label)
        if other:
            return other
        boot = host.read("/proc/sys/kernel/random/boot_id").strip()
        if boot == left.boot and spare.scheduler != left.scheduler and left.scheduler in spare.schedulers:
            variants.schedule(host, spare.queue, left.scheduler)
        wipe(host, descriptor)
    return ""


def wipe(host: Host, descriptor: int) -> None:
    """Remove all signatures of the disk, so that it has no content as before. Raises ChangeFailed."""
    run(host, ["wipefs", "--all", "--quiet", path_of(descriptor)])


def run(host: Host, argv: Sequence[str]) -> None:
    """Run a command that writes to the disk. Raises ChangeFailed."""
    try:
        result = host.run(list(argv), timeout=_WRITES)
    except Unobservable as error:
        raise ChangeFailed(str(error)) from error
    if result.rc != 0:
        text = " ".join((result.stderr or result.stdout).split())[-300:]
        raise ChangeFailed(f"{argv[0]}: exit {result.rc}: {text}")


@contextmanager
def held(host: Host, spare: Spare, label: str) -> Iterator[int]:
    """Own the disk for a while: open for writing and locked, so that udev does not probe it. Wiped at the end.

    The record remains if the scheduler is not as before, so that the next run restores it. Raises Refused, ChangeFailed,
    Unobservable, OSError.
    """
    why = "other properties than before" if _disk(host, spare.device) != spare else _use(host, spare)
    if why:
        raise Refused(f"{spare.device}: observed {why}. Nothing was written. Fix: run again")
    with opened(host, spare, os.O_RDWR) as descriptor:
        lock(descriptor)
        why = _content(host, descriptor, "")
        if why:
            raise Refused(f"{spare.device}: observed {why}; expected no content. Nothing was written")
        record(host, spare, label)
        try:
            yield descriptor
        finally:
            with scratch.signals_ignored():
                wait_until_unused(descriptor)
                wipe(host, descriptor)
                os.fsync(descriptor)
                if _disk(host, spare.device).scheduler == spare.scheduler:
                    host.remove_file(COMPARISON)
