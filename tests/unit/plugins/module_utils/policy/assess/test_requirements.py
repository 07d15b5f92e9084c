# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a promise rests on: shown by this host, vouched for, not to be seen from here, or absent."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.attestations import Attestation
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.requirements import (
    attestation_for,
    fua_honoured,
    how_named,
    is_protected,
    of_disk,
    of_host,
    of_neighbours,
    with_attestations,
)
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.managed import mounts_of
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import choose
from ansible_collections.durable.dbhost.plugins.module_utils.storage import ext4
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disk_kinds import Traits, classify

from ...fakes.captured import COLLECTION
from ...fakes.runs import (
    NOW,
    attested,
    look,
    shipped,
)
from ...fakes.small_host import (
    BigHost,
    FakeDisk,
    FakeMount,
    SmallHost,
    md,
)


def states(
    host: SmallHost, profile: str, target: str, words: tuple[str, ...] = (), **given: Any
) -> dict[str, str]:
    """Return {requirement: state} of one mount and its disks under a profile."""
    storage = collect(host, NOW)
    chosen, pinned = choose(profile, shipped(), {}, given.pop("overrides", {}))
    mounts = mounts_of([target], None, storage, [])
    disks = [disk for disk in storage["disks"] if disk["name"] in mounts[0]["disks"]]
    vouched = [Attestation(**attested(claim)) for claim in words]
    found = of_host(chosen, pinned, mounts, disks, vouched, given.pop("accept", False))
    assert [
        need for need in found if need.state not in ("met", "attested") and not (need.why and need.remedy)
    ] == []
    return {need.name: need.state for need in found}


