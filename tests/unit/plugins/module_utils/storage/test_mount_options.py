# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount_options layer: exact remounts, an fstab that is always whole, and its originals."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import originals
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import line
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import ext4, fstab, mount_units
from ansible_collections.durable.dbhost.plugins.module_utils.storage.flush import OWED
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mount_options import (
    FSTAB,
    Target,
    apply,
    apply_release,
    as_now,
    plan,
    plan_release,
)
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mount_trial import DIRECTORY

from ..fakes.fake_host import Killed
from ..fakes.runs import enforce, look
from ..fakes.small_host import UNITS, BigHost, SmallHost

PG, MS, MA = "/srv/pgdata", "/srv/mssql", "/srv/maria"
TIGHT = Target(PG, {"barrier": "on", "data_mode": "ordered", "atime": "noatime"})
NOTE = f"# durable.dbhost: the next line's options are managed; originals in {originals.PATH}\n"


def run(host: SmallHost, *targets: Target) -> list[tuple[str, str, str, str]]:
    """Plan and carry out; return (setting, when, before, after) of each change."""
    work = plan(host, list(targets))
    apply(host, work, list(targets))
    return [change[1:] for change in work.changes]


def bare(words: str = "nobarrier,noatime") -> SmallHost:
    """Return a host whose pgdata is mounted without barriers, now and at the next boot."""
    host = SmallHost()
    vars(host.mounts[PG]).update(barrier="off", atime="noatime")
    host.disk("sda").dirty = True
    host.files[FSTAB] = host.read(FSTAB).replace("ext4\tdefaults", f"ext4\t{words}")
    return host


def kinds(host: SmallHost) -> list[str]:
    """Return what each mutation was, in a word or two."""
    return [
        mutation[1] + (f" {mutation[2]}" if mutation[1] == "sync" else "")
        if mutation[0] == "change"
        else mutation[1]
        for mutation in host.mutations
    ]


@pytest.mark.fact(10)
@pytest.mark.fact(43)
def test_barriers_come_on_and_a_flush_is_counted_before_the_file_is_written() -> None:
    """A remount without nobarrier leaves them off: barrier=1 is named; and it flushes nothing by itself."""
    host = bare()
    before = host.read(FSTAB)
    assert run(host, TIGHT) == [
        ("barrier", "running", "off", "on"),
        ("barrier", "persisted", "off", "on"),
    ]
    image, after = (
        f"{DIRECTORY}/image",
        before.replace("UUID=pg", NOTE + "UUID=pg").replace("nobarrier", "barrier=1"),
    )
    assert host.mutations == [
        ("file", f"{OWED}/sda", b""),
        ("options", PG, "barrier=1"),
        ("change", "sync", "--file-system", PG),
        ("change", "sync", "/dev/sda"),
        ("remove", f"{OWED}/sda"),
        ("change", "mkdir", "-p", DIRECTORY),
        ("change", "mkfs.ext4", "-q", "-F", image, "16M"),
        ("trial", image, "ext4", (("barrier=1", "noatime"),)),
        ("change", "rm", "-rf", DIRECTORY),
        ("file", originals.PATH, b'{\n  "/srv/pgdata": "nobarrier,noatime"\n}\n'),
        ("file", FSTAB, after.encode()),
        ("change", "systemctl", "daemon-reload"),
    ]
    assert host.disk("sda").dirty is False


def test_barriers_go_off_after_the_file_is_written() -> None:
    host = SmallHost()
    run(host, Target(PG, {"barrier": "off"}))
    assert kinds(host)[-3:-1] == [FSTAB, "systemctl"]
    assert host.mutations[-1] == ("options", PG, "barrier=0")


def test_without_systemd_nothing_is_reloaded() -> None:
    host = bare()
    del host.files["/run/systemd/system/marker"]
    run(host, TIGHT)
    assert "systemctl" not in kinds(host)


@pytest.mark.fact(7)
def test_what_cannot_be_added_on_a_remount_is_not() -> None:
    """nodelalloc and data= in fstab, not yet in force, would make a remount fail."""
    host = bare("nobarrier,nodelalloc,data=journal,commit=9")
    run(host, TIGHT)
    assert [mutation for mutation in host.mutations if mutation[0] == "options"] == [
        ("options", PG, "barrier=1")
    ]


def test_an_atime_alone_needs_no_flush() -> None:
    host = SmallHost()
    run(host, Target(MS, {"atime": "noatime"}))
    assert host.mutations[0] == ("atime", MS, "noatime")
    assert [kind for kind in kinds(host) if kind.startswith("sync")] == []


