# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way from a state to a profile: the plan is safe at each step, ends there, and then stops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils import flush, fstab, udev
from ansible_collections.durable.dbhost.plugins.module_utils.host import ChangeFailed
from ansible_collections.durable.dbhost.plugins.module_utils.plan import STEPS, build, changes

from .fake_host import Killed
from .policy import MOUNTS, PROFILES, attested, enforce, look
from .small_host import SmallHost

SDB = "serial:QEMU_HARDDISK_SATA0002"
WORDS = [
    attested("host_honours_flush"),
    *(attested(target=disk) for disk in ("serial:QEMU_HARDDISK_SATA0001", SDB, "serial:VIRT0001")),
]
#: With these, every profile that this release knows may loosen.
GIVEN = {"accept_data_loss": True, "attestations": WORDS}

on_off = st.sampled_from(["on", "off"])
caches = st.sampled_from(["enabled", "disabled"])


@st.composite
def hosts(draw: st.DrawFn) -> SmallHost:
    """Draw a host in any state that an administrator or a killed run can leave it in."""
    host = SmallHost()
    rules = []
    for disk in host.disks.values():
        disk.cache = draw(caches)
        disk.belief = draw(st.sampled_from(["write back", "write through"]))
        if disk.transport == "virtio" and disk.cache == "disabled":
            disk.belief = "write through"
        if disk.cache == "enabled" and draw(st.integers(0, 3)) == 0:
            host.files[f"{flush.OWED}/{disk.name}"] = ""
            disk.dirty = True
        state = draw(st.sampled_from(["enabled", "disabled", None]))
        if state:
            rules.append(udev.CacheRule(disk.id, disk.transport, state))
    if rules:
        host.files[udev.RULES_PATH] = udev.render_rules(rules)
    text = host.read("/etc/fstab")
    for mount in host.mounts.values():
        if mount.target == "/":
            continue
        words: tuple[str, ...] = ("rw",)
        mount.atime = draw(st.sampled_from(["noatime", "relatime", "strictatime"]))
        if mount.fstype != "xfs":
            mount.barrier = draw(on_off)
            mount.data = draw(st.sampled_from(["ordered", "journal", "writeback"]))
            mount.sb_options = draw(
                st.sampled_from([(), ("nobarrier",), ("data=writeback",), ("data=journal",)])
            )
            words += draw(
                st.sampled_from([(), ("nobarrier",), ("barrier=1", "data=writeback"), ("data=journal",)])
            )
        else:
            words += draw(st.sampled_from([(), ("nobarrier",), ("noatime",)]))
        entry = fstab.find(fstab.parse(text), mount.target)[0]
        assert entry
        text = fstab.set_options(text, entry, words, None)
    host.files["/etc/fstab"] = text
    host.after_mutation()
    return host


def target_ways(host: SmallHost, profile: str) -> set[str]:
    """Return the ways to lose commits that a profile itself has, on the listed mounts."""
    if profile != "disposable":
        return set()
    found = set()
    for mount in host.mounts.values():
        if mount.fstype == "ext4":
            found |= {f"{mount.target} {when}: cache enabled without barriers" for when in ("now", "boot")}
            found |= {f"{mount.target} boot: writeback", f"{mount.disk}: unflushed commits"}
    return found


@settings(max_examples=60)
@given(hosts(), st.sampled_from(PROFILES))
def test_no_step_is_less_safe_than_the_weaker_end_and_the_end_is_reached(
    host: SmallHost, profile: str
) -> None:
    start = host.ways_to_lose()
    found = look(host, profile, **GIVEN)
    allowed = start | target_ways(host, profile)
    seen: list[set[str]] = []
    age = host.after_mutation
    host.after_mutation = lambda: (age(), seen.append(host.ways_to_lose()))[0]
    enforce(host, found)
    for step, ways in enumerate(seen):
        assert ways <= allowed, host.mutations[step]
    again = look(host, profile, **GIVEN)
    assert again["changes"] == [], again["why"]
    assert again["plan"] == build([], False)
    withheld = "withheld" in "\n".join(again["why"])
    host.reboot()
    if not withheld:
        assert look(host, profile, **GIVEN)["changes"] == []
    root = {way for way in host.ways_to_lose() if way.startswith(("/ ", "vda"))}
    assert host.ways_to_lose() - root <= target_ways(host, profile)


