# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way from a state to a profile: the plan is safe at each step, ends there, and then stops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.plan import STEPS, build, changes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.settings import Setting
from ansible_collections.durable.dbhost.plugins.module_utils.storage import (
    cache_rules,
    flush,
    fstab,
    mount_units,
    scheduler_rules,
)

from ...fakes.fake_host import Killed
from ...fakes.runs import (
    PROFILES,
    attested,
    enforce,
    look,
    settled,
)
from ...fakes.small_host import (
    UNITS,
    BigHost,
    FakeDisk,
    FakeMount,
    SmallHost,
    Traced,
)

SDB = "serial:QEMU_HARDDISK_SATA0002"
BIG = ("/srv/faircom", "/srv/firebird", "/srv/mysql", "/srv/btrfs")


def words(host: SmallHost) -> list[dict[str, str]]:
    """Return attestations with which every profile that this release knows may loosen."""
    return [
        attested("host_honours_flush"),
        *(attested(target=disk.id) for disk in host.disks.values()),
    ]


def given_to(host: SmallHost, profile: str) -> dict[str, Any]:
    """Return an inventory that manages all of a host but its root, and what a profile never takes."""
    untouched = ("btrfs",) if profile == "disposable" else ()
    mounts = [mount.target for mount in host.mounts.values() if mount.fstype not in untouched]
    return {
        "accept_data_loss": True,
        "attestations": words(host),
        "mounts": [target for target in mounts if target != "/"],
    }


def elsewhere(host: SmallHost, profile: str) -> set[str]:
    """Return the ways to lose commits of what is not managed."""
    managed = given_to(host, profile)["mounts"]
    disks = {disk.name for target in managed for disk in host.leaves(host.mounts[target])}
    others = [f"{target} " for target in host.mounts if target not in managed]
    others += [f"{name}: " for name in host.disks if name not in disks]
    return {way for way in host.ways_to_lose() if way.startswith(tuple(others))}


on_off = st.sampled_from(["on", "off"])
caches = st.sampled_from(["enabled", "disabled"])


machines = st.sampled_from([SmallHost, BigHost])


@st.composite
def hosts(draw: st.DrawFn) -> SmallHost:
    """Draw a host in any state that an administrator or a killed run can leave it in."""
    host = draw(machines)()
    draw_rules(draw, host)
    for disk in host.disks.values():
        draw_disk(draw, host, disk)
    for layer in host.layers.values():
        # Made when nothing below cached, it drops flushes.
        if layer.kind == "dm":
            layer.cache_mode = draw(st.sampled_from(["write back", "write back", "write through"]))
    # Some initramfs makes all that it finds, before any rule.
    host.initramfs = draw(st.sampled_from([(), tuple(host.layers)]))
    text = host.read("/etc/fstab")
    for mount in host.mounts.values():
        if mount.target != "/":
            text = draw_mount(draw, host, mount, text)
    host.files["/etc/fstab"] = text
    host.after_mutation()
    return host


def draw_rules(draw: st.DrawFn, host: SmallHost) -> None:
    """Draw what udev's rules keep, with or without what applies them after sleep."""
    states = st.sampled_from(["enabled", "disabled", None])
    drawn = {disk.id: (disk.transport, draw(states)) for disk in host.disks.values()}
    text = cache_rules.render({known: (control, state) for known, (control, state) in drawn.items() if state})
    if draw(st.booleans()):
        cache_rules.write(host, text or cache_rules.HEADER)
        host.mutations.clear()
    elif text:
        host.files[cache_rules.RULES_PATH] = text
    schedulers = st.sampled_from([None, "none", "mq-deadline"])
    queues = {disk.id: draw(schedulers) for disk in host.disks.values()}
    kept = {known: {"scheduler": name} for known, name in queues.items() if name}
    if kept:
        host.files[scheduler_rules.RULES_PATH] = scheduler_rules.render(kept)


def draw_disk(draw: st.DrawFn, host: SmallHost, disk: FakeDisk) -> None:
    """Draw the state of a disk: any that its interface can be brought to."""
    disk.cache = draw(caches)
    disk.cache_mode = draw(st.sampled_from(["write back", "write through"]))
    if disk.transport == "virtio" and disk.cache == "disabled":
        disk.cache_mode = "write through"
    if disk.transport == "nvme":
        # Its kernel cache mode is that of the controller's identity; only by force it is another.
        disk.cache = draw(st.sampled_from(["enabled", "disabled", "none"]))
        disk.cache_mode = "write through" if disk.cache == "none" else "write back"
    # Kernel 6.12 keeps what somebody wrote to the queue.
    disk.forced = disk.cache != "none" and draw(st.integers(0, 3)) == 0
    if disk.forced:
        disk.cache_mode = "write through"
    if disk.cache == "enabled" and draw(st.integers(0, 3)) == 0:
        host.files[f"{flush.OWED}/{disk.name}"] = ""
        disk.dirty = True
    disk.saves = disk.transport == "scsi" and draw(st.booleans())
    disk.scheduler = draw(st.sampled_from(["[none] mq-deadline", "none [mq-deadline]"]))
    disk.attention = draw(st.sampled_from(["", "mode sense: unit attention\n"]))


