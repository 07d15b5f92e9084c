# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file system whose barriers the guard disables and enables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ...host.mountinfo import Mount, covered, parse_mountinfo, visible, why_absent
from ...host.seam import CHANGE_TIMEOUT, ChangeFailed, Host, Unobservable
from ...storage.blockstack import Blocks
from ...storage.ext4 import Superblock
from ...storage.filesystems import EXT, FileSystems
from ...storage.flush import flush_disk, is_owed, owe, takes_flushes
from ...storage.mount_settings import SWITCHED
from ...storage.remount import expect_nothing_cached, set_barrier
from .lease import Leased
from .parallel import together
from .state import Below

#: Seconds that taking barriers away may last. It waits for nobody, or something is wrong.
_LOOSEN_LIMIT = 10.0
#: Seconds to wait for an earlier attempt: one that removes barriers ends before that.
_TURN_LIMIT = 15.0
#: Seconds that disks are given for one flush each.
_FLUSH_LIMIT = CHANGE_TIMEOUT + 5.0
#: Two file systems may be stored on one disk: its flushes are counted one at a time.
_TURNS: dict[str, threading.Lock] = {}
_TURNS_LOCK = threading.Lock()


def find(host: Host, systems: FileSystems, target: str) -> tuple[Mount, Superblock]:
    """Return what is mounted at a mount point, and its superblock, where the guard can loosen it.

    Raises ChangeFailed with the reason if it cannot.
    """
    table = _table(host)
    observed = visible(table)
    mount = next((mount for mount in observed if mount.target == target), None)
    if mount is None:
        types = {mount.target: mount.fstype for mount in observed}
        hidden = {mount.target: cover.target for mount, cover in covered(table)}
        raise ChangeFailed(f"{target}: {why_absent(target, hidden, types)}; expected a mounted file system")
    if mount.fstype not in SWITCHED:
        raise ChangeFailed(f"{target}: observed {mount.fstype}, expected {' or '.join(SWITCHED)}")
    if "ro" in (*mount.options, *mount.super_options):
        raise ChangeFailed(f"{target}: it is mounted read-only")
    superblock, why = systems.superblock(mount)
    if superblock is None or not superblock.uuid:
        raise ChangeFailed(
            f"{target}: the UUID of its file system is unknown: {why or 'its superblock has none'}"
        )
    return mount, superblock


def _mounted(host: Host) -> list[Mount]:
    return visible(_table(host))


def _table(host: Host) -> list[Mount]:
    try:
        return parse_mountinfo(host.read("/proc/self/mountinfo"))
    except (Unobservable, ValueError) as error:
        raise ChangeFailed(f"/proc/self/mountinfo: {error}") from error


