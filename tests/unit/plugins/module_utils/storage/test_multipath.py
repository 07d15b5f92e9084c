# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of one name: paths of a multipath disk, and those that only look like it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.capture.capture import capture
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage import flush
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.disks import Disks
from ansible_collections.durable.dbhost.plugins.module_utils.storage.multipath import ASK

from ..fakes.runs import NOW, attested, inputs, look
from ..fakes.small_host import FakeDisk, FakeMount, SmallHost, dm

LUN = {"vendor": "NETAPP", "model": "LUN C-Mode", "driver": "qla2xxx"}


LUN_PORTS = [f"0000:03:00.0/host{n}/rport-{n}:0-1/target{n}:0:0/{n}:0:0:0/block" for n in (2, 3)]


def on_a_san(
    *multipath: str, ports: list[str] = LUN_PORTS, features: str = "1 queue_if_no_path", **make: str
) -> SmallHost:
    """Return a host with a LUN on two paths, each claimed by multipathd or not, and a file system on it."""
    host = SmallHost()
    for name, number, port, claimed in zip(("sdg", "sdh"), ("8:96", "8:112"), ports, multipath):
        path = FakeDisk(name, "scsi", "lun1", port=port, multipath=claimed, rotational="1", **(make or LUN))
        host.add_disk(path, number)
    table = f"multipath {features} 0 2 1 round-robin 0 1 1 8:96 1 round-robin 0 1 1 8:112 1"
    host.commands[tuple(ASK)] = "dm-5-uuid:on\nother:off\n"
    host.add_layer(dm("dm-5", "mpath", ("sdg", "sdh"), "253:5", table))
    volume = FakeMount("/srv/v", "ext4", "253:5", "/dev/mapper/mpath-dm-5", "dm-5", atime="noatime")
    host.add_mount(volume, "/dev/mapper/mpath-dm-5 /srv/v ext4 noatime 0 2\n")
    return host


def test_the_paths_of_a_multipath_disk_can_be_attested_and_are_never_switched() -> None:
    host = on_a_san("1", "1")
    disks = {d["name"]: d for d in collect(host, NOW)["disks"] if d["name"] in ("sdg", "sdh")}
    assert {d["id"] for d in disks.values()} == {"serial:lun1"}
    assert {(d["switchable"], d["multipath"]) for d in disks.values()} == {("no", "yes")}
    assert Disks(host).find("serial:lun1") is Disks(host).id_of("sdg") is None
    words = [attested("power_loss_protection", "serial:lun1"), attested("host_honours_flush")]
    found = look(host, "protected", mounts=["/srv/v"], attestations=words)
    assert found["verdict"] == "attested", found["why"]
    assert not any(found["plan"].values())


def test_a_physical_disk_on_two_paths_gets_no_rule_by_the_name_that_they_share() -> None:
    ports = [
        f"0000:01:00.0/host{n}/port-{n}:0/end_device-{n}:0/target{n}:0:0/{n}:0:0:0/block" for n in (2, 3)
    ]
    host = on_a_san("1", "1", ports=ports, vendor="SEAGATE", model="ST1200MM0099", driver="mpt3sas")
    kinds = {d["name"]: (d["kind"], d["switchable"]) for d in collect(host, NOW)["disks"]}
    assert kinds["sdg"] == kinds["sdh"] == ("physical", "no")
    wanted = {"scheduler_rotational": "mq-deadline", "scheduler_solid_state": "mq-deadline"}
    found = look(host, "strict", mounts=["/srv/v"], overrides=wanted)
    rows = {row["target"]: row for row in found["settings"] if row["setting"] == "scheduler"}
    assert {name: row["phase"] for name, row in rows.items()} == {"sdg": None, "sdh": None}
    assert not {row["phase"] for row in found["settings"] if row["target"] == "serial:lun1"} - {None}


@pytest.mark.parametrize("multipath", [("1", ""), ("", "")])
def test_disks_that_share_a_name_without_being_paths_of_one_have_none(multipath: tuple[str, str]) -> None:
    host = on_a_san(*multipath)
    disks = [d for d in collect(host, NOW)["disks"] if d["name"] in ("sdg", "sdh")]
    assert {(d["id"], d["multipath"]) for d in disks} == {(None, "no")}


def test_what_is_owed_to_a_disk_that_is_not_ours_says_how_to_pay() -> None:
    host = on_a_san("1", "1")
    host.files[f"{flush.OWED}/sdg"] = ""
    found = look(host, "flush", mounts=["/srv/v"], attestations=[attested("host_honours_flush")])
    (row,) = [row for row in found["settings"] if row["setting"] == "flush"]
    assert row["remedy"] == (
        'reboot, or write "write back" to /sys/block/sdg/queue/write_cache, run sync /dev/sdg, then remove'
        f" {flush.OWED}/sdg"
    )


