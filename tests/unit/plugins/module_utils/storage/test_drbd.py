# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DRBD: what lies below it on this node, what its protocol loses at a take-over, and flushes that it leaves out.

The form of the answers is composed from drbd-utils (user/v9/drbdsetup.c) and from answers of 9.6 that public tests hold;
no DRBD was run.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture.capture import capture
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.drbd import ADJUST, SHOW, STATUS

from ..fakes.replicated_host import DATA, facts, judged, replicated_host
from ..fakes.runs import NOW, attested, look
from ..fakes.sentences import sentence
from ..fakes.small_host import SmallHost


def shown(net: dict[str, Any] | None = None, **volume: Any) -> list[dict[str, Any]]:
    """Return what drbdsetup shows: `net` of the one peer; it leaves defaults out."""
    found = {"volume_nr": 0, "device_minor": 5, "backing-disk": "/dev/sdg", "meta-disk": "internal", **volume}
    peer = {"_peer_node_id": 1, "net": {"_name": "db2", "shared-secret": "hunter2", **(net or {})}}
    return [
        {
            "resource": "pg",
            "_this_host": {
                "node-id": 0,
                "volumes": [{key: value for key, value in found.items() if value is not None}],
            },
            "connections": [peer],
        }
    ]


def status(disk: str = "UpToDate", ordering: str = "flush", peer: str = "UpToDate") -> list[dict[str, Any]]:
    copies = [{"volume": 0, "replication-state": "Established", "peer-disk-state": peer}]
    return [
        {
            "name": "pg",
            "role": "Primary",
            "write-ordering": ordering,
            "devices": [{"volume": 0, "minor": 5, "disk-state": disk}],
            "connections": [{"peer-node-id": 1, "name": "db2", "peer_devices": copies}],
        }
    ]


def node(show: Any = None, state: Any = None, cache: str = "enabled") -> SmallHost:
    """Return a host whose database lies on /dev/drbd5, over sdg."""
    host = replicated_host(cache)
    host.commands[tuple(SHOW)] = json.dumps(shown() if show is None else show)
    host.commands[tuple(STATUS)] = json.dumps(status() if state is None else state)
    return host


def test_its_disk_on_this_node_lies_below_it() -> None:
    host = node()
    found = facts(host)
    (layer, _disk) = found["stack"]
    assert (layer["type"], layer["below"], found["disks"]) == ("drbd", ["sdg"], ["sdg"])
    assert layer["state"] == "protocol C, write-ordering flush, 1 of 1 peers up to date"
    assert "hunter2" not in json.dumps(collect(host, NOW))
    assert "drbd5" not in [disk["name"] for disk in collect(host, NOW)["disks"]]
    assert judged(host)["verdict"] == "durable"


def test_metadata_elsewhere_are_a_disk_of_it_too() -> None:
    host = node(shown(**{"meta-disk": "/dev/vdb"}))
    assert facts(host)["disks"] == ["sdg", "vdb"]


@pytest.mark.fact(92)
@pytest.mark.parametrize(("protocol", "verdict"), [("A", "blocked"), ("B", "durable"), ("C", "durable")])
def test_protocol_a_loses_commits_at_a_take_over(protocol: str, verdict: str) -> None:
    found = judged(node(shown({"protocol": protocol})))
    assert found["verdict"] == verdict, found["why"]
    needs = [need for need in found["requirements"] if need["name"] == "replica_awaited"]
    assert [need["target"] for need in needs] == ([DATA] if protocol == "A" else [])
    assert all("protocol C" in need["remedy"] for need in needs)


def test_a_node_without_peers_has_nothing_to_wait_for() -> None:
    host = node([{**shown()[0], "connections": []}], [{**status()[0], "connections": []}])
    assert facts(host)["stack"][0]["state"] == "write-ordering flush"
    assert judged(host)["verdict"] == "durable"


