# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that the kernel of the next boot refuses: it is queried, and the tables state for which kernels they are valid."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host
from ansible_collections.durable.dbhost.plugins.module_utils.storage import refused_options
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.plugins.module_utils.storage.refused_options import Options, Releases

from ..fakes.boot_texts import with_texts
from ..fakes.runs import NOW, look
from ..fakes.small_host import SmallHost

PG_LINE = "UUID=pg\t/srv/pgdata\text4\tdefaults\t0 2\n"
MS_LINE = "UUID=ms /srv/mssql xfs defaults 0 2 \n"
MIXED = ("6.1.0-18-amd64", "6.1.0-18-amd64")


def with_options(pg: str = "defaults", ms: str = "defaults", release: str = "6.1.0-26-amd64") -> SmallHost:
    host = SmallHost()
    text = host.read("/etc/fstab").replace(PG_LINE, PG_LINE.replace("defaults", pg))
    host.files["/etc/fstab"] = text.replace(MS_LINE, MS_LINE.replace("defaults", ms))
    host.files["/proc/sys/kernel/osrelease"] = f"{release}\n"
    return host


def faults(host: SmallHost) -> list[tuple[str, str, list[str]]]:
    return [
        (fault["target"], fault["state"], fault["options"])
        for fault in with_texts(collect(host, NOW)["boot_faults"])
        if fault["fault"] == "options"
    ]


def state(option: str, releases: tuple[str, str], refused: dict[str, Any], fstype: str = "ext4") -> str:
    return Options(Releases(*releases), refused).state(fstype, option)


@pytest.mark.parametrize("option", ["noacl", "nouser_xattr"])
@pytest.mark.parametrize(
    ("release", "known"), [("5.10.0-30-amd64", True), ("6.1.0-26-amd64", False), ("7.2.7", False)]
)
def test_an_option_that_ext4_lost_is_refused_by_the_table_from_then_on(
    option: str, release: str, known: bool
) -> None:
    found = faults(with_options(option, release=release))
    assert found == ([] if known else [("/srv/pgdata", "refused", [option])])


def test_a_host_whose_next_boot_stops_at_noacl_is_not_green() -> None:
    host = with_options("noacl")
    (row,) = [
        row for row in look(host, "strict", mounts=["/srv/pgdata"])["settings"] if row["setting"] == "options"
    ]
    assert (row["verdict"], "the next boot stops" in row["why"]) == ("drift_persisted", True)
    assert "correct or remove noacl in /etc/fstab line 3" in row["remedy"]


def test_the_kernels_response_overrides_the_table() -> None:
    """The kernel of a distribution has options of later ones, and has lost others."""
    host = with_options("noatime,acl", "max_atomic_write=16k", release="5.14.0-503.el9")
    assert faults(host) == [("/srv/mssql", "refused", ["max_atomic_write=16k"])]
    host.options_known = {"xfs": {"max_atomic_write=16k"}, "ext4": {"errors=remount-ro"}}
    assert faults(host) == [("/srv/pgdata", "refused", ["acl"])]


def test_a_kernel_is_queried_once_for_each_type_and_for_nothing_that_it_does_not_get() -> None:
    host = with_options("noatime,commit=5,nofail,x-systemd.device-timeout=9", "logbufs=8,_netdev")
    collect(host, NOW)
    assert host.queried == [("ext4", ("errors=remount-ro", "commit=5")), ("xfs", ("logbufs=8",))]


def test_beyond_the_range_of_the_tables_an_unknown_option_is_unknown() -> None:
    host = with_options("fast_commit_later=1", release="7.2.7")
    assert faults(host) == [("/srv/pgdata", "unknown", ["fast_commit_later=1"])]
    (fault,) = [each for each in with_texts(collect(host, NOW)["boot_faults"]) if each["fault"] == "options"]
    assert "no table here covers that release" in fault["why"]
    assert faults(with_options("fast_commit_later=1", release="6.12.9"))[0][1] == "refused"