@pytest.mark.parametrize(
    ("profile", "target", "words", "expected"),
    [
        ("strict", "/srv/pgdata", (), {"device_obeys": "met"}),
        ("strict", "/srv/maria", (), {"device_obeys": "unverified"}),
        ("strict", "/srv/maria", ("host_honours_flush",), {"device_obeys": "attested"}),
        ("strict", "/srv/maria", ("plug_pulled",), {"device_obeys": "unverified"}),
        ("flush", "/srv/pgdata", (), {"flush_honoured": "met"}),
        ("flush", "/srv/maria", (), {"flush_honoured": "unverified"}),
        ("protected", "/srv/pgdata", (), {"cache_non_volatile": "unmet"}),
        ("protected", "/srv/pgdata", ("power_loss_protection",), {"cache_non_volatile": "attested"}),
        ("protected", "/srv/pgdata", ("host_honours_flush",), {"cache_non_volatile": "unmet"}),
        # What it rests on is in test_ups.py.
        ("ups", "/srv/pgdata", ("ups_rehearsed",), {}),
        ("disposable", "/srv/pgdata", (), {"data_loss_accepted": "unmet", "only_database_paths": "met"}),
    ],
)
def test_each_profile_rests_on_its_evidence(
    profile: str, target: str, words: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert states(SmallHost(), profile, target, words) == expected


@pytest.mark.parametrize("word", ["kvm\n", "vmware\n", "docker\n", ""])
@pytest.mark.parametrize(("profile", "name"), [("strict", "device_obeys"), ("flush", "flush_honoured")])
def test_a_guest_sees_no_promise_of_its_host(word: str, profile: str, name: str) -> None:
    host = SmallHost()
    host.commands[("systemd-detect-virt",)] = word
    assert states(host, profile, "/srv/pgdata") == {name: "unverified"}


def test_a_device_that_does_not_answer_shows_nothing() -> None:
    host = SmallHost()
    del host.commands[("hdparm", "-W", "/dev/sda")]
    assert states(host, "strict", "/srv/pgdata") == {"device_obeys": "unverified"}


@pytest.mark.parametrize(("words", "state"), [((), "unmet"), (("power_loss_protection",), "attested")])
def test_an_override_that_weakens_needs_a_word(words: tuple[str, ...], state: str) -> None:
    found = states(SmallHost(), "strict", "/srv/pgdata", words, overrides={"write_cache": "enabled"})
    assert found["override_attested"] == state


@pytest.mark.parametrize(
    ("target", "state"),
    [
        *(
            (path, "unmet")
            for path in ("/boot", "/usr", "/var", "/etc", "/home", "/boot/efi", "/usr/local", "/etc/x")
        ),
        *((path, "met") for path in ("/srv/x", "/var/lib/mysql", "/varia", "/home/db", "/bootx")),
    ],
)
def test_where_barriers_may_be_off(target: str, state: str) -> None:
    host = SmallHost()
    host.add_mount(FakeMount(target, "ext4", "8:2", "/dev/sda2", "sda"))
    found = states(host, "disposable", target, accept=True)
    assert found == {"data_loss_accepted": "met", "only_database_paths": state}


def test_a_second_target_on_a_system_path_counts() -> None:
    host = SmallHost()
    bind = "99 30 8:1 /sub /usr/local rw - ext4 /dev/sda1 rw\n"
    host.files["/proc/self/mountinfo"] = host.read("/proc/self/mountinfo") + bind
    assert states(host, "disposable", "/srv/pgdata", accept=True)["only_database_paths"] == "unmet"


def test_btrfs_keeps_its_barriers() -> None:
    host = SmallHost()
    host.add_mount(FakeMount("/srv/b", "btrfs", "8:2", "/dev/sda2", "sda"))
    assert states(host, "disposable", "/srv/b", accept=True)["only_database_paths"] == "unmet"


@pytest.mark.parametrize(
    ("profile", "expected"), [("strict", "unmet"), ("flush", "unmet"), ("disposable", None)]
)
def test_a_disk_of_memory_keeps_no_promise_past_the_boot(profile: str, expected: str | None) -> None:
    host = SmallHost()
    host.add_disk(FakeDisk("sdx", "scsi", "MEM1", driver="scsi_debug"), "8:240")
    host.add_mount(FakeMount("/srv/x", "ext4", "8:240", "/dev/sdx", "sdx"))
    assert states(host, profile, "/srv/x", accept=True).get("disk_lasts") == expected


#: LUN 1 of the first controller of generation 2.
AZURE = "VMBUS:00/f8b3781a-1e82-4818-a1c3-63d806ec15bb/host9/target9:0:0/9:0:0:1/block"
HIS_WORD = attested("host_honours_flush", "serial:SDX")


@pytest.mark.parametrize("name", ["sdx", "pmem0"])
@pytest.mark.parametrize(
    ("words", "state"),
    [
        ((), "unverified"),
        ((attested("host_honours_flush"),), "unverified"),
        ((attested("host_honours_flush", "serial:OTHER"),), "unverified"),
        ((attested("host_honours_fua", "serial:SDX"),), "unverified"),
        ((HIS_WORD,), "attested"),
        ((attested("power_loss_protection", "serial:SDX"),), "attested"),
    ],
)
def test_a_disk_that_may_be_temporary_is_vouched_for_by_name(name: str, words: Any, state: str) -> None:
    """Where Azure has its temporary disk, and udev does not tell; and memory that may be plain memory."""
    host = SmallHost()
    host.commands[("systemd-detect-virt",)] = "microsoft\n"
    host.add_disk(FakeDisk(name, "scsi", "SDX", driver="storvsc", port=AZURE), "8:240")
    host.add_mount(FakeMount("/srv/x", "ext4", "8:240", f"/dev/{name}", name))
    found = look(host, "flush", mounts=["/srv/x"], attestations=list(words))
    (need,) = [need for need in found["requirements"] if need["name"] == "flush_honoured"]
    assert need["state"] == state
    assert (found["verdict"] == "attested") <= (state == "attested")
    assert ("power_loss_protection for serial:SDX" in need["remedy"]) == (state != "attested")


@pytest.mark.parametrize(
    ("layer", "profile", "expected"),
    [
        (md("md9", "raid5", ("sda1",), "9:9"), "strict", "unmet"),
        (md("md9", "raid5", ("sda1",), "9:9"), "flush", "unmet"),
        (md("md9", "raid5", ("sda1",), "9:9"), "disposable", None),
        (md("md9", "raid5", ("sda1",), "9:9", consistency_policy="ppl"), "strict", None),
        (md("md9", "raid1", ("sda1",), "9:9"), "strict", None),
    ],
)
@pytest.mark.fact(47)
def test_the_write_hole_is_a_requirement_of_its_own(layer: Any, profile: str, expected: str | None) -> None:
    """md RAID 4, 5 and 6 without a journal or PPL: no setting of caches or barriers mends it."""
    host = SmallHost()
    host.add_layer(layer)
    host.add_mount(FakeMount("/srv/x", "ext4", "9:9", "/dev/md9", "md9"))
    assert states(host, profile, "/srv/x", accept=True).get("no_write_hole") == expected


@pytest.mark.parametrize(
    ("policy", "cache", "profile", "expected"),
    [
        ("ppl", "enabled", "flush", "unmet"),
        ("ppl", "enabled", "strict", None),
        ("ppl", "disabled", "flush", "unmet"),
        ("journal", "enabled", "flush", None),
    ],
)
@pytest.mark.fact(47)
def test_a_partial_parity_log_over_a_cache_does_not_hold_a_promise_of_flushes(
    policy: str, cache: str, profile: str, expected: str | None
) -> None:
    host = SmallHost()
    host.disk("sda").cache = cache
    host.add_layer(
        md("md9", "raid5", ("sda1",), "9:9", consistency_policy=policy, journal_mode="[write-through]")
    )
    host.add_mount(FakeMount("/srv/x", "ext4", "9:9", "/dev/md9", "md9"))
    assert states(host, profile, "/srv/x", accept=True).get("flush_awaited") == expected
    found = look(host, profile, mounts=["/srv/x"])
    reported = [
        why for why in found["why"] if "before sda has flushed them: md9 has a partial parity log" in why
    ]
    assert bool(reported) == (policy == "ppl" and cache == "enabled")


@pytest.mark.parametrize(
    ("name", "words", "honoured"),
    [
        ("sdc", (), True),
        ("nvme0n1", (), True),
        ("vdb", (), False),
        ("vdb", ("host_honours_fua",), True),
        ("sda", (), False),
        ("sda", ("host_honours_flush",), False),
        ("sda", ("host_honours_fua",), True),
        ("sda", ("power_loss_protection",), True),
    ],
)
@pytest.mark.fact(16)
def test_only_a_disk_whose_standard_has_fua_is_taken_at_its_word(
    name: str, words: tuple[str, ...], honoured: bool
) -> None:
    """The kernel leaves SATA's FUA off by default, because of disks that take the bit and ignore it."""
    host = BigHost()
    host.disk(name).fua = "1"
    (disk,) = [disk for disk in collect(host, NOW)["disks"] if disk["name"] == name]
    assert disk["fua"] == "supported"
    assert fua_honoured(disk, [Attestation(**attested(claim)) for claim in words]) is honoured


@pytest.mark.fact(16)
@pytest.mark.parametrize(
    "case", ["sata_disk_mpt3sas", "megaraid_jbod_sata", "hpsa_hba_mode", "aacraid_exposed_disk"]
)
def test_a_sata_disk_is_one_behind_a_sas_controller_too(case: str) -> None:
    """The controller offers FUA for it, and the disk may ignore the bit."""
    traits = Traits(**json.loads((COLLECTION / f"tests/fixtures/kinds/{case}.json").read_text())["traits"])
    (disk,) = [disk for disk in collect(BigHost(), NOW)["disks"] if disk["name"] == "sdc"]
    assert fua_honoured(disk, [])
    behind = {**disk, "transport": classify(traits).transport}
    assert not fua_honoured(behind, [])
    assert fua_honoured(behind, [Attestation(**attested("host_honours_fua"))])


@pytest.mark.parametrize("kernel", ["write back", "write through", "unknown"])
@pytest.mark.parametrize(
    ("profile", "claim", "where_flushed"),
    [
        ("strict", "host_honours_flush", False),
        ("strict", "virtual_host_power", False),
        ("flush", "host_honours_flush", True),
        ("flush", "virtual_host_power", False),
        ("ups", "host_honours_flush", True),
        ("ups", "virtual_host_power", True),
        ("protected", "host_honours_flush", False),
        ("disposable", "host_honours_flush", False),
    ],
)
def test_who_honours_flushes_vouches_only_for_a_disk_that_is_sent_any(
    profile: str, claim: str, where_flushed: bool, kernel: str
) -> None:
    """As VMware's disks without a caching page: the kernel takes them for write through, and never flushes."""
    (disk,) = [disk for disk in collect(SmallHost(), NOW)["disks"] if disk["name"] == "vdb"]
    disk["write_cache"] = {**disk["write_cache"], "device": "unknown", "kernel": kernel}
    chosen, _pinned = choose(profile, shipped(), {}, {})
    found = attestation_for(chosen, disk, [Attestation(**attested(claim))])
    assert (found is not None) == (where_flushed and kernel == "write back")
    protected = Attestation(**attested(target=disk["id"]))
    assert attestation_for(chosen, disk, [protected]) == protected


@pytest.mark.parametrize("virtualization", ["none\n", "kvm\n", "docker\n"])
def test_only_a_physical_disk_is_trusted_to_have_no_volatile_cache(virtualization: str) -> None:
    host = BigHost()
    vars(host.disk("nvme0n1")).update(cache="none", cache_mode="write through")
    host.commands[("systemd-detect-virt",)] = virtualization
    is_physical = virtualization == "none\n"
    expected = "met" if is_physical else "unmet"
    assert states(host, "protected", "/srv/firebird")["cache_non_volatile"] == expected


def neighbour(barrier: str, cache: str, profile: str = "flush", line: str = "") -> list[str]:
    """Return the requirements that are about /srv/other, beside /srv/mssql on one disk."""
    host = SmallHost()
    other = FakeMount("/srv/other", "ext4", "8:18", "/dev/sdb2", "sdb", barrier=barrier)
    host.add_mount(other, line)
    host.disk("sdb").cache = cache
    storage = collect(host, NOW)
    mounts = mounts_of(["/srv/mssql"], None, storage, [])
    disks = [disk for disk in storage["disks"] if disk["name"] == "sdb"]
    chosen, _pinned = choose(profile, shipped(), {}, {})
    return [f"{need.name} {need.state}" for need in of_neighbours(chosen, storage["mounts"], mounts, disks)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("off", "disabled"), ["neighbours_flush unmet"]),
        (("on", "disabled"), []),
        # On already: nothing is made worse.
        (("off", "enabled"), []),
        (("off", "disabled", "strict"), []),
        # Only at the next boot, and then over the cache.
        (
            ("on", "disabled", "flush", "/dev/sdb2 /srv/other ext4 nobarrier 0 2\n"),
            ["neighbours_flush unmet"],
        ),
    ],
)
def test_a_cache_that_is_to_be_turned_on_asks_its_neighbours(
    given: tuple[str, ...], expected: list[str]
) -> None:
    assert neighbour(*given) == expected


