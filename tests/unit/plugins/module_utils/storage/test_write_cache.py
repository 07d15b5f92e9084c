# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The write_cache layer: cache mode before cache, a counted flush between them, and the rule kept."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import cache_rules
from ansible_collections.durable.dbhost.plugins.module_utils.storage.flush import OWED
from ansible_collections.durable.dbhost.plugins.module_utils.storage.write_cache import (
    Target,
    apply,
    apply_release,
    plan,
    plan_release,
)

from ..fakes.runs import enforce, look, settled
from ..fakes.small_host import UNITS, BigHost, Multipath, SmallHost

SDA, SDB, VDB = "serial:QEMU_HARDDISK_SATA0001", "serial:QEMU_HARDDISK_SATA0002", "serial:VIRT0001"
SDC, NVME = "wwn:0x5000c500a1b2c3d4", "nvme:eui.0025385"
EVERY = [(SDA, "sda"), (VDB, "vdb"), (SDC, "sdc"), (NVME, "nvme0n1")]
SAS = "/sys/block/sdc/device/scsi_disk/0:0:0:0/cache_type"
SAS_PIN = ("attribute", SAS, "temporary write back")
SET_NVME = ("change", "nvme", "set-feature", "/dev/nvme0n1", "--namespace-id=0xffffffff", "--feature-id=6")
SCSI = "/sys/block/sda/device/scsi_disk/0:0:0:0/cache_type"
VIRTIO = "/sys/block/vdb/cache_type"
PIN = ("attribute", SCSI, "temporary write back")


def run(host: SmallHost, *targets: Target) -> list[tuple[str, str, str, str]]:
    """Plan and carry out; return (setting, when, before, after) of each change."""
    work = plan(host, list(targets))
    apply(host, work, list(targets))
    return [change[1:] for change in work.changes]


#: What enabling the unit makes.
LINKS = [
    f"{UNITS}/{name}.target.wants/{cache_rules.UNIT}"
    for name in ("suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate")
]
#: What makes udev apply the rules after a sleep, too; written once, behind the rules.
WOKEN = [
    ("file", cache_rules.UNIT_PATH, cache_rules.UNIT_TEXT.encode()),
    ("change", "systemctl", "--quiet", "enable", cache_rules.UNIT),
]


def rules(wanted: dict[str, tuple[str, str]]) -> tuple[str, str, bytes]:
    """Return the writing of the rule file."""
    return ("file", cache_rules.RULES_PATH, cache_rules.render(wanted).encode())


def test_a_sata_cache_is_switched_off_last() -> None:
    host = SmallHost()
    assert run(host, Target(SDA, "disabled")) == [
        ("write_cache", "running", "enabled", "disabled"),
        ("write_cache", "persisted", "unset", "disabled"),
    ]
    assert host.mutations == [
        PIN,
        ("change", "sync", "/dev/sda"),
        ("change", "hdparm", "-q", "-W0", "/dev/sda"),
        rules({SDA: ("sata", "disabled")}),
        *WOKEN,
    ]
    assert (host.disk("sda").cache, host.disk("sda").cache_mode) == ("disabled", "write back")


def test_a_sata_cache_is_switched_on_only_under_a_cache_mode_that_flushes_it() -> None:
    host = SmallHost()
    vars(host.disk("sda")).update(cache="disabled", cache_mode="write through")
    assert run(host, Target(SDA, "enabled"))[0] == (
        "kernel_cache_mode",
        "running",
        "write through",
        "write back",
    )
    assert host.mutations == [
        PIN,
        ("change", "sync", "/dev/sda"),
        ("change", "hdparm", "-q", "-W1", "/dev/sda"),
        rules({SDA: ("sata", "enabled")}),
        *WOKEN,
    ]


