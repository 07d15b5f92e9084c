# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kind of a block device, and the device on which its write cache is set.

`physical` is the only kind whose word about its cache is trusted, so it is given on evidence
alone: no hypervisor, a path that ends at a port of this machine, and no name of anything else.
What the names and paths mean is said in tests/fixtures/kinds/, with the public source of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..host.observation import UNKNOWN, Because

TRANSPORTS = ("sata", "sat", "scsi", "sas", "nvme", "virtio", "xen", "usb", "firewire", "mmc", UNKNOWN)
PHYSICAL = "physical"
RAID_VOLUME = "raid_volume"
SAN = "san"
NETWORK = "network"
VIRTUAL = "virtual"
EPHEMERAL = "ephemeral"
MEMORY = "memory"

RAID_HIDES = "raid_hides"
CONTROLLER_MAY_HIDE = "controller_may_hide"
BRIDGE_HIDES = "bridge_hides"
MACHINE_HIDES = "machine_hides"
CARD_HIDES = "card_hides"
#: All that may stand in :attr:`Kind.hidden`.
HIDDEN = (RAID_HIDES, CONTROLLER_MAY_HIDE, BRIDGE_HIDES, MACHINE_HIDES, CARD_HIDES)

_TOOLS = {
    "arcconf": "with arcconf",
    "ssacli": "with ssacli",
    "ssacli_arcconf": "with ssacli or arcconf",
    "storcli": "with storcli or perccli",
    "storcli2": "with storcli2 or perccli2",
    "sas_ircu": "with sas2ircu, sas3ircu or lsiutil",
}
#: Keyword of :attr:`Kind.place` -> where the cache of a disk is switched, in words that follow "set the write cache".
PLACES = {
    "": "with the tools of this disk",
    "host": "on this host",
    "array": "on the array",
    "provider": "at the cloud provider",
    "azure": "by the host caching of the disk in Azure (None or ReadOnly)",
    "vmware": "in the storage below the datastore on the hypervisor",
    "qemu": "by the cache mode in QEMU or libvirt on the hypervisor",
    "hyperv": "by Set-VMHardDiskDrive -OverrideCacheAttributes on the hypervisor",
    "virtualbox": "by VBoxManage storagectl --hostiocache and IgnoreFlush on the hypervisor",
    "xen": "by the backend of the disk in dom0 on the hypervisor",
    "hypervisor": "on the hypervisor",
    "nbd": "on the machine that exports it",
    "ceph": "in the Ceph cluster, on the disks of its OSDs",
    "nfs": "on the NFS server, which exports it with sync",
    "layer": "on the disks below",
    "bridge": "after attaching it without the bridge",
    "controller": "with the controller's own tool",
    **_TOOLS,
    **{f"host_{tool}": f"on this host, or {place}" for tool, place in _TOOLS.items()},
    "nowhere": "nowhere: move the data to a persistent disk",
}
#: Place -> how a disk without a name of its own is given one there.
_NAMED_BY = {
    "vmware": "set disk.EnableUUID = TRUE in the virtual machine's configuration",
    "qemu": "give it a serial number in QEMU or libvirt",
}


class Traits(NamedTuple):
    """What sysfs and udev say of one disk; a text is '' if it is missing.

    `path` is /sys/block/NAME resolved. For an NVMe disk with native multipath it is the resolved
    paths of its :func:`nvme_paths`, with spaces between: the disk's own path does not tell
    PCI from a network. `driver` is proc_name of its scsi_host, `vendor` and `model` are those of
    device/, `properties` udev's, `virtualization` the word of systemd-detect-virt.
    """

    name: str
    path: str
    driver: str
    vendor: str
    model: str
    properties: dict[str, str]
    virtualization: str


class Kind(NamedTuple):
    """The answer. `cause`: why a kind is unknown. `hidden`, of HIDDEN: why the state of the cache is unknown with any answer
    of the device. `place`: where the cache can be switched, one of PLACES."""

    transport: str
    kind: str
    cause: Because | None
    hidden: str | None
    place: str