@pytest.mark.parametrize(("other", "expected"), [("nvme0n2", ["/srv/bare"]), ("nvme1n1", [])])
def test_the_namespaces_of_one_controller_share_its_cache(other: str, expected: list[str]) -> None:
    """Feature 6 is of the controller: who turns it on for one namespace does so for all."""
    host = BigHost()
    host.add_disk(FakeDisk(other, "nvme", "KIOXIA_X2", wwn="eui.0025386", cache="disabled"), "259:20")
    host.add_mount(FakeMount("/srv/bare", "ext4", "259:20", f"/dev/{other}", other, barrier="off"))
    host.disk("nvme0n1").cache = "disabled"
    found = look(host, "flush", mounts=["/srv/firebird"])
    needs = [need["target"] for need in found["requirements"] if need["name"] == "neighbours_flush"]
    assert needs == expected
    assert ("write_cache" in found["plan"]["loosen"]) == (not expected)


def test_a_neighbour_is_found_through_layers() -> None:
    host = BigHost()
    host.add_partition("nvme0n1", "nvme0n1p3", "259:3")
    host.add_mount(FakeMount("/srv/bare", "ext4", "259:3", "/dev/nvme0n1p3", "nvme0n1", barrier="off"))
    host.disk("nvme0n1").cache = "disabled"
    found = look(host, "flush", mounts=["/srv/firebird"])
    assert "/srv/bare has no barriers, and its disk would have a volatile cache" in "\n".join(found["why"])
    assert "write_cache" not in found["plan"]["loosen"]


