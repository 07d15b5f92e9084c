# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts as a whole: plain JSON, complete, and lost only when the kernel's tables are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.storage.caches import has_volatile_cache
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ..fakes.small_host import BOOT_ID, FakeDisk, SmallHost

NOW = "2026-01-31T12:00:00Z"


def test_what_the_facts_name() -> None:
    found = collect(SmallHost(), NOW)
    assert (found["boot_id"], found["time"], found["kernel"]) == (BOOT_ID, NOW, "6.1.0-26-amd64")
    assert (found["virtualization"], found["fstab_error"]) == ("none", None)
    assert [disk["name"] for disk in found["disks"]] == ["sda", "sdb", "vda", "vdb"]
    assert [mount["target"] for mount in found["mounts"]] == ["/", "/srv/pgdata", "/srv/mssql", "/srv/maria"]


def test_collecting_changes_nothing() -> None:
    host = SmallHost()
    collect(host, NOW)
    assert host.mutations == []


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def test_the_facts_are_json_without_booleans() -> None:
    found = collect(SmallHost(), NOW)
    assert json.loads(json.dumps(found)) == found
    assert {type(leaf) for leaf in leaves(found)} <= {str, type(None)}


def test_every_unknown_has_a_reason() -> None:
    host = SmallHost()
    host.commands.clear()
    for path in [name for name in host.files if name.startswith(("/sys/devices", "/proc/fs"))]:
        if not path.endswith(("/device/model", "/partition")):
            del host.files[path]
    found = collect(host, NOW)
    seen = [leaf for entry in found["disks"] + found["mounts"] for leaf in entry["evidence"].values()]
    assert len([leaf for leaf in seen if leaf["value"] == "unknown"]) > 40
    assert [
        leaf for leaf in seen if leaf["value"] == "unknown" and not (leaf["reason"] or leaf.get("cause"))
    ] == []
    assert [leaf for leaf in seen if not leaf["source"]] == []


@pytest.mark.parametrize("name", ["loop0", "dm-0", "md127", "sr0", "zd0"])
def test_layers_and_scratch_devices_are_no_disks(name: str) -> None:
    host = SmallHost()
    host.add_disk(FakeDisk(name, "other", "X"))
    assert name not in [disk["name"] for disk in collect(host, NOW)["disks"]]


@pytest.mark.parametrize(
    "path", ["/proc/self/mountinfo", "/proc/filesystems", "/proc/sys/kernel/random/boot_id"]
)
def test_without_the_kernels_tables_nothing_is_said(path: str) -> None:
    host = SmallHost()
    del host.files[path]
    with pytest.raises(Unobservable, match=path):
        collect(host, NOW)


def test_a_path_on_a_disk_that_hangs_is_not_touched_by_this_process() -> None:
    """Whoever looks at it cannot be ended, and Ansible would wait for the module for ever."""

    class Hanging(SmallHost):
        def resolve(self, path: str) -> str:
            assert not path.startswith("/srv/pgdata")
            return super().resolve(path)

    host = Hanging()
    hung, well = "/srv/pgdata/base", "/srv/maria/data"
    host.files[f"{well}/x"] = ""
    host.hung = (hung,)
    found = collect(host, NOW, [hung, well])
    assert found["resolved"] == {hung: None, well: well}
    assert found["unresolved"] == {hung: f"{hung}: no answer within 10 s"}


@pytest.mark.fact(46)
def test_links_in_a_databases_directory_are_followed_where_they_lead_to_directories() -> None:
    host = SmallHost()
    host.files.update(
        {"/srv/pgdata/15/PG_VERSION": "", "/srv/maria/wal/1": "", "/etc/x.conf": "", "/usr/bin/x": ""}
    )
    host.links.update(
        {
            "/bin": "/usr/bin",
            "/var/lib/pg": "/srv/pgdata/15",
            "/srv/pgdata/15/pg_wal": "/srv/maria/wal",
            "/srv/pgdata/15/again": "/srv/maria/wal",
            "/srv/pgdata/15/x.conf": "/etc/x.conf",
            "/srv/pgdata/15/gone": "/srv/maria/gone",
        }
    )
    found = collect(host, NOW, ["/var/lib/pg", "/srv/pgdata", "/srv/nowhere", "/"])
    assert found["links"] == {"/var/lib/pg": ["/srv/maria/wal"]}
    assert found["unresolved"] == {}


@pytest.mark.fact(46)
def test_a_directory_whose_links_cannot_be_followed_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    host = SmallHost()
    host.files["/srv/pgdata/15/x"] = ""

    def fail(*_given: object) -> None:
        raise Unobservable("/srv/pgdata/15: Input/output error")

    monkeypatch.setattr(host, "linked_directories", fail)
    found = collect(host, NOW, ["/srv/pgdata/15"])
    assert found["resolved"] == {"/srv/pgdata/15": None}
    assert found["unresolved"] == {"/srv/pgdata/15": "/srv/pgdata/15: Input/output error"}


def test_a_mount_table_of_another_form_is_no_table() -> None:
    host = SmallHost()
    host.files["/proc/self/mountinfo"] = "nonsense\n"
    with pytest.raises(Unobservable, match=r"mountinfo: not a mountinfo line: 'nonsense'"):
        collect(host, NOW)


def test_a_malformed_fstab_is_said_once_and_costs_only_the_next_boot() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = "only two\n"
    found = collect(host, NOW)
    assert "/etc/fstab line 1: observed 2 fields" in found["fstab_error"]
    assert {mount["persisted"]["barrier"] for mount in found["mounts"]} == {"unknown"}
    assert {mount["barrier"] for mount in found["mounts"]} == {"on"}


@pytest.mark.parametrize(
    "path", ["/proc/cmdline", "/sys/devices/pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda/queue/fua"]
)
def test_one_value_that_cannot_be_read_costs_only_itself(path: str) -> None:
    host = SmallHost()
    del host.files[path]
    found = collect(host, NOW)
    assert [disk["write_cache"]["device"] for disk in found["disks"]] == ["enabled"] * 4


def test_a_number_without_end_ends_no_run() -> None:
    """Python refuses to read more than 4300 digits, and int(inf)."""
    host = SmallHost()
    text = host.read("/etc/fstab").replace("defaults,nofail", f"barrier={'1' * 5000}")
    host.files["/etc/fstab"] = text
    assert collect(host, NOW)
    with pytest.raises(ValueError, match="nvme id-ctrl named no vwc"):
        has_volatile_cache('{"vwc": 1e999}')