def classify(traits: Traits) -> Kind:
    """Return what a disk is. What no rule knows is `unknown`, with the reason."""
    transport = _transport(traits)
    for rule in (_by_name, _bridge, _cloud, _remote, _guest, _array, _raid, _by_machine):
        found = rule(traits, transport)
        if found is not None:
            return found
    return _bare_metal(traits, transport)


def named_by(place: str) -> str:
    """Return how a disk without a unique name gets one, at the :attr:`Kind.place` of its cache."""
    return _NAMED_BY.get(place, "give it a unique serial number at its hypervisor or controller")


def is_memory(name: str) -> bool:
    """Return whether a kernel name is that of a disk made of memory."""
    return re.fullmatch(_MEMORY_NAMES, name) is not None


def nvme_paths(names: Iterable[str]) -> dict[str, list[str]]:
    """Return {NVMe disk with native multipath: the hidden devices behind it}, of the names in
    /sys/block: for nvme1n1, nvme1c1n1 and its like."""
    found: dict[str, list[str]] = {}
    for name in names:
        hidden = re.fullmatch(r"(nvme\d+)c\d+(n\d+)", name)
        if hidden:
            found.setdefault(f"{hidden[1]}{hidden[2]}", []).append(name)
    return found


#: Transport and what shows it, in the path or in the kernel name; the first match counts.
_SIGNS = (
    ("usb", r"/usb\d"),
    ("firewire", r"/fw\d"),
    ("mmc", r"/mmc_host/|^mmcblk\d"),
    ("virtio", r"/virtio\d+/block/|^vd[a-z]"),
    ("xen", r"/vbd-\d+/|^xvd[a-z]"),
    ("nvme", r"/nvme-(subsystem|fabrics)/|/nvme/nvme\d|^nvme\d"),
    ("sas", r"/end_device-"),
    ("sata", r"/ata\d+/"),
    ("scsi", r"/target\d+:\d+:\d+/"),
)


def _transport(traits: Traits) -> str:
    for transport, sign in _SIGNS:
        if any(re.search(sign, text) for text in (traits.path, traits.name)):
            is_ata = traits.vendor == "ATA" or traits.properties.get("ID_BUS") == "ata"
            if transport in ("sas", "scsi") and is_ata:
                return "sat"  # spoken to in SCSI, which its controller translates: SCSI / ATA Translation
            # A port of libata also takes what is no ATA disk and cannot be asked as one.
            return transport if transport != "sata" or is_ata else UNKNOWN
    return UNKNOWN


def _names(traits: Traits) -> str:
    """Return what the disk calls itself, a line for each source: sysfs cuts a model short, udev
    fills spaces with underscores."""
    full = traits.properties.get("ID_MODEL", "")
    lines = (f"{traits.vendor} {traits.model}", full, full.replace("_", " "))
    return "\n".join(" ".join(line.split()) for line in lines)


def _calls_itself(traits: Traits, pattern: str) -> bool:
    return re.search(pattern, _names(traits), re.M) is not None


_MEMORY_NAMES = r"(z?ram|nullb)\d+"
#: Kernel name -> kind, cause, hidden, place: what is no disk, or none of this machine.
_NAMED = (
    (_MEMORY_NAMES, MEMORY, None, None, "nowhere"),
    (r"nbd\d+", NETWORK, None, MACHINE_HIDES, "nbd"),
    (r"rbd\d+", NETWORK, None, MACHINE_HIDES, "ceph"),
    (r"pmem\d+.*", UNKNOWN, Because("kind_pmem"), None, ""),
    (r"(dm-|md|drbd|loop|bcache|zd)\d.*", UNKNOWN, Because("kind_layer"), None, "layer"),
)


def _by_name(traits: Traits, transport: str) -> Kind | None:
    if traits.driver == "scsi_debug":
        return Kind(transport, MEMORY, None, None, "nowhere")
    for pattern, kind, cause, hidden, place in _NAMED:
        if re.fullmatch(pattern, traits.name):
            return Kind(transport, kind, cause, hidden, place)
    return None


