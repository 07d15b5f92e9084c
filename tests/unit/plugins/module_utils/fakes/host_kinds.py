# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of hosts that people have, each with a database on /srv/db, and the verdicts that they reach.

What a disk shows comes from tests/fixtures/kinds, of which each says its source; layers and file systems behave as
`small_host` has them, which the lab's scenarios hold against kernels.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.storage import drbd, platforms
from ansible_collections.durable.dbhost.plugins.module_utils.storage.multipath import ASK
from ansible_collections.durable.dbhost.plugins.module_utils.storage.raid_controllers import storcli

from .captured import captured
from .fake_devices import FakeLayer
from .runs import attested, enforce, look
from .small_host import FakeDisk, FakeMount, SmallHost, bcache, dm, loop, md

DATA = "/srv/db"
PROFILES = ("flush", "strict", "protected")
_PLATFORMS = {
    "amazon": {"sys_vendor": "Amazon EC2"},
    "google": {"product_name": "Google Compute Engine"},
    "kvm": {"sys_vendor": "QEMU"},
    "vmware": {"sys_vendor": "VMware, Inc."},
}
_MICROSOFT = {"sys_vendor": "Microsoft Corporation", "product_name": "Virtual Machine"}
_AZURE = {**_MICROSOFT, "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77"}
_STORCLI = "/opt/MegaRAID/storcli/storcli64"
_RAID_WWN = "0x600605b000000000aaaa000000000000"


class Kind(NamedTuple):
    """A kind of host: its name, a host of it, what its owner attests or corrects, and the source of its facts.

    `is_unsafe`: it is another kind, made unsafe. `words` are attestations that no report has to copy.
    """

    name: str
    make: Callable[[], SmallHost]
    owner: str
    source: str
    is_unsafe: bool = False
    words: tuple[dict[str, str], ...] = ()


class Reached(NamedTuple):
    """The verdict of a host as it was found; after a run and a reboot; and then with the attestations that the report
    asks for, whose claims are here too."""

    found: str
    alone: str
    attested: str
    claims: tuple[str, ...]


@dataclass
class _Shown(FakeDisk):
    """A disk at a path of its own."""

    path: str = ""
    more: dict[str, str] = field(default_factory=dict)

    @property
    def sysfs(self) -> str:
        """Where it is in /sys/devices."""
        return self.path


def reach(kind: Kind, profile: str) -> Reached:
    """Return what a host of a kind comes to by a profile."""
    before = look(kind.make(), profile, mounts=[DATA])
    alone = found = settled(kind.make(), profile, [])
    words = {word["claim"]: word for word in kind.words}
    while True:
        asked = [need["attest"] for need in found["requirements"] if need["attest"]]
        new = {text: _filled(text) for text in ("\n".join(each) for each in asked) if text not in words}
        if not new:
            break
        words |= new
        found = settled(kind.make(), profile, list(words.values()))
    if not words.keys() - {word["claim"] for word in kind.words} and kind.words:
        found = settled(kind.make(), profile, list(words.values()))
    claims = dict.fromkeys(word["claim"] for word in words.values())
    return Reached(before["verdict"], alone["verdict"], found["verdict"], tuple(claims))


def _filled(text: str) -> dict[str, str]:
    (entry,) = yaml.safe_load(text.replace("!unsafe ", ""))
    return {**entry, "by": "A. Person", "reason": entry["reason"] or "looked at it"}


def settled(host: SmallHost, profile: str, words: list[dict[str, str]]) -> dict[str, Any]:
    """Return the assessment of a host after a run and a reboot, with these attestations."""
    given: dict[str, Any] = {"mounts": [DATA], "attestations": words}
    enforce(host, look(host, profile, **given))
    host.reboot()
    return look(host, profile, **given)


def _on(disk: FakeDisk, number: str = "8:96", fstype: str = "ext4") -> SmallHost:
    host = SmallHost()
    host.add_disk(disk, number)
    return _mounted(host, disk.name, number, fstype)


def _mounted(host: SmallHost, name: str, number: str, fstype: str = "ext4") -> SmallHost:
    mapped = host.layers[name].mapped if name in host.layers else ""
    source = f"/dev/mapper/{mapped}" if mapped else f"/dev/{name}"
    spec = source if mapped else f"UUID={name}"
    mount = FakeMount(DATA, fstype, number, source, name, atime="noatime")
    host.add_mount(mount, f"{spec} {DATA} {fstype} noatime 0 2\n")
    host.links[f"/dev/disk/by-uuid/{name}"] = f"/dev/{name}"
    return host