@pytest.mark.fact(7)
@pytest.mark.parametrize("target", [PG, MS])
def test_sync_is_set_now_and_for_the_next_boot_and_needs_no_flush(target: str) -> None:
    host = SmallHost()
    assert run(host, Target(target, {"sync": "sync"})) == [
        ("sync", "running", "async", "sync"),
        ("sync", "persisted", "async", "sync"),
    ]
    assert host.mutations[0] == ("options", target, "sync")
    assert "sync" in host.mounts[target].super_options
    assert re.search(rf"{target}\s+\w+\s+\S*,sync\s", host.read(FSTAB))
    assert run(host, Target(target, {"sync": "sync"})) == []
    assert run(host, Target(target, {"sync": "async"}))[0] == ("sync", "running", "sync", "async")
    assert "sync" not in host.mounts[target].super_options


def test_the_rollback_restores_async_only_if_the_run_changed_it() -> None:
    host = SmallHost()
    (row,) = as_now(host, [{"target": PG, "sync": "sync"}])
    assert row["sync"] == "async"
    (row,) = as_now(host, [{"target": PG, "atime": "noatime"}])
    assert "sync" not in row


@pytest.mark.fact(5)
def test_data_modes_wait_for_the_next_mount() -> None:
    """The kernel does not change data= on a remount."""
    host = SmallHost()
    host.mounts[PG].data = "writeback"
    host.mounts[PG].sb_options = ("data=writeback",)
    assert run(host, Target(PG, {"data_mode": "ordered"})) == [
        ("data_mode", "persisted", "writeback", "ordered")
    ]
    assert not [mutation for mutation in host.mutations if mutation[0] == "options"]
    assert "ext4\tdefaults,data=ordered\t0 2" in host.read(FSTAB)


@pytest.mark.fact(52)
def test_a_stricter_data_mode_is_left_alone() -> None:
    """data=journal counts as stricter than ordered."""
    host = bare("barrier=1,data=journal,noatime")
    host.mounts[PG].data = "journal"
    run(host, TIGHT)
    assert "data=journal" in host.read(FSTAB)


@pytest.mark.fact(1)
def test_options_that_would_end_in_a_backslash_are_not_written() -> None:
    """systemd copies them to a unit's line, which would go on."""
    host = SmallHost()
    host.files[FSTAB] = host.read(FSTAB).replace("xfs defaults", "xfs comment=a\\,nobarrier")
    before = host.read(FSTAB)
    with pytest.raises(ChangeFailed, match="no backslash at the end"):
        run(host, Target(MS, {"barrier": "on"}))
    assert host.read(FSTAB) == before


def test_words_that_xfs_refuses_are_taken_out() -> None:
    """barrier and data= options make a host with XFS unbootable."""
    host = SmallHost()
    host.files[FSTAB] = host.read(FSTAB).replace("xfs defaults", "xfs nobarrier,data=ordered,inode64")
    assert run(host, Target(MS, {"barrier": "on"})) == [("barrier", "persisted", "refused", "on")]
    assert f"{NOTE}UUID=ms /srv/mssql xfs inode64 0 2 \n" in host.read(FSTAB)


def test_other_lines_keep_every_byte() -> None:
    host = SmallHost()
    odd = "# caf\udce9\t \n\n  LABEL=x\t\t/x  vfat  ro,umask=0077 \n"
    host.files[FSTAB] = odd + host.read(FSTAB).rstrip("\n")
    before = host.read(FSTAB)
    run(host, Target(MA, {"atime": "noatime"}))
    expected = before.replace("UUID=ma", f"{NOTE}UUID=ma").replace(
        "defaults,nofail", "defaults,nofail,noatime"
    )
    assert host.read(FSTAB) == expected


def test_the_first_originals_are_kept() -> None:
    host = bare()
    run(host, TIGHT)
    run(host, Target(PG, {"barrier": "off", "atime": "relatime"}), Target(MA, {"atime": "noatime"}))
    assert originals.load(host) == {PG: "nobarrier,noatime", MA: "defaults,nofail"}


def test_a_second_run_does_nothing() -> None:
    host = bare()
    targets = [TIGHT, Target(MS, {"barrier": "on", "atime": "noatime"}), Target(MA, {"atime": "noatime"})]
    run(host, *targets)
    assert plan(host, targets).changes == ()


def test_planning_changes_nothing() -> None:
    host = bare()
    assert plan(host, [TIGHT]).changes
    assert host.mutations == []


def test_a_mount_that_is_not_ours_to_persist_is_changed_live_alone() -> None:
    host = bare()
    before = host.read(FSTAB)
    run(host, TIGHT._replace(persist=False))
    assert host.read(FSTAB) == before
    assert host.mounts[PG].barrier == "on"