def draw_mount(draw: st.DrawFn, host: SmallHost, mount: FakeMount, text: str) -> str:
    """Draw how a file system is mounted and will be; return fstab with its line changed."""
    options: tuple[str, ...] = ("rw",)
    mount.atime = draw(st.sampled_from(["noatime", "relatime", "strictatime"]))
    if mount.has_barriers:
        mount.barrier = draw(on_off)
        options += draw(st.sampled_from([(), ("nobarrier",), ("noatime", "barrier")]))
    if mount.fstype.startswith("ext"):
        mount.data = draw(st.sampled_from(["ordered", "journal", "writeback"]))
        mount.sb_options = draw(st.sampled_from([(), ("nobarrier",), ("data=writeback",), ("data=journal",)]))
        options += draw(st.sampled_from([(), ("barrier=1", "data=writeback"), ("data=journal",)]))
    if mount.fstype == "xfs":
        options += draw(st.sampled_from([(), ("nobarrier",), ("noatime",)]))
    elif draw(st.integers(0, 3)) == 0:
        unit = mount_units.unit_name(mount.target)
        host.files[f"{UNITS}/{unit}.d/override.conf"] = f"[Mount]\nOptions={','.join(options)}\n"
    entry = fstab.find(fstab.parse(text), mount.target)[0]
    assert entry
    return fstab.set_options(text, entry, options, None)


def target_ways(host: SmallHost, profile: str) -> set[str]:
    """Return the ways to lose commits that a profile itself has, on the listed mounts."""
    if profile != "disposable":
        return set()
    found = set()
    for mount in host.mounts.values():
        if mount.fstype == "ext4":
            found |= {f"{mount.target} {when}: no barriers" for when in ("now", "boot")}
            found |= {f"{mount.target} boot: writeback"}
            for disk in host.leaves(mount):
                over = f"no barriers over {disk.name}'s cache"
                found |= {f"{mount.target} {when}: {over}" for when in ("now", "boot")}
                found |= {f"{disk.name}: unflushed commits"}
    return found


@pytest.mark.every_python_alike
@settings(max_examples=60)
@given(hosts(), st.sampled_from(PROFILES))
def test_no_step_is_less_safe_than_the_weaker_end_and_the_end_is_reached(
    host: SmallHost, profile: str
) -> None:
    start = host.ways_to_lose()
    found = look(host, profile, **given_to(host, profile))
    allowed = start | target_ways(host, profile)
    seen: list[set[str]] = []
    age = host.after_mutation
    host.after_mutation = lambda: (age(), seen.append(host.ways_to_lose()))[0]
    enforce(host, found)
    for step, ways in enumerate(seen):
        assert ways <= allowed, host.mutations[step]
    again = look(host, profile, **given_to(host, profile))
    assert again["changes"] == [], again["why"]
    assert again["plan"] == build([], False)
    withheld = "withheld" in "\n".join(again["why"])
    host.reboot()
    if not withheld:
        assert look(host, profile, **given_to(host, profile))["changes"] == []
    assert host.ways_to_lose() - elsewhere(host, profile) <= target_ways(host, profile)


@pytest.mark.every_python_alike
@settings(max_examples=60)
@given(hosts(), st.sampled_from(PROFILES), st.data())
def test_killed_anywhere_a_host_is_no_less_safe_and_knows_what_it_lacks(
    host: SmallHost, profile: str, data: st.DataObject
) -> None:
    allowed = host.ways_to_lose() | target_ways(host, profile)
    found = look(host, profile, **given_to(host, profile))
    host.stop_at = data.draw(st.integers(1, 40))
    try:
        enforce(host, found)
    except Killed:
        pass
    host.stop_at = 0
    assert host.ways_to_lose() <= allowed
    assert fstab.parse(host.read("/etc/fstab"))
    # Commits that a cut would take are a risk that the next run sees, and ends.
    dirty = {disk.name for disk in host.disks.values() if disk.dirty and disk.cache == "enabled"}
    dirty -= {way.partition(":")[0] for way in elsewhere(host, profile)}
    bare = look(host, "strict", mounts=given_to(host, profile)["mounts"])
    for name in dirty:
        assert f"commits since the last flush on {name} can be lost" in "\n".join(bare["why"])
    enforce(host, look(host, profile, **given_to(host, profile)))
    assert look(host, profile, **given_to(host, profile))["changes"] == []


