# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which mount holds a path."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.placement import holder, place

TARGETS = ("/", "/srv", "/srv/pgdata", "/srv/pgdata/wal")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/srv/pgdata", "/srv/pgdata"),
        ("/srv/pgdata/base", "/srv/pgdata"),
        ("/srv/pgdata/wal/1", "/srv/pgdata/wal"),
        # Names that only begin like a mount point's lie beside it.
        ("/srv/pgdata2", "/srv"),
        ("/srv/pgdata2/base", "/srv"),
        ("/srvx", "/"),
        ("/", "/"),
    ],
)
def test_the_longest_parent_holds_a_path(path: str, expected: str) -> None:
    assert holder(path, TARGETS) == expected
    assert holder(path, TARGETS[::-1]) == expected


def test_a_path_below_no_mount_point_has_no_holder() -> None:
    assert holder("/srv/pgdata2", ("/srv/pgdata",)) is None


def storage(*targets: str, other: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the facts of mounts, each on a device of its own."""
    mounts = [
        {"target": each, "targets": [each], "device": f"8:{number}"} for number, each in enumerate(targets)
    ]
    return {"mounts": mounts, "other_mounts": other or {}, "resolved": {}, "unresolved": {}, "links": {}}


def instance(**given: Any) -> dict[str, Any]:
    """Return SQL Server in its usual place."""
    facts = {
        "engine": "mssql",
        "directories": ["/var/opt/mssql"],
        "temporary": [],
        "files": [],
        "evidence": {},
    }
    return {**facts, "state": "running", **given}


HOME, TEMPDB = "/var/opt/mssql", "/var/opt/mssql/tempdb"


@pytest.mark.parametrize("scratch", [TEMPDB, f"{TEMPDB}/files"])
def test_a_mount_in_a_data_directory_that_holds_only_temporary_files_is_told_apart(scratch: str) -> None:
    found = place(instance(temporary=[scratch]), storage("/", HOME, TEMPDB))
    assert [mount["target"] for mount in found.mounts] == [HOME]
    assert [mount["target"] for mount in found.temporary] == [TEMPDB]


def test_one_data_file_there_makes_it_count() -> None:
    data = {"directory": f"{TEMPDB}/more", "device": "8:2", "opened": "direct", "count": 1, "example": "x"}
    found = place(instance(temporary=[TEMPDB], files=[data]), storage("/", HOME, TEMPDB))
    assert {mount["target"] for mount in found.mounts} == {HOME, TEMPDB}
    assert found.temporary == ()


def test_temporary_files_on_the_mount_of_the_data_change_nothing() -> None:
    found = place(instance(temporary=[TEMPDB]), storage("/", HOME))
    assert ([mount["target"] for mount in found.mounts], found.temporary) == ([HOME], ())


def test_tempdb_in_memory_is_no_data_that_nobody_finds() -> None:
    seen = storage("/", HOME, other={TEMPDB: "tmpfs"})
    assert place(instance(), seen).unknown == (f"{TEMPDB} is on tmpfs",)
    found = place(instance(temporary=[TEMPDB]), seen)
    assert (found.unknown, found.temporary) == ((), ())