@pytest.mark.parametrize(
    ("state", "before", "mutations"),
    [
        ("disabled", "enabled", [("change", "sync", "/dev/vdb"), ("attribute", VIRTIO, "write through")]),
        (
            "enabled",
            "disabled",
            [
                # First, in case it was forced: the one switch would turn the cache on under it.
                ("attribute", "/sys/block/vdb/queue/write_cache", "write back"),
                ("attribute", VIRTIO, "write back"),
                ("change", "sync", "/dev/vdb"),
            ],
        ),
    ],
)
def test_a_virtio_cache(state: str, before: str, mutations: list[Any]) -> None:
    host = SmallHost()
    disk = host.disk("vdb")
    disk.cache, disk.cache_mode = before, "write back" if before == "enabled" else "write through"
    run(host, Target(VDB, state))
    assert host.mutations == [*mutations, rules({VDB: ("virtio", state)}), *WOKEN]
    assert (disk.cache, disk.cache_mode) == (state, "write back" if state == "enabled" else "write through")


@pytest.mark.parametrize(
    ("state", "before", "word"),
    [("disabled", "enabled", "write through"), ("enabled", "disabled", "write back")],
)
@pytest.mark.parametrize("attention", ["", "Mode parameters changed\n"])
def test_a_sas_cache_is_switched_by_the_kernel_between_pins(
    state: str, before: str, word: str, attention: str
) -> None:
    host = BigHost()
    disk = host.disk("sdc")
    vars(disk).update(cache=before, attention=attention)
    run(host, Target(SDC, state))
    assert host.mutations == [
        SAS_PIN,
        ("change", "sync", "/dev/sdc"),
        ("attribute", SAS, word),
        SAS_PIN,
        rules({SDC: ("scsi", state)}),
        *WOKEN,
    ]
    assert (disk.cache, disk.cache_mode, disk.pinned) == (state, "write back", True)


@pytest.mark.parametrize(("state", "before", "bit"), [("disabled", "enabled", 0), ("enabled", "disabled", 1)])
def test_an_nvme_cache_is_flushed_and_switched_by_its_feature(state: str, before: str, bit: int) -> None:
    host = BigHost()
    host.disk("nvme0n1").cache = before
    run(host, Target(NVME, state))
    assert host.mutations == [
        ("change", "sync", "/dev/nvme0n1"),
        (*SET_NVME, f"--value={bit}"),
        rules({NVME: ("nvme", state)}),
        *WOKEN,
    ]


def test_an_nvme_disk_without_a_volatile_cache_has_nothing_to_do() -> None:
    host = BigHost()
    host.disk("nvme0n1").cache = "none"
    host.disk("nvme0n1").follow()
    assert run(host, Target(NVME, "disabled")) == []
    assert host.mutations == []


@pytest.mark.parametrize(("disk", "name"), EVERY)
@pytest.mark.parametrize("state", ["keep", "disabled", "enabled"])
@pytest.mark.fact(58)
def test_a_cache_mode_that_was_forced_is_raised_where_it_was_forced_and_flushed(
    state: str, disk: str, name: str
) -> None:
    """Kernel 6.12 keeps it whatever the driver is told: only the file that it was written to undoes it."""
    host = BigHost()
    found = host.disk(name)
    vars(found).update(cache_mode="write through", forced=True, dirty=True)
    run(host, Target(disk, state))
    raised = host.mutations.index(("attribute", f"/sys/block/{name}/queue/write_cache", "write back"))
    assert raised < host.mutations.index(("change", "sync", f"/dev/{name}"))
    assert host.mutations.index(("file", f"{OWED}/{name}", b"")) < raised
    assert (found.dirty, found.forced, host.exists(f"{OWED}/{name}")) == (False, False, False)
    assert found.cache == ("enabled" if state == "keep" else state)


@pytest.mark.parametrize(("disk", "name"), EVERY)
@pytest.mark.fact(58)
def test_no_cache_comes_on_under_a_forced_cache_mode(disk: str, name: str) -> None:
    host = BigHost()
    found = host.disk(name)
    vars(found).update(cache="disabled", cache_mode="write through", forced=True)
    seen: list[bool] = []
    host.after_mutation = lambda: seen.append((found.cache, found.cache_mode) == ("enabled", "write through"))
    run(host, Target(disk, "enabled"))
    assert (found.cache, found.cache_mode, any(seen)) == ("enabled", "write back", False)