@pytest.mark.parametrize("name", ["sdc", "nvme0n1"])
@pytest.mark.parametrize("virtualization", ["kvm\n", ""])
def test_a_guest_s_disk_only_claims_to_take_fua(name: str, virtualization: str) -> None:
    host = BigHost()
    host.commands[("systemd-detect-virt",)] = virtualization
    (disk,) = [disk for disk in collect(host, NOW)["disks"] if disk["name"] == name]
    assert not fua_honoured(disk, [])
    word = attested("host_honours_fua", "host" if virtualization else disk["id"])
    assert fua_honoured(disk, [Attestation(**word)])


def facts(name: str = "sda", **changes: Any) -> dict[str, Any]:
    """Return the facts of a disk, with some of its cache's or of its own reported otherwise."""
    disk = next(disk for disk in collect(BigHost(), NOW)["disks"] if disk["name"] == name)
    cache = {key: changes.pop(key) for key in ("device", "kernel", "volatile") if key in changes}
    return {**disk, **changes, "write_cache": {**disk["write_cache"], **cache}}


def word(claim: str, target: str = "host") -> list[Attestation]:
    return [Attestation(**{**attested(claim), "target": target})]


@pytest.mark.parametrize(
    ("profile", "claim", "kernel", "counts"),
    [
        ("flush", "host_honours_flush", "write back", True),
        ("flush", "host_honours_flush", "write through", False),
        ("flush", "host_honours_flush", "unknown", False),
        ("ups", "host_honours_flush", "write through", False),
        ("ups", "virtual_host_power", "write back", True),
        ("ups", "virtual_host_power", "write through", False),
        ("flush", "virtual_host_power", "write back", False),
        ("strict", "host_honours_flush", "write back", False),
    ],
)
def test_a_word_about_flushes_vouches_for_no_disk_that_the_kernel_does_not_flush(
    profile: str, claim: str, kernel: str, counts: bool
) -> None:
    chosen, _pinned = choose(profile, shipped(), {}, {})
    assert bool(attestation_for(chosen, facts(kernel=kernel), word(claim))) is counts


