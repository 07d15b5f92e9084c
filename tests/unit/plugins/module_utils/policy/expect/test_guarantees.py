# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several profiles on one host: what each mount, disk and engine is held to, and that no mount pays for another."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.guarantees import read
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details, with_outcomes
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.results import power_wanted
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput

from ...fakes.fake_host import Killed
from ...fakes.runs import (
    OWN,
    attested,
    enforce,
    inputs,
    look,
    shipped,
)
from ...fakes.small_host import (
    BigHost,
    FakeDisk,
    FakeMount,
    SmallHost,
)
from ..assess.test_engines import instance, judged
from ..assess.test_plan import (
    elsewhere,
    hosts,
    target_ways,
    words,
)

PG, SCRATCH, MARIA = "/srv/pgdata", "/srv/scratch", "/srv/maria"
SDA, VDB = "serial:QEMU_HARDDISK_SATA0001", "serial:VIRT0001"
BOTH = {"mounts": [PG], "mount_profiles": {MARIA: "disposable"}, "accept_data_loss": True}


def with_neighbour() -> SmallHost:
    """Return a host with another file system beside /srv/pgdata, on the same disk."""
    host = SmallHost()
    host.add_mount(
        FakeMount(SCRATCH, "ext4", "8:2", "/dev/sda2", "sda"), "UUID=sc /srv/scratch ext4 defaults 0 2\n"
    )
    return host


