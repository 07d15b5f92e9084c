# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a disk is called; never physical without evidence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.facts.storage import KINDS
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disk_kinds import (
    HIDDEN,
    TRANSPORTS,
    Kind,
    Traits,
    classify,
    nvme_paths,
)

from ..fakes.captured import COLLECTION

DISKS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((COLLECTION / "tests/fixtures/kinds").glob("*.json"))
}
TRAITS = {name: Traits(**disk["traits"]) for name, disk in DISKS.items()}
PHYSICAL = [name for name, disk in DISKS.items() if disk["expected"]["kind"] == "physical"]
#: Words of systemd-detect-virt, of which only "none" lets a disk be physical.
NOT_BARE = ["unknown", "", "kvm", "microsoft", "amazon", "bhyve", "docker", "systemd-nspawn", "wsl", "???"]


def answer(name: str, **changes: Any) -> Kind:
    return classify(TRAITS[name]._replace(**changes))


@pytest.mark.parametrize("name", DISKS)
def test_each_disk_is_called_what_it_is(name: str) -> None:
    expected, found = DISKS[name]["expected"], answer(name)
    assert (found.transport, found.kind, found.place) == tuple(
        expected[key] for key in ("transport", "kind", "place")
    )
    cause = found.cause.cause if found.cause else None
    assert (cause, found.hidden) == (expected["cause"], expected["hidden"])


def test_each_answer_there_is_occurs() -> None:
    found = [classify(traits) for traits in TRAITS.values()]
    assert {kind.kind for kind in found} == set(KINDS)
    assert {kind.transport for kind in found} == set(TRANSPORTS)
    assert {kind.hidden for kind in found} == {*HIDDEN, None}


@pytest.mark.parametrize("name", DISKS)
def test_each_disk_says_where_its_values_come_from(name: str) -> None:
    disk = DISKS[name]
    assert list(disk) == ["about", "source", "traits", "expected"]
    assert disk["source"].startswith("Read in a QEMU machine" if name.startswith("lab_") else "Composed")
    assert disk["about"] and "captured" not in name


@pytest.mark.parametrize("word", NOT_BARE)
@pytest.mark.parametrize("name", PHYSICAL)
def test_no_disk_is_physical_where_a_hypervisor_is_or_may_be(name: str, word: str) -> None:
    assert answer(name, virtualization=word).kind in ("virtual", "unknown")


@pytest.mark.parametrize(
    ("vendor", "model", "kind"),
    [
        ("ATA", "QEMU HARDDISK", "virtual"),
        ("ATA", "VBOX HARDDISK", "virtual"),
        ("VMware", "Virtual disk", "virtual"),
        ("", "Amazon EC2 NVMe Instance Storage", "ephemeral"),
        ("", "Amazon Elastic Block Store", "network"),
        ("ATA", "DELLBOSS VD", "raid_volume"),
        ("DELL", "PERC H755 Front", "raid_volume"),
        ("HP", "LOGICAL VOLUME", "raid_volume"),
        ("NETAPP", "LUN C-Mode", "san"),
        ("HPE", "MSA 2060 SAS", "san"),
        ("SEAGATE", "4006", "san"),
        ("SEAGATE", "5005", "san"),
        ("SEAGATE", "6575", "san"),
        ("SEAGATE", "STJX", "san"),
        ("STJX", "4006", "san"),
        ("Intel", "Multi-Flex", "san"),
        ("INTEL", "Multi-Flex", "san"),
        ("HITACHI", "DISK-SUBSYSTEM", "san"),
        ("FUJITSU", "ETERNUS_DXM", "san"),
    ],
)
@pytest.mark.parametrize("name", PHYSICAL)
def test_a_disk_that_calls_itself_another_thing_is_not_physical(
    name: str, vendor: str, model: str, kind: str
) -> None:
    assert answer(name, vendor=vendor, model=model).kind == kind
    # Also when sysfs cut the name short, and only udev has it whole.
    properties = {**TRAITS[name].properties, "ID_MODEL": model.replace(" ", "_")}
    if vendor in ("", "ATA"):
        assert answer(name, properties=properties).kind == kind


@pytest.mark.parametrize(
    ("vendor", "model"),
    [
        ("SEAGATE", "ST4000NM0023"),
        ("SEAGATE", "XS3840SE70004"),
        ("INTEL", "SSDSC2KB480G7R"),
        ("HITACHI", "HUS153030VLS300"),
    ],
)
def test_a_disk_of_a_maker_of_arrays_too_is_physical(vendor: str, model: str) -> None:
    assert answer("sas_disk_mpt3sas", vendor=vendor, model=model).kind == "physical"


@pytest.mark.parametrize("driver", ["", "(null)", "mpt3sas", "hpsa", "virtio_scsi", "new_driver"])
@pytest.mark.parametrize("name", ["megaraid_avago_volume", "mpt3sas_nvme", "aacraid_container", "scsi_debug"])
def test_a_volume_is_not_physical_when_its_driver_cannot_be_read(name: str, driver: str) -> None:
    assert answer(name if name in DISKS else f"lab_{name}", driver=driver).kind != "physical"


