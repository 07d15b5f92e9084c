# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelt names of variables are refused with the nearest one; names of others are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.catalog import LAYERS
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import variable_names
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import Refusal

ROLES = Path(__file__).parents[6] / "roles"


@pytest.mark.parametrize("layer", LAYERS)
def test_the_options_are_those_of_the_role(layer: str) -> None:
    specs = yaml.safe_load((ROLES / layer / "meta/argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    assert sorted(f"{layer}_{name}" for name in variable_names.OPTIONS[layer]) == sorted(options)
    assert list(variable_names.unknown(options)) == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mount_options_tragets", "mount_options_targets"),
        ("write_cache_stat", "write_cache_state"),
        ("io_scheduler_staet", "io_scheduler_state"),
        ("unit_mounts_taregts", "unit_mounts_targets"),
        ("power_tragets", "power_targets"),
        ("power_guard_tragets", "power_guard_targets"),
        ("power_guard_expire", "power_guard_expires"),
        ("power_pasword", "power_password"),
        ("postgresql_alter_sytem", "postgresql_alter_system"),
        ("mssql_restrat", "mssql_restart"),
        ("firebird_sever", "firebird_server"),
    ],
)
def test_a_misspelt_option_of_a_role_is_refused(name: str, meant: str) -> None:
    (error,) = variable_names.unknown([name])
    assert isinstance(error, Refusal)
    assert error.problem == f"{name}: no such variable"
    fix = "correct it, or give a variable of your own another name"
    assert error.fix == f"{fix}. Did you mean {meant}?"


def test_a_name_that_is_near_no_option_is_accepted() -> None:
    names = (
        *("mount_options_default", "write_cache_size", "power_supply_state", "power_guard_contact"),
        *("postgresql_version", "postgresql_stats", "mariadb_status", "mariadb_start", "firebird_users"),
        *("mysql_tragets", "mount_options", "mount_options_"),
    )
    assert list(variable_names.unknown(names)) == []


def test_a_name_with_our_prefix_that_is_near_none_names_the_page() -> None:
    (error,) = variable_names.unknown(["durable_zzz"])
    assert error.startswith("durable_zzz: no such variable; expected a name of docs/variables.md; correct it")