def wanted(found: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return {(target, setting): (what is wanted, by which profile)} of a report."""
    return {
        (row["target"], row["setting"]): (row["wanted_running"], row["profile"]) for row in found["settings"]
    }


def brought(host: SmallHost, **given_inputs: Any) -> dict[str, Any]:
    """Return the assessment of a host that was brought to its profiles and rebooted."""
    enforce(host, look(host, "strict", **given_inputs))
    host.reboot()
    return look(host, "strict", **given_inputs)


def test_each_mount_and_a_disk_of_its_own_has_its_profile() -> None:
    found = look(SmallHost(), "strict", **BOTH)
    rows = wanted(found)
    assert (rows[PG, "barrier"], rows[SDA, "write_cache"]) == (("on", "strict"), ("disabled", "strict"))
    assert (rows[MARIA, "barrier"], rows[VDB, "write_cache"]) == (
        ("off", "disposable"),
        ("enabled", "disposable"),
    )
    assert {each["target"]: (each["profile"], each["judged"]) for each in found["mounts"]} == {
        PG: ("strict", "yes"),
        MARIA: ("disposable", "accepted_loss"),
    }


def test_the_verdict_is_that_of_the_strictest_mount() -> None:
    host = SmallHost()
    found = brought(host, **BOTH)
    assert (found["verdict"], found["changes"]) == ("durable", [])
    assert (host.mounts[MARIA].barrier, host.mounts[PG].barrier) == ("off", "on")
    note = f"{MARIA}: profile disposable: its files can be lost at a power cut, as declared"
    assert note in found["warnings"]
    report = {"host": "a", "was": "drifted", "error": None, "looked_only": True, **found}
    assert note in str(details([with_outcomes(report)]))
    host.mounts[PG].barrier = "off"
    assert look(host, "strict", **{**BOTH, "mounts": [PG]})["verdict"] == "drifted"
    host.disk("sda").cache = "enabled"
    assert look(host, "strict", **BOTH)["verdict"] == "at_risk"
    # Where nothing else is managed, nothing is promised.
    assert look(host, "strict", **{**BOTH, "mounts": []})["verdict"] == "accepted_loss"


def test_what_a_disposable_mount_lacks_is_no_risk_of_the_others() -> None:
    host = SmallHost()
    brought(host, **BOTH)
    host.disk("vdb").cache_mode = "write through"
    found = look(host, "strict", **BOTH)
    assert not any("can be lost" in why for why in found["why"])


def test_a_shared_disk_stays_strict_and_the_report_says_whose_it_is() -> None:
    host = with_neighbour()
    given_inputs = {**BOTH, "mount_profiles": {SCRATCH: "disposable"}}
    found = brought(host, **given_inputs)
    assert (found["verdict"], found["changes"]) == ("durable", [])
    assert wanted(found)[SDA, "write_cache"] == ("disabled", "strict")
    assert (host.disk("sda").cache, host.mounts[SCRATCH].barrier) == ("disabled", "off")
    note = f"sda is assessed by strict because of {PG}, and shared with {SCRATCH} (disposable)"
    assert note in found["warnings"]


def test_namespaces_of_one_nvme_controller_share_its_cache() -> None:
    host = BigHost()
    host.add_disk(FakeDisk("nvme0n2", "nvme", "KIOXIA_X2", wwn="eui.0025386", fua="1"), "259:8")
    host.add_mount(
        FakeMount(SCRATCH, "ext4", "259:8", "/dev/nvme0n2", "nvme0n2"),
        "UUID=sc /srv/scratch ext4 defaults 0 2\n",
    )
    given_inputs = {**BOTH, "mounts": ["/srv/firebird"], "mount_profiles": {SCRATCH: "disposable"}}
    caches = {
        row["evidence"]["disk"]: (row["wanted_running"], row["profile"])
        for row in look(host, "strict", **given_inputs)["settings"]
        if row["setting"] == "write_cache"
    }
    assert caches == {"nvme0n1": ("disabled", "strict"), "nvme0n2": ("disabled", "strict")}


def test_the_stricter_of_two_promises_holds_on_a_shared_disk() -> None:
    host = with_neighbour()
    rows = wanted(look(host, "flush", mounts=[PG], mount_profiles={SCRATCH: "strict"}))
    assert rows[SDA, "write_cache"] == ("disabled", "strict")
    found = look(host, "flush", mounts=[PG], mount_profiles={SCRATCH: "protected"})
    assert wanted(found)[SDA, "write_cache"] == ("enabled", "protected")
    assert {need["name"] for need in found["requirements"]} == {"flush_honoured", "cache_non_volatile"}


def test_a_mount_s_loosening_waits_for_its_own_requirements_alone() -> None:
    """What a guest cannot see of the strict mount's disk is nothing to the disposable one; nor the other way round."""
    host = SmallHost()
    host.commands[("systemd-detect-virt",)] = "kvm\n"
    found = look(host, "strict", **BOTH)
    assert [step["target"] for step in found["plan"]["loosen"]["mount_options"]] == [MARIA]
    assert brought(host, **BOTH)["verdict"] == "unverified"
    refused = look(SmallHost(), "strict", **{**BOTH, "accept_data_loss": False})
    assert (refused["verdict"], refused["plan"]["loosen"]) == ("blocked", {})
    assert any("this profile loses acknowledged commits" in why for why in refused["why"])
    assert {"disk": SDA, "state": "disabled"} in refused["plan"]["tighten"]["write_cache"]


def test_a_cache_of_a_promise_that_is_not_met_stays_off_beside_one_that_may_go_on() -> None:
    host = SmallHost()
    enforce(host, look(host, "strict", mounts=[PG, "/srv/mssql"]))
    found = look(host, "protected", mounts=[PG], mount_profiles={"/srv/mssql": "flush"})
    assert [step["disk"] for step in found["plan"]["loosen"]["write_cache"]] == [host.disk("sdb").id]
    changed = {change["target"] for change in found["changes"] if change["phase"] == "loosen"}
    assert changed == {host.disk("sdb").id}


def test_what_is_unknown_of_one_mount_withholds_all() -> None:
    host = SmallHost()
    host.files.pop("/proc/fs/ext4/sda1/options")
    assert look(host, "strict", **BOTH)["plan"]["loosen"]  # its barriers alone: that mount is unknown
    host.unplug("sda")
    assert look(host, "strict", **BOTH)["plan"]["loosen"] == {}


def test_single_settings_of_a_mount() -> None:
    host = SmallHost()
    said = {
        MARIA: {"overrides": {"atime": "relatime"}},
        PG: {"profile": "flush", "overrides": {"data_mode": "journal"}},
    }
    rows = wanted(
        look(host, "strict", mounts=None, databases=[], mount_profiles=said, overrides={"atime": "keep"})
    )
    assert rows[MARIA, "atime"] == ("relatime", "strict")
    assert rows[PG, "data_mode"] == ("journal", "flush")
    # What the host changes of its own profile is no part of another one.
    assert rows[PG, "atime"] == ("noatime", "flush")


def test_a_mount_with_weaker_overrides_needs_a_word_for_its_disks_alone() -> None:
    said = {"mounts": [PG, "/srv/mssql"], "mount_profiles": {PG: {"overrides": {"write_cache": "enabled"}}}}
    found = look(SmallHost(), "strict", **said)
    weak = [need["target"] for need in found["requirements"] if need["name"] == "override_attested"]
    assert (weak, found["verdict"]) == (["sda"], "blocked")
    assert look(SmallHost(), "strict", **said, attestations=[attested()])["verdict"] == "drifted"


def test_one_that_is_named_is_managed_and_listed_whoever_found_the_others() -> None:
    engine = instance(directories=[PG])
    found = judged(engine, mounts=None, mount_profiles={MARIA: "disposable"}, accept_data_loss=True)
    assert {each["target"] for each in found["mounts"]} == {PG, MARIA}
    needs = {(need["name"], need["target"]): need["state"] for need in found["requirements"]}
    assert needs["only_database_paths", MARIA] == "met"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], r"durable_mount_profiles: observed \[\]; expected a mapping of mount points to profiles"),
        ({"srv": "strict"}, "durable_mount_profiles: observed 'srv'; expected an absolute path"),
        ({1: "strict"}, "durable_mount_profiles: observed 1; expected an absolute path"),
        (
            {PG: "stritc"},
            f"durable_mount_profiles: {PG}: observed 'stritc'; expected one of disposable, flush",
        ),
        (
            {PG: None},
            "observed None; expected the name of a profile, or a mapping with profile, overrides or both",
        ),
        ({PG: {}}, "observed {}; expected the name of a profile"),
        ({PG: {"profil": "strict"}}, "expected the name of a profile, or a mapping with"),
        ({PG: {"profile": None}}, f"{PG}: observed None; expected one of disposable"),
        ({PG: {"overrides": {"barriers": "on"}}}, f"{PG}: observed 'barriers'; expected one of write_cache"),
        (
            {PG: {"overrides": {"barrier": "off"}}},
            f"{PG}: barrier 'off' with write_cache 'disabled' contradict",
        ),
        ({PG: {"overrides": "noatime"}}, f"{PG}: observed 'noatime'; expected a mapping"),
        ({PG: "strict", "/srv/./pgdata": "flush"}, "observed twice"),
        ({PG: "ups", SCRATCH: "strict"}, rf"{PG} \(ups\) is on sda, whose cache strict disables"),
    ],
)
def test_what_cannot_be_meant_blocks_the_host_and_changes_nothing(value: Any, said: str) -> None:
    found = look(with_neighbour(), "strict", mounts=[PG], mount_profiles=value)
    assert (found["verdict"], found["steps"]) == ("blocked", [])
    (why,) = found["why"]
    assert re.search(said, why), why