def _bridge(traits: Traits, transport: str) -> Kind | None:
    if transport not in ("usb", "firewire"):
        return None
    cause = Because("kind_bridge", {"transport": transport})
    return Kind(transport, UNKNOWN, cause, BRIDGE_HIDES, "bridge")


#: Where Azure puts a machine's temporary disk: the second IDE place of generation 1, LUN 1 of
#: the first controller of generation 2 (WALinuxAgent's 66-azure-storage.rules).
_AZURE_TEMPORARY = r"/VMBUS:.*/(00000000-0001-[0-9a-f-]+/|f8b3781a-1e82-4818-a1c3-63d806ec15bb/.*:1/block/)"
_LOST_LINKS = r"/dev/disk/((azure|cloud)/(azure_)?resource$|azure/local/|by-id/google-local-(nvme-)?ssd-\d)"
_CLOUDS = (
    (r"^(Amazon EC2 NVMe Instance Storage|Microsoft NVMe Direct Disk)", EPHEMERAL, "nowhere"),
    (r"^(nvme_card\d*|Google EphemeralDisk)$", EPHEMERAL, "nowhere"),
    (r"^(Amazon Elastic Block Store|Alibaba Cloud Elastic Block Storage)", NETWORK, "provider"),
    (r"^(nvme_card-pd|Google PersistentDisk)$", NETWORK, "provider"),
    (r"^(ORACLE BlockVolume|(DO|HC|Linode) Volume)$", NETWORK, "provider"),
    # It may as well be an ephemeral system disk: nothing inside the machine shows it.
    (r"^MSFT NVMe Accelerator", VIRTUAL, "azure"),
)


def _cloud(traits: Traits, transport: str) -> Kind | None:
    links = traits.properties.get("DEVLINKS", "").split()
    if any(re.match(_LOST_LINKS, link) for link in links):
        return Kind(transport, EPHEMERAL, None, None, "nowhere")
    if any(re.match(r"/dev/disk/azure/(data|datadisks|scsi[1-9])/", link) for link in links):
        return Kind(transport, NETWORK, None, None, "azure")
    if any(re.match(r"/dev/disk/(azure/(os|root)|cloud/azure_root)$", link) for link in links):
        return Kind(transport, VIRTUAL, None, None, "azure")
    if re.search(_AZURE_TEMPORARY, traits.path):
        return Kind(transport, UNKNOWN, Because("kind_azure"), None, "")
    for pattern, kind, place in _CLOUDS:
        if _calls_itself(traits, pattern):
            return Kind(transport, kind, None, None, place)
    return None


def _remote(traits: Traits, transport: str) -> Kind | None:
    """Takes iSCSI, Fibre Channel and NVMe over a network, also inside a virtual machine."""
    if re.search(r"/session\d+/|/rport-|/nvme-fabrics/", traits.path):
        return Kind(transport, SAN, None, None, "array")
    return None


#: What shows a hypervisor, in virtualization, path, driver or the disk's names, and its switch.
_HYPERVISORS = (
    (r"^microsoft$|/VMBUS:|^storvsc|^Msft ", "hyperv"),
    (r"^vmware$|^vmw_pvscsi$|VMware", "vmware"),
    (r"^oracle$|VBOX", "virtualbox"),
    (r"^(amazon|google)$", "provider"),
    (r"^xen$|/vbd-\d+/", "xen"),
    (r"^(kvm|qemu)$|/virtio\d+/|^virtio_scsi$|QEMU", "qemu"),
    (r"^ibmvscsi|^AIX |NVDISK|Virtual HDD", "hypervisor"),
)


def _hypervisor(*texts: str) -> str | None:
    """Return where a hypervisor's disk is switched, or None when no text shows one."""
    shown = "\n".join(texts)
    return next((place for sign, place in _HYPERVISORS if re.search(sign, shown, re.M)), None)