@pytest.mark.every_python_alike
@settings(max_examples=40)
@given(hosts(), st.sampled_from(["strict", "flush"]))
def test_tightening_never_waits_for_a_requirement(host: SmallHost, profile: str) -> None:
    """A guest without a word from its host is still made as safe as a guest can be."""
    host.commands[("systemd-detect-virt",)] = "kvm\n"
    enforce(host, look(host, profile, mounts=given_to(host, profile)["mounts"]))
    host.reboot()
    assert host.ways_to_lose() == elsewhere(host, profile)


@pytest.mark.every_python_alike
@settings(max_examples=40)
@given(hosts(), st.sampled_from(PROFILES), st.integers(1, 30))
def test_a_refused_change_is_reported_and_leaves_the_host_no_less_safe(
    host: SmallHost, profile: str, stop_at: int
) -> None:
    allowed = host.ways_to_lose() | target_ways(host, profile)
    found = look(host, profile, **given_to(host, profile))
    host.stop_at, host.stop = stop_at, ChangeFailed
    try:
        enforce(host, found)
    except ChangeFailed:
        assert len(host.mutations) >= stop_at
    assert host.ways_to_lose() <= allowed
    assert fstab.parse(host.read("/etc/fstab"))


@pytest.mark.every_python_alike
@settings(max_examples=30)
@given(hosts(), st.sampled_from(["strict", "flush", "protected"]), st.booleans())
def test_a_reset_of_any_disk_of_a_settled_host_loses_nothing(
    host: SmallHost, profile: str, heard: bool
) -> None:
    """Its cache is as at power-on then; udev may hear of it late, or never."""
    given_inputs = given_to(host, profile)
    enforce(host, look(host, profile, **given_inputs))
    host.reboot()
    enforce(host, look(host, profile, **given_inputs))
    apart = elsewhere(host, profile)
    for disk in host.disks.values():
        # One switch sets cache mode and cache of a virtio disk: nothing can pin it (see below).
        if disk.transport != "virtio":
            host.reset(disk.name, heard)
    assert host.ways_to_lose() - apart == elsewhere(host, profile) - apart
    if heard:
        assert look(host, profile, **given_inputs)["changes"] == []


def test_a_virtio_disk_that_comes_back_caching_is_seen_and_mended_by_the_next_run() -> None:
    """As after a migration or a restored snapshot: the guest's kernel cache mode is write through, and no event tells it."""
    host = settled("strict")
    host.reset("vdb", heard=False)
    found = look(host, "strict", mounts=["/srv/maria"])
    assert (found["verdict"], host.disk("vdb").dirty) == ("at_risk", True)
    enforce(host, found)
    assert host.ways_to_lose() == {way for way in host.ways_to_lose() if way.startswith(("/ ", "vda"))}
    assert (host.disk("vdb").cache, host.disk("vdb").dirty) == ("disabled", False)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_kernel_that_traces_flushes_comes_to_the_verdict_of_one_that_counts_them(profile: str) -> None:
    verdicts = []
    for host in (SmallHost(), Traced()):
        host.mounts["/srv/pgdata"].barrier = "off"
        enforce(host, look(host, profile, **given_to(host, profile)))
        found = look(host, profile, **given_to(host, profile))
        assert not any(found["plan"].values())
        verdicts.append(found["verdict"])
    assert verdicts[0] == verdicts[1]


def test_without_counter_and_trace_a_host_is_at_risk_until_its_owner_mounts_one() -> None:
    host = Traced()
    host.mount_tracefs("")
    host.mounts["/srv/pgdata"].barrier = "off"
    given = {**given_to(host, "strict"), "attestations": [attested("host_honours_flush")]}
    with pytest.raises(ChangeFailed, match=r"sda: kernel 4\.18.* counts no flushes .* mount -t tracefs"):
        enforce(host, look(host, "strict", **given))
    found = look(host, "strict", **given)
    assert (found["verdict"], host.mounts["/srv/pgdata"].barrier) == ("at_risk", "on")
    host.mount_tracefs("/sys/kernel/tracing")
    enforce(host, found)
    assert look(host, "strict", **given)["verdict"] == "attested"