@pytest.mark.parametrize("path", ["/srv/none", f"{PG}/base"])
def test_a_profile_of_a_mount_that_is_not_there_is_unknown_and_the_rest_is_assessed(path: str) -> None:
    found = look(with_neighbour(), "strict", mounts=[PG], mount_profiles={path: "flush"})
    assert found["verdict"] == "unknown"
    said = (
        f"durable_mount_profiles: observed {path}: .*, expected one of /, .*; mount it, or correct the path"
    )
    assert any(re.search(said, why) for why in found["why"])
    assert {each["target"] for each in found["mounts"]} == {PG}


def test_two_places_of_one_file_system_have_one_profile() -> None:
    host = SmallHost()
    text = host.read("/proc/self/mountinfo")
    host.files["/proc/self/mountinfo"] = text + "99 31 8:1 / /srv/again rw - ext4 /dev/sda1 rw\n"
    found = look(host, "strict", mounts=[PG], mount_profiles={PG: "strict", "/srv/again": "flush"})
    assert found["verdict"] == "blocked"
    assert "are one file system; expected one entry for it" in found["why"][0]


UNSAFE = {"running": {"synchronous_commit": "off"}, "persisted": {"synchronous_commit": "off"}}


class TestEngines:
    """An engine is judged by the strictest of its mounts, and none of its files may lie where they can go."""

    def of(self, *instances: dict[str, Any], **given_inputs: Any) -> dict[str, Any]:
        return judged(*instances, **{**BOTH, **given_inputs})

    def test_each_is_judged_by_where_it_lies(self) -> None:
        strict, loose = instance(directories=[PG], **UNSAFE), instance("mariadb", directories=[MARIA])
        found = self.of(strict, loose)
        rows = wanted(found)
        assert rows["main", "synchronous_commit"] == ("on", "strict")
        assert rows["main", "sync_binlog"] == ("0", "disposable")
        assert found["plan"]["loosen"]["mariadb"]
        assert found["verdict"] == "at_risk"
        assert not any("mariadb" in why for why in found["why"] if "can be lost" in why)

    def test_one_on_both_is_judged_by_the_strictest_and_said_so(self) -> None:
        found = self.of(instance(directories=[PG, MARIA], **UNSAFE))
        assert wanted(found)["main", "synchronous_commit"] == ("on", "strict")
        (need,) = [need for need in found["requirements"] if need["name"] == "one_promise"]
        assert (need["target"], need["state"]) == (MARIA, "unmet")
        assert need["evidence"] == (f"postgresql main has files on {MARIA} ({MARIA}), and on {PG} (strict)")
        assert found["plan"]["loosen"] == {}

    def test_one_on_both_is_at_risk_where_the_disposable_mount_is_loose_already(self) -> None:
        host = SmallHost()
        host.mounts[MARIA].barrier = "off"
        calm = judged(instance(directories=[PG]), host=host, **BOTH)
        assert not any("can be lost" in why for why in calm["why"])
        found = judged(instance(directories=[PG, MARIA]), host=host, **BOTH)
        assert found["verdict"] == "at_risk"
        assert "vdb can be lost: /srv/maria is mounted without barriers" in found["why"][0]

    def test_its_temporary_files_may_lie_where_they_can_go(self) -> None:
        found = self.of(instance(directories=[PG], temporary=[f"{MARIA}/tempdb"]))
        assert "one_promise" not in {need["name"] for need in found["requirements"]}
        assert found["plan"]["loosen"]["mount_options"]
        assert {each["target"]: each["judged"] for each in found["mounts"]}[MARIA] == "accepted_loss"

    @pytest.mark.parametrize(
        "given_facts", [{"directories": []}, {"directories": [MARIA, "/proc/1/root/data"]}]
    )
    def test_where_its_files_are_not_known_the_strictest_of_the_host_holds(self, given_facts: Any) -> None:
        given_inputs = {"profile": "disposable", "mounts": [MARIA], "mount_profiles": {PG: "strict"}}
        found = judged(instance(**given_facts, **UNSAFE), **given_inputs, accept_data_loss=True)
        assert wanted(found)["main", "synchronous_commit"] == ("on", "strict")
        assert found["verdict"] == "at_risk"