@settings(max_examples=60)
@given(hosts(), st.sampled_from(PROFILES), st.data())
def test_killed_anywhere_a_host_is_no_less_safe_and_knows_what_it_lacks(
    host: SmallHost, profile: str, data: st.DataObject
) -> None:
    allowed = host.ways_to_lose() | target_ways(host, profile)
    found = look(host, profile, **GIVEN)
    host.stop_at = data.draw(st.integers(1, 40))
    try:
        enforce(host, found)
    except Killed:
        pass
    host.stop_at = 0
    assert host.ways_to_lose() <= allowed
    assert fstab.parse(host.read("/etc/fstab"))
    # Commits that a cut would take are a risk that the next run sees, and ends.
    dirty = {disk.name for disk in host.disks.values() if disk.dirty and disk.cache == "enabled"} - {"vda"}
    bare = look(host, "strict", mounts=MOUNTS)
    for name in dirty:
        assert f"commits since the last flush on {name} can vanish" in "\n".join(bare["why"])
    enforce(host, look(host, profile, **GIVEN))
    assert look(host, profile, **GIVEN)["changes"] == []


@settings(max_examples=40)
@given(hosts(), st.sampled_from(["strict", "flush"]))
def test_tightening_never_waits_for_a_requirement(host: SmallHost, profile: str) -> None:
    """A guest without a word from its host is still made as safe as a guest can be."""
    host.commands[("systemd-detect-virt",)] = "kvm\n"
    enforce(host, look(host, profile))
    host.reboot()
    root = {way for way in host.ways_to_lose() if way.startswith(("/ ", "vda"))}
    assert host.ways_to_lose() == root


@settings(max_examples=40)
@given(hosts(), st.sampled_from(PROFILES), st.integers(1, 30))
def test_a_refused_change_is_reported_and_leaves_the_host_no_less_safe(
    host: SmallHost, profile: str, stop_at: int
) -> None:
    allowed = host.ways_to_lose() | target_ways(host, profile)
    found = look(host, profile, **GIVEN)
    host.stop_at, host.stop = stop_at, ChangeFailed
    try:
        enforce(host, found)
    except ChangeFailed:
        assert len(host.mutations) >= stop_at
    assert host.ways_to_lose() <= allowed
    assert fstab.parse(host.read("/etc/fstab"))


def test_the_order_of_the_steps() -> None:
    assert STEPS == (
        ("believe", "write_cache"),
        ("tighten", "mount_options"),
        ("tighten", "write_cache"),
        ("loosen", "write_cache"),
        ("loosen", "mount_options"),
    )


def test_what_a_plan_hands_to_its_layers() -> None:
    host = SmallHost()
    host.disk("sda").belief = "write through"
    host.mounts["/srv/pgdata"].barrier = "off"
    found = look(host, "strict", mounts=["/srv/pgdata"])
    sda = "serial:QEMU_HARDDISK_SATA0001"
    assert found["plan"] == {
        "believe": {"write_cache": [{"disk": sda, "state": "keep"}]},
        "tighten": {
            "mount_options": [
                {"target": "/srv/pgdata", "persist": True, "barrier": "on", "atime": "noatime"}
            ],
            "write_cache": [{"disk": sda, "state": "disabled"}],
        },
        "loosen": {},
    }
    assert [(row["phase"], row["target"], row["setting"], row["wanted"]) for row in found["changes"]] == [
        ("tighten", "/srv/pgdata", "barrier", "on"),
        ("tighten", "/srv/pgdata", "atime", "noatime"),
        ("tighten", sda, "write_cache", "disabled"),
        ("believe", sda, "kernel_belief", "write back"),
    ]
    assert found["files"] == ["/etc/fstab", udev.RULES_PATH]


@pytest.mark.parametrize("line", [None, "unit"])
def test_without_a_line_of_its_own_only_the_running_mount_is_planned(line: Any) -> None:
    host = SmallHost()
    host.mounts["/srv/pgdata"].barrier = "off"
    if line:
        host.files["/etc/systemd/system/srv-pgdata.mount"] = "[Mount]\n"
    else:
        host.files["/etc/fstab"] = ""
    found = look(host, "strict", mounts=["/srv/pgdata"])
    (target,) = found["plan"]["tighten"]["mount_options"]
    assert (target["persist"], target["barrier"]) == (False, "on")
    enforce(host, found)
    assert host.mounts["/srv/pgdata"].barrier == "on"


def test_nothing_to_do_is_an_empty_plan_with_every_phase() -> None:
    steps = build([], True)
    assert steps == {"believe": {}, "tighten": {}, "loosen": {}}
    assert changes(steps, []) == []
