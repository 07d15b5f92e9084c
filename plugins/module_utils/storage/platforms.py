# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtualisation or cloud platform of a host, and what it documents about flush, FUA and power.

A guest sees that a flush is sent, not that it is honoured: its owner has to look elsewhere and attest. The table says
where, and what a document says, with its date. Without a document there is no text. docs/attest.md has it for people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ..host.observation import UNKNOWN
from ..host.seam import Host, Unobservable

#: No hypervisor, and no cloud's machine.
NONE = "none"
DIRECTORY = "/sys/class/dmi/id"
#: What the firmware says of the machine, by the names of the kernel's files.
FIELDS = ("sys_vendor", "product_name", "product_version", "bios_vendor", "chassis_asset_tag")
#: Beside the fields: what systemd-detect-virt says, for machines whose firmware says nothing.
VIRTUALIZATION = "virtualization"


class Statement(NamedTuple):
    """What is documented that bears on one claim.

    `look`: what its owner checks, as text that follows "check"; `reason`: what the document says, as the reason of
    an attestation; `source`: the document and its date.
    """

    look: str
    reason: str
    source: str


class Platform(NamedTuple):
    """`word` is the fact; `signs` are patterns by field, each mapping a separate sign in which all have to fit;
    `statements` go by the claim that rests on them."""

    word: str
    title: str
    signs: tuple[Mapping[str, str], ...]
    statements: Mapping[str, Statement] = {}


FLUSH, FUA, POWER = "host_honours_flush", "host_honours_fua", "virtual_host_power"

_QEMU_CACHE = "QEMU manual, -drive cache= and -blockdev cache.no-flush (master, read 2026-11-23)"
_VMWARE_KB = "VMware KB 1008542, Storage IO crash consistency (read 2026-11-23)"
_HYPERV_KB = "Microsoft KB 2801713, Hyper-V storage: caching layers (2020-09-14)"