def test_the_order_of_the_steps() -> None:
    assert (
        ("raise", "write_cache"),
        ("tighten", "power_guard"),
        ("tighten", "mount_options"),
        ("tighten", "write_cache"),
        ("tighten", "unit_mounts"),
        *(("tighten", engine) for engine in ("mssql", "faircom", "firebird", "postgresql", "mariadb")),
        ("tighten", "power"),
        ("tighten", "io_scheduler"),
        ("loosen", "write_cache"),
        ("loosen", "mount_options"),
        *(("loosen", engine) for engine in ("mssql", "faircom", "firebird", "postgresql", "mariadb")),
        ("loosen", "power_guard"),
    ) == STEPS


def test_what_a_plan_hands_to_its_layers() -> None:
    host = SmallHost()
    host.disk("sda").cache_mode = "write through"
    host.mounts["/srv/pgdata"].barrier = "off"
    found = look(host, "strict", mounts=["/srv/pgdata"], overrides={"scheduler_solid_state": "none"})
    sda = "serial:QEMU_HARDDISK_SATA0001"
    assert found["plan"] == {
        "raise": {"write_cache": [{"disk": sda, "state": "keep"}]},
        "tighten": {
            "mount_options": [
                {"target": "/srv/pgdata", "persist": True, "barrier": "on", "atime": "noatime"}
            ],
            "write_cache": [{"disk": sda, "state": "disabled"}],
            "io_scheduler": [{"device": sda, "scheduler": "none"}],
        },
        "loosen": {},
    }
    assert [(row["phase"], row["target"], row["setting"], row["wanted"]) for row in found["changes"]] == [
        ("tighten", "/srv/pgdata", "barrier", "on"),
        ("tighten", "/srv/pgdata", "atime", "noatime"),
        ("tighten", sda, "write_cache", "disabled"),
        ("raise", sda, "kernel_cache_mode", "write back"),
        ("tighten", sda, "scheduler", "none"),
    ]
    assert found["files"] == sorted(
        [
            "/etc/fstab",
            our_paths.ORIGINALS,
            cache_rules.RULES_PATH,
            cache_rules.UNIT_PATH,
            scheduler_rules.RULES_PATH,
        ]
    )


@pytest.mark.parametrize("unit", [None, "", "[Mount]\nOptions=nobarrier,%H\n", "[Mount]\nWhat=x\n"])
def test_without_a_line_of_its_own_only_the_running_mount_is_planned(unit: str | None) -> None:
    """No line; a masked unit; one that only systemd can read; one that nothing starts."""
    host = SmallHost()
    host.mounts["/srv/pgdata"].barrier = "off"
    if unit is not None:
        host.files[f"{UNITS}/srv-pgdata.mount"] = unit
    if unit is None or "What" in unit:
        host.files["/etc/fstab"] = ""
    found = look(host, "strict", mounts=["/srv/pgdata"])
    (target,) = found["plan"]["tighten"]["mount_options"]
    assert (target["persist"], target["barrier"]) == (False, "on")
    enforce(host, found)
    assert host.mounts["/srv/pgdata"].barrier == "on"


def test_nothing_to_do_is_an_empty_plan_with_every_phase() -> None:
    steps = build([], True)
    assert steps == {"raise": {}, "tighten": {}, "loosen": {}}
    assert changes(steps, []) == []


def test_what_loosens_is_planned_only_where_it_may() -> None:
    found = look(settled("strict"), "disposable", accept_data_loss=True)
    rows = [
        Setting(**{"klass" if key == "class" else key: row[key] for key in row}) for row in found["settings"]
    ]
    assert {"write_cache", "mount_options"} <= set(build(rows, True)["loosen"])
    assert build(rows, False)["loosen"] == {}


@pytest.mark.parametrize("order", [1, -1])
def test_a_mount_is_kept_for_the_next_boot_if_any_of_its_settings_can_be(order: int) -> None:
    host = SmallHost()
    host.mounts["/srv/pgdata"].barrier = "off"
    found = look(host, mounts=["/srv/pgdata"])
    rows = [row for row in found["settings"] if row["layer"] == "mount_options"]
    kinds = [Setting(**{"klass" if key == "class" else key: row[key] for key in row}) for row in rows]
    drifting = [row for row in kinds if row.phase][:2]
    assert len(drifting) == 2
    one, other = drifting
    lost = {**other.evidence, "persisted": {**other.evidence["persisted"], "source": "none"}}
    pair = [one, other._replace(persisted="unknown", evidence=lost)][::order]
    (target,) = build(pair, False)["tighten"]["mount_options"]
    assert target["persist"] is True
