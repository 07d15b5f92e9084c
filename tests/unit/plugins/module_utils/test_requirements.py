# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a promise rests on: shown by this host, vouched for, not to be seen from here, or absent."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.assessment import managed_mounts
from ansible_collections.durable.dbhost.plugins.module_utils.attestations import Attestation
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import choose
from ansible_collections.durable.dbhost.plugins.module_utils.requirements import of_host
from ansible_collections.durable.dbhost.plugins.module_utils.storage import collect

from .policy import NOW, attested, inputs, shipped
from .small_host import FakeMount, SmallHost


def states(
    host: SmallHost, profile: str, target: str, words: tuple[str, ...] = (), **given: Any
) -> dict[str, str]:
    """Return {requirement: state} of one mount and its disks under a profile."""
    storage = collect(host, NOW)
    chosen, pinned = choose(profile, shipped(), {}, given.pop("overrides", {}))
    mounts = managed_mounts(inputs(mounts=[target]), storage)
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
        ("ups", "/srv/pgdata", ("ups_rehearsed",), {"ups_ready": "unmet"}),
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
    bind = "99 1 8:1 /sub /usr/local rw - ext4 /dev/sda1 rw\n"
    host.files["/proc/self/mountinfo"] = host.read("/proc/self/mountinfo") + bind
    assert states(host, "disposable", "/srv/pgdata", accept=True)["only_database_paths"] == "unmet"


def test_btrfs_keeps_its_barriers() -> None:
    host = SmallHost()
    host.add_mount(FakeMount("/srv/b", "btrfs", "8:2", "/dev/sda2", "sda"))
    assert states(host, "disposable", "/srv/b", accept=True)["only_database_paths"] == "unmet"