def _as(fixture: str, dmi: dict[str, str] | None = None, **make: Any) -> SmallHost:
    """Return a host whose database lies on the disk of a fixture."""
    shown = json.loads(captured(f"kinds/{fixture}.json"))
    traits = shown["traits"]
    properties = {
        key: value for key, value in traits["properties"].items() if not key.startswith("ID_SERIAL")
    }
    disk = _Shown(
        "sdk" if not traits["name"].startswith(("nvme", "vd")) else "nvme7n1",
        {"nvme": "nvme", "virtio": "virtio", "sata": "sata"}.get(shown["expected"]["transport"], "scsi"),
        "KIND0001",
        vendor=traits["vendor"],
        model=traits["model"],
        driver=traits["driver"],
        shown=properties,
        **make,
    )
    disk.path = f"{traits['path'].rpartition('/')[0]}/{disk.name}"
    host = _on(disk)
    virtualization = traits["virtualization"]
    host.commands[("systemd-detect-virt",)] = f"{virtualization}\n"
    firmware = dmi or _PLATFORMS.get(virtualization, {})
    host.files.update({f"{platforms.DIRECTORY}/{name}": f"{text}\n" for name, text in firmware.items()})
    return host


def _sata(**make: Any) -> SmallHost:
    return _on(FakeDisk("sdk", "sata", "KIND0001", **make))


def _virtio(**make: Any) -> SmallHost:
    given = {"serial": "KIND0001", **make}
    host = _on(FakeDisk("vdk", "virtio", given.pop("serial"), **given), "254:96")
    host.commands[("systemd-detect-virt",)] = "kvm\n"
    host.files[f"{platforms.DIRECTORY}/sys_vendor"] = "QEMU\n"
    return host


def _pair(**make: Any) -> SmallHost:
    host = SmallHost()
    host.add_disk(FakeDisk("sdk", "sata", "KIND0001", **make), "8:96")
    host.add_disk(FakeDisk("sdl", "sata", "KIND0002", **make), "8:112")
    return host


def _over(layer: FakeLayer, fstype: str = "ext4") -> SmallHost:
    host = _pair()
    host.add_layer(layer)
    return _mounted(host, layer.name, layer.number, fstype)


def _luks() -> SmallHost:
    host = _over(dm("dm-7", "CRYPT", ("sdk",), "253:7", "crypt aes-xts-plain64 :64:logon:x 0 8:96 32768"))
    host.files["/etc/crypttab"] = "crypt-dm-7 UUID=sdk /etc/keys/db luks\n"
    host.links["/dev/disk/by-uuid/sdk"] = "/dev/sdk"
    return host


def _mapped(*tables: str) -> SmallHost:
    return _over(dm("dm-7", "LVM", ("sdk", "sdl"), "253:7", *tables))


def _failed(text: str) -> str:
    return text.replace('"Value" : "Optimal"', '"Value" : "Failed"')


def _forced(text: str) -> str:
    return _failed(text).replace("RWBD", "RAWBD")


def _loop(barrier: str = "on") -> SmallHost:
    host = _on(FakeDisk("sdk", "sata", "KIND0001"))
    held = host.mounts.pop(DATA)
    host.files["/etc/fstab"] = host.text("/etc/fstab").replace(f" {DATA} ", " /srv/images ")
    host.add_mount(FakeMount("/srv/images", "ext4", held.device, held.source, held.disk, barrier=barrier))
    host.add_layer(loop("loop7", "7:7"))
    host.loops["loop7"] = held.device
    return _mounted(host, "loop7", "7:7")


def _raid(battery: Callable[[str], str] = str, tool: bool = True) -> SmallHost:
    slot = "/sys/devices/pci0000:00/0000:03:00.0/host7/target7:2:0/7:2:0:0/block/sdk"
    disk = _Shown(
        "sdk", "scsi", "3600605b", vendor="AVAGO", model="MR9361-8i", driver="megaraid_sas", wwn=_RAID_WWN
    )
    disk.path = slot
    host = _on(disk)
    for question, name in zip(storcli.QUESTIONS, ("vall", "call", "bbu", "cv")) if tool else ():
        host.files[_STORCLI] = "ELF"
        host.commands[(_STORCLI, *question)] = battery(captured(f"raid/storcli_{name}.json"))
    return host


