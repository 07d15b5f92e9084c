# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The defaults of a role and those its documentation promises are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
#: Without the whole, whose variables are checked by the policy: there a host with bad ones stays in the report.
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir() and path.name != "harden")


def load(path: Path) -> dict[str, Any]:
    """Return what a YAML file says; a file that is not there says nothing."""
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


def options(role: Path) -> dict[str, Any]:
    """Return the options of the role's main entry point."""
    specs = load(role / "meta/argument_specs.yml")["argument_specs"]
    return specs["main"].get("options", {})


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
class TestRole:
    def test_defaults_are_the_promised_ones(self, role: Path) -> None:
        promised = {name: option["default"] for name, option in options(role).items() if "default" in option}
        assert load(role / "defaults/main.yml") == promised

    def test_no_required_option_has_a_default(self, role: Path) -> None:
        required = {name for name, option in options(role).items() if option.get("required")}
        assert required & set(load(role / "defaults/main.yml")) == set()


def test_there_are_roles() -> None:
    assert ROLES
