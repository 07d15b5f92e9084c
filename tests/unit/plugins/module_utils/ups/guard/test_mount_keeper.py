# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file system: when its barriers may go, and that what brings them back leaves nothing in a cache."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.storage import ext4
from ansible_collections.durable.dbhost.plugins.module_utils.storage.flush import OWED
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import mount_keeper as keepers
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.lease import Leased
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.mount_keeper import Keeper
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard.state import Below

from ...fakes.small_host import BigHost, SmallHost, dm

PG, MS, MA = "/srv/pgdata", "/srv/mssql", "/srv/maria"
UUID = "0b6e4d1a-55f3-4c1e-9a52-3f4c0a8e7d10"
ON = ("options", PG, "barrier=1")
SYNC = ("change", "sync", "--file-system", PG)
FLUSH = ("change", "sync", "/dev/sda")
OWES, SETTLED = ("file", f"{OWED}/sda", b""), ("remove", f"{OWED}/sda")


def keeper(host: SmallHost, target: str = PG, below: Below | None = None) -> Keeper:
    """Return a keeper of a mount point; what it says is of no interest."""
    return Keeper(host, Leased(target, UUID), below or Below(), lambda _line: None)


def loosened(host: SmallHost, target: str = PG) -> Keeper:
    """Return a keeper that has taken the barriers away, with commits in the cache since."""
    found = keeper(host, target)
    found.prepare()
    found.loosen(lambda: True)
    assert host.mounts[target].barrier == "off"
    host.disk("sda").dirty = True
    host.mutations.clear()
    return found


@pytest.mark.fact(44)
def test_it_changes_barriers_alone_and_reads_them_back() -> None:
    host = SmallHost()
    host.mounts[PG].flags = ("rw", "nosuid", "nodev")
    found = keeper(host)
    found.prepare()
    assert found.below == Below("8:1", ("sda",))
    assert host.mutations == []
    found.loosen(lambda: True)
    assert host.mutations == [("options", PG, "barrier=0")]
    assert found.barrier() == "off"


def test_a_remount_that_changes_nothing_is_an_error() -> None:
    host = SmallHost()
    said: list[str] = []
    found = keeper(host)
    found._say = said.append
    found.prepare()
    host.on_options = lambda _target, _options: None  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match=f"{PG}: barriers: observed on, expected off"):
        found.loosen(lambda: True)
    assert said == []


@pytest.mark.fact(43)
@pytest.mark.fact(10)
def test_barriers_come_first_then_the_caches_then_the_file_system() -> None:
    """What was acknowledged is in a cache by then: it is saved before a sync that may last."""
    host = SmallHost()
    found = loosened(host)
    found.tighten()
    assert host.mutations == [OWES, ON, FLUSH, SETTLED, SYNC, FLUSH]
    assert host.disk("sda").dirty is False
    assert found.barrier() == "on"


@pytest.mark.fact(43)
def test_what_is_tight_already_is_flushed_all_the_same() -> None:
    """Somebody may have died between the remount and the flush."""
    host = SmallHost()
    host.disk("sda").dirty = True
    keeper(host).tighten()
    assert host.mutations == [SYNC, FLUSH]
    assert host.disk("sda").dirty is False


def test_barriers_of_unknown_state_are_set() -> None:
    host = SmallHost()
    found = loosened(host)
    path = "/proc/fs/ext4/sda1/options"
    shown, host.files[path] = host.files[path], "rw\n"
    with pytest.raises(ChangeFailed, match="barriers: observed unknown after the remount, expected on"):
        found.tighten()
    assert ON in host.mutations
    # And the cache was emptied all the same.
    assert host.disk("sda").dirty is False
    host.files[path] = shown
    found.tighten()


def test_a_refused_remount_still_saves_what_the_cache_holds() -> None:
    host = SmallHost()
    found = loosened(host)
    host.stop, host.stop_at = ChangeFailed, 2  # type: ignore[assignment]
    with pytest.raises(ChangeFailed, match="stopped at"):
        found.tighten()
    assert FLUSH in host.mutations
    # It knows what lies below until all is done.
    assert found.below == Below("8:1", ("sda",))


def test_barriers_removed_during_the_sync_fail_the_tightening() -> None:
    """Commits since then are in the caches."""
    host = SmallHost()
    found = loosened(host)

    def interfere() -> None:
        if host.mutations[-1] == SYNC:
            host.mounts[PG].barrier = "off"

    host.after_mutation = interfere
    with pytest.raises(ChangeFailed, match="barriers: observed off at the end, expected on"):
        found.tighten()
    assert found.below == Below("8:1", ("sda",))


def test_unknown_disks_below_fail_the_tightening() -> None:
    host = SmallHost()
    found = loosened(host)
    _silent(host)
    with pytest.raises(ChangeFailed, match="superblock"):
        found.tighten()
    assert (host.mounts[PG].barrier, host.disk("sda").dirty) == ("on", False)
    assert found.below == Below("8:1", ("sda",))