def _lun(features: str = "1 queue_if_no_path", said: str = "on") -> SmallHost:
    host = SmallHost()
    for index, (name, number) in enumerate((("sdk", "8:96"), ("sdl", "8:112")), 2):
        disk = _Shown("", "scsi", "lun1", vendor="LIO-ORG", model="dbdata", driver="iscsi_tcp", multipath="1")
        disk.name = name
        disk.path = (
            f"/sys/devices/platform/host{index}/session{index}/target{index}:0:0/{index}:0:0:1/block/{name}"
        )
        host.add_disk(disk, number)
    table = f"multipath {features} 0 2 1 round-robin 0 1 1 8:96 1 round-robin 0 1 1 8:112 1"
    host.commands[tuple(ASK)] = f"dm-7-uuid:{said}\n"
    host.add_layer(dm("dm-7", "mpath", ("sdk", "sdl"), "253:7", table))
    return _mounted(host, "dm-7", "253:7")


def _drbd(protocol: str = "C") -> SmallHost:
    host = SmallHost()
    host.add_disk(FakeDisk("sdk", "sata", "KIND0001"), "8:96")
    shown = [
        {
            "resource": "pg",
            "_this_host": {"volumes": [{"volume_nr": 0, "device_minor": 7, "backing-disk": "/dev/sdk"}]},
            "connections": [{"net": {"protocol": protocol}}],
        }
    ]
    peer = {"peer_devices": [{"volume": 0, "peer-disk-state": "UpToDate"}]}
    state = [
        {
            "name": "pg",
            "write-ordering": "flush",
            "devices": [{"volume": 0, "minor": 7, "disk-state": "UpToDate"}],
            "connections": [peer],
        }
    ]
    host.commands[tuple(drbd.SHOW)], host.commands[tuple(drbd.STATUS)] = json.dumps(shown), json.dumps(state)
    host.commands[(*drbd.ADJUST, "pg")] = ""
    host.add_layer(FakeLayer("drbd7", "drbd", ("sdk",), "147:7"))
    return _mounted(host, "drbd7", "147:7")


def _nfs(option: str = "hard") -> SmallHost:
    host = SmallHost()
    source = "nas.example.com:/export/db"
    shown = ("vers=4.2", option, "proto=tcp", "addr=192.0.2.7")
    host.add_mount(FakeMount(DATA, "nfs4", "0:52", source, "db", atime="noatime", super_options=shown))
    host.files["/etc/fstab"] = f"{host.text('/etc/fstab')}{source} {DATA} nfs {option},noatime 0 0\n"
    return host