@pytest.mark.parametrize("kind", ["virtual", "raid_volume", "san", "network", "unknown"])
def test_no_volatile_cache_is_trusted_of_a_physical_disk_alone(kind: str) -> None:
    said = {"device": "none", "volatile": "non_volatile"}
    assert of_disk("non_volatile_cache", facts(kind="physical", **said), []).state == "met"
    assert of_disk("non_volatile_cache", facts(kind=kind, **said), []).state == "unmet"


@pytest.mark.parametrize(
    ("kind", "of_host", "own"), [("virtual", True, True), ("unknown", False, True), ("san", False, True)]
)
def test_a_word_about_the_host_covers_no_disk_that_is_elsewhere_or_unknown(
    kind: str, of_host: bool, own: bool
) -> None:
    """It may be one that does not last, as a cloud's temporary disk that udev does not name; an array is another machine."""
    disk = facts(kind=kind)
    chosen, _pinned = choose("flush", shipped(), {}, {})
    for target, counts in (("host", of_host), (disk["id"], own)):
        words = word("host_honours_flush", target)
        assert (of_disk("flush", disk, words).state == "attested") is counts
        assert bool(attestation_for(chosen, disk, words)) is counts
        assert is_protected(disk, word("power_loss_protection", target)) is counts


def test_namespaces_of_one_controller_have_one_cache() -> None:
    """A cache that comes on for one comes on for the file system without barriers on the other."""
    mount = next(mount for mount in collect(BigHost(), NOW)["mounts"] if mount["target"] == "/srv/pgdata")
    other = {**mount, "target": "/srv/other", "device": "259:9", "barrier": "off", "disks_seen": ["nvme0n2"]}
    disk = facts("nvme0n1", device="disabled")
    chosen, _pinned = choose("flush", shipped(), {}, {})
    (need,) = of_neighbours(chosen, [mount, other], [mount], [disk])
    assert (need.name, need.target) == ("neighbours_flush", "/srv/other")
    # No option of these has barriers: the fix names none.
    for fstype in ("jfs", "zfs"):
        (need,) = of_neighbours(chosen, [mount, {**other, "fstype": fstype}], [mount], [disk])
        assert (need.id, need.name) == (f"requirement.neighbours_flush.{fstype}", "neighbours_flush")
        assert "nobarrier" not in need.remedy and "/srv/other" in need.remedy
    far = {**other, "disks_seen": ["nvme1n1"]}
    assert of_neighbours(chosen, [mount, far], [mount], [disk]) == []