@pytest.mark.fact(43)
def test_a_flush_that_is_not_counted_is_none() -> None:
    host = SmallHost()
    found = loosened(host)
    host.disk("sda").counts = False
    with pytest.raises(ChangeFailed, match="sda: observed no flush counted during a sync"):
        found.tighten()
    assert host.mounts[PG].barrier == "on"
    assert f"{OWED}/sda" in host.files


def test_a_flush_that_failed_stays_pending_where_a_run_has_switched_the_cache_off_since() -> None:
    """A disk whose kernel cache mode is write through is sent no flush: the second attempt took that for done."""
    host = SmallHost()
    found = loosened(host)
    host.disk("sda").counts = False
    with pytest.raises(ChangeFailed, match="observed no flush counted"):
        found.tighten()
    vars(host.disk("sda")).update(counts=True, cache="disabled", cache_mode="write through")
    with pytest.raises(ChangeFailed, match="sda: a flush is pending"):
        found.tighten()
    assert f"{OWED}/sda" in host.files
    assert found.below == Below("8:1", ("sda",))


def test_a_disk_whose_cache_a_run_has_flushed_and_switched_off_is_tight() -> None:
    host = SmallHost()
    found = loosened(host)
    vars(host.disk("sda")).update(dirty=False, cache="disabled", cache_mode="write through")
    found.tighten()
    assert (host.mounts[PG].barrier, f"{OWED}/sda" in host.files) == ("on", False)


def test_a_disk_that_takes_no_flush_must_cache_nothing() -> None:
    host = SmallHost()
    found = loosened(host)
    host.disk("sda").cache_mode = "write through"
    with pytest.raises(
        ChangeFailed, match="sda is write through, so it gets no flush, while its cache is enabled"
    ):
        found.tighten()


def _readonly(host: SmallHost) -> None:
    vars(host.mounts[PG]).update(flags=("ro",), sb_flag="ro")


def _other(host: SmallHost) -> None:
    host.mounts[PG].uuid = "ffffffff-55f3-4c1e-9a52-3f4c0a8e7d10"


def _no_uuid(host: SmallHost) -> None:
    host.mounts[PG].uuid = ""


def _write_through(host: SmallHost) -> None:
    vars(host.disk("sda")).update(cache="disabled", cache_mode="write through")


def _off(host: SmallHost) -> None:
    host.mounts[PG].barrier = "off"


def _owed(host: SmallHost) -> None:
    host.files[f"{OWED}/sda"] = ""


def _gone(host: SmallHost) -> None:
    del host.mounts[PG]


def _hidden(host: SmallHost) -> None:
    table = host.read("/proc/self/mountinfo")
    host.files["/proc/self/mountinfo"] = f"{table}99 30 0:77 / /srv rw - tmpfs tmpfs rw\n"


def _silent(host: SmallHost) -> None:
    del host.commands[(*ext4.SHOW, "/dev/block/8:1")]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_readonly, "mounted read-only"),
        (_other, "the lease is for"),
        (_no_uuid, "its superblock has none"),
        (_write_through, "the kernel cache mode of sda is write through"),
        (_off, "barriers: observed off, expected on before they go"),
        (_owed, "by an earlier run is pending"),
        (_gone, "nothing is mounted there"),
        (_hidden, "what is mounted there is hidden by tmpfs mounted over /srv"),
        (_silent, "UUID of its file system is unknown: superblock"),
    ],
)
def test_what_keeps_barriers_on(spoil: Callable[[SmallHost], Any], reason: str) -> None:
    host = SmallHost()
    spoil(host)
    with pytest.raises(ChangeFailed, match=reason):
        keeper(host).prepare()
    assert host.mutations == []


@pytest.mark.fact(1)
def test_xfs_keeps_its_barriers() -> None:
    with pytest.raises(ChangeFailed, match="observed xfs, expected ext4 or ext3"):
        keeper(SmallHost(), MS).prepare()


@pytest.mark.fact(47)
@pytest.mark.parametrize(
    ("table", "cache_mode", "reason"),
    [
        ("vdo x", "write back", "device-mapper vdo"),
        ("linear 8:0 0", "write through", "dm-9 below it drop flushes"),
    ],
)
def test_layers_that_break_or_drop_a_flush_keep_barriers_on(table: str, cache_mode: str, reason: str) -> None:
    host = SmallHost()
    layer = dm("dm-9", "LVM", ("sda",), "253:9", table)
    layer.cache_mode = cache_mode
    host.add_layer(layer)
    mount = host.mounts[PG]
    mount.device, mount.disk = "253:9", "dm-9"
    host.commands[(*ext4.SHOW, "/dev/block/253:9")] = mount.superblock
    host.files["/proc/fs/ext4/dm-9/options"] = mount.ext_options
    with pytest.raises(ChangeFailed, match=reason):
        keeper(host).prepare()


