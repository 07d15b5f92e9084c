# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DRBD 8.4, the version in the kernel: what drbdsetup printed on a lab machine, and what is made of it."""

from __future__ import annotations

import json

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.capture.capture import capture
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result
from ansible_collections.durable.dbhost.plugins.module_utils.storage import drbd, drbd_84

from ..fakes.replicated_host import DATA, facts, judged, replicated_host
from ..fakes.runs import NOW, look
from ..fakes.sentences import sentence
from ..fakes.small_host import SmallHost

#: As it was printed, except the device, the minor number, and a password. NET and DISK are options.
SHOWN = """resource pg {
    options {
    }
    net {
        shared-secret   \t"hun{ter2"; # not shown to others
        NET
    }
    _remote_host {
        address\t\t\tipv4 127.0.0.1:7790;
    }
    _this_host {
        address\t\t\tipv4 127.0.0.1:7789;
        volume 0 {
            device\t\t\tminor 5;
            disk\t\t\t"/dev/sdg";
            meta-disk\t\t\tinternal;
            disk {
                DISK
            }
        }
    }
}

"""
STATE = """pg role:Primary suspended:no
    write-ordering:ORDERING
  volume:0 minor:5 disk:UpToDate
      size:131032 read:0 written:0 al-writes:8 bm-writes:0 upper-pending:0
      lower-pending:0 al-suspended:no blocked:no
  peer connection:Connected role:Secondary congested:no
    volume:0 replication:Established peer-disk:PEER resync-suspended:no
        received:0 sent:0 out-of-sync:0 pending:0 unacked:0

"""
#: As it was printed once the connection was lost for good.
ALONE = SHOWN[: SHOWN.index("    net {")] + SHOWN[SHOWN.index("    _this_host") :].replace(
    "        address\t\t\tipv4 127.0.0.1:7789;\n", ""
)
REFUSED = Result(
    20, "", "show: unrecognized option '--json'\n\nUSAGE: drbdsetup command device arguments options\n"
)


def node(
    net: str = "", disk: str = "", ordering: str = "flush", peer: str = "UpToDate", shown: str = SHOWN
) -> SmallHost:
    """Return a host whose database lies on /dev/drbd5, over sdg, and whose DRBD is 8.4."""
    host = replicated_host()
    host.commands[tuple(drbd.SHOW)] = host.commands[tuple(drbd.STATUS)] = REFUSED
    host.commands[tuple(drbd_84.SHOW)] = shown.replace("NET", net).replace("DISK", disk)
    host.commands[tuple(drbd_84.STATUS)] = STATE.replace("ORDERING", ordering).replace("PEER", peer)
    return host


def test_its_disk_on_this_node_lies_below_it() -> None:
    found = facts(node())
    (layer, _disk) = found["stack"]
    assert (layer["type"], layer["below"], found["disks"]) == ("drbd", ["sdg"], ["sdg"])
    assert layer["state"] == "protocol C, write-ordering flush, 1 of 1 peers up to date"
    assert judged(node())["verdict"] == "durable"


@pytest.mark.fact(92)
@pytest.mark.parametrize(("protocol", "verdict"), [("A", "blocked"), ("B", "durable")])
def test_protocol_a_loses_commits_at_a_take_over(protocol: str, verdict: str) -> None:
    assert judged(node(f"protocol        \t{protocol};"))["verdict"] == verdict


@pytest.mark.fact(93)
def test_flushes_that_are_off_put_a_disk_that_caches_at_risk() -> None:
    host = node(disk="disk-flushes    \tno;\n                md-flushes      \tno;", ordering="drain")
    found = look(host, "flush", mounts=[DATA])
    assert found["verdict"] == "at_risk"
    said = "write-ordering drain, disk-flushes no, md-flushes no"
    assert f"sdg can be lost: drbd5 (DRBD) is set to {said}; remove" in found["why"][0]


def test_a_peer_that_is_behind_is_a_note() -> None:
    found = look(node(peer="Inconsistent"), "flush", mounts=[DATA])
    assert any("drbd5 (DRBD): 0 of 1 peers up to date" in note for note in found["warnings"])


def test_metadata_elsewhere_are_a_disk_of_it_too() -> None:
    elsewhere = SHOWN.replace("meta-disk\t\t\tinternal", 'flexible-meta-disk\t\t"/dev/vdb"')
    assert facts(node(shown=elsewhere))["disks"] == ["sdg", "vdb"]


UNKNOWN = {
    "it stands alone": (ALONE, "it is disconnected"),
    "no end": (SHOWN.rstrip().rstrip("}"), "has no end"),
    "an end too many": (f"{SHOWN}}}\n", "ends where it does not"),
    "no name": (f"{{ }} {SHOWN}", "has no name"),
    "too deep": ("a {" * 9 + "}" * 9, "lies too deep"),
    "a quote that is not closed": (SHOWN.replace('g";', "g;"), "expected statements and sections"),
    "a minor that is no number": (SHOWN.replace("minor 5", "minor x"), "invalid literal"),
    "nothing": ("", "no entry for it"),
}


@pytest.mark.parametrize(("shown", "why"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_told_is_unknown(shown: str, why: str) -> None:
    host = node(shown=shown)
    found = facts(host)
    assert found["disks"] == "unknown"
    assert why in sentence(found, "disks")
    assert look(host, "flush", mounts=[DATA])["verdict"] == "unknown"


@pytest.mark.parametrize("command", [drbd_84.SHOW, drbd_84.STATUS], ids=" ".join)
def test_a_tool_that_fails_is_a_reason(command: list[str]) -> None:
    host = node()
    host.commands[tuple(command)] = Result(10, "", "no answer\n")
    assert "no answer" in sentence(facts(host), "disks")


def test_a_capture_keeps_what_is_read_and_no_secret() -> None:
    found = capture(node("protocol        \tA;", "md-flushes no;"), NOW)
    assert (found["failed"], found["differs"]) == (None, [])
    assert "ter2" not in json.dumps(found) and "127.0.0.1:77" not in json.dumps(found)