@pytest.mark.parametrize("peer", ["Outdated", "DUnknown", "Inconsistent"])
def test_a_peer_that_is_behind_is_a_note(peer: str) -> None:
    found = look(node(state=status(peer=peer)), "flush", mounts=[DATA])
    assert any("drbd5 (DRBD): 0 of 1 peers up to date" in note for note in found["warnings"])
    assert not any("peers" in note for note in look(node(), "flush", mounts=[DATA])["warnings"])


@pytest.mark.parametrize(("peer", "current"), [("UpToDate", 2), ("Outdated", 1)])
def test_one_of_two_peers_that_is_behind_is_a_note(peer: str, current: int) -> None:
    (show,), (state,), (other,) = shown(), status(), status(peer=peer)
    show["connections"].append({"_peer_node_id": 2, "net": {"_name": "db3"}})
    state["connections"].append({**other["connections"][0], "peer-node-id": 2, "name": "db3"})
    found = look(node([show], [state]), "flush", mounts=[DATA])
    said = f"drbd5 (DRBD): {current} of 2 peers up to date"
    assert any(said in note for note in found["warnings"]) == (current < 2)


UNFLUSHED = [
    ({"disk": {"disk-flushes": False}}, "flush", "disk-flushes no"),
    ({"disk": {"md-flushes": False}}, "flush", "md-flushes no"),
    ({"disk": {"disk-flushes": "no", "md-flushes": "no"}}, "flush", "disk-flushes no, md-flushes no"),
    ({}, "drain", "write-ordering drain"),
    ({}, "none", "write-ordering none"),
]


@pytest.mark.fact(93)
@pytest.mark.parametrize(("volume", "ordering", "said"), UNFLUSHED)
def test_without_flushes_a_disk_that_caches_is_at_risk(
    volume: dict[str, Any], ordering: str, said: str
) -> None:
    host = node(shown(**volume), status(ordering=ordering))
    found = look(host, "flush", mounts=[DATA])
    assert found["verdict"] == "at_risk"
    by_option = (
        "remove disk-flushes no and md-flushes no from the resource and from common in /etc/drbd.d and run drbdadm adjust"
        " RESOURCE, or run harden_db with durable_profile: strict"
    )
    risk, requirement, cure = (
        ("risk.drbd", "requirement.flush_awaited.drbd", by_option)
        if volume
        else (
            "risk.drbd.write_ordering",
            "requirement.flush_awaited.drbd.write_ordering",
            "run harden_db with durable_profile: strict",
        )
    )
    (told,) = (each for each in found["reasons"] if each["id"].startswith("risk."))
    assert told["reason"].endswith(f"sdg can be lost: drbd5 (DRBD) is set to {said}")
    assert (told["id"], told["fix"]) == (risk, cure)
    (need,) = (need for need in found["requirements"] if need["name"] == "flush_awaited")
    assert (need["id"], need["remedy"]) == (requirement, cure)
    kept = judged(host, "protected", attested(target="serial:G"))
    assert kept["verdict"] == "attested", kept["why"]


#: As drbdadm printed it on a lab machine, except the minor number; of version 9, as its source has it.
TO_ADJUST = """drbdsetup-84 disk-options 5 --set-defaults{disk} --c-plan-ahead=0
drbdsetup-84 net-options ipv4:127.0.0.1:7789 ipv4:127.0.0.1:7790 --set-defaults --shared-secret=hunter2{net}
drbdsetup new-peer pg 1 --_name=db2{net}
"""
LATER = {
    "as it is": ("", "", "durable"),
    "protocol A": ("", " --protocol=A", "blocked"),
    "protocol B": ("", " --protocol=B", "durable"),
    "disk-flushes": (" --disk-flushes=no", "", "at_risk"),
    "md-flushes": (" --md-flushes=no", "", "at_risk"),
}