def test_what_came_between_keeps_barriers_on() -> None:
    host = SmallHost()
    found = keeper(host)
    found.prepare()
    with pytest.raises(ChangeFailed, match="all was not well any more"):
        found.loosen(lambda: False)
    host.mounts[PG].device = "8:17"
    with pytest.raises(ChangeFailed, match="something else is mounted there by now"):
        found.loosen(lambda: True)
    assert host.mutations == []


@pytest.mark.fact(43)
def test_what_was_unmounted_without_barriers_is_flushed() -> None:
    host = SmallHost()
    found = loosened(host)
    del host.mounts[PG], host.files["/proc/fs/ext4/sda1/options"]
    found.tighten()
    assert host.mutations == [OWES, FLUSH, SETTLED]
    assert found.barrier() == "absent"
    assert found.below == Below()


def test_a_failed_flush_after_an_unmount_is_retried() -> None:
    host = SmallHost()
    found = loosened(host)
    del host.mounts[PG], host.files["/proc/fs/ext4/sda1/options"]
    host.disk("sda").counts = False
    with pytest.raises(ChangeFailed, match="sda: observed no flush counted during a sync"):
        found.tighten()
    assert found.below == Below("8:1", ("sda",))
    host.disk("sda").counts = True
    found.tighten()
    assert (host.disk("sda").dirty, found.below) == (False, Below())


@pytest.mark.fact(45)
def test_what_is_mounted_elsewhere_by_now_is_tightened_there() -> None:
    host = SmallHost()
    found = loosened(host)
    mount = host.mounts.pop(PG)
    mount.target = "/srv/moved"
    host.mounts["/srv/moved"] = mount
    assert found.barrier() == "off"
    found.tighten()
    assert (mount.barrier, host.disk("sda").dirty) == ("on", False)


def test_what_is_mounted_where_it_cannot_be_seen_is_not_tight() -> None:
    """A lazy unmount leaves an engine's files open on it; the kernel's own file is still there."""
    host = SmallHost()
    found = loosened(host)
    del host.mounts[PG]
    assert found.barrier() == "off"
    with pytest.raises(ChangeFailed, match="mounted where this process does not see it, with barriers off"):
        found.tighten()
    assert FLUSH in host.mutations


def test_a_disk_that_is_gone_with_its_file_system_is_not_waited_for() -> None:
    host = SmallHost()
    said: list[str] = []
    found = loosened(host)
    found._say = said.append
    del host.mounts[PG], host.files["/proc/fs/ext4/sda1/options"]
    host.unplug("sda")
    found.tighten()
    assert any("sda is gone" in line for line in said)


def test_a_missing_disk_of_a_mounted_file_system_fails_the_tightening() -> None:
    """The disk can return with commits in its cache, and the mounted file system writes to it again."""
    host = SmallHost()
    said: list[str] = []
    found = loosened(host)
    found._say = said.append
    host.unplug("sda")
    with pytest.raises(ChangeFailed, match="/sys/block/sda/queue/write_cache"):
        found.tighten()
    assert not any("is gone" in line for line in said)
    # The flush is pending, although the disk cannot be read.
    assert f"{OWED}/sda" in host.files
    assert found.below == Below("8:1", ("sda",))


def test_one_that_came_after_a_kill_uses_what_was_written_down() -> None:
    host = SmallHost()
    loosened(host)
    keeper(host, below=Below("8:1", ("sda",))).tighten()
    assert (host.mounts[PG].barrier, host.disk("sda").dirty) == ("on", False)


def test_a_second_attempt_does_not_queue_up_behind_a_disk_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers, "_TURN_LIMIT", 0.05)
    host = SmallHost()
    found = loosened(host)
    let_go, hangs = threading.Event(), threading.Event()

    change = host.on_change

    def hang(argv: list[str]) -> None:
        hangs.set()
        let_go.wait(10)
        change(argv)

    host.on_change = hang  # type: ignore[method-assign]
    first = threading.Thread(target=found.tighten, daemon=True)
    first.start()
    assert hangs.wait(10)
    with pytest.raises(ChangeFailed, match="an earlier attempt still waits"):
        found.tighten()
    let_go.set()
    first.join(10)


def test_each_disk_of_a_stack_is_flushed() -> None:
    host = BigHost()
    spread = [
        mount for mount in host.mounts.values() if mount.fstype == "ext4" and len(host.leaves(mount)) > 1
    ]
    assert spread
    for mount in spread:
        before = {disk.name: disk.flushes for disk in host.leaves(mount)}
        keeper(host, mount.target).tighten()
        for disk in host.leaves(mount):
            assert disk.flushes > before[disk.name] or disk.cache_mode == "write through"