@pytest.mark.parametrize(
    ("profile", "claim"), [("flush", "host_honours_flush"), ("strict", "power_loss_protection")]
)
def test_one_attestation_of_the_lun_stands_for_all_its_paths(profile: str, claim: str) -> None:
    """The array's owner vouches for the LUN by its name, which the paths share; the report has it to copy, once."""
    host = on_a_san("1", "1")
    before = look(host, profile, mounts=["/srv/v"])
    assert before["verdict"] not in ("attested", "durable")
    copied = {need["attest"] for need in before["requirements"] if need["attest"]}
    assert len(copied) == 1, copied
    (entry,) = yaml.safe_load("\n".join(copied.pop()).replace("!unsafe ", ""))
    assert (entry["claim"], entry["target"]) == (claim, "serial:lun1")
    words = [{**entry, "by": "A. Person", "reason": "mirrored cache with batteries"}]
    after = look(host, profile, mounts=["/srv/v"], attestations=words)
    assert after["verdict"] == "attested", after["why"]


def test_what_cannot_be_switched_through_a_path_says_why() -> None:
    found = look(on_a_san("1", "1"), "strict", mounts=["/srv/v"])
    remedies = {row["remedy"] for row in found["settings"] if row["setting"] == "write_cache"}
    assert remedies == {
        "set the write cache to disabled on the array, or attest power_loss_protection for serial:lun1, which all paths share"
    }


ATTESTED = attested("host_honours_flush", "serial:lun1")
QUEUE = "1 queue_if_no_path"


@pytest.mark.fact(94)
@pytest.mark.parametrize(
    ("features", "said", "verdict"),
    [
        (QUEUE, "on", "attested"),
        ("2 retain_attached_hw_handler queue_if_no_path", "on", "attested"),
        (QUEUE, "12 chk", "attested"),
        (QUEUE, "-", "attested"),
        ("0", "off", "drifted"),
        ("1 retain_attached_hw_handler", "on", "drifted"),
        ("0", "on", "drifted"),
        ("0 1 queue_if_no_path", "on", "drifted"),
        ("0", "-", "drifted"),
        (QUEUE, "off", "drifted"),
        ("0", "30 sec", "drifted"),
        (QUEUE, "", "unknown"),
        (QUEUE, "perhaps", "unknown"),
    ],
)
def test_a_lun_whose_writes_fail_without_a_path_is_not_green(features: str, said: str, verdict: str) -> None:
    host = on_a_san("1", "1", features=features)
    host.commands[tuple(ASK)] = f"dm-5-uuid:{said}\n"
    found = look(host, "flush", mounts=["/srv/v"], attestations=[ATTESTED])
    assert found["verdict"] == verdict, found["why"]
    (row,) = [row for row in found["settings"] if row["setting"] == "no_path_retry"]
    cure = {
        "attested": "",
        "unknown": "run systemctl start multipathd, then run again",
        "drifted": "set no_path_retry queue in the section overrides of /etc/multipath.conf, remove other values of it from the"
        " section multipaths, then run multipathd reconfigure",
    }
    assert (row["phase"], row["remedy"]) == (None, cure[verdict])
    assert any("no_path_retry" in note for note in found["warnings"]) == (said in ("12 chk", "30 sec"))


@pytest.mark.parametrize(
    "answer", [Unobservable("multipathd: No such file or directory"), Result(1, "", "down\n"), ""]
)
def test_without_an_answer_of_multipathd_the_next_loss_is_unknown(answer: Any) -> None:
    host = on_a_san("1", "1")
    host.commands[tuple(ASK)] = answer
    found = look(host, "flush", mounts=["/srv/v"], attestations=[ATTESTED])
    assert found["verdict"] == "unknown", found["why"]


@pytest.mark.parametrize("state", ["", "garbage", "no path: queue", "no path: x, no_path_retry: queue"])
def test_a_state_that_is_lost_is_unknown(state: str) -> None:
    storage = collect(on_a_san("1", "1"), NOW)
    for mount in storage["mounts"]:
        for layer in mount["stack"]:
            layer["state"] = state
    given = inputs("flush", mounts=["/srv/v"], attestations=[ATTESTED])
    assert assess(given, storage, NOW)["verdict"] == "unknown"


def test_a_capture_keeps_what_multipathd_says() -> None:
    found = capture(on_a_san("1", "1"), NOW)
    assert (found["failed"], found["differs"]) == (None, [])
