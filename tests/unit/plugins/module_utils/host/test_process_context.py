# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount namespaces, containers and units of processes."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.mountinfo import parse_mountinfo
from ansible_collections.durable.dbhost.plugins.module_utils.host.process_context import (
    Place,
    Places,
    cgroup_of,
    container_of,
    resolve,
    translate,
    unit_of,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.processes import Processes
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable

from ..fakes.fake_proc import MOUNTINFO, OTHER, PRIVATE, FakeProcess, ProcHost

ID = "0123456789ab" + "c" * 52
#: A container: its own root, and a volume that lies on the host's /data.
CONTAINER = """\
50 40 0:99 / / rw - overlay overlay rw
51 50 8:17 /volumes/pg /var/lib/postgresql rw - ext4 /dev/sdb1 rw
"""


def place(process: FakeProcess) -> Place:
    """Return where a host's only other process lives."""
    host = ProcHost(process)
    return Places(host).of(Processes(host).all[process.pid])


@pytest.mark.parametrize(
    ("text", "cgroup"),
    [
        ("0::/system.slice/a.service\n", "/system.slice/a.service"),
        ("9:name=systemd:/system.slice/a.service\n4:memory:/x\n0::/\n", "/system.slice/a.service"),
        ("1:name=systemd:/\n0::/system.slice/a:b.service\n", "/system.slice/a:b.service"),
        ("", "/"),
        ("nonsense\n", "/"),
    ],
)
def test_control_group(text: str, cgroup: str) -> None:
    assert cgroup_of(text) == cgroup


@pytest.mark.parametrize(
    ("cgroup", "container", "unit"),
    [
        ("/system.slice/mariadb.service", "", "mariadb.service"),
        (
            "/system.slice/system-postgresql.slice/postgresql@15-main.service",
            "",
            "postgresql@15-main.service",
        ),
        ("/system.slice/_odd.service/sub", "", "odd.service"),
        ("/user.slice/user-0.slice/session-3.scope", "", None),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/pg.service", "", None),
        ("/", "", None),
        ("/init.scope", "", None),
        (f"/system.slice/docker-{ID}.scope", "docker:0123456789ab", None),
        (f"/docker/{ID}", "docker:0123456789ab", None),
        (f"/machine.slice/libpod-{ID}.scope/container", "libpod:0123456789ab", None),
        (f"/libpod_parent/libpod-{ID}", "libpod:0123456789ab", None),
        # Podman's Quadlet: the service is the container's.
        (f"/system.slice/db.service/libpod-payload-{ID}", "libpod:0123456789ab", "db.service"),
        # Podman's watcher is outside of it.
        (f"/machine.slice/libpod-conmon-{ID}.scope", "", None),
        (f"/kubepods.slice/kubepods-pod1.slice/crio-{ID}.scope", "crio:0123456789ab", None),
        (
            f"/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope",
            "cri-containerd:0123456789ab",
            None,
        ),
        (f"/kubepods/burstable/pod1-2/{ID}", "kubepods:0123456789ab", None),
        ("/lxc.payload.db1/system.slice/mariadb.service", "lxc:db1", None),
        ("/lxc/db1/system.slice/mariadb.service", "lxc:db1", None),
        (
            "/machine.slice/systemd-nspawn@db1.service/payload/system.slice/mariadb.service",
            "nspawn:db1",
            "systemd-nspawn@db1.service",
        ),
        ("/machine.slice/machine-db1.scope/payload", "machine:db1", None),
        ("/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "", None),
        ("/system.slice/docker-proxy.service", "", "docker-proxy.service"),
    ],
)
def test_containers_and_units_by_control_group(cgroup: str, container: str, unit: str | None) -> None:
    assert (container_of(cgroup), unit_of(cgroup)) == (container, unit)


@pytest.mark.fact(46)
@pytest.mark.parametrize(
    ("process", "namespace", "root"),
    [
        (FakeProcess(77, "/x"), "host", ""),
        # We are in the container as well.
        (FakeProcess(77, "/x", cgroup=f"0::/docker/{ID}\n"), "host", ""),
        (FakeProcess(77, "/x", namespace=PRIVATE), "private", ""),
        # RootDirectory= of a unit, or a snap.
        (FakeProcess(77, "/x", namespace=PRIVATE, mountinfo=CONTAINER), "private", "/proc/77/root"),
        (FakeProcess(77, "/x", root="/jail"), "host", "/proc/77/root"),
        (
            FakeProcess(77, "/x", namespace=OTHER, mountinfo=CONTAINER, cgroup=f"0::/docker/{ID}\n"),
            "container",
            "/proc/77/root",
        ),
        # Of a kind that nobody heard of.
        (
            FakeProcess(77, "/x", namespace=OTHER, mountinfo=CONTAINER, pid_namespace="4026530000"),
            "container",
            "/proc/77/root",
        ),
    ],
)
def test_namespaces(process: FakeProcess, namespace: str, root: str) -> None:
    found = place(process)
    assert (found.namespace, found.root, found.reason) == (namespace, root, None)


def test_the_first_process_s_namespace_is_the_host_s() -> None:
    """This process may run in a namespace of its own, such as a session's."""
    host = ProcHost(FakeProcess(77, "/x", namespace=PRIVATE), FakeProcess(1, "/init", namespace=PRIVATE))
    assert Places(host).of(Processes(host).all[77]).namespace == "host"


@pytest.mark.parametrize("denied", ["/proc/77/ns/mnt", "/proc/self/ns/mnt"])
def test_a_namespace_that_cannot_be_read_is_unknown(denied: str) -> None:
    host = ProcHost(FakeProcess(77, "/x", namespace=OTHER, cgroup=f"0::/docker/{ID}\n"))
    host.deny(1, "ns/mnt")
    host.magic[denied] = Unobservable(f"{denied}: Permission denied")
    found = Places(host).of(Processes(host).all[77])
    assert found.namespace == "unknown"
    assert "cannot be compared" in str(found.reason)


@pytest.mark.parametrize(
    ("process", "path", "expected"),
    [
        (FakeProcess(77, "/x"), "/data/pg", "/data/pg"),
        (FakeProcess(77, "/x", root="/jail"), "/data/pg", "/jail/data/pg"),
        (
            FakeProcess(77, "/x", namespace=OTHER, mountinfo=CONTAINER),
            "/var/lib/postgresql/15",
            "/data/volumes/pg/15",
        ),
        (
            FakeProcess(77, "/x", namespace=OTHER, mountinfo=CONTAINER),
            "/var/lib/postgresql",
            "/data/volumes/pg",
        ),
        (FakeProcess(77, "/x", namespace=OTHER, mountinfo=CONTAINER), "/etc/x", "/proc/77/root/etc/x"),
        # PrivateTmp= of a unit.
        (
            FakeProcess(
                77, "/x", namespace=PRIVATE, mountinfo=f"{MOUNTINFO}60 22 8:1 /p/tmp /tmp rw - ext4 d rw\n"
            ),
            "/tmp/x",
            "/p/tmp/x",
        ),
        (FakeProcess(77, "/x", namespace=PRIVATE), "/data/pg", "/data/pg"),
    ],
)
def test_paths_as_the_host_sees_them(process: FakeProcess, path: str, expected: str) -> None:
    host = ProcHost(process)
    places = Places(host)
    assert places.on_host(places.of(Processes(host).all[77]), path) == expected


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        ("1 0 8:1 /sub /a rw - x x rw", "2 0 8:1 / / rw - x x rw", "/sub/f"),
        ("1 0 8:1 / /a rw - x x rw", "2 0 8:1 /f /g rw - x x rw", "/g"),
        ("1 0 8:1 / /a rw - x x rw", "2 0 8:2 / / rw - x x rw", None),
        ("1 0 8:1 / /b rw - x x rw", "2 0 8:1 / / rw - x x rw", None),
        # Here something else is mounted over it.
        ("1 0 8:1 /sub /a rw - x x rw", "2 0 8:1 / / rw - x x rw\n3 2 8:9 / /sub rw - x x rw", None),
        # A name that only begins the same.
        ("1 0 8:1 /sub /a rw - x x rw", "2 0 8:1 /su / rw - x x rw", None),
    ],
)
def test_translation_between_mount_tables(theirs: str, ours: str, expected: str | None) -> None:
    assert translate("/a/f", parse_mountinfo(theirs), parse_mountinfo(ours)) == expected


@pytest.mark.parametrize("root", ["", "/proc/77/root"])
def test_links_are_followed_inside_a_root(root: str) -> None:
    host = ProcHost()
    host.links[f"{root}/etc/pg"] = "../srv/pg"
    host.links[f"{root}/srv/pg"] = "/data"
    host.files[f"{root}/data/15/x"] = ""
    assert resolve(host, root, "/etc//pg/15/") == "/data/15"


def test_links_that_lead_round_and_disks_that_hang_are_told() -> None:
    host = ProcHost()
    host.links["/a"] = "/b"
    host.links["/b"] = "/a"
    host.hung = ("/slow",)
    with pytest.raises(Unobservable, match="too many levels"):
        resolve(host, "", "/a/x")
    with pytest.raises(Unobservable, match="no answer"):
        resolve(host, "", "/slow")