#: The first platform with a sign that fits counts: clouds before the hypervisors that they are made with.
PLATFORMS = (
    Platform(
        "aws",
        "Amazon EC2",
        ({"sys_vendor": r"Amazon EC2"}, {"product_version": r".*\.amazon"}, {VIRTUALIZATION: "amazon"}),
        {
            FLUSH: Statement(
                "which volumes are EBS, and not instance store",
                "EBS keeps a volume's data on several servers of its Availability Zone; of flushes its guide says nothing",
                "Amazon EBS User Guide, features: high availability and durability (read 2026-11-23)",
            ),
        },
    ),
    Platform(
        "azure",
        "Microsoft Azure",
        ({"chassis_asset_tag": r"7783-7084-3265-9085-8269-3286-77"},),
        {
            FLUSH: Statement(
                "the host caching of each disk in Azure (None or ReadOnly, else barriers on)",
                "Premium SSD or Ultra Disk: with host caching None or ReadOnly no cache can lose data, with ReadWrite"
                " barriers keep writes durable",
                "Azure, Premium storage: design for high performance, Linux VMs (read 2026-11-23)",
            ),
        },
    ),
    Platform(
        "google",
        "Google Compute Engine",
        (
            {"product_name": r"Google Compute Engine"},
            {"sys_vendor": r"Google", "product_name": r"Google"},
            {VIRTUALIZATION: "google"},
        ),
    ),
    Platform("oracle_cloud", "Oracle Cloud Infrastructure", ({"chassis_asset_tag": r"OracleCloud\.com"},)),
    Platform(
        "alibaba", "Alibaba Cloud", ({"product_name": r"Alibaba Cloud ECS"}, {"sys_vendor": r"Alibaba Cloud"})
    ),
    Platform("digitalocean", "DigitalOcean", ({"sys_vendor": r"DigitalOcean"},)),
    Platform("hetzner", "Hetzner Cloud", ({"sys_vendor": r"Hetzner"},)),
    Platform("scaleway", "Scaleway", ({"sys_vendor": r"Scaleway"},)),
    Platform("vultr", "Vultr", ({"sys_vendor": r"Vultr"},)),
    Platform("akamai", "Akamai (Linode)", ({"sys_vendor": r"(?:Akamai|Linode)"},)),
    Platform(
        "openstack",
        "OpenStack",
        (
            {"product_name": r"OpenStack (?:Nova|Compute)"},
            {"chassis_asset_tag": r"OpenTelekomCloud|SAP CCloud VM|HUAWEICLOUD|OpenStack (?:Nova|Compute)"},
        ),
    ),
    Platform(
        "hyperv",
        "Microsoft Hyper-V",
        (
            {"sys_vendor": r"Microsoft Corporation", "product_name": r"Virtual Machine"},
            {VIRTUALIZATION: "microsoft"},
        ),
        {
            FLUSH: Statement(
                "the disks of the Hyper-V host: server-class, behind a controller with a battery, on a UPS, or with"
                " their cache off",
                "Hyper-V writes past its host's file system cache and passes flushes on; its disks keep what was flushed",
                _HYPERV_KB,
            ),
            FUA: Statement(
                "the storage, and OverrideCacheAttributes of each disk on the Hyper-V host (Get-VMHardDiskDrive): with"
                " WriteCacheAndFUAEnabled the guest reads that FUA is honoured, even if the storage ignores it",
                "Hyper-V passes FUA on to its host's storage, which honours it",
                _HYPERV_KB,
            ),
            POWER: Statement(
                "the UPS behind the Hyper-V host and its disks",
                "power to the disks of the Hyper-V host is protected by the same UPS, and it passes flushes on",
                _HYPERV_KB,
            ),
        },
    ),
    Platform(
        "vmware",
        "VMware",
        ({"sys_vendor": r"VMware, Inc\."}, {VIRTUALIZATION: "vmware"}),
        {
            FLUSH: Statement(
                "the storage below the datastore (not NFS), and that it is ESXi: Workstation and Fusion may buffer",
                "ESXi acknowledges a write only when the hardware controller has; the storage keeps what it acknowledges",
                _VMWARE_KB,
            ),
            FUA: Statement(
                "the datastore: NFS does not honour FUA and write-through",
                "the datastore is no NFS, and its storage honours FUA",
                "VMware KB 312130, Maintaining write-ordering and write-through integrity using NFS (ESX 3.0 to ESXi"
                " 5.5; read 2026-11-23)",
            ),
        },
    ),
    Platform(
        "proxmox",
        "Proxmox VE",
        ({"bios_vendor": r"Proxmox .*"},),
        {
            FLUSH: Statement(
                "the disk's Cache in Proxmox VE (any but Write back (unsafe)), and the storage below",
                "QEMU passes flushes on in every cache mode but unsafe; No cache is the default; the storage below keeps"
                " what was flushed",
                "Proxmox VE Administration Guide, Qemu/KVM: Cache Mode (read 2026-11-23); " + _QEMU_CACHE,
            ),
        },
    ),
    Platform(
        "ovirt", "oVirt, Red Hat Virtualization", ({"product_name": r"(?:RHEV Hypervisor|oVirt Node)"},)
    ),
    Platform("nutanix", "Nutanix AHV", ({"sys_vendor": r"Nutanix"},)),
    Platform("virtualbox", "VirtualBox", ({"sys_vendor": r"innotek GmbH"}, {"product_name": r"VirtualBox"})),
    Platform("xen", "Xen", ({"sys_vendor": r"Xen"}, {VIRTUALIZATION: "xen"})),
    Platform(
        "qemu",
        "QEMU, KVM, libvirt",
        (
            {"sys_vendor": r"QEMU"},
            {"product_name": r"KVM"},
            {VIRTUALIZATION: "(?:kvm|qemu)"},
        ),
        {
            FLUSH: Statement(
                "the cache mode of each disk in QEMU or libvirt (any but unsafe), and the storage below",
                "QEMU passes flushes on in every cache mode but unsafe; the storage below keeps what was flushed",
                _QEMU_CACHE,
            ),
        },
    ),
)
_BY_WORD = {platform.word: platform for platform in PLATFORMS}


def read(host: Host, virtualization: str) -> str:
    """Return the platform of a host; `virtualization` is the word of systemd-detect-virt. Never raises."""
    return recognise({field: _field(host, field) for field in FIELDS}, virtualization)


def recognise(dmi: Mapping[str, str], virtualization: str) -> str:
    """Return the platform that DMI fields show, else what systemd-detect-virt does.

    `none` is a machine without a hypervisor of which no cloud says that it is its own.
    """
    shown = {**dmi, VIRTUALIZATION: virtualization}
    for platform in PLATFORMS:
        if any(_fits(sign, shown) for sign in platform.signs):
            return platform.word
    return NONE if virtualization == "none" else UNKNOWN


def is_sign(field: str, text: str) -> bool:
    """Return whether what a DMI field says is said by each machine of some platform: it names no single one."""
    signs = (sign for platform in PLATFORMS for sign in platform.signs)
    return any(field in sign and re.fullmatch(sign[field], text.strip()) for sign in signs)


def statement(word: str, claim: str) -> Statement | None:
    """Return what a platform documents that a claim rests on, None without a document."""
    return _BY_WORD[word].statements.get(claim) if word in _BY_WORD else None


def title(word: str) -> str:
    """Return the name of a platform for people; the value itself without one."""
    return _BY_WORD[word].title if word in _BY_WORD else word


def _fits(sign: Mapping[str, str], shown: Mapping[str, str]) -> bool:
    return all(re.fullmatch(pattern, shown.get(field, "")) for field, pattern in sign.items())


def _field(host: Host, field: str) -> str:
    try:
        return host.read(f"{DIRECTORY}/{field}").strip()
    except Unobservable:
        return ""