def test_a_cache_mode_that_nothing_raises_is_a_failure_that_says_what_helps() -> None:
    host = SmallHost()
    vars(host.disk("sda")).update(cache="disabled", cache_mode="write through", forced=True)
    host.disk("sda").unforce = lambda value: None  # type: ignore[method-assign]
    with pytest.raises(
        ChangeFailed,
        match=r"sda: observed the kernel cache mode write through, expected write back: .* reboot",
    ):
        run(host, Target(SDA, "enabled"))
    assert host.disk("sda").cache == "disabled"


def test_a_queue_that_refuses_while_nothing_is_cached_keeps_no_cache_off() -> None:
    """Kernels 6.6 to 6.10, which keep nothing forced either."""
    host = SmallHost()
    vars(host.disk("vdb")).update(cache="disabled", cache_mode="write through")
    host.disk("vdb").unforce = refuse  # type: ignore[method-assign]
    run(host, Target(VDB, "enabled"))
    assert (host.disk("vdb").cache, host.disk("vdb").cache_mode) == ("enabled", "write back")


def refuse(value: str) -> None:
    raise ChangeFailed("Invalid argument")


def test_of_a_disk_with_several_paths_each_is_raised() -> None:
    host = Multipath()
    host.kernel["nvme0c1n1"] = "write through"
    assert run(host, Target(NVME, "keep")) == [
        ("kernel_cache_mode", "running", "write through", "write back")
    ]
    assert host.kernel["nvme0c1n1"] == "write back"


@pytest.mark.parametrize("name", ["sdc", "nvme0n1", "vdb"])
@pytest.mark.parametrize("state", ["enabled", "disabled"])
def test_a_disk_that_refuses_costs_no_other_disk_and_no_cache_mode(name: str, state: str) -> None:
    host = BigHost()
    others = [disk for disk in host.disks.values() if disk.name not in (name, "vda")]
    for disk in host.disks.values():
        disk.cache = "disabled" if state == "enabled" else "enabled"
    host.disk(name).refuses = True
    with pytest.raises(ChangeFailed, match=name):
        run(host, *(Target(disk.id, state) for disk in (host.disk(name), *others)))
    assert {disk.cache for disk in others} == {state}
    assert host.disk(name).cache_mode == "write back" or host.disk(name).cache == "disabled"
    assert set(cache_rules.read(host)) >= {disk.id for disk in others}


@pytest.mark.parametrize(("disk", "name"), [(SDA, "sda"), (VDB, "vdb")])
def test_a_cache_mode_that_was_a_lie_is_raised_and_the_debt_paid_before_anything_else(
    disk: str, name: str
) -> None:
    host = SmallHost()
    vars(host.disk(name)).update(cache_mode="write through", dirty=True)
    assert run(host, Target(disk, "keep")) == [
        ("kernel_cache_mode", "running", "write through", "write back")
    ]
    owed = f"{OWED}/{name}"
    raised = PIN if name == "sda" else ("attribute", VIRTIO, "write back")
    assert host.mutations == [
        ("file", owed, b""),
        raised,
        ("change", "sync", f"/dev/{name}"),
        ("remove", owed),
    ]
    assert (host.disk(name).cache, host.disk(name).dirty) == ("enabled", False)


def test_a_second_run_does_nothing() -> None:
    host = SmallHost()
    targets = [Target(SDA, "disabled"), Target(VDB, "disabled")]
    run(host, *targets)
    host.mutations.clear()
    assert plan(host, targets).changes == ()
    assert host.mutations == []


def test_planning_changes_nothing() -> None:
    host = SmallHost()
    assert plan(host, [Target(SDA, "disabled"), Target(VDB, "keep")]).changes
    assert host.mutations == []


