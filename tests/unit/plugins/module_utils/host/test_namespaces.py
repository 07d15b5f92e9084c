# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mounts that only some processes see."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds
from ansible_collections.durable.dbhost.plugins.module_utils.host.namespaces import others
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, TooLong, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage import ext4
from ansible_collections.durable.dbhost.plugins.module_utils.storage.mounts import Mounts

from ..fakes.runs import attested, look
from ..fakes.sentences import sentence
from ..fakes.small_host import FakeMount, SmallHost

PG = "31 1 8:1 / /data rw,{} - ext4 /dev/sda1 rw\n"
HIDDEN = "32 1 8:2 / /var/lib/containers/db rw,relatime - ext4 /dev/sda2 rw,nobarrier\n"


def host_with_a_container(*lines: str) -> SmallHost:
    """Return a host with one process in a namespace of its own."""
    host = SmallHost()
    host.add_process(1, "4026531841", "systemd", host.read("/proc/self/mountinfo"))
    host.add_process(77, "4026532999", "postgres", "".join(lines))
    host.add_process(78, "4026532999", "postgres", "not read: the namespace is known")
    return host


def test_one_process_stands_for_each_namespace() -> None:
    (found,) = others(host_with_a_container(PG.format("noatime")))
    assert (found.pid, found.command, [mount.target for mount in found.mounts]) == (77, "postgres", ["/data"])


def test_processes_are_taken_in_the_order_of_their_numbers() -> None:
    host = host_with_a_container(PG.format("noatime"))
    host.add_process(9, "4026532999", "first", PG.format("relatime"))
    assert [found.command for found in others(host)] == ["first"]


@pytest.mark.parametrize("damage", ["mountinfo", "comm", "link", "garbage"])
def test_a_process_that_ends_meanwhile_is_passed_over_for_another(damage: str) -> None:
    host = host_with_a_container(PG.format("noatime"))
    host.add_process(76, "4026532999", "gone", PG.format("noatime"))
    if damage == "link":
        del host.links["/proc/76/ns/mnt"]
    elif damage == "garbage":
        host.files["/proc/76/mountinfo"] = "nonsense\n"
    else:
        host.files[f"/proc/76/{damage}"] = Unobservable("No such process")
    assert [found.pid for found in others(host)] == [77]


def test_a_namespace_without_mounts_says_nothing() -> None:
    assert not list(others(host_with_a_container()))


def test_where_ones_own_namespace_cannot_be_read_no_other_is_told_apart() -> None:
    host = host_with_a_container(PG.format("noatime"))
    assert list(others(host))
    del host.links["/proc/self/ns/mnt"]
    assert not list(others(host))


#: Lines that any user can make by thousands in a namespace: each mount of a tmpfs is a file system.
CROWD = "".join(f"{40 + n} 1 0:{100 + n} / /t/{n} rw - tmpfs tmpfs rw\n" for n in range(30))


def hidden_behind(*crowd: str) -> SmallHost:
    """Return a host on which one namespace shows very many mounts, and a file system on the disk of a database."""
    again = PG.format("noatime").replace("31 1", "33 1").replace("/data", "/data2")
    host = host_with_a_container(PG.format("relatime"), *crowd, again, HIDDEN)
    host.add_partition("sda", "sda2", "8:2")
    stranger = FakeMount("/x", "ext4", "8:2", "/dev/sda2", "sda", barrier="off")
    host.files["/proc/fs/ext4/sda2/options"] = stranger.ext_options
    host.commands[(*ext4.SHOW, "/dev/block/8:2")] = stranger.superblock
    host.disk("sda").cache = "disabled"
    return host


@pytest.mark.parametrize("bound", [("MOUNTS", 10), ("OUTPUT", 1500)])
def test_of_very_many_mounts_those_that_count_are_found_and_the_host_is_read(
    monkeypatch: pytest.MonkeyPatch, bound: tuple[str, int]
) -> None:
    """Another namespace, after it, is read as well."""
    host = hidden_behind(CROWD)
    host.add_process(90, "4026532998", "other", PG.format("noatime"))
    before = Mounts(host).superblocks()
    assert any(each.views for each in before)
    monkeypatch.setattr(bounds, *bound)
    assert Mounts(host).superblocks() == before
    assert [each.hidden_in for each in before if each.hidden_in] == ["process 77 (postgres)"]
    found = look(host, "flush", mounts=["/srv/pgdata"])
    assert "/var/lib/containers/db has no barriers" in "\n".join(found["why"])
    assert found["plan"]["loosen"] == {}