@pytest.mark.parametrize(("disk", "net", "verdict"), LATER.values(), ids=LATER)
def test_what_its_configuration_makes_of_it_counts(disk: str, net: str, verdict: str) -> None:
    host = node()
    host.commands[(*ADJUST, "pg")] = TO_ADJUST.format(disk=disk, net=net)
    assert judged(host)["verdict"] == verdict
    assert "hunter2" not in json.dumps(collect(host, NOW))
    assert "hunter2" not in json.dumps(capture(host, NOW))


def test_options_of_another_device_are_not_its_own() -> None:
    host = node()
    host.commands[(*ADJUST, "pg")] = TO_ADJUST.format(disk=" --disk-flushes=no", net="").replace(" 5 ", " 6 ")
    assert judged(host)["verdict"] == "durable"


@pytest.mark.parametrize("name", ["pg", "-d", "a b", ""])
def test_a_configuration_that_is_not_told_is_unknown(name: str) -> None:
    host = node([{**shown()[0], "resource": name}], [{**status()[0], "name": name}])
    host.commands[(*ADJUST, "pg")] = Result(1, "", "no resources defined!\n")
    found = facts(host)
    assert found["disks"] == "unknown"
    why = "drbdadm --dry-run adjust pg: exit 1: no resources" if name == "pg" else "is no name of a resource"
    assert why in sentence(found, "disks")


def test_a_cache_is_not_turned_on_below_it() -> None:
    host = node(shown(disk={"disk-flushes": False}), cache="disabled")
    found = look(host, "flush", mounts=[DATA])
    assert (found["verdict"], found["plan"]["loosen"]) == ("blocked", {})
    assert {need["name"] for need in found["requirements"] if need["state"] == "unmet"} == {"flush_awaited"}
    plain = look(node(cache="disabled"), "flush", mounts=[DATA])
    assert plain["plan"]["loosen"] != {}


BROKEN: dict[str, tuple[Any, Any, str]] = {
    "diskless": (shown(**{"backing-disk": None}, disk="none"), status("Diskless"), "no disk of this node"),
    "detached": (shown(**{"backing-disk": None}), status("Diskless"), "no disk of this node"),
    "resyncing": (shown(), status("Inconsistent"), "its disk on this node is Inconsistent"),
    "not in the status": (shown(), [], "its disk on this node is of unknown state"),
    "another device": (shown(device_minor=6), status(), "drbdsetup show --json: no entry for it"),
    "not the form": ({"resource": "pg"}, status(), "drbdsetup gives no list"),
    "half the form": ([{"resource": "pg"}], status(), "_this_host"),
    "no ordering": (
        shown(),
        [{k: v for k, v in status()[0].items() if k != "write-ordering"}],
        "write-ordering",
    ),
}


@pytest.mark.parametrize(("show", "state", "why"), BROKEN.values(), ids=BROKEN)
def test_what_is_not_told_is_unknown(show: Any, state: Any, why: str) -> None:
    host = node(show, state)
    found = facts(host)
    assert found["disks"] == "unknown"
    assert why in sentence(found, "disks")
    assert look(host, "flush", mounts=[DATA])["verdict"] == "unknown"


@pytest.mark.parametrize(
    "answer", [Result(20, "", "Could not connect to 'drbd' generic netlink family\n"), Result(0, "[[", "")]
)
def test_a_tool_that_fails_is_a_reason(answer: Result) -> None:
    host = node()
    host.commands[tuple(SHOW)] = answer
    assert facts(host)["disks"] == "unknown"
    del host.commands[tuple(SHOW)]
    assert "drbdsetup" in sentence(facts(host), "disks")


def test_an_older_drbdsetup_names_path_and_options_alike() -> None:
    """Then the path is there only where no option is set."""
    assert facts(node(shown(**{"backing-disk": None}, disk="/dev/sdg")))["disks"] == ["sdg"]


def test_a_capture_keeps_what_is_asked_and_no_secret() -> None:
    found = capture(node(shown({"protocol": "A"})), NOW)
    assert (found["failed"], found["differs"]) == (None, [])
    assert "hunter2" not in json.dumps(found) and "db2" not in json.dumps(found)