def test_only_the_next_boot_is_mended_when_only_that_drifts() -> None:
    host = SmallHost()
    vars(host.disk("sda")).update(cache="disabled", cache_mode="write back", pinned=True)
    run(host, Target(SDA, "disabled"))
    assert host.mutations == [rules({SDA: ("sata", "disabled")}), *WOKEN]


def test_rules_of_other_disks_stay() -> None:
    host = SmallHost()
    other = {SDB: ("sata", "enabled")}
    host.files[cache_rules.RULES_PATH] = cache_rules.render(other)
    run(host, Target(SDA, "disabled"))
    assert rules({SDA: ("sata", "disabled"), **other}) in host.mutations


@pytest.mark.parametrize(
    ("arrange", "disk", "message"),
    [
        (lambda host: host.unplug("sda"), SDA, f"{SDA}: no disk of that id is there; expected .* pulled"),
        (
            lambda host: setattr(host.disk("sdb"), "serial", host.disk("sda").serial),
            SDA,
            f"{SDA}: no disk of that id",
        ),
        (
            lambda host: host.links.update(
                {"/sys/block/sda": "/sys/devices/pci0000:00/usb1/1-1/host6/target6:0:0/6:0:0:0/block/sda"}
            ),
            SDA,
            rf"{SDA} \(sda\): observed a usb disk of kind unknown, whose cache cannot be switched from here;"
            " switch it after attaching it without the bridge",
        ),
        (
            lambda host: host.commands.update(
                {("hdparm", "-W", "/dev/sda"): Unobservable("hdparm: no answer within 10 s")}
            ),
            SDA,
            r"sda\): its write cache cannot be read: hdparm: no answer within 10 s",
        ),
        (
            lambda host: host.files.update({cache_rules.RULES_PATH: Unobservable("rules: I/O error")}),
            VDB,
            "rules: I/O error",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_changes(
    arrange: Any, disk: str, message: str
) -> None:
    host = SmallHost()
    arrange(host)
    with pytest.raises(ChangeFailed, match=message):
        run(host, Target(disk, "disabled"))
    assert host.mutations == []


@pytest.mark.parametrize(("disk", "name"), EVERY)
def test_a_device_that_does_not_follow_is_a_failure(disk: str, name: str) -> None:
    host = BigHost()
    host.disk(name).obeys = False
    with pytest.raises(
        ChangeFailed, match=rf"{disk}: write_cache \(running\): observed enabled, expected disabled"
    ):
        run(host, Target(disk, "disabled"))


@pytest.mark.parametrize(("disk", "name"), EVERY)
def test_a_flush_that_is_not_counted_fails_but_does_not_keep_the_cache_on(disk: str, name: str) -> None:
    host = BigHost()
    host.disk(name).counts = False
    with pytest.raises(ChangeFailed, match=f"{name}: observed no flush counted during a sync"):
        run(host, Target(disk, "disabled"))
    assert host.disk(name).cache == "disabled"


@pytest.mark.parametrize(("disk", "name"), EVERY)
def test_a_flush_that_is_not_counted_keeps_a_cache_off(disk: str, name: str) -> None:
    host = BigHost()
    run(host, Target(disk, "disabled"))
    host.disk(name).counts = False
    with pytest.raises(ChangeFailed, match=f"{name}: observed"):
        run(host, Target(disk, "enabled"))
    assert host.disk(name).cache == "disabled" or host.disk(name).cache_mode == "write back"


def test_one_disk_that_refuses_does_not_cost_the_others() -> None:
    host = SmallHost()
    host.disk("sda").counts = False
    with pytest.raises(ChangeFailed, match=r"^sda: observed no flush"):
        run(host, Target(SDA, "disabled"), Target(SDB, "disabled"), Target(VDB, "disabled"))
    assert [host.disk(name).cache for name in ("sda", "sdb", "vdb")] == ["disabled", "disabled", "disabled"]
    assert len(cache_rules.read(host)) == 3


@pytest.mark.parametrize("name", ["sda", "vdb"])
def test_a_disk_that_vanishes_half_way_is_a_failed_change(name: str) -> None:
    host = SmallHost()
    disk = SDA if name == "sda" else VDB
    host.disk(name).cache, host.disk(name).cache_mode = "disabled", "write through"
    work = plan(host, [Target(disk, "enabled")])
    host.after_mutation = lambda: host.unplug(name) if name in host.disks else None
    with pytest.raises(ChangeFailed, match=name):
        apply(host, work, [Target(disk, "enabled")])


class TestRelease:
    def test_the_rules_go_and_the_caches_stay(self) -> None:
        host = SmallHost()
        run(host, Target(SDA, "disabled"), Target(VDB, "disabled"))
        host.mutations.clear()
        work = plan_release(host)
        assert work.changes == (
            (cache_rules.RULES_PATH, "rules", "persisted", "present", "absent"),
            (cache_rules.UNIT_PATH, "rules", "persisted", "present", "absent"),
            *((link, "rules", "persisted", "present", "absent") for link in LINKS),
            (SDA, "write_cache", "persisted", "disabled", "unset"),
            (VDB, "write_cache", "persisted", "disabled", "unset"),
        )
        apply_release(host, work)
        assert host.mutations == [
            ("change", "systemctl", "--quiet", "disable", cache_rules.UNIT),
            ("change", "systemctl", "reset-failed", "durable-dbhost-resume.*"),
            ("remove", cache_rules.RULES_PATH),
            ("remove", cache_rules.UNIT_PATH),
        ]
        assert host.disk("sda").cache == "disabled"
        assert plan_release(host).changes == ()
        assert not [link for link in host.links if cache_rules.UNIT in link]

    def test_nothing_to_release(self) -> None:
        assert plan_release(SmallHost()).changes == ()

    def test_a_unit_that_was_left_alone_goes_too(self) -> None:
        host = SmallHost()
        run(host, Target(SDA, "disabled"))
        del host.files[cache_rules.RULES_PATH]
        work = plan_release(host)
        assert [change.target for change in work.changes] == [cache_rules.UNIT_PATH, *LINKS]
        apply_release(host, work)
        assert plan_release(host).changes == ()


def test_a_disk_that_cannot_be_asked_does_not_keep_the_others_exposed() -> None:
    host = SmallHost()
    host.commands[("hdparm", "-W", "/dev/sda")] = Unobservable("hdparm: no answer within 10 s")
    host.disk("sda").cache_mode = "write through"
    with contextlib.suppress(ChangeFailed):
        enforce(host, look(host, "strict"))
    assert [host.disk(n).cache for n in ("sdb", "vdb")] == ["disabled", "disabled"]


@pytest.mark.parametrize("state", ["keep", "disabled"])
def test_a_flush_that_failed_stays_pending_until_one_is_counted(state: str) -> None:
    """Without a cache no flush is sent. A second run took the note of the failed one away, and the host was green."""
    host = SmallHost()
    vars(host.disk("vdb")).update(cache_mode="write back", counts=False)
    with pytest.raises(ChangeFailed, match="observed no flush counted"):
        run(host, Target(VDB, "disabled"))
    for _run in range(2):
        with pytest.raises(ChangeFailed, match="observed no flush counted"):
            run(host, Target(VDB, state))
        assert (host.disk("vdb").cache, host.exists(f"{OWED}/vdb")) == ("disabled", True)
    host.disk("vdb").counts = True
    before = host.disk("vdb").flushes
    run(host, Target(VDB, state))
    assert host.disk("vdb").flushes > before
    assert (host.disk("vdb").cache, host.exists(f"{OWED}/vdb")) == ("disabled", False)


@pytest.mark.parametrize(("known", "name"), [(SDA, "sda"), (SDC, "sdc"), (NVME, "nvme0n1")])
def test_a_flush_that_failed_before_a_cache_went_off_is_the_next_run_s(known: str, name: str) -> None:
    """What was written without barriers has this flush alone. The next run found the cache off, and nothing to do."""
    host = BigHost()
    vars(host.disk(name)).update(counts=False)
    with pytest.raises(ChangeFailed, match="observed no flush counted"):
        run(host, Target(known, "disabled"))
    assert host.disk(name).cache == "disabled"
    assert [change.setting for change in plan(host, [Target(known, "disabled")]).changes] == ["flush"]
    host.disk(name).counts = True
    run(host, Target(known, "disabled"))
    assert plan(host, [Target(known, "disabled")]).changes == ()


def test_release_takes_away_a_rule_file_whose_rules_were_edited() -> None:
    host = SmallHost()
    text = cache_rules.render({SDA: ("sata", "disabled")})
    host.files[cache_rules.RULES_PATH] = text.replace("hdparm -q", "hdparm  -q")
    assert plan_release(host).changes != ()


def test_a_virtio_cache_is_switched_on_under_a_cache_mode_that_is_high_already() -> None:
    host = SmallHost()
    vars(host.disk("vdb")).update(cache="disabled", cache_mode="write back")
    target = [Target(VDB, "enabled")]
    apply(host, plan(host, target), target)


def test_a_masked_unit_is_not_overwritten_and_costs_no_rules() -> None:
    """A run replaced /dev/null by a regular file."""
    host = SmallHost()
    host.links[cache_rules.UNIT_PATH], host.files["/dev/null"] = "/dev/null", ""
    target = [Target(SDA, "disabled")]
    with pytest.raises(ChangeFailed, match="not a regular file"):
        apply(host, plan(host, target), target)
    assert (host.disk("sda").cache, host.read("/dev/null")) == ("disabled", "")
    assert cache_rules.read_rules(host) == {SDA: ("sata", "disabled")}


FOREIGN = 'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", RUN+="/sbin/hdparm -q -W1 $devnode"\n'


def test_a_rule_of_somebody_elses_in_our_file_is_drift_and_goes_and_ours_stay() -> None:
    """It runs behind ours and turns the cache on; the report said that all is as wanted."""
    host = settled("strict")
    before, verdict = host.read(cache_rules.RULES_PATH), look(host, "strict")["verdict"]
    host.files[cache_rules.RULES_PATH] += FOREIGN
    assert look(host, "strict")["verdict"] == "drifted"
    # Also where the run is about one of the disks only.
    enforce(host, look(host, "strict", mounts=["/srv/pgdata"]))
    assert host.read(cache_rules.RULES_PATH) == before
    assert look(host, "strict")["verdict"] == verdict != "drifted"


def test_no_name_that_is_not_ascii_ends_a_run() -> None:
    host = settled("strict")
    plain = cache_rules.render({"serial:X": ("sata", "disabled")})[len(cache_rules.HEADER) :]
    strange = plain.replace("serial:X", "serial:\u00c4").replace('"X"', '"\u00c4"')
    host.files[cache_rules.RULES_PATH] += strange
    enforce(host, look(host, "strict"))
    assert host.read(cache_rules.RULES_PATH).isascii()


def test_rules_are_written_where_systemctl_fails() -> None:
    host = SmallHost()

    def no_bus(argv: list[str]) -> None:
        raise ChangeFailed("systemctl: exit 1: Failed to connect to bus")

    host._systemctl = no_bus
    target = [Target(SDA, "disabled")]
    with pytest.raises(ChangeFailed, match="bus"):
        apply(host, plan(host, target), target)
    assert cache_rules.read_rules(host) == {SDA: ("sata", "disabled")}


def test_release_takes_links_that_lead_nowhere() -> None:
    host = settled("strict")
    del host.files[cache_rules.UNIT_PATH]
    apply_release(host, plan_release(host))
    assert not [link for link in host.links if "durable" in link]
    assert plan_release(host).changes == ()
