# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a log write goes to the medium as one FUA write, and why it does not elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.durable.dbhost.plugins.module_utils.host.os_release import PATH, parse, read
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.fua import path

from ..fakes.runs import NOW
from ..fakes.sentences import sentence, sentence_of
from ..fakes.small_host import BigHost, SmallHost


def mount(fstype: str = "ext4", **changes: Any) -> dict[str, Any]:
    return {
        "fstype": fstype,
        "data_mode": "ordered",
        "barrier": "on",
        "disks": ["sda"],
        "stack": [],
        **changes,
    }


def disk(efficient: str = "yes") -> dict[str, Any]:
    return {"name": "sda", "fua": "x", "fua_efficient": efficient, "write_cache": {"device": "y"}}


@pytest.mark.parametrize(
    ("fstype", "kernel", "expected"),
    [
        ("xfs", "4.17.0", "no"),
        ("xfs", "4.18.0-553.el8", "yes"),
        ("xfs", "5.10.0", "yes"),
        # The code is there from 5.5; database vendors support it from 5.6.
        ("ext4", "5.4.0-200-generic", "no"),
        ("ext4", "5.5.0", "no"),
        ("ext4", "5.6.0", "yes"),
        ("ext4", "6.12.107", "yes"),
        ("ext3", "6.12.107", "no"),
        ("btrfs", "6.12.107", "no"),
        ("zfs", "6.12.107", "no"),
        ("ext4", "garbage", "no"),
    ],
)
@pytest.mark.fact(14)
def test_direct_writes_carry_fua_from_these_kernels_on(fstype: str, kernel: str, expected: str) -> None:
    """XFS from 4.18, ext4 through iomap; others never."""
    found = path(mount(fstype), [disk()], kernel)
    assert found.value == expected
    assert bool(sentence_of(found)) == (expected == "no")


@pytest.mark.fact(26)
@pytest.mark.parametrize(
    ("fstype", "kernel", "distribution", "expected"),
    [
        ("xfs", "4.12.14-122.255-default", "sles 12.5", "yes"),
        ("xfs", "4.4.180-94.164-default", "sles 12.5", "no"),
        ("ext4", "4.12.14-122.255-default", "sles 12.5", "no"),
        # Others by their kernels.
        ("xfs", "4.12.14-95.125-default", "sles 12.4", "no"),
        ("xfs", "4.12.14-lp151-default", "opensuse-leap 15.1", "no"),
        ("xfs", "4.15.0-213-generic", "ubuntu 18.04", "no"),
        ("xfs", "4.12.14", "", "no"),
    ],
)
def test_a_vendor_brought_it_to_an_older_kernel(
    fstype: str, kernel: str, distribution: str, expected: str
) -> None:
    """By its documentation alone: no such host was at hand."""
    assert path(mount(fstype), [disk()], kernel, distribution).value == expected


def reads(host: SmallHost) -> list[str]:
    """Return the files that are read for the facts."""
    found: list[str] = []
    read_file = host.read
    host.read = lambda path: found.append(path) or read_file(path)  # type: ignore[assignment, method-assign, func-returns-value]
    collect(host, NOW)
    host.read = read_file  # type: ignore[method-assign]
    return found


@pytest.mark.fact(26)
def test_the_host_tells_its_distribution() -> None:
    host = SmallHost()
    assert read(host) == ""
    host.files[PATH] = 'NAME="SLES"\nVERSION="12-SP5"\nVERSION_ID="12.5"\nID="sles"\nID_LIKE="suse"\n'
    assert read(host) == "sles 12.5"
    assert PATH not in reads(host)
    host.files["/proc/sys/kernel/osrelease"] = "4.12.14-122.255-default\n"
    assert PATH in reads(host)
    xfs = next(row for row in collect(host, NOW)["mounts"] if row["fstype"] == "xfs")
    assert "kernel" not in str(sentence(xfs, "fua_path"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ID=debian\nVERSION_ID='13'\n", "debian 13"),
        ("ID=arch\n", ""),
        ('ID="sles\nVERSION_ID=1\n', ""),
        ("", ""),
        ("# ID=x\nID=a\nID=b\nVERSION_ID=1 # one\n", "b 1 # one"),
    ],
)
def test_os_release(text: str, said: str) -> None:
    assert parse(text) == said


@given(st.text())
def test_os_release_of_any_text(text: str) -> None:
    assert isinstance(parse(text), str)


