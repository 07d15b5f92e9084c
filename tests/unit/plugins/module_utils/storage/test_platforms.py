# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose machine a host is, by its firmware; and what its owner is asked to attest there.

The values of DMI are facts of cloud-init's ds-identify and data sources, of systemd's virt.c and of QEMU's source; no
cloud was asked itself.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.attestations import CLAIMS
from ansible_collections.durable.dbhost.plugins.module_utils.facts.storage import PLATFORMS
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import is_plain
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details
from ansible_collections.durable.dbhost.plugins.module_utils.storage import platforms

from ..fakes.runs import look
from ..fakes.small_host import FakeDisk, FakeMount, SmallHost
from ..policy.show.test_report import report

AZURE_TAG = "7783-7084-3265-9085-8269-3286-77"
HYPERV = {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}
#: DMI, what systemd-detect-virt says, the platform.
MACHINES: list[tuple[dict[str, str], str, str]] = [
    ({"sys_vendor": "Amazon EC2", "product_name": "m5.large", "bios_vendor": "Amazon EC2"}, "amazon", "aws"),
    ({"sys_vendor": "Amazon EC2", "product_name": "m5.metal"}, "none", "aws"),
    ({"sys_vendor": "Xen", "product_name": "HVM domU", "product_version": "4.11.amazon"}, "xen", "aws"),
    ({**HYPERV, "chassis_asset_tag": AZURE_TAG}, "microsoft", "azure"),
    ({**HYPERV, "chassis_asset_tag": "0000-0000"}, "microsoft", "hyperv"),
    ({"sys_vendor": "Google", "product_name": "Google Compute Engine"}, "google", "google"),
    ({"sys_vendor": "QEMU", "chassis_asset_tag": "OracleCloud.com"}, "kvm", "oracle_cloud"),
    ({"sys_vendor": "Alibaba Cloud", "product_name": "Alibaba Cloud ECS"}, "kvm", "alibaba"),
    ({"sys_vendor": "DigitalOcean", "product_name": "Droplet"}, "kvm", "digitalocean"),
    ({"sys_vendor": "Hetzner", "product_name": "vServer"}, "kvm", "hetzner"),
    ({"sys_vendor": "Scaleway"}, "kvm", "scaleway"),
    ({"sys_vendor": "Vultr"}, "kvm", "vultr"),
    ({"sys_vendor": "Akamai"}, "kvm", "akamai"),
    ({"sys_vendor": "OpenStack Foundation", "product_name": "OpenStack Nova"}, "kvm", "openstack"),
    ({"sys_vendor": "VMware, Inc.", "product_name": "VMware Virtual Platform"}, "vmware", "vmware"),
    ({"sys_vendor": "QEMU", "bios_vendor": "Proxmox distribution of EDK II"}, "kvm", "proxmox"),
    ({"sys_vendor": "QEMU", "product_name": "Standard PC (Q35 + ICH9, 2009)"}, "kvm", "qemu"),
    ({"sys_vendor": "Red Hat", "product_name": "KVM"}, "kvm", "qemu"),
    ({"sys_vendor": "Red Hat", "product_name": "RHEV Hypervisor"}, "kvm", "ovirt"),
    ({"sys_vendor": "Nutanix", "product_name": "AHV"}, "kvm", "nutanix"),
    ({"sys_vendor": "innotek GmbH", "product_name": "VirtualBox"}, "oracle", "virtualbox"),
    ({"sys_vendor": "Xen", "product_name": "HVM domU", "product_version": "4.17"}, "xen", "xen"),
    # Firmware that says nothing, as of some machines with device trees.
    ({}, "kvm", "qemu"),
    ({}, "amazon", "aws"),
    ({}, "uml", "unknown"),
    ({}, "unknown", "unknown"),
    (
        {"sys_vendor": "Dell Inc.", "product_name": "PowerEdge R740", "chassis_asset_tag": "DB7"},
        "none",
        "none",
    ),
    # What only looks like a sign.
    ({"sys_vendor": "Not Amazon EC2"}, "none", "none"),
    ({"sys_vendor": "Contoso", "chassis_asset_tag": "OracleCloud.community"}, "none", "none"),
]


@pytest.mark.parametrize(("dmi", "virtualization", "word"), MACHINES)
def test_a_machine_is_named_by_its_firmware(dmi: dict[str, str], virtualization: str, word: str) -> None:
    host = SmallHost()
    host.files.update({f"{platforms.DIRECTORY}/{field}": f"{text}\n" for field, text in dmi.items()})
    assert platforms.read(host, virtualization) == word


def test_each_platform_has_a_machine() -> None:
    assert {word for _dmi, _virtualization, word in MACHINES} == set(PLATFORMS)


@given(
    st.dictionaries(st.sampled_from(platforms.FIELDS), st.text()),
    st.sampled_from(["none", "kvm", "unknown", ""]),
)
def test_any_garbage_has_a_word(dmi: dict[str, str], virtualization: str) -> None:
    assert platforms.recognise(dmi, virtualization) in PLATFORMS


@pytest.mark.parametrize("platform", platforms.PLATFORMS, ids=lambda platform: platform.word)
def test_what_is_documented_has_its_source_and_date(platform: platforms.Platform) -> None:
    for claim, said in platform.statements.items():
        assert claim in CLAIMS
        assert re.search(r"20\d\d-\d\d-\d\d\)$", said.source), said.source
        assert all(is_plain(text) and text for text in said)