@pytest.mark.parametrize(
    ("arrange", "target", "message"),
    [
        (
            lambda host: None,
            Target("/srv/nothing", {"barrier": "on"}),
            "/srv/nothing: nothing is mounted there",
        ),
        (
            lambda host: host.files.update(
                {
                    "/proc/self/mountinfo": f"{host.read('/proc/self/mountinfo')}99 30 0:77 / /srv rw - tmpfs x rw\n"
                }
            ),
            TIGHT,
            "/srv/pgdata: what is mounted there is hidden by tmpfs mounted over /srv",
        ),
        (
            lambda host: None,
            Target(MS, {"barrier": "off"}),
            r"/srv/mssql: observed xfs, expected .*takes atime",
        ),
        (lambda host: None, Target(MS, {"data_mode": "ordered"}), "/srv/mssql: observed xfs"),
        (lambda host: host.files.update({FSTAB: "UUID=x /srv/pgdata"}), TIGHT, "/etc/fstab line 1: observed"),
        (
            lambda host: host.files.update({FSTAB: ""}),
            TIGHT,
            "/srv/pgdata: no line of fstab mounts it; add one, by a UUID",
        ),
        (lambda host: host.files.update({FSTAB: Unobservable("/etc/fstab: I/O error")}), TIGHT, "I/O error"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_changes(
    arrange: Any, target: Target, message: str
) -> None:
    host = bare()
    arrange(host)
    with pytest.raises(ChangeFailed, match=message):
        run(host, target)
    assert host.mutations == []


def test_a_flush_that_is_not_counted_is_a_failure_and_stays_owed() -> None:
    host = bare()
    host.disk("sda").counts = False
    with pytest.raises(ChangeFailed, match="sda: observed no flush counted during a sync"):
        run(host, TIGHT)
    assert host.exists(f"{OWED}/sda")


def test_a_mount_that_does_not_follow_is_a_failure() -> None:
    host = bare()
    work = plan(host, [TIGHT])
    host.on_options = lambda target, options: None  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match=r"/srv/pgdata: barrier \(running\): observed off, expected on"):
        apply(host, work, [TIGHT])


def test_barriers_over_a_cache_that_the_kernel_never_flushes_are_not_called_done() -> None:
    host = bare()
    host.disk("sda").cache_mode = "write through"
    with pytest.raises(
        ChangeFailed, match="it gets no flush, while its cache is enabled: raise the cache mode"
    ):
        run(host, TIGHT)
    assert host.mounts[PG].barrier == "on"


def test_barriers_over_an_unknown_stack_come_on_and_are_not_called_done() -> None:
    host = bare()
    host.links["/sys/dev/block/8:1"] = "/sys/devices/virtual/block/dm-0"
    host.links["/dev/disk/by-uuid/pg"] = "/dev/dm-0"
    host.files["/proc/fs/ext4/dm-0/options"] = host.files["/proc/fs/ext4/sda1/options"]
    with pytest.raises(
        ChangeFailed,
        match=r"/srv/pgdata: barriers are on again, but a flush could be counted on no disk only: dm-0 is a",
    ):
        run(host, TIGHT)
    assert host.mounts[PG].barrier == "on"


@pytest.mark.fact(7)
def test_options_that_the_kernel_refuses_never_reach_the_file() -> None:
    """journal_async_commit with data=ordered, say: only the kernel knows what it refuses."""
    host = bare("nobarrier,bogus")
    before = host.read(FSTAB)
    with pytest.raises(
        ChangeFailed, match=r"options barrier=1,bogus,noatime for ext4|options barrier=1,bogus"
    ):
        run(host, TIGHT)
    assert host.read(FSTAB) == before
    assert originals.PATH not in host.files
    # What is safe at once was still done.
    assert (host.mounts[PG].barrier, host.disk("sda").dirty) == ("on", False)


def test_a_file_that_somebody_else_changed_meanwhile_is_not_overwritten() -> None:
    host = bare()
    theirs = host.read(FSTAB) + "tmpfs /x tmpfs rw\n"

    def meanwhile(image: str, fstype: str, steps: Sequence[Sequence[str]]) -> None:
        host.files[FSTAB] = theirs

    host.on_trial = meanwhile  # type: ignore[method-assign]
    with pytest.raises(ChangeFailed, match="/etc/fstab: another process changed it meanwhile; run again"):
        run(host, TIGHT)
    assert host.read(FSTAB) == theirs


@pytest.mark.parametrize("stop", [Killed, ChangeFailed])
@pytest.mark.parametrize("stop_at", range(1, 20))
@pytest.mark.parametrize("wanted", ["on", "off"])
def test_stopped_at_any_change_the_file_is_whole_and_the_originals_are_known(
    stop: type[BaseException], stop_at: int, wanted: str
) -> None:
    host = bare() if wanted == "on" else SmallHost()
    before = host.read(FSTAB)
    first = fstab.find(fstab.parse(before), PG)[0]
    assert first
    target = TIGHT._replace(wanted={**TIGHT.wanted, "barrier": wanted})
    work = plan(host, [target])
    allowed = host.ways_to_lose() | (
        {
            *(f"/srv/pgdata {when}: no barriers" for when in ("now", "boot")),
            *(f"/srv/pgdata {when}: no barriers over sda's cache" for when in ("now", "boot")),
            "sda: unflushed commits",
        }
        if wanted == "off"
        else set()
    )
    host.stop_at, host.stop = stop_at, stop
    try:
        apply(host, work, [target])
    except (Killed, ChangeFailed):
        pass
    assert host.ways_to_lose() <= allowed
    host.stop_at = 0
    assert host.read(FSTAB) in (before, work.fstab_after)
    if host.read(FSTAB) != before:
        assert originals.load(host) == {PG: ",".join(first.options)}
    run(host, target)
    assert plan(host, [target]).changes == ()


UNIT = f"{UNITS}/srv-pgdata.mount"
LOCAL_FS = f"{UNITS}/local-fs.target.wants/srv-pgdata.mount"


def by_unit(*names: str) -> SmallHost:
    """Return a host whose pgdata is mounted by a unit or drop-in without barriers, and not by fstab's line."""
    host = SmallHost()
    vars(host.mounts[PG]).update(barrier="off", atime="noatime")
    for name in names:
        device = "What=/dev/sda1\n" if name == UNIT else ""
        host.files[name] = f"[Mount]\n{device}Options=nobarrier,noatime,nodev\n"
    host.links[LOCAL_FS] = UNIT
    if UNIT in names:
        host.files[FSTAB] = "\n".join(line for line in host.read(FSTAB).split("\n") if PG not in line)
    host.after_mutation()
    return host


class TestMountUnit:
    @pytest.mark.parametrize(
        "names", [(UNIT,), (f"{UNIT}.d/override.conf",), (UNIT, f"{UNIT}.d/override.conf")]
    )
    def test_a_drop_in_of_ours_overrides_it(self, names: tuple[str, ...]) -> None:
        host = by_unit(*names)
        before, theirs = host.read(FSTAB), {name: host.read(name) for name in names}
        run(host, Target(PG, {"barrier": "on", "data_mode": "ordered"}))
        assert host.read(mount_units.drop_in(PG)) == mount_units.render(("barrier=1", "noatime", "nodev"))
        assert (host.read(FSTAB), {name: host.read(name) for name in names}) == (before, theirs)
        (trial,) = [mutation for mutation in host.mutations if mutation[0] == "trial"]
        assert trial[-1] == (("barrier=1", "noatime", "nodev"),)
        assert host.mutations[-1] == ("change", "systemctl", "daemon-reload")
        host.reboot()
        assert host.mounts[PG].barrier == "on"
        assert plan(host, [Target(PG, {"barrier": "on"})]).changes == ()

    def test_options_that_the_kernel_refuses_never_reach_it(self) -> None:
        host = by_unit(UNIT)
        host.files[UNIT] = "[Mount]\nWhat=/dev/sda1\nOptions=nobarrier,bogus\n"
        with pytest.raises(ChangeFailed, match="bogus"):
            run(host, Target(PG, {"barrier": "on"}))
        assert not host.exists(mount_units.drop_in(PG))

    def test_release_takes_it_away(self) -> None:
        host = by_unit(UNIT)
        run(host, Target(PG, {"barrier": "on"}))
        work = plan_release(host)
        assert [change[1:] for change in work.changes] == [("drop_in", "persisted", "present", "absent")]
        apply_release(host, work)
        assert not host.exists(mount_units.drop_in(PG))
        assert plan_release(host).changes == ()

    def test_others_drop_ins_that_sort_behind_ours_are_a_failure_and_not_a_success(self) -> None:
        host = by_unit(f"{UNIT}.d/zzz.conf")
        with pytest.raises(ChangeFailed, match=r"barrier \(persisted\): observed off, expected on"):
            run(host, Target(PG, {"barrier": "on"}))
        assert host.mounts[PG].barrier == "on"


def test_btrfs_is_told_in_its_own_words_and_all_its_members_are_flushed() -> None:
    host = BigHost()
    host.links["/sys/fs/btrfs/b0b0/devices/sde"] = host.links["/sys/block/sde"]
    host.mounts["/srv/btrfs"].barrier = "off"
    run(host, Target("/srv/btrfs", {"barrier": "on"}))
    assert ("options", "/srv/btrfs", "barrier") in host.mutations
    assert {m[2] for m in host.mutations if m[:2] == ("change", "sync")} == {
        "--file-system",
        "/dev/sde",
        "/dev/sdf",
    }


@pytest.mark.fact(43)
def test_barriers_over_a_stack_are_on_when_a_flush_was_counted_at_each_leaf() -> None:
    """At both halves of the mirror, and where the journal lies."""
    host = BigHost()
    for target in ("/srv/faircom", "/srv/mysql"):
        host.mounts[target].barrier = "off"
    host.after_mutation()
    run(host, *(Target(target, {"barrier": "on"}) for target in ("/srv/faircom", "/srv/mysql")))
    assert {disk.name: disk.flushes for disk in host.disks.values() if disk.flushes > 100} == dict.fromkeys(
        ("sdc", "sdd", "sde", "nvme0n1"), 101
    )
    assert [disk.name for disk in host.disks.values() if disk.dirty] == []


def test_one_leaf_that_counts_no_flush_is_a_failure() -> None:
    host = BigHost()
    host.mounts["/srv/faircom"].barrier = "off"
    host.disk("sdd").counts = False
    with pytest.raises(ChangeFailed, match="sdd: observed no flush counted during a sync"):
        run(host, Target("/srv/faircom", {"barrier": "on"}))


class TestRoot:
    """data= in fstab's root line would stop the boot: its journal mode is the superblock's."""

    TARGET = Target("/", {"data_mode": "ordered"})

    def drifting(self) -> SmallHost:
        host = SmallHost()
        vars(host.mounts["/"]).update(data="writeback", sb_options=("data=writeback",))
        return host

    def test_it_is_set_there(self) -> None:
        host = self.drifting()
        before = host.read(FSTAB)
        assert run(host, self.TARGET) == [("data_mode", "persisted", "writeback", "ordered")]
        assert ("change", "tune2fs", "-o", "journal_data_ordered", "/dev/block/254:1") in host.mutations
        assert host.read(FSTAB) == before
        host.reboot()
        assert host.mounts["/"].data == "ordered"
        assert plan(host, [self.TARGET]).changes == ()

    def test_a_second_change_keeps_the_first_original(self) -> None:
        host = SmallHost()
        for mode in ("journal", "writeback"):
            run(host, Target("/", {"data_mode": mode}))
        assert originals.load(host)["superblock of /: data="] == "ordered"

    def test_release_puts_it_back(self) -> None:
        host = self.drifting()
        run(host, self.TARGET)
        work = plan_release(host)
        assert [change[:2] for change in work.changes] == [("/", "data_mode")]
        apply_release(host, work)
        assert host.mounts["/"].sb_options == ("data=writeback",)
        assert plan_release(host).changes == ()

    @pytest.mark.fact(54)
    @pytest.mark.parametrize(
        ("mode", "option"),
        [("ordered", "journal_async_commit"), ("journal", "delalloc"), ("journal", "dioread_nolock")],
    )
    def test_a_mode_that_would_leave_the_root_read_only_is_refused(self, mode: str, option: str) -> None:
        """The kernel refuses the remount that makes it writable: nothing is changed."""
        host = self.drifting()
        host.files[FSTAB] = host.read(FSTAB).replace("errors=remount-ro", f"errors=remount-ro,{option}")
        before = host.read(FSTAB)
        with pytest.raises(
            ChangeFailed, match=f"options errors=remount-ro,{option} for ext4 with data={mode}"
        ):
            run(host, Target("/", {"data_mode": mode}))
        assert host.mounts["/"].sb_options == ("data=writeback",)
        assert (host.read(FSTAB), host.exists(originals.PATH)) == (before, False)

    def test_both_lines_that_a_boot_may_find_are_tried(self) -> None:
        """A run may be killed between superblock and fstab."""
        host = self.drifting()
        host.files[FSTAB] = host.read(FSTAB).replace("errors=remount-ro", "relatime")
        run(host, self.TARGET, Target("/", {"atime": "noatime"}))
        tried = [m[-1][1] for m in host.mutations if m[0] == "trial"]
        assert tried == [("rw", "noatime"), ("rw", "relatime"), ("rw", "noatime")]

    def test_its_boot_is_replayed_with_rootflags(self) -> None:
        host = self.drifting()
        host.files["/proc/cmdline"] = "root=/dev/vda1 rootflags=commit=9,bogus ro\n"
        with pytest.raises(ChangeFailed, match="Unknown parameter 'bogus'"):
            run(host, self.TARGET)
        assert host.mounts["/"].sb_options == ("data=writeback",)

    def test_without_a_line_the_boot_is_replayed_all_the_same(self) -> None:
        host = self.drifting()
        host.files[FSTAB] = ""
        run(host, self.TARGET)
        assert [m[-1][1] for m in host.mutations if m[0] == "trial"] == [("rw",)]

    def test_a_release_that_would_leave_it_read_only_is_refused(self) -> None:
        host = self.drifting()
        vars(host.mounts["/"]).update(data="ordered", sb_options=("data=ordered",))
        run(host, Target("/", {"data_mode": "writeback"}))
        host.files[FSTAB] = host.read(FSTAB).replace("errors=remount-ro", "journal_async_commit")
        with pytest.raises(ChangeFailed, match="options journal_async_commit for ext4 with data=ordered"):
            apply_release(host, plan_release(host))
        assert host.mounts["/"].sb_options == ("data=writeback",)
        assert plan_release(host).changes

    @pytest.mark.parametrize("stop_at", [1, 2, 3, 4, 5, 6, 7, 8])
    def test_killed_anywhere_what_was_there_is_still_known(self, stop_at: int) -> None:
        host = self.drifting()
        work = plan(host, [self.TARGET])
        host.stop_at = stop_at
        with contextlib.suppress(Killed):
            apply(host, work, [self.TARGET])
        host.stop_at = 0
        if host.mounts["/"].sb_options != ("data=writeback",):
            assert plan_release(host).changes

    def test_where_something_else_names_it_nothing_is_done(self) -> None:
        host = self.drifting()
        host.files["/proc/cmdline"] = "rootflags=data=writeback ro\n"
        with pytest.raises(ChangeFailed, match="rootflags= or fstab's line of / names data="):
            run(host, self.TARGET)
        assert host.mutations == []

    def test_if_the_entry_of_the_next_boot_is_unknown_nothing_is_done(self) -> None:
        host = self.drifting()
        host.files["/efi/loader/loader.conf"] = "default @saved\n"
        for name, options in (("a", ""), ("b", "rootflags=nobarrier")):
            host.files[f"/efi/loader/entries/{name}.conf"] = f"options root=/dev/vda1 ro {options}\n"
        work = plan(host, [self.TARGET])
        assert work.facts["/"]["persisted"]["data_mode"] == "unknown"
        # Else the module alone would say that all is well.
        (said,) = work.warnings
        assert said.startswith("/: data_mode at the next boot: unknown (")
        assert said.endswith("); expected ordered, and left as it is")
        assert plan(host, [self.TARGET._replace(persist=False)]).warnings == ()
        run(host, self.TARGET)
        assert host.mutations == []


class TestManyLines:
    """What mounts a device first decides for all of its mounts, so all that mount it are changed."""

    def two(self, second: str = "nobarrier,relatime") -> SmallHost:
        host = bare()
        host.files[FSTAB] = host.read(FSTAB) + f"/dev/sda1 /mnt/copy ext4 {second} 0 0\n"
        return host

    @pytest.mark.fact(45)
    def test_each_line_of_the_device_is_changed(self) -> None:
        host = self.two()
        before = host.read(FSTAB)
        assert run(host, TIGHT)[-1] == ("barrier", "persisted", "off", "on")
        lines = [
            line for line in host.read(FSTAB).split("\n") if "/srv/pgdata" in line or "/mnt/copy" in line
        ]
        # The atime is of each mount its own.
        assert lines == [
            "UUID=pg\t/srv/pgdata\text4\tbarrier=1,noatime\t0 2",
            "/dev/sda1 /mnt/copy ext4 barrier=1,relatime 0 0",
        ]
        assert originals.load(host) == {PG: "nobarrier,noatime", "/mnt/copy": "nobarrier,relatime"}
        assert len([m for m in host.mutations if m[0] == "trial"]) == 2
        assert plan(host, [TIGHT]).changes == ()
        apply_release(host, plan_release(host))
        assert host.read(FSTAB) == before

    def test_an_atime_leaves_the_other_lines_alone(self) -> None:
        host = self.two("nobarrier")
        run(host, Target(PG, {"atime": "relatime"}))
        assert host.read(FSTAB).endswith("\n/dev/sda1 /mnt/copy ext4 nobarrier 0 0\n")
        assert (host.read(FSTAB).count(fstab.MARK), originals.load(host)) == (1, {PG: "nobarrier,noatime"})

    def test_an_atime_leaves_the_units_of_other_places_alone(self) -> None:
        host = self.two("defaults")
        host.files[f"{UNITS}/mnt-copy.mount"] = "[Mount]\nWhat=/dev/sda1\nOptions=nobarrier\n"
        run(host, Target(PG, {"atime": "relatime"}))
        assert not host.exists(mount_units.drop_in("/mnt/copy"))

    def test_a_unit_that_mounts_it_elsewhere_gets_a_drop_in(self) -> None:
        host = self.two("defaults")
        unit = f"{UNITS}/mnt-copy.mount"
        host.files[unit] = "[Mount]\nWhat=/dev/sda1\nOptions=nobarrier\n"
        run(host, TIGHT)
        assert host.read(mount_units.drop_in("/mnt/copy")) == mount_units.render(("barrier=1",))
        assert not host.exists(mount_units.drop_in(PG))
        assert plan(host, [TIGHT]).changes == ()

    def test_lines_that_contradict_each_other_are_left_to_their_owner(self) -> None:
        host = self.two("defaults")
        before = host.read(FSTAB)
        run(host, Target(PG, {"barrier": "on"}))
        assert (host.mounts[PG].barrier, host.read(FSTAB)) == ("on", before)


def test_the_defaults_of_the_superblock_are_part_of_the_trial() -> None:
    host = bare("nobarrier,delalloc")
    vars(host.mounts[PG]).update(data="journal", sb_options=("data=journal",))
    with pytest.raises(ChangeFailed, match="with data=journal in its superblock"):
        run(host, TIGHT)


class TestRelease:
    def test_every_byte_comes_back(self) -> None:
        host = bare()
        before = host.read(FSTAB)
        run(host, TIGHT, Target(MA, {"atime": "noatime"}))
        work = plan_release(host)
        assert [(change.target, change.setting, change.before, change.after) for change in work.changes] == [
            (MA, "options", "defaults,nofail,noatime", "defaults,nofail"),
            (PG, "options", "barrier=1,noatime", "nobarrier,noatime"),
        ]
        host.mutations.clear()
        apply_release(host, work)
        tried = [m[-1] for m in host.mutations if m[0] == "trial"]
        assert len(tried) == 2
        assert host.mutations[-3:] == [
            ("file", FSTAB, before.encode()),
            ("change", "systemctl", "daemon-reload"),
            ("remove", originals.PATH),
        ]
        assert (plan_release(host).changes, plan_release(host).fstab) == ((), before)

    def test_what_others_wrote_since_stays(self) -> None:
        host = bare()
        run(host, TIGHT)
        host.files[FSTAB] = "# theirs\n" + host.read(FSTAB).replace(
            "barrier=1,noatime", "barrier=1,nodev,noatime"
        )
        text = plan_release(host).fstab
        assert text.startswith("# theirs\n# /etc/fstab")
        entry = fstab.find(fstab.parse(text), PG)[0]
        assert entry
        assert set(entry.options) == {"nobarrier", "noatime", "nodev"}
        assert fstab.MARK not in text

    def test_a_line_that_is_gone_stays_gone(self) -> None:
        host = bare()
        run(host, TIGHT)
        host.files[FSTAB] = "# empty\n"
        work = plan_release(host)
        assert [change.after for change in work.changes] == ["forgotten"]
        apply_release(host, work)
        assert host.read(FSTAB) == "# empty\n"
        assert (plan_release(host).changes, plan_release(host).fstab) == ((), "# empty\n")

    def test_killed_between_file_and_originals_a_second_release_ends_it(self) -> None:
        host = bare()
        before = host.read(FSTAB)
        run(host, TIGHT)
        host.mutations.clear()
        host.stop_at = 3
        with pytest.raises(Killed):
            apply_release(host, plan_release(host))
        host.stop_at = 0
        apply_release(host, plan_release(host))
        assert host.read(FSTAB) == before
        assert originals.load(host) == {}

    @pytest.mark.parametrize("content", ["{", "[]"])
    def test_damaged_originals_stop_it(self, content: str) -> None:
        host = bare()
        host.files[originals.PATH] = content
        with pytest.raises(ChangeFailed, match="restore it from a backup"):
            plan_release(host)

    def test_a_malformed_file_stops_it(self) -> None:
        host = bare()
        run(host, TIGHT)
        host.files[FSTAB] = "one two\n"
        with pytest.raises(ChangeFailed, match="/etc/fstab line 1"):
            plan_release(host)


@pytest.mark.parametrize("name", ["/srv/a\x1b[2J", "/srv/a\u200cb", "/srv/caf\udce9"])
def test_a_mount_is_found_by_the_name_that_facts_tell(name: str) -> None:
    """Else whoever names one keeps the others of its host from becoming safer."""
    host = bare()
    host.mounts[name] = host.mounts.pop(PG)
    host.mounts[name].target = name
    told = Target(line(name), {"barrier": "on"}, persist=False)
    assert run(host, told) == [("barrier", "running", "off", "on")]
    assert ("change", "sync", "--file-system", name) in host.mutations


@pytest.mark.fact(5)
def test_data_mode_of_root_is_never_written_to_fstab() -> None:
    """T (lab, Debian 12): superblock data=writeback + `data=ordered` on fstab's root line:
    systemd-remount-fs fails, the host comes up with a read-only root."""
    host = SmallHost()
    vars(host.mounts["/"]).update(sb_options=("data=writeback",), data="writeback")
    found = look(host, "strict", mounts=["/"])
    with contextlib.suppress(ChangeFailed):
        enforce(host, found)
    assert not [w for w in host.boot_options("/") if w.startswith("data=")]


def test_a_read_only_bind_mount_does_not_make_the_file_system_read_only() -> None:
    """T (lab): `mount -o remount,ro,... SOURCE BIND` turns the superblock read-only for all."""
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    bind = "29 30 8:1 / /mnt/bind ro,relatime - ext4 /dev/sda1 rw,nobarrier\n"
    rest = host._mountinfo
    host.files["/proc/self/mountinfo"] = lambda: bind + rest()
    target = [Target("/mnt/bind", {"barrier": "on"}, False)]
    work = plan(host, target)
    with contextlib.suppress(ChangeFailed):
        apply(host, work, target)
    changed = [m for m in host.mutations if m[0] in ("options", "atime")]
    assert changed == [("options", PG, "barrier=1")]


def test_release_takes_away_the_image_that_a_killed_run_has_left() -> None:
    """Also where that run had changed nothing yet, and so kept no originals."""
    host = SmallHost()
    host.files[f"{DIRECTORY}/image"] = ""
    work = plan_release(host)
    assert [change[:2] for change in work.changes] == [(DIRECTORY, "trial")]
    apply_release(host, work)
    assert host.mutations[-2:] == [
        ("change", "rm", "-rf", DIRECTORY),
        ("change", "rmdir", "--ignore-fail-on-non-empty", "/var/lib/durable-dbhost"),
    ]


def test_release_does_not_put_back_what_the_kernel_refuses() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("xfs defaults", "xfs nobarrier")
    target = [Target("/srv/mssql", {"barrier": "on"})]
    apply(host, plan(host, target), target)
    assert "nobarrier" not in plan_release(host).fstab


def test_without_the_superblock_barriers_still_come_on() -> None:
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    del host.commands[(*ext4.SHOW, "/dev/block/8:1")]
    found = look(host, "strict", mounts=[PG])
    # Its journal may lie on a disk that was not flushed: so it is not called done.
    with pytest.raises(
        ChangeFailed, match=r"on sda only: .*whether /srv/pgdata has its journal on another device"
    ):
        enforce(host, found)
    assert host.mounts[PG].barrier == "on"
    assert host.disk("sda").flushes > 100


def test_originals_of_a_removed_line_do_not_come_back_into_a_new_one() -> None:
    host = SmallHost()
    target = [Target(PG, {"atime": "noatime"})]
    apply(host, plan(host, target), target)
    lines = host.read("/etc/fstab").split("\n")
    lines = [line for line in lines if PG not in line and not line.startswith(fstab.MARK)]
    host.files["/etc/fstab"] = "\n".join(lines)
    work = plan_release(host)
    if work.changes:
        apply_release(host, work)
    # The module applies a release only when it changes something: what is kept stays for ever.
    assert originals.load(host) == {}


def test_one_mount_that_fails_does_not_leave_the_others_unpersisted() -> None:
    host = SmallHost()
    for name in (PG, "/srv/maria"):
        host.mounts[name].barrier = "off"
    text = host.read("/etc/fstab").replace("defaults,nofail", "nobarrier")
    host.files["/etc/fstab"] = text.replace("defaults\t0", "nobarrier\t0")
    host.disk("sda").counts = False
    with contextlib.suppress(ChangeFailed):
        enforce(host, look(host, "strict", mounts=[PG, "/srv/maria"]))
    assert "nobarrier" not in host.boot_options("/srv/maria")


def test_barriers_over_a_disk_that_lies_are_not_called_done() -> None:
    host = SmallHost()
    host.mounts[PG].barrier = "off"
    host.disk("sda").cache_mode = "write through"
    target = [Target(PG, {"barrier": "on"})]
    with pytest.raises(ChangeFailed, match="it gets no flush, while its cache is enabled"):
        apply(host, plan(host, target), target)


@pytest.mark.parametrize("mode", ["ordered", "writeback"])
def test_a_root_without_a_line_does_not_keep_the_others_from_being_persisted(mode: str) -> None:
    """The run ended with "no fstab line of its own": for access times that nobody can write."""
    host = SmallHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace("UUID=root / ext4 errors=remount-ro 0 1\n", "")
    if mode == "writeback":
        vars(host.mounts["/"]).update(sb_options=("data=writeback",), data="writeback")
    host.mounts[PG].barrier = "off"
    enforce(host, look(host, "strict", mounts=["/", PG]))
    assert (host.mounts[PG].barrier, host.mounts["/"].atime) == ("on", "noatime")
    assert "noatime" in host.boot_options(PG)
    assert "data=writeback" not in host.mounts["/"].sb_options
    (row,) = [
        row
        for row in look(host, "strict", mounts=["/", PG])["settings"]
        if (row["target"], row["setting"]) == ("/", "atime")
    ]
    assert (row["verdict"], row["phase"]) == ("drift_persisted", None)
    # A line of fstab would not undo what the initramfs did.
    assert row["remedy"] == "set noatime in rootflags= of the boot loader's entry of this boot"