class TestUps:
    """A guard is asked for the mounts that rest on a UPS, and for no other."""

    def test_its_requirements_are_asked_for_its_mounts_alone(self) -> None:
        found = look(SmallHost(), "strict", mounts=[PG], mount_profiles={MARIA: "ups"})
        names = {need["name"] for need in found["requirements"]}
        assert {"device_obeys", "ups_rehearsed", "plug_pulled"} <= names
        assert found["verdict"] == "blocked"
        assert (found["plan"]["loosen"], found["lease"]) == ({}, None)
        assert {"disk": SDA, "state": "disabled"} in found["plan"]["tighten"]["write_cache"]

    @pytest.mark.parametrize(
        ("said", "power"),
        [({}, "guarded"), ({MARIA: "flush"}, "guarded"), ({MARIA: "ups"}, "always"), ([], "guarded")],
    )
    def test_power_is_looked_at_where_a_mount_rests_on_it(self, said: Any, power: str) -> None:
        assert power_wanted(inputs("strict", mount_profiles=said)) == power


def test_an_audit_rates_with_the_mounts_own_profiles() -> None:
    found = look(with_neighbour(), None, mounts=[PG], mount_profiles={SCRATCH: "strict"})
    assert (found["verdict"], set(found["ratings"])) == (
        "not_managed",
        {"strict", "flush", "protected", "ups", "disposable"},
    )
    caches = {
        name: {c["wanted"] for c in each["changes"] if c["setting"] == "write_cache"}
        for name, each in found["ratings"].items()
    }
    assert caches["flush"] == {"disabled"}
    assert found["ratings"]["ups"]["verdict"] == "blocked"
    assert "whose cache strict disables" in found["ratings"]["ups"]["why"][0]
    # Single settings are about the profile that is pinned, and not about what is rated.
    overrides = {SCRATCH: {"overrides": {"write_cache": "disabled"}}}
    found = look(with_neighbour(), None, mounts=[PG], mount_profiles=overrides)
    assert not any("contradict" in why for each in found["ratings"].values() for why in each["why"])