def _guest(traits: Traits, transport: str) -> Kind | None:
    """Takes disks that only a hypervisor offers, whatever systemd-detect-virt was made to say."""
    shown = _hypervisor(traits.path, traits.driver, _names(traits))
    if shown is None and transport not in ("virtio", "xen"):
        return None
    place = _hypervisor(traits.virtualization) or shown or "hypervisor"
    return Kind(transport, VIRTUAL, None, None, place)


#: Vendors and models of arrays, for those that are attached by SAS or passed on by a RAID
#: controller (multipath-tools, libmultipath/hwtable.c; the kernel's scsi_devinfo.c). Some makers of disks make arrays too:
#: Seagate's Exos X (a model of digits, where a disk's begins with letters) and STJX, Intel's Multi-Flex, Hitachi's.
_ARRAYS = (
    r"^(3PARdata|COMPELNT|DDN|DGC|DataCore|DellEMC|DotHill|EMC|HUAWEI|IFT|KMNRIO|LEFTHAND|LIO-ORG|NEXENTA"
    r"|NFINIDAT|Nimble|PURE|Promise|SolidFir|TEGILE|VIOLIN|XIV|XtremIO) "
    r"|^DELL MD3|^(HPE?|COMPAQ) (MSA|P2000|HSV|OPEN-|DISK-SUBSYSTEM)|^HITACHI (OPEN-|DF|DISK-SUBSYSTEM)|^IBM \d{4}"
    r"|^SEAGATE [456]|^(SEAGATE )?STJX|^(Intel|INTEL) Multi-Flex"
    r"|^FUJITSU (ETERNUS|E\d000)|^LENOVO DE_Series|^NETAPP LUN|^(NETAPP|LSI|ENGENIO) INF-01-00"
    r"|NetApp ONTAP|FlashArray|PowerMax|dellemc-powerstore|HPE Alletra|Huawei-XSG1"
)


def _array(traits: Traits, transport: str) -> Kind | None:
    if _calls_itself(traits, _ARRAYS):
        return Kind(transport, SAN, None, None, "array")
    return None


_END_DEVICE = r"/end_device-"
_NVME_ON_PCI = r"/[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/nvme/nvme\d+/nvme\d+(c\d+)?n\d+$"
_NO = r"(?!)"


class _Controller(NamedTuple):
    """A driver that offers single disks and RAID volumes: what in a path shows the one or the
    other (the numbers are SCSI channels, fixed in the driver), and the controller's own tool."""

    disks: str
    volumes: str
    tool: str


_MPT = _Controller(_END_DEVICE, r"/target\d+:1:", "sas_ircu")
_CONTROLLERS = {
    "aacraid": _Controller(r"/target\d+:[1-9]\d*:", r"/target\d+:0:", "arcconf"),
    "hpsa": _Controller(_END_DEVICE, r"/target\d+:[12]:", "ssacli"),
    "megaraid_sas": _Controller(r"/target\d+:[01]:", r"/target\d+:[23]:", "storcli"),
    "mpi3mr": _Controller(_END_DEVICE, _NO, "storcli2"),
    "mpt2sas": _MPT,
    "mpt3sas": _MPT,
    "mptsas": _MPT,
    "smartpqi": _Controller(_END_DEVICE, r"/target\d+:[13]:", "ssacli_arcconf"),
}
#: Beginnings of the names of drivers that offer nothing but RAID volumes, or do not tell.
_RAID_DRIVERS = ("3w-", "arcmsr", "dpt_i2o", "gdth", "hptiop", "ips", "megaraid", "mvumi", "pmcraid", "stex")
#: Names of RAID volumes, also of cards that pass for a SATA or NVMe disk (Dell BOSS, HPE NS204i,
#: Lenovo's M.2 kits) and of drivers that give no proc_name (Areca, 3ware).
_RAID_NAMES = (
    r"^(Adaptec|Areca|AMCC|3ware|ServeRA) |(?i:\bRAID|\bPERC\b|\bVD$|logical (volume|drive)|virtual disk)"
    r"|LogicalDrv|-VOL#|BOSS|NS204|^IBM IPR-"
)
#: Vendor and model of single disks. HP's and HPE's have models like EG0900FBVFQ.
_MAKERS = (
    r"^(ATA|FUJITSU|HGST|HITACHI|IBM-ESXS|INTEL|KIOXIA|MICRON|MAXTOR|SAMSUNG|SEAGATE|SanDisk|TOSHIBA|WD|WDC) ."
    r"|^HPE? [A-Z]{2}\d{4}"
)