class Keeper:
    """Looks after one leased mount point. Its methods may be called by several threads.

    `below` is what was found below it when its barriers were last to be removed, or what an earlier guard
    wrote of that: to bring them back nothing must be searched for first. `say` takes a line for the journal.
    """

    def __init__(self, host: Host, leased: Leased, below: Below, say: Callable[[str], None]) -> None:
        self.host = host
        self.leased = leased
        self.target = leased.target
        self.below = below
        self._say = say
        self._turn = threading.Lock()
        self._blocks = Blocks(host)

    def prepare(self) -> None:
        """Find out what is below, and whether its barriers may go. Changes nothing.

        Raises ChangeFailed or Unobservable with the reason why they may not.
        """
        blocks = Blocks(self.host)  # again: what is below may have changed since
        systems = FileSystems(self.host, blocks)
        mount, superblock = find(self.host, systems, self.target)
        if superblock.uuid != self.leased.uuid:
            raise ChangeFailed(
                f"{self.target}: observed the file system {superblock.uuid}, the lease is for {self.leased.uuid}"
            )
        numbers, _beside, missing = systems.devices(mount, superblock)
        stack = blocks.walk(numbers)
        reasons = list(map(str, (*missing, *stack.causes)))
        if reasons or not stack.disks:
            raise ChangeFailed(f"{self.target}: {'; '.join(reasons) or 'no disk was found below it'}")
        blocking = [layer.name for layer in stack.layers if layer.cache_mode not in ("", "write back")]
        if blocking:
            raise ChangeFailed(f"{self.target}: {', '.join(blocking)} below it drop flushes")
        self._expect_flushed(stack.disks)
        observed = systems.running(mount)["barrier"]
        if observed.value != "on":
            raise ChangeFailed(
                f"{self.target}: barriers: observed {observed.value}, expected on before they go"
            )
        self.below = Below(mount.device, stack.disks)

    def loosen(self, is_permitted: Callable[[], bool]) -> None:
        """Remove the barriers, now that `prepare` has found nothing against it, and read it back.

        `is_permitted` is called last. Raises ChangeFailed.
        """
        with self._turn:
            mount = self._mount()
            if mount is None or mount.device != self.below.device:
                raise ChangeFailed(f"{self.target}: something else is mounted there by now")
            if not is_permitted():
                raise ChangeFailed(f"{self.target}: all was not well any more")
            set_barrier(self.host, mount, "off", timeout=_LOOSEN_LIMIT)
            if self.barrier() != "off":
                raise ChangeFailed(f"{self.target}: barriers: observed {self.barrier()}, expected off")
            self._say(f"{self.target}: barriers are off")

    def tighten(self) -> None:
        """Bring the barriers back, and everything that was written without them onto the medium.

        First the remount; then each disk is flushed, because what was acknowledged is in its cache by now;
        then the file system is synced, and each disk is flushed once more, and its counter has to rise.
        Does all of it also where barriers are on: a guard may have died between the remount and the flush.
        Raises ChangeFailed with all that was not done.
        """
        if not self._turn.acquire(timeout=_TURN_LIMIT):
            raise ChangeFailed(f"{self.target}: an earlier attempt still waits for the disk")
        try:
            self._tighten()
        finally:
            self._turn.release()

    def doubt(self) -> str | None:
        """Return what is not as it was when the barriers went, None when all is. Quick, and raises nothing."""
        try:
            mount = self._mount()
            if mount is None or mount.device != self.below.device:
                return f"{self.target}: it is not mounted there any more"
            if "ro" in (*mount.options, *mount.super_options):
                return f"{self.target}: it has become read-only"
            observed = self._barrier_of(mount)
            if observed != "off":
                return f"{self.target}: barriers {observed}: not as the guard left them"
            blocking = [name for name in self.below.disks if not takes_flushes(self.host, name)]
            return (
                f"{self.target}: the kernel sends {', '.join(blocking)} no flush any more"
                if blocking
                else None
            )
        except (ChangeFailed, Unobservable) as error:
            return f"{self.target}: {error}"

    def barrier(self) -> str:
        """Return the kernel's own word: on, off, `unknown`, or `absent` where the file system is gone."""
        mount = self._any_mount()
        if mount is not None:
            return self._barrier_of(mount)
        return self._hidden() or "absent"

    def _tighten(self) -> None:
        failures = []
        for name in self.below.disks:
            self._owe(name)
        mount = self._any_mount()
        if mount is not None and self._barrier_of(mount) != "on":
            try:
                self._remount(mount)
            except ChangeFailed as error:
                failures.append(str(error))  # What is in the caches is saved all the same.
        early = self._flush_all(self.below.disks)
        if self.below.disks and not early:
            self._say(f"{self.target}: flushed on {', '.join(self.below.disks)}")
        failures += early
        if mount is None:
            failures += self._gone()
            self._finish(failures, Below())
            return
        disks, reasons = self._disks_of(mount)
        disks = tuple(dict.fromkeys((*self.below.disks, *disks)))
        try:
            self.host.sync_mount(mount)
        except ChangeFailed as error:
            failures.append(str(error))
        failures += [*self._flush_all(disks), *reasons]
        try:
            silent = [name for name in disks if not takes_flushes(self.host, name)]
            expect_nothing_cached(self.host, self.target, silent)
        except ChangeFailed as error:
            failures.append(str(error))
        if not failures and self._barrier_of(mount) != "on":
            failures.append(f"barriers: observed {self._barrier_of(mount)} at the end, expected on")
        self._finish(failures, Below(mount.device, disks) if mount.target == self.target else Below())
        self._say(f"{self.target}: synced, and flushed on {', '.join(disks)}")

    def _remount(self, mount: Mount) -> None:
        set_barrier(self.host, mount, "on")
        observed = self._barrier_of(mount)
        if observed != "on":
            raise ChangeFailed(f"barriers: observed {observed} after the remount, expected on")
        self._say(f"{self.target}: barriers are on")

    def _finish(self, failures: list[str], below: Below) -> None:
        """Raise ChangeFailed with what was not done; what lay below is forgotten only when all was."""
        if failures:
            raise ChangeFailed(f"{self.target}: {'; '.join(dict.fromkeys(failures))}")
        self.below = below

    def _mount(self) -> Mount | None:
        return next((mount for mount in _mounted(self.host) if mount.target == self.target), None)

    def _any_mount(self) -> Mount | None:
        """Return a mount of the file system: at its own place, or wherever else it is mounted by now."""
        if not self.below.device:
            found = self._mount()
            return found if found is not None and found.fstype in EXT else None
        group = [mount for mount in _mounted(self.host) if mount.device == self.below.device]
        group = [mount for mount in group if mount.fstype in EXT]
        return min(group, key=lambda m: m.target != self.target, default=None)

    def _barrier_of(self, mount: Mount) -> str:
        return FileSystems(self.host, self._blocks).running(mount)["barrier"].value

    def _hidden(self) -> str | None:
        """Return the barriers of a file system that this process sees mounted nowhere, None if it is not.

        A lazy unmount, or another mount namespace, leaves it in use.
        """
        name = self._blocks.name_of(self.below.device) if self.below.device else None
        if name is None or not self.host.exists(f"/proc/fs/ext4/{name}/options"):
            return None
        mount = Mount(self.below.device, "/", self.target, ("rw",), "ext4", "", ())
        return self._barrier_of(mount)

    def _gone(self) -> list[str]:
        """Return what is wrong where the file system is not mounted any more; its disks have been flushed,
        because to unmount flushes nothing."""
        observed = self._hidden()
        if observed not in (None, "on"):
            return [
                f"it is mounted where this process does not see it, with barriers {observed}: end what uses it, or"
                " mount it again"
            ]
        if self.below.disks:
            self._say(f"{self.target}: it is mounted no longer")
        return []

    def _disks_of(self, mount: Mount) -> tuple[tuple[str, ...], list[str]]:
        """Return the disks below a file system, and the reasons why there may be more."""
        blocks = Blocks(self.host)
        systems = FileSystems(self.host, blocks)
        superblock, why = systems.superblock(mount)
        numbers, _beside, missing = systems.devices(mount, superblock, why)
        stack = blocks.walk(numbers)
        return stack.disks, list(map(str, (*missing, *stack.causes)))

    def _expect_flushed(self, disks: Iterable[str]) -> None:
        for name in disks:
            if not takes_flushes(self.host, name):
                raise ChangeFailed(
                    f"{self.target}: the kernel cache mode of {name} is write through: without barriers nothing"
                    " would be won, and a reset may turn its cache on"
                )
            if is_owed(self.host, name):
                raise ChangeFailed(f"{self.target}: a flush of {name} by an earlier run is pending")

    def _owe(self, name: str) -> None:
        """Note that a flush of a disk is pending; to bring barriers back matters more than the note.

        A disk that is sent none has been flushed since, or has a note of an earlier attempt.
        """
        try:
            if self._takes_flushes(name):
                owe(self.host, name)
        except ChangeFailed as error:
            self._say(str(error))

    def _takes_flushes(self, name: str) -> bool:
        try:
            return takes_flushes(self.host, name)
        except ChangeFailed:
            return True  # Unknown is no reason to leave the note out.

    def _flush_all(self, names: Iterable[str]) -> list[str]:
        """Flush disks side by side: one that hangs holds up none of the others. Return what failed."""
        return list(together(names, self._flush, _FLUSH_LIMIT).values())

    def _flush(self, name: str) -> None:
        with _TURNS_LOCK:
            turn = _TURNS.setdefault(name, threading.Lock())
        with turn:
            if not self.host.exists(f"/sys/block/{name}") and self._any_mount() is None:
                self._say(f"{self.target}: {name} is gone, and so is what its cache held")
                return
            flush_disk(self.host, name)