def mixed(host: SmallHost, profile: str, loose: list[str]) -> dict[str, Any]:
    """Return an inventory that manages all of a host but its root, some of it with the profile disposable."""
    listed = [target for target, mount in host.mounts.items() if target != "/" and mount.fstype != "btrfs"]
    return {
        "accept_data_loss": True,
        "attestations": words(host),
        "mounts": [target for target in listed if target not in loose],
        "mount_profiles": dict.fromkeys(loose, "disposable"),
    }


def may_go(host: SmallHost, loose: list[str]) -> set[str]:
    """Return the ways to lose commits that a host may have for its disposable mounts."""
    disks = {target: {disk.name for disk in host.leaves(host.mounts[target])} for target in host.mounts}
    ours = set().union(*(disks[target] for target in loose)) if loose else set()
    ways = target_ways(host, "disposable")
    return {way for way in ways if way.startswith(tuple(f"{target} " for target in loose))} | {
        f"{name}: unflushed commits" for name in ours
    }


@pytest.mark.every_python_alike
@settings(max_examples=40)
@given(hosts(), st.sampled_from(["strict", "flush"]), st.data())
def test_killed_anywhere_no_mount_is_less_safe_than_where_it_came_from_or_goes(
    host: SmallHost, profile: str, data: st.DataObject
) -> None:
    targets = [target for target in host.mounts if target not in ("/", "/srv/btrfs")]
    loose = data.draw(st.lists(st.sampled_from(targets), unique=True, max_size=len(targets) - 1))
    given_inputs = mixed(host, profile, loose)
    allowed = host.ways_to_lose() | may_go(host, loose)
    found = look(host, profile, **given_inputs)
    host.stop_at = data.draw(st.integers(1, 40))
    try:
        enforce(host, found)
    except Killed:
        pass
    host.stop_at = 0
    assert host.ways_to_lose() <= allowed
    enforce(host, look(host, profile, **given_inputs))
    assert look(host, profile, **given_inputs)["changes"] == []
    host.reboot()
    enforce(host, look(host, profile, **given_inputs))
    apart = elsewhere(host, "disposable")
    assert host.ways_to_lose() - apart <= may_go(host, loose)


def test_a_profile_of_ones_own_for_one_mount() -> None:
    own = {"journal": {**OWN, "data_mode": "journal"}}
    rows = wanted(look(SmallHost(), "strict", mounts=[PG], own=own, mount_profiles={MARIA: "journal"}))
    assert rows[MARIA, "data_mode"] == ("journal", "journal")


def test_two_mounts_that_change_sides_are_at_no_death_less_safe_than_either_end() -> None:
    """Nothing is loosened on the one before the other is tightened. On a kernel: molecule/default/tests/test_kill.py."""
    sides = [
        {"mounts": [PG, MARIA], "mount_profiles": {target: "disposable"}, "accept_data_loss": True}
        for target in (MARIA, PG)
    ]
    weak = []
    for side in sides:
        host = SmallHost()
        assert brought(host, **side)["changes"] == []
        weak.append(ours(host))
    start, goal = weak
    assert start and goal and not start & goal
    steps, deaths = 1, 0
    while steps:
        host = SmallHost()
        brought(host, **sides[0])
        host.mutations.clear()
        found = look(host, "strict", **sides[1])
        host.stop_at = steps
        try:
            enforce(host, found)
            steps = 0
        except Killed:
            steps, deaths = steps + 1, deaths + 1
        seen = ours(host)
        # A journal's mode lasts until the file system is mounted again: it has no part in the order.
        left = {way for way in seen & start if "writeback" not in way}
        assert seen <= start | goal
        assert not left or not seen & goal
    assert deaths > 5


def ours(host: SmallHost) -> set[str]:
    """Return the ways to lose commits of the two mounts that may have any, except what waits for a flush."""
    return {way for way in host.ways_to_lose() if way.startswith((f"{PG} ", f"{MARIA} "))}


def test_no_entry_hides_another_and_overrides_alone_are_checked() -> None:
    entries = {PG: "disposible", MARIA: {"profil": "flush"}, SCRATCH: {"overrides": {"barrier": False}}}
    with pytest.raises(BadInput) as caught:
        read(entries, shipped(), {})
    first, second, third = caught.value.errors
    assert first.startswith(
        f"durable_mount_profiles: {PG}: observed 'disposible'; expected one of disposable"
    )
    assert second.endswith("Did you mean profile?")
    assert third.startswith(f"durable_mount_profiles: {SCRATCH}: barrier: observed the boolean False")