def test_a_cache_is_not_turned_on_under_a_neighbour_without_barriers() -> None:
    host = SmallHost()
    other = FakeMount("/srv/other", "ext4", "8:18", "/dev/sdb2", "sdb", barrier="off")
    host.add_mount(other)
    host.disk("sdb").cache = "disabled"
    found = look(host, "flush", mounts=["/srv/mssql"])
    assert found["verdict"] == "blocked"
    assert any("/srv/other has no barriers" in why for why in found["why"])
    assert not found["plan"]["loosen"]


def test_a_neighbour_of_which_nothing_is_known_keeps_a_cache_off() -> None:
    host = SmallHost()
    vars(host.disk("sda")).update(cache="disabled", cache_mode="write back", pinned=True)
    host.add_mount(
        FakeMount("/srv/n", "ext4", "8:2", "/dev/sda2", "sda"), "UUID=n /srv/n ext4 defaults 0 2\n"
    )
    given = {"mounts": ["/srv/pgdata"], "attestations": [attested("host_honours_flush")]}
    assert look(host, "flush", **given)["plan"]["loosen"]
    del host.files["/proc/fs/ext4/sda2/options"]
    del host.commands[(*ext4.SHOW, "/dev/block/8:2")]
    found = look(host, "flush", **given)
    assert not found["plan"]["loosen"]
    assert "/srv/n may have no barriers" in "\n".join(found["why"])


@pytest.mark.parametrize(
    ("kind", "shared"),
    [
        (kind, kind in ("virtual", "network"))
        for kind in ("virtual", "network", "physical", "raid_volume", "unknown")
    ],
)
def test_a_word_is_asked_of_the_whole_host_only_for_what_its_platform_provides(
    kind: str, shared: bool
) -> None:
    disk = facts(kind=kind, device="unknown")
    need = of_disk("flush", disk, [])
    (asked,) = with_attestations([need], {"disks": [disk], "platform": "qemu"}, "2026-11-28")
    (entry,) = yaml.safe_load("\n".join(asked.attest))
    assert (entry["claim"], entry["target"]) == ("host_honours_flush", "host" if shared else disk["id"])


def test_the_fix_of_a_disk_that_udev_does_not_list_is_a_command() -> None:
    disk = facts(device="unknown")
    disk["evidence"] = {
        **disk["evidence"],
        "id": {"source": "udevadm", "reason": "x", "cause": "udev_unread"},
    }
    path = f"/sys/class/block/{disk['name']}"
    assert how_named(disk) == f'make "udevadm info {path}" work as root (package udev)'
