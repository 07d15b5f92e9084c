# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers on mounts that the boot goes on without have to wait for them, each engine's by its own unit."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils import catalog
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import assess
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect

from ...fakes.runs import NOW, inputs
from ...fakes.small_host import BOOT_ID, SmallHost
from .test_engines import instance

PG = "/srv/pgdata"
UNITS = {
    "mssql": "mssql-server.service",
    "faircom": "faircom.service",
    "firebird": "firebird3.0.service",
    "postgresql": "postgresql@15-main.service",
    "mariadb": "mariadb@one.service",
}


def look(options: str, *instances: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Return the assessment of a host with engines on /srv/pgdata, whose line of fstab has these options."""
    host = SmallHost()
    host.files["/etc/fstab"] = host.read("/etc/fstab").replace(
        "pgdata\text4\tdefaults", f"pgdata\text4\t{options}"
    )
    engines = {
        "boot_id": BOOT_ID,
        "time": NOW,
        "engines": list(instances),
        "paths": [],
        "stop_timeouts": [],
        "unattributed": [],
        "writers": [],
    }
    paths = [path for each in instances for path in each["directories"]]
    for path in paths:
        host.files[f"{path}/some file"] = ""
    given = {"mounts": [PG], **given}
    return assess(inputs("strict", **given), collect(host, NOW, paths), NOW, engines)


def rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in found["settings"] if row["layer"] == "unit_mounts"]


@pytest.mark.parametrize("engine", [each.name for each in catalog.ENGINES])
def test_of_every_engine_the_unit_that_starts_it_has_to_wait(engine: str) -> None:
    databases = {"databases": []} if catalog.engine(engine).has_databases else {}
    found = look("defaults,nofail", instance(engine, unit=UNITS[engine], **databases))
    (row,) = rows(found)
    assert (row["target"], row["setting"], row["verdict"]) == (
        UNITS[engine],
        "requires_mounts",
        "drift_persisted",
    )
    assert (row["wanted_persisted"], row["persisted"], row["phase"]) == (PG, "none", "tighten")
    assert "does not wait for /srv/pgdata" in row["why"] and row["why"] in " ".join(found["why"])
    assert found["plan"]["tighten"]["unit_mounts"] == [{"unit": UNITS[engine], "mounts": [PG]}]
    assert f"/etc/systemd/system/{UNITS[engine]}.d/durable-dbhost-mounts.conf" in found["files"]
    assert "unit_mounts" in [change["layer"] for change in found["changes"]]


@pytest.mark.parametrize(
    "options", ["nofail", "noauto", "_netdev", "defaults,nofail,x-systemd.device-timeout=9"]
)
def test_a_boot_goes_on_without(options: str) -> None:
    assert [row["verdict"] for row in rows(look(options, instance()))] == ["drift_persisted"]


@pytest.mark.parametrize("options", ["defaults", "noatime", "nofail,fail", "nofail,x-systemd.automount"])
def test_what_the_boot_or_an_automount_waits_for_needs_no_row(options: str) -> None:
    assert rows(look(options, instance())) == []


def test_a_unit_that_requires_its_mount_is_right_whoever_made_it_so() -> None:
    found = look("nofail", instance(requires_mounts=["srv-pgdata.mount", "-.mount"]))
    (row,) = rows(found)
    assert (row["verdict"], row["running"], row["persisted"], row["phase"]) == ("ok", PG, PG, None)
    assert "unit_mounts" not in found["plan"]["tighten"]


def test_a_unit_that_requires_others_alone_drifts() -> None:
    (row,) = rows(look("nofail", instance(requires_mounts=["-.mount", "srv.mount"])))
    assert (row["verdict"], row["persisted"], row["phase"]) == ("drift_persisted", "none", "tighten")


def test_all_mounts_of_all_servers_of_one_unit_are_in_its_row() -> None:
    """/srv/maria has nofail in the fstab of the small host."""
    first, second = instance(), instance(name="two", directories=["/srv/maria/two"])
    found = look("nofail", first, second, mounts=[PG, "/srv/maria"])
    (row,) = rows(found)
    assert row["wanted_persisted"] == "/srv/maria, /srv/pgdata"
    assert found["plan"]["tighten"]["unit_mounts"][0]["mounts"] == ["/srv/maria", "/srv/pgdata"]


def test_a_unit_that_systemd_has_not_read_again_is_unknown() -> None:
    (row,) = rows(look("nofail", instance(requires_mounts="unknown")))
    assert (row["verdict"], row["phase"]) == ("unknown", None)
    assert "daemon-reload" in row["remedy"]


@pytest.mark.parametrize("manager", ["pacemaker", "container", "none", "unknown"])
def test_what_no_unit_starts_is_said_and_not_red(manager: str) -> None:
    found = look("nofail", instance(managed_by=manager))
    assert rows(found) == []
    assert any(f"managed by {manager}" in note and PG in note for note in found["warnings"])


@pytest.mark.parametrize("manager", ["patroni", "galera", "group_replication"])
def test_under_these_the_unit_is_still_systemds(manager: str) -> None:
    assert [row["verdict"] for row in rows(look("nofail", instance(managed_by=manager)))] == [
        "drift_persisted"
    ]


def test_what_nothing_mounts_at_boot_is_the_mounts_own_row() -> None:
    host = SmallHost()
    host.files["/etc/fstab"] = "UUID=root / ext4 errors=remount-ro 0 1\n"
    boots = {mount["target"]: mount["boots"] for mount in collect(host, NOW)["mounts"]}
    assert boots == {"/": {"/": "required"}, PG: {}, "/srv/mssql": {}, "/srv/maria": {}}


@pytest.mark.parametrize(
    ("unit", "word"),
    [
        ("[Mount]\nWhat=/dev/sda1\nWhere=/srv/pgdata\nType=ext4\n", {PG: "optional"}),
        ("", {}),  # masked
        ("[Mount]\nWhere=/srv/pgdata\n", {PG: "unknown"}),
    ],
)
def test_a_mount_of_a_unit_is_not_waited_for(unit: str, word: dict[str, str]) -> None:
    host = SmallHost()
    host.files["/etc/systemd/system/srv-pgdata.mount"] = unit
    assert next(m["boots"] for m in collect(host, NOW)["mounts"] if m["target"] == PG) == word


def test_durable_layers_may_leave_it_out() -> None:
    (row,) = rows(look("nofail", instance(), layers=["storage"]))
    assert (row["phase"], row["remedy"]) == (
        None,
        "add unit_mounts to durable_layers, then run harden_db",
    )
    assert rows(look("nofail", instance(), layers=["engines"]))[0]["phase"] == "tighten"