_NO_SERIAL = {"ID_FS_UUID": "0b6e4d1a-55f3-4c1e-9a52-3f4c0a8e7d10", "ID_PATH": "pci-0000:00:07.0"}
_LABEL = "`power_loss_protection`"
_GUEST = "`host_honours_flush` (host), `power_loss_protection`"
_ELSEWHERE = "`host_honours_flush` (disk), `power_loss_protection`"
KINDS = (
    Kind("SATA disk or SSD", _sata, _LABEL, "lab: `default`, `buses`"),
    Kind("SAS or SCSI disk", partial(_as, "sas_disk_mpt3sas"), _LABEL, "lab: `stacked`; `sas_disk_mpt3sas`"),
    Kind("NVMe SSD with a volatile cache", partial(_as, "nvme_pci"), _LABEL, "lab: `buses`; `nvme_pci`"),
    Kind(
        "NVMe SSD without a volatile cache",
        partial(_as, "nvme_pci", cache="none", cache_mode="write through"),
        "nothing",
        "`nvme_pci`",
    ),
    Kind("USB disk", partial(_as, "usb_uas_ata"), _ELSEWHERE, "`usb_uas_ata`"),
    Kind("KVM guest, virtio disk", _virtio, _GUEST, "lab: `default`"),
    Kind(
        "KVM guest, virtio disk without a serial number",
        partial(_virtio, serial="", shown=_NO_SERIAL),
        _GUEST,
        "lab: `stacked`",
    ),
    Kind("VMware guest, PVSCSI", partial(_as, "vmware_pvscsi"), _GUEST, "`vmware_pvscsi`"),
    Kind(
        "Hyper-V guest", partial(_as, "hyperv_generation_2", dmi=_MICROSOFT), _GUEST, "`hyperv_generation_2`"
    ),
    Kind("Azure, data disk", partial(_as, "azure_data_disk", dmi=_AZURE), _GUEST, "`azure_data_disk`"),
    Kind(
        "EC2, EBS volume",
        partial(_as, "aws_ebs", cache="none", cache_mode="write through"),
        _GUEST,
        "`aws_ebs`",
    ),
    Kind(
        "EC2, instance store",
        partial(_as, "aws_instance_store"),
        "never: move the data; the disk is emptied when the machine stops",
        "`aws_instance_store`",
        is_unsafe=True,
    ),
    Kind("Google, persistent disk", partial(_as, "google_pd_nvme"), _GUEST, "`google_pd_nvme`"),
    Kind("RAID volume, its tool reports a good battery", _raid, "nothing", "`raid/storcli_vall`"),
    Kind(
        "RAID volume, battery failed",
        partial(_raid, _failed),
        "never: replace the battery",
        "`raid/storcli_vall`, altered",
        is_unsafe=True,
    ),
    Kind(
        "RAID volume, battery failed, write back forced",
        partial(_raid, _forced),
        "never: replace the battery, and set write back without `always`",
        "`raid/storcli_vall`, altered",
        is_unsafe=True,
    ),
    Kind(
        "RAID volume, no tool",
        partial(_raid, tool=False),
        _ELSEWHERE,
        "`raid/storcli_vall`",
    ),
    Kind("iSCSI LUN on one path", partial(_as, "iscsi_lun"), _ELSEWHERE, "`iscsi_lun`"),
    Kind("iSCSI LUN on two paths, dm-multipath", _lun, _ELSEWHERE, "lab: `network`"),
    Kind(
        "iSCSI LUN on two paths without `queue_if_no_path`",
        partial(_lun, "0", "off"),
        "never: set `no_path_retry queue`",
        "lab: `network`",
        is_unsafe=True,
    ),
    Kind("NFS, `hard`", _nfs, _ELSEWHERE, "lab: `network`"),
    Kind(
        "NFS, `soft`",
        partial(_nfs, "soft"),
        "never: mount it `hard`",
        "lab: `network`",
        is_unsafe=True,
    ),
    Kind("DRBD, protocol C", _drbd, _LABEL, "lab: `network`"),
    Kind(
        "DRBD, protocol A",
        partial(_drbd, "A"),
        "never: set protocol C",
        "lab: `network`",
        is_unsafe=True,
    ),
    Kind("md RAID 1", lambda: _over(md("md7", "raid1", ("sdk", "sdl"), "9:7")), _LABEL, "lab: `stacked`"),
    Kind(
        "md RAID 5 without a journal",
        lambda: _over(md("md7", "raid5", ("sdk", "sdl"), "9:7")),
        "never: add a journal, or mirror the disks",
        "lab: `stacked`",
        is_unsafe=True,
    ),
    Kind("LUKS", _luks, _LABEL, "lab: `stacked`"),
    Kind(
        "LVM volume over two disks",
        lambda: _mapped("linear 8:96 0", "linear 8:112 0"),
        _LABEL,
        "lab: `stacked`",
    ),
    Kind(
        "LVM cache", lambda: _mapped("cache 8:112 8:112 8:96 128 1 writeback smq 0"), _LABEL, "lab: `stacked`"
    ),
    Kind("LVM snapshot on disk", lambda: _mapped("snapshot 8:96 8:112 P 8"), _LABEL, "lab: `stacked`"),
    Kind(
        "LVM snapshot in memory",
        lambda: _mapped("snapshot 8:96 8:112 N 8"),
        "never: create it with a store on disk",
        "model",
        is_unsafe=True,
    ),
    Kind("bcache", lambda: _over(bcache("bcache7", ("sdk", "sdl"), "252:7")), _LABEL, "lab: `stacked`"),
    Kind("loop device over ext4", _loop, _LABEL, "lab: `stacked`"),
    Kind("loop device over ext4 without barriers", partial(_loop, "off"), _LABEL, "model"),
    Kind(
        "VDO, or another layer without a rule",
        lambda: _mapped("vdo V4 /dev/sdk"),
        f"`layer_passes_flushes`, {_LABEL}",
        "model",
        words=(attested("layer_passes_flushes", "dm:LVM-dm-7-uuid"),),
    ),
    Kind("XFS", lambda: _on(FakeDisk("sdk", "sata", "KIND0001"), fstype="xfs"), _LABEL, "lab: `mounts`"),
    Kind(
        "JFS",
        lambda: _on(FakeDisk("sdk", "sata", "KIND0001"), fstype="jfs"),
        "never: move the data to ext4 or XFS; JFS sends no flushes",
        "counted once by hand",
        is_unsafe=True,
    ),
)