def test_a_login_s_mounts_keep_no_host_from_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many kinds, and of fuse with a name of its own: no one of them lies on a disk."""
    host = SmallHost()
    host.files["/proc/filesystems"] = f"{host.read('/proc/filesystems')}nodev\tfuse\n"
    alone = look(host, "flush", mounts=["/srv/pgdata"])
    host.add_process(1, "4026531841", "systemd", host.read("/proc/self/mountinfo"))
    fuse = CROWD.replace("tmpfs tmpfs", "fuse.ext9 x")
    host.add_process(77, "4026532999", "bash", PG.format("relatime") + CROWD + fuse)
    monkeypatch.setattr(bounds, "MOUNTS", 10)
    found = look(host, "flush", mounts=["/srv/pgdata"])
    assert (found["verdict"], found["why"]) == (alone["verdict"], alone["why"])


@pytest.mark.parametrize(
    ("bound", "most", "why"),
    [
        ("MOUNTS", 1, r"process 77 \(postgres\) of user 1000 sees more than 1 mounts that may hold data"),
        ("PATIENCE", -1.0, r"that of process 77 \(postgres\) of user 1000 was not read"),
    ],
)
def test_who_has_more_namespaces_or_mounts_than_can_be_looked_at_is_named(
    monkeypatch: pytest.MonkeyPatch, bound: str, most: float, why: str
) -> None:
    """What hides behind them may be a file system that counts: the host is unknown."""
    host = host_with_a_container(PG.format("noatime"), HIDDEN)
    host.files["/proc/77/status"] = "Name:\tpostgres\nUid:\t1000\t1000\t1000\t1000\n"
    monkeypatch.setattr(bounds, bound, most)
    with pytest.raises(Unobservable, match=why):
        list(others(host))
    host.files["/proc/77/status"] = Unobservable("Permission denied")
    with pytest.raises(Unobservable, match=why.replace("1000", "unknown")):
        list(others(host))


def test_a_login_whose_mount_table_is_longer_than_is_read_at_once_costs_nothing() -> None:
    """In a user namespace, as any login can make one."""
    assert os.geteuid() == 0
    script = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
libc.prctl(4, 1)  # PR_SET_DUMPABLE: as after a login, its files in /proc are its own.
assert not libc.unshare(0x10020000), os.strerror(ctypes.get_errno())  # CLONE_NEWUSER, CLONE_NEWNS
for name, text in (("setgroups", "deny"), ("uid_map", "0 65534 1"), ("gid_map", "0 65534 1")):
    with open("/proc/self/" + name, "w") as handle:
        handle.write(text)
place = "/tmp" + "/" + "/".join(["d" * 200] * 15)
def mount(kind, target):
    if libc.mount(b"none", target.encode(), kind, 0, None):
        raise SystemExit(os.strerror(ctypes.get_errno()))
mount(b"tmpfs", "/tmp")
os.makedirs(place)
for number in range(1500):
    os.mkdir(f"{place}/{number}")
    mount(b"tmpfs", f"{place}/{number}")
print("ready", flush=True)
sys.stdin.read()
"""
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout
        assert login.stdin
        assert login.stdout.readline() == "ready\n"
        host = Host()
        with pytest.raises(TooLong):
            host.read(f"/proc/{login.pid}/mountinfo")
        began = time.monotonic()
        found = {each.pid: each for each in others(host, lambda mount: mount.fstype)}
        assert time.monotonic() - began < 30
        assert {mount.fstype for mount in found[login.pid].mounts} >= {"tmpfs", "proc"}
        assert len(found[login.pid].mounts) < 100
        assert Mounts(host).superblocks()
        login.stdin.close()