@pytest.mark.parametrize(
    ("driver", "channel"),
    [
        ("aacraid", 0),
        ("hpsa", 1),
        ("hpsa", 2),
        ("megaraid_sas", 2),
        ("megaraid_sas", 3),
        ("mpt2sas", 1),
        ("mpt3sas", 1),
        ("mptsas", 1),
        ("smartpqi", 1),
        ("smartpqi", 3),
    ],
)
def test_a_channel_for_volumes_tells_more_than_the_name_of_a_maker(driver: str, channel: int) -> None:
    path = f"/sys/devices/pci0000:17/0000:17:00.0/host0/target0:{channel}:0/0:{channel}:0:0/block/sda"
    found = answer("sas_disk_mpt3sas", driver=driver, path=path)
    assert (found.kind, bool(found.hidden)) == ("raid_volume", True)


#: Disks that only systemd-detect-virt shows to be a guest's.
LOOK_REAL = ("nvme_passed_through", "unheard_of_hypervisor", "lab_megasas_jbod", "lab_sd_card")


@pytest.mark.parametrize(
    "name", [n for n, disk in DISKS.items() if disk["expected"]["kind"] == "virtual" and n not in LOOK_REAL]
)
def test_a_hypervisors_disk_is_known_where_the_hypervisor_hides(name: str) -> None:
    assert answer(name, virtualization="none").kind == "virtual"


@pytest.mark.parametrize(
    ("word", "place"),
    [("amazon", "provider"), ("google", "provider"), ("kvm", "qemu"), ("bhyve", "hypervisor")],
)
def test_the_hypervisor_says_where_its_disks_are_switched(word: str, place: str) -> None:
    assert answer("nvme_pci", virtualization=word).place == place


@pytest.mark.parametrize("word", ["none", "kvm", "amazon"])
def test_a_device_that_a_program_of_this_machine_makes_is_unknown(word: str) -> None:
    path = "/sys/devices/virtual/ublk-char/ublkc0/block/ublkb0"
    found = classify(Traits("ublkb0", path, "", "", "", {}, word))
    assert (found.kind, found.cause and found.cause.cause) == ("unknown", "kind_no_rule")


def test_every_path_of_a_multipath_disk_counts() -> None:
    local, remote = TRAITS["nvme_vmd"].path, TRAITS["lab_nvme_tcp"].path
    head = TRAITS["nvme_multipath_paths_not_given"].path
    found = {path: answer("nvme_vmd", path=path).kind for path in (f"{local} {local}", f"{local} {head}", "")}
    assert list(found.values()) == ["physical", "unknown", "unknown"]
    assert answer("nvme_vmd", path=f"{local} {remote}").kind == "san"


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("nvme1n1", ["nvme1c1n1", "nvme1c12n1"]),
        ("nvme1n2", ["nvme1c1n2"]),
        ("nvme11n1", ["nvme11c1n1"]),
        ("nvme0n1", None),
        ("sda", None),
        ("nvme1c1n1", None),
    ],
)
def test_paths_of_a_multipath_disk_are_found_by_name(name: str, paths: list[str]) -> None:
    names = "nvme0n1 nvme1c1n1 nvme1c12n1 nvme1c1n2 nvme1n1 nvme1n2 nvme11c1n1 nvme11n1 sda".split()
    assert nvme_paths(names).get(name) == paths


def words(field: str) -> st.SearchStrategy[str]:
    """Draw a field of some known disk, or anything."""
    return st.sampled_from(sorted({getattr(traits, field) for traits in TRAITS.values()})) | st.text()


PARTS = sorted({part for traits in TRAITS.values() for part in traits.path.split("/")})
paths = words("path") | st.lists(st.sampled_from(PARTS)).map("/".join)
properties = st.dictionaries(
    st.sampled_from(["ID_BUS", "ID_MODEL", "DEVLINKS", "ID_PATH"]),
    st.sampled_from(sorted({text for traits in TRAITS.values() for text in traits.properties.values()}))
    | st.text(),
)
anything = st.builds(
    Traits,
    name=words("name"),
    path=paths,
    driver=words("driver"),
    vendor=words("vendor"),
    model=words("model"),
    properties=properties,
    virtualization=words("virtualization"),
)


@given(anything)
def test_any_garbage_has_an_answer_of_the_closed_lists(traits: Traits) -> None:
    found = classify(traits)
    assert found.transport in TRANSPORTS and found.kind in KINDS and found.hidden in (*HIDDEN, None)
    assert (found.kind == "unknown") == bool(found.cause)
    assert found.place is not None


@given(anything, st.sampled_from(NOT_BARE) | st.text().filter(lambda word: word != "none"))
def test_no_garbage_is_physical_unless_the_machine_is_known_to_be(traits: Traits, word: str) -> None:
    assert classify(traits._replace(virtualization=word)).kind != "physical"


@given(anything)
def test_what_is_behind_usb_is_never_trusted(traits: Traits) -> None:
    path = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host0/target0:0:0/0:0:0:0/block/sda"
    found = classify(traits._replace(path=path, name="sda", driver="uas"))
    assert (found.transport, found.kind, bool(found.hidden)) == ("usb", "unknown", True)