@pytest.mark.parametrize(("release", "found"), [("6.12.9", "refused"), ("6.16.3", None)])
def test_an_option_that_xfs_got_later_is_known_from_then_on(release: str, found: str | None) -> None:
    assert [each[1] for each in faults(with_options(ms="max_atomic_write=16k", release=release))] == (
        [found] if found else []
    )


def test_an_option_that_the_mount_table_shows_is_known() -> None:
    host = with_options("later=1", release="7.2.7")
    assert faults(host)
    host.mounts["/srv/pgdata"].super_options = ("later=1",)
    assert faults(host) == []


def test_values_in_quotes_are_unknown_because_releases_of_mount_differ() -> None:
    host = with_options('data="ordered"')
    assert faults(host) == [("/srv/pgdata", "refused", ['data="ordered"'])]
    host.options_known = {"ext4": {"errors=remount-ro", "data=ordered", 'data="ordered"'}}
    assert [each[1] for each in faults(host)] == ["unknown"]


@pytest.mark.parametrize(
    ("option", "releases", "refused", "expected"),
    [
        # An update of one version: the running kernel's response holds.
        ("later", ("6.16.3", "6.16.8"), {}, "known"),
        ("noacl", ("6.1.0-18", "6.1.0-20"), {"noacl": "no"}, "refused"),
        # The table is right about the running kernel, and so it is about the next one.
        ("noacl", ("5.10.0", "6.1.0"), {}, "refused"),
        ("noacl", ("6.1.0", "5.10.0"), {"noacl": "no"}, "known"),
        ("barier", ("5.10.0", "6.1.0"), {"barier": "no"}, "refused"),
        ("acl", ("5.10.0", "6.1.0"), {}, "known"),
        ("acl", ("6.12.0", "7.2.0"), {}, "known"),
        # It is not: the running kernel has options of later ones.
        ("later", ("5.14.0", "6.1.0"), {}, "unknown"),
        ("acl", ("5.14.0", "6.1.0"), {"acl": "no"}, "unknown"),
        # No table covers the next kernel.
        ("later", ("6.12.0", "7.2.0"), {}, "unknown"),
        ("later", ("6.12.0", "7.2.0"), {"later": "no"}, "unknown"),
    ],
)
def test_another_kernel_at_the_next_boot_is_assessed_by_response_and_table(
    option: str, releases: tuple[str, str], refused: dict[str, str], expected: str
) -> None:
    assert state(option, releases, {"ext4": refused}) == expected


def test_the_default_entry_of_the_boot_loader_names_the_kernel_that_boots() -> None:
    host = with_options("noacl", release="5.10.0-30-amd64")
    host.options_known = {"ext4": {"errors=remount-ro", "noacl"}}
    assert faults(host) == []
    host.files["/boot/grub/grub.cfg"] = "\tlinux\t/boot/vmlinuz-6.1.0-26-amd64 root=UUID=root ro\n"
    host.files["/boot/vmlinuz-6.1.0-26-amd64"] = ""
    assert faults(host) == [("/srv/pgdata", "refused", ["noacl"])]


def test_of_several_types_the_one_that_knows_an_option_counts() -> None:
    known = Options(Releases(*MIXED), {"ext4": {"later": "no"}, "xfs": {}})
    assert known.state("ext4,xfs", "later") == "known"
    assert known.state("ext4", "later") == "refused"
    assert known.state("nfs4", "later") == "known"


def test_a_general_option_with_a_value_is_refused_without_a_query() -> None:
    assert state("noatime=1", MIXED, {"ext4": {}}) == "refused"


@pytest.mark.fact(103)
def test_the_kernel_of_this_machine_is_queried() -> None:
    """No response is scripted: the kernel that runs the tests knows its own file systems."""
    kernel = refused_options.query(
        Host(), [("ext4", ["noacl", "data=orderd", "barrier=1", "nofail", "barrier=0x0"])]
    )
    if not kernel.is_queried("ext4"):
        pytest.fail("the kernel of this machine cannot be queried for ext4: Linux 5.17 or later is required")
    states = [kernel.state("ext4", each) for each in ("data=orderd", "barrier=1", "nofail", "barrier=0x0")]
    assert states == ["refused", "known", "known", "known"]