def cloud_host(dmi: dict[str, str], virtualization: str, **disk: Any) -> SmallHost:
    """Return a guest whose database lies on one disk of its cloud."""
    host = SmallHost()
    host.commands[("systemd-detect-virt",)] = f"{virtualization}\n"
    host.files.update({f"{platforms.DIRECTORY}/{field}": f"{text}\n" for field, text in dmi.items()})
    host.add_disk(FakeDisk("nvme0n1", "nvme", "vol1", **disk), "259:0")
    host.add_mount(
        FakeMount("/srv/cloud", "ext4", "259:1", "/dev/nvme0n1p1", "nvme0n1", atime="noatime"),
        "UUID=cl /srv/cloud ext4 noatime 0 2\n",
    )
    return host


def lines_of(found: dict[str, Any]) -> str:
    """Return what a report has people copy."""
    told = report("db1", found["verdict"], requirements=found["requirements"])
    rows = details([told]).split("\n")
    begin = next(row for row in rows if row.startswith("  to attest"))
    copied = rows[rows.index(begin) + 1 :]
    return "\n".join(row[4:] for row in copied if row.startswith("    "))


CLOUDS = [
    (MACHINES[0], "Amazon Elastic Block Store", "EBS"),
    (MACHINES[3], "MSFT NVMe Accelerator v1.0", "host caching"),
    (MACHINES[5], "nvme_card-pd", ""),
]


@pytest.mark.fact(42)
@pytest.mark.parametrize(("machine", "model", "says"), CLOUDS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("profile", ["flush", "strict"])
def test_a_cloud_host_is_attested_by_what_its_report_has_people_copy(
    machine: Any, model: str, says: str, profile: str
) -> None:
    host = cloud_host(*machine[:2], model=model, cache="none", cache_mode="write through")
    before = look(host, profile, mounts=["/srv/cloud"])
    assert before["verdict"] == "unverified", before["why"]
    (needed,) = [need for need in before["requirements"] if need["state"] == "unverified"]
    assert says in needed["remedy"]
    copied = yaml.safe_load(lines_of(before))["durable_attestations_host"]
    assert [(entry["claim"], entry["by"], entry["reason"]) for entry in copied] == [
        ("host_honours_flush", "", "")
    ]
    # As it is, nobody vouches for it.
    refused = look(host, profile, mounts=["/srv/cloud"], attestations=copied)
    assert (refused["verdict"], "by: observed ''; expected the name of" in refused["why"][0]) == (
        "blocked",
        True,
    )
    filled = [{**entry, "by": "A. Person", "reason": "asked"} for entry in copied]
    after = look(host, profile, mounts=["/srv/cloud"], attestations=filled)
    assert (after["verdict"], after["requirements"][0]["attest"]) == ("attested", ())


def test_only_disks_of_the_platform_are_attested_by_the_whole_host() -> None:
    """A disk of unknown kind is attested by itself, and no document of the platform is about it."""
    host = cloud_host({"sys_vendor": "QEMU"}, "docker")
    found = look(host, "flush", mounts=["/srv/cloud"])
    (needed,) = [need for need in found["requirements"] if need["state"] == "unverified"]
    (entry,) = yaml.safe_load("\n".join(needed["attest"]))
    assert (entry["target"], entry["reason"]) == ("serial:vol1", "")
    host.disk("nvme0n1").serial = ""
    found = look(host, "flush", mounts=["/srv/cloud"])
    assert [need["attest"] for need in found["requirements"] if need["state"] == "unverified"] == [()]


def test_a_cache_that_survives_is_attested_for_each_disk() -> None:
    host = cloud_host(MACHINES[0][0], "amazon", model="Amazon Elastic Block Store")
    found = look(host, "protected", mounts=["/srv/cloud"])
    (needed,) = [need for need in found["requirements"] if need["name"] == "cache_non_volatile"]
    (entry,) = yaml.safe_load("\n".join(needed["attest"]))
    assert (entry["claim"], entry["target"]) == ("power_loss_protection", "serial:vol1")
    assert "Amazon" not in needed["remedy"]


def test_hypervs_override_is_named_where_fua_is_only_claimed() -> None:
    said = platforms.statement("hyperv", "host_honours_fua")
    assert said and "WriteCacheAndFUAEnabled" in said.look
    assert platforms.statement("google", "host_honours_fua") is None
    assert platforms.statement("unknown", "host_honours_flush") is None


def test_many_attestations_are_not_all_printed() -> None:
    needs = [
        {"id": "x", "target": str(number), "attest": ("  - claim: x", f"    target: {number}")}
        for number in range(7)
    ]
    text = details([report("db1", "unverified", requirements=needs)])
    assert (text.count("claim: x"), "and 2 more" in text) == (5, True)


def test_the_power_behind_a_hypervisor_is_asked_for_of_the_host() -> None:
    host = cloud_host(HYPERV, "microsoft")
    found = look(host, "ups", mounts=["/srv/cloud"])
    (needed,) = [need for need in found["requirements"] if need["name"] == "virtual_host_power"]
    (entry,) = yaml.safe_load("\n".join(needed["attest"]))
    assert (entry["claim"], entry["target"]) == ("virtual_host_power", "host")
    assert (entry["by"], entry["reason"]) == ("", "")
    assert needed["attest"][0].startswith("  # Check this first: ")
    assert "same UPS" in needed["attest"][0] and "KB 2801713" in needed["attest"][0]