def _raid(traits: Traits, transport: str) -> Kind | None:
    controller = _CONTROLLERS.get(traits.driver)
    tool = controller.tool if controller else "controller"
    is_volume = bool(controller and re.search(controller.volumes, traits.path))
    is_raid = traits.driver.startswith(_RAID_DRIVERS) and controller is None
    if is_volume or is_raid or _calls_itself(traits, _RAID_NAMES):
        return Kind(transport, RAID_VOLUME, None, RAID_HIDES, tool)
    if controller is None or _is_single_disk(traits, controller):
        return None
    cause = Because("kind_volume", {"driver": traits.driver})
    return Kind(transport, UNKNOWN, cause, CONTROLLER_MAY_HIDE, tool)


def _is_single_disk(traits: Traits, controller: _Controller) -> bool:
    return bool(re.search(controller.disks, traits.path)) and _is_of_a_maker(traits)


def _is_of_a_maker(traits: Traits) -> bool:
    # By the vendor in sysfs: a model of udev may begin with a maker's name behind another vendor.
    return re.match(_MAKERS, f"{traits.vendor} {traits.model}") is not None


#: Words of systemd-detect-virt for containers: it does not report a hypervisor below them.
CONTAINERS = "container-other docker lxc lxc-libvirt openvz podman pouch proot rkt systemd-nspawn wsl".split()


def _by_machine(traits: Traits, transport: str) -> Kind | None:
    word = traits.virtualization
    if word in ("", UNKNOWN):
        return Kind(transport, UNKNOWN, Because("kind_machine"), None, "")
    if word in CONTAINERS:
        return Kind(transport, UNKNOWN, Because("kind_container", {"container": word}), None, "")
    # A hypervisor offers no device that this machine's own programs make, as ublk does.
    is_own = transport == UNKNOWN and traits.path.startswith("/sys/devices/virtual/")
    if word != "none" and not is_own:
        return Kind(transport, VIRTUAL, None, None, _hypervisor(word) or "hypervisor")
    return None


def _bare_metal(traits: Traits, transport: str) -> Kind:
    cause = _doubt(traits, transport)
    if cause:
        return Kind(transport, UNKNOWN, cause, None, "")
    hidden = CARD_HIDES if transport == "mmc" else None
    controller = _CONTROLLERS.get(traits.driver)
    place = f"host_{controller.tool}" if controller else "host"
    return Kind(transport, PHYSICAL, None, hidden, place)


def _doubt(traits: Traits, transport: str) -> Because | None:
    """Return why a disk of bare metal may be another thing than a disk, or None."""
    if transport in ("sata", "mmc"):
        return None
    if transport == "nvme":
        paths = traits.path.split()
        if paths and all(re.search(_NVME_ON_PCI, path) for path in paths):
            return None
        return Because("kind_no_pci")
    called = f"{traits.vendor} {traits.model}".strip() or "a disk without a name"
    is_attached = re.search(_END_DEVICE, traits.path) is not None or traits.driver in _CONTROLLERS
    if transport in ("sas", "scsi", "sat") and is_attached:
        # _raid has let it pass, as a single disk or because its driver offers no others.
        return None if _is_of_a_maker(traits) else Because("kind_maker", {"model": called})
    return Because("kind_no_rule", {"model": called, "place": traits.driver or traits.name})


def cache_of(name: str) -> str:
    """Return what holds the cache of a disk: of an NVMe namespace, its controller."""
    return re.sub(r"^(nvme\d+)n\d+$", r"\1", name)
