# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks without a name of their own: kept by what is written to them or where they are, and refused where two are alike."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks

from ..fakes.fake_devices import FakeDisk
from ..fakes.runs import attested, enforce, look
from ..fakes.sentences import sentence
from ..fakes.small_host import SmallHost

MARIA = {"mounts": ["/srv/maria"]}
HONOURED = {**MARIA, "attestations": [attested("host_honours_flush")]}
SHOWN = {
    "ptuuid": {"ID_PART_TABLE_UUID": "7ed69443", "ID_PATH": "pci-0000:00:05.0"},
    "member": {"ID_FS_UUID_SUB": "a1-b2", "ID_FS_UUID": "c3-d4", "ID_PATH": "pci-0000:00:05.0"},
    "fsuuid": {"ID_FS_UUID": "c3-d4", "ID_PATH": "pci-0000:00:05.0"},
    "path": {"ID_PATH": "pci-0000:00:05.0"},
}


def nameless(kind: str) -> SmallHost:
    """Return a host whose database lies on a virtio disk without a serial number."""
    host = SmallHost()
    disk = host.disk("vdb")
    disk.serial, disk.shown = "", dict(SHOWN[kind])
    return host


def clone(host: SmallHost, **more: str) -> FakeDisk:
    """Plug in a disk on which the same is written as on the first, at another place."""
    found = FakeDisk("vdc", "virtio", "", port="virtio9/block")
    found.shown = {**host.disk("vdb").shown, "ID_PATH": "pci-0000:00:09.0", **more}
    host.add_disk(found, "254:32")
    return found


def cache_row(found: dict[str, Any]) -> dict[str, Any]:
    (row,) = (row for row in found["settings"] if row["setting"] == "write_cache")
    return dict(row)


@pytest.mark.parametrize("kind", SHOWN)
def test_a_virtual_disk_without_a_serial_number_is_attested_under_strict_and_survives_a_power_cycle(
    kind: str,
) -> None:
    host = nameless(kind)
    enforce(host, look(host, "strict", **HONOURED))
    host.reboot()
    assert host.disk("vdb").cache == "disabled"
    found = look(host, "strict", **HONOURED)
    assert (found["verdict"], found["changes"]) == ("attested", []), found["why"]
    row = cache_row(found)
    assert row["target"].startswith(f"{kind}:")
    (warning,) = [text for text in found["warnings"] if row["target"] in text]
    assert "another disk in the same place" in warning if kind == "path" else "a copy of the disk" in warning
    assert "give it a serial number" in warning


@pytest.mark.parametrize("kind", ["ptuuid", "member", "fsuuid"])
def test_two_disks_with_one_cloned_uuid_have_no_name_and_their_host_is_not_green(kind: str) -> None:
    host = nameless(kind)
    enforce(host, look(host, "strict", **HONOURED))
    clone(host)
    disks = Disks(host)
    facts = {name: disks.collect(name) for name in ("vdb", "vdc")}
    assert [fact["id"] for fact in facts.values()] == [None, None]
    known = f"{kind}:{next(iter(SHOWN[kind].values()))}"
    assert sentence(facts["vdb"], "id") == f"vdc also has the name {known}"
    assert sentence(facts["vdc"], "id") == f"vdb also has the name {known}"
    assert disks.find(known) is None
    found = look(host, "strict", **HONOURED)
    assert found["verdict"] == "drifted"
    assert cache_row(found)["why"].endswith(
        f"so no setting can be persisted for it: vdc also has the name {known}"
    )
    assert cache_row(found)["remedy"] == "give it a serial number in QEMU or libvirt"


def test_paths_that_multipathd_claims_do_not_share_a_substitute() -> None:
    host = nameless("fsuuid")
    copy = clone(host)
    copy.multipath = host.disk("vdb").multipath = "1"
    assert [Disks(host).collect(name)["id"] for name in ("vdb", "vdc")] == [None, None]


def test_a_clone_with_a_name_of_its_own_is_another_disk_and_no_rule_acts_on_it() -> None:
    host = nameless("fsuuid")
    copy = clone(host)
    copy.serial = "VIRT0009"
    enforce(host, look(host, "strict", **HONOURED))
    assert look(host, "strict", **HONOURED)["verdict"] == "attested"
    host.event("change", "vdc")
    assert copy.cache == "enabled"


def test_a_disk_that_was_made_anew_is_another_disk_until_the_next_run() -> None:
    host = nameless("fsuuid")
    enforce(host, look(host, "strict", **HONOURED))
    host.disk("vdb").shown["ID_FS_UUID"] = "made-again"
    host.reboot()
    assert host.disk("vdb").cache == "enabled"
    assert look(host, "strict", **HONOURED)["verdict"] == "drifted"


def test_an_attestation_holds_for_the_disk_that_goes_by_its_substitute_alone() -> None:
    host = nameless("fsuuid")
    words = [attested("power_loss_protection", "fsuuid:c3-d4")]
    found = look(host, "protected", **MARIA, attestations=words)
    assert not [need for need in found["requirements"] if need["state"] == "unmet"]
    host.disk("vdb").shown["ID_FS_UUID"] = "other"
    found = look(host, "protected", **MARIA, attestations=words)
    assert [need["name"] for need in found["requirements"] if need["state"] == "unmet"] == [
        "cache_non_volatile"
    ]