@pytest.mark.fact(6)
def test_data_journal_turns_direct_writes_into_buffered_ones() -> None:
    """So there is no FUA path."""
    found = path(mount(data_mode="journal"), [disk()], "6.1.0")
    assert (found.value, sentence_of(found)) == ("no", "data=journal turns direct writes into buffered ones")


@pytest.mark.parametrize(
    ("kernel_mode", "expected"), [("write back", "yes"), ("write through", "no"), ("unknown", "no")]
)
def test_every_layer_has_to_pass_it_on(kernel_mode: str, expected: str) -> None:
    layer = {
        "name": "dm-0",
        "label": "vg-data",
        "type": "lvm",
        "detail": "linear",
        "state": "",
        "cache_mode": kernel_mode,
        "below": ["sda"],
    }
    stack = [layer, {**layer, "name": "sda", "label": "", "type": "disk", "cache_mode": "", "below": []}]
    found = path(mount(stack=stack), [disk()], "6.1.0")
    assert found.value == expected
    assert sentence_of(found) == ("" if expected == "yes" else "neither flush nor FUA passes through dm-0")


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ("linear", "yes"),
        ("thin", "yes"),
        *((word, "no") for word in ("cache", "writecache", "snapshot", "snapshot-origin", "integrity")),
        ("linear+cache", "no"),
    ],
)
def test_a_layer_with_a_map_or_tags_of_its_own_makes_more_of_a_write(detail: str, expected: str) -> None:
    layer = {
        "name": "dm-0",
        "label": "v",
        "type": "lvm",
        "detail": detail,
        "state": "",
        "cache_mode": "write back",
    }
    below = {**layer, "name": "sda", "type": "disk", "detail": "", "cache_mode": "", "below": []}
    stack = [{**layer, "below": ["sda"]}, below]
    assert path(mount(stack=stack), [disk()], "6.1.0").value == expected


def test_without_barriers_nothing_is_sent() -> None:
    assert path(mount(barrier="off"), [disk()], "6.1.0").value == "no"


@pytest.mark.parametrize("changes", [{"data_mode": "unknown"}, {"barrier": "unknown"}, {"disks": "unknown"}])
def test_what_is_not_known_is_unknown(changes: dict[str, Any]) -> None:
    found = path(mount(**changes), [disk()], "6.1.0")
    assert found.value == "unknown"
    assert sentence_of(found)


def test_without_a_disk_nothing_is_known() -> None:
    found = path(mount(disks=[]), [], "6.1.0")
    assert (found.value, sentence_of(found)) == ("unknown", "no disk is known below it")


@pytest.mark.parametrize(
    ("efficient", "expected"),
    [(["yes", "yes"], "yes"), (["yes", "no"], "no"), (["no", "yes"], "no"), (["yes", "unknown"], "unknown")],
)
@pytest.mark.fact(16)
def test_every_leaf_has_to_take_it(efficient: list[str], expected: str) -> None:
    """dm and md pass FUA down: one leaf without it costs the flush."""
    found = path(mount(), [disk(word) for word in efficient], "6.1.0")
    assert found.value == expected
    assert bool(sentence_of(found)) == (expected != "yes")


def test_a_disk_of_which_nothing_is_known_is_unknown() -> None:
    assert path(mount(), [disk(), None], "6.1.0").value == "unknown"


def fua_paths(host: SmallHost) -> dict[str, str]:
    return {mount["target"]: mount["fua_path"] for mount in collect(host, NOW)["mounts"]}


@pytest.mark.fact(16)
def test_of_the_hosts_file_systems() -> None:
    """SATA and virtio disks take no FUA while they cache; SAS disks that offer it and NVMe do."""
    assert fua_paths(BigHost()) == {
        "/": "no",
        "/srv/pgdata": "no",
        "/srv/mssql": "no",
        "/srv/maria": "no",
        "/srv/faircom": "yes",
        "/srv/firebird": "yes",
        "/srv/mysql": "yes",
        "/srv/btrfs": "no",
    }


@pytest.mark.fact(16)
def test_a_journal_on_a_disk_that_takes_none_costs_the_flush() -> None:
    host = BigHost()
    host.disk("nvme0n1").fua = "0"
    assert {target: fua_paths(host)[target] for target in ("/srv/faircom", "/srv/mysql")} == {
        "/srv/faircom": "yes",
        "/srv/mysql": "no",
    }