def test_only_so_many_views_of_one_file_system_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "VIEWS", 2)
    lines = [PG.format("noatime").replace("/data", f"/data{number}") for number in range(5)]
    views = [each.views for each in Mounts(host_with_a_container(*lines)).superblocks()]
    assert max(map(len, views)) <= 2


@pytest.mark.parametrize(("atime", "differs"), [("noatime", True), ("relatime", False)])
@pytest.mark.fact(45)
def test_an_atime_that_a_service_sees_otherwise_is_told(atime: str, differs: bool) -> None:
    """remount,noatime is not seen in a service's own mount namespace."""
    host = host_with_a_container(PG.format(atime))
    (found,) = [s for s in Mounts(host).superblocks() if s.mounts[0].target == "/srv/pgdata"]
    expected = [{"pid": 77, "command": "postgres", "target": "/data", "atime": atime}] if differs else []
    assert found.views == Mounts(host).collect(found)["views"] == expected


@pytest.mark.fact(46)
def test_a_file_system_that_only_a_container_sees_is_not_passed_over() -> None:
    """/proc/PID tells what is really mounted, in containers too."""
    host = host_with_a_container(PG.format("relatime"), HIDDEN)
    host.add_partition("sda", "sda2", "8:2")
    stranger = FakeMount("/x", "ext4", "8:2", "/dev/sda2", "sda", barrier="off")
    host.files["/proc/fs/ext4/sda2/options"] = stranger.ext_options
    host.commands[(*ext4.SHOW, "/dev/block/8:2")] = stranger.superblock
    found = [s for s in Mounts(host).superblocks() if s.hidden_in]
    assert [s.hidden_in for s in found] == ["process 77 (postgres)"]
    facts = Mounts(host).collect(found[0])
    assert (facts["targets"], facts["barrier"], facts["disks"]) == ([], "off", ["sda"])
    assert set(facts["persisted"].values()) == {"unknown"}
    assert "namespace of process 77 (postgres)" in sentence(facts, "persisted.barrier")


def test_what_only_a_container_sees_is_a_neighbour_of_a_cache_that_is_turned_on() -> None:
    host = host_with_a_container(PG.format("relatime"), HIDDEN)
    host.add_partition("sda", "sda2", "8:2")
    stranger = FakeMount("/x", "ext4", "8:2", "/dev/sda2", "sda", barrier="off")
    host.files["/proc/fs/ext4/sda2/options"] = stranger.ext_options
    host.commands[(*ext4.SHOW, "/dev/block/8:2")] = stranger.superblock
    host.disk("sda").cache = "disabled"
    found = look(host, "flush", mounts=["/srv/pgdata"])
    assert "/var/lib/containers/db has no barriers" in "\n".join(found["why"])
    assert found["plan"]["loosen"] == {}


def test_a_neighbour_in_a_container_that_has_barriers_keeps_no_cache_off() -> None:
    """Its next boot is never known, and nobody could mend that."""
    host = host_with_a_container(PG.format("relatime"), HIDDEN.replace(",nobarrier", ""))
    host.add_partition("sda", "sda2", "8:2")
    stranger = FakeMount("/x", "ext4", "8:2", "/dev/sda2", "sda")
    host.files["/proc/fs/ext4/sda2/options"] = stranger.ext_options
    host.commands[(*ext4.SHOW, "/dev/block/8:2")] = stranger.superblock
    host.disk("sda").cache = "disabled"
    found = look(host, "flush", mounts=["/srv/pgdata"], attestations=[attested("host_honours_flush")])
    assert found["plan"]["loosen"]
    del host.files["/proc/fs/ext4/sda2/options"]
    found = look(host, "flush", mounts=["/srv/pgdata"], attestations=[attested("host_honours_flush")])
    assert "/var/lib/containers/db may have no barriers" in "\n".join(found["why"])


def test_pseudo_file_systems_of_containers_are_left_out() -> None:
    host = host_with_a_container(
        "40 1 0:99 / / rw - overlay overlay rw\n41 1 0:98 / /proc rw - proc proc rw\n"
    )
    assert [s for s in Mounts(host).superblocks() if s.hidden_in] == []
