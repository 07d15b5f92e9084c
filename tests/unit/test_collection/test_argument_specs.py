# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The defaults of a role and those its documentation promises are the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils import catalog
from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect import inputs
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show import release
from ansible_collections.durable.dbhost.plugins.module_utils.rows import FAIL_ON, VERDICTS
from ansible_collections.durable.dbhost.plugins.plugin_utils import variables

ROOT = Path(__file__).resolve().parents[3]
HARDEN = ROOT / "roles/harden"
#: Without the whole, whose variables are checked by the policy: there a host with bad ones stays in the report.
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir() and path.name != "harden")
#: What makes a server use its restored configuration, and how a role's page states it.
WAYS = {"restart": "next start", "reload or restart": "reload or restart"}


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

    def test_the_readme_has_each_option_with_its_default(self, role: Path) -> None:
        text = (role / "README.md").read_text(encoding="utf-8")
        table = text[text.index("| variable |") :].partition("\n\n")[0]
        rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*?) \|$", table, re.M))
        assert set(rows) == set(options(role))
        for name, option in options(role).items():
            default = option.get("default")
            if default or default is False:
                assert rows[name] == f"`{yaml.safe_dump(default).split()[0]}`", name
            else:
                # An empty one has a meaning, or the option is required.
                assert rows[name].startswith(("none", "empty", "`[]`")), name

    def test_the_readme_states_when_a_release_has_effect_as_its_page_does(self, role: Path) -> None:
        name = role.name
        at_once = name in release._NOW or name == "firebird"
        when = (
            "at once"
            if at_once
            else "until the next boot"
            if name in release._BOOT
            else WAYS[release._REREADS[name]]
        )
        (row,) = re.findall(
            rf"^\| `{name}_state` \|.*", (role / "README.md").read_text(encoding="utf-8"), re.M
        )
        assert when in row


def test_the_page_on_recovery_has_each_layer_by_its_name_on_the_page_of_a_release() -> None:
    text = " ".join(
        (ROOT / "docs/recover.md").read_text(encoding="utf-8").partition("\n## Release\n")[2].split()
    )
    at_once, stays = re.findall(r"- (The UPS guard.*?) change at once\. (.*?) until the next boot", text)[0]
    assert [each for each in release._NOW.values() if each not in at_once] == []
    assert [each for each in release._BOOT.values() if each not in stays] == []
    assert "`systemctl --failed` no longer lists them" in text


def test_there_are_roles() -> None:
    assert ROLES


def documented() -> dict[str, Any]:
    """Return the options that ansible-doc shows of the role harden."""
    found = load(HARDEN / "meta/argument_specs.yml")["argument_specs"]["variables"]["options"]
    assert isinstance(found, dict)
    return found


def test_harden_documents_the_variables_of_the_page() -> None:
    text = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    table = text[text.index("| variable | type |") : text.index("`durable_confirm`")]
    names = {
        name if name.startswith("durable") else f"durable_attestations{name}"
        for row in re.findall(r"^\| \[(.+?)\]", table, re.M)
        for name in re.findall(r"`(\w+)`", row)
    }
    # Of merge_reports, and of the play.
    others = {"durable_reports", "durable_reports_max_hours", "durable_hosts", "durable_serial"}
    assert others < names and set(documented()) == names - others


def test_harden_documents_the_defaults_and_values_of_the_code() -> None:
    options, read = documented(), inputs.Inputs()
    defaults = {name: option["default"] for name, option in options.items() if "default" in option}
    given = {name: getattr(read, name.removeprefix("durable_"), None) for name in defaults}
    for name, value in given.items():
        if value is not None:
            assert defaults[name] == (list(value) if isinstance(value, tuple) else value), name
    assert defaults["durable_report_dir"] == variables.REPORT_DIR
    assert defaults["durable_report_formats"] == list(variables.REPORT_FORMATS)
    assert defaults["durable_fail_on"] == list(FAIL_ON)
    choices = {name: tuple(option["choices"]) for name, option in options.items() if "choices" in option}
    assert choices == {
        "durable_allow": inputs.PERMISSIONS,
        "durable_fail_on": VERDICTS,
        "durable_report_formats": variables.FORMATS,
    }
    assert set(options["durable_databases"]["options"]["engine"]["choices"]) == set(catalog.NAMES)


def test_ansible_does_not_check_the_variables_of_harden_in_a_task_of_its_own() -> None:
    """It would do that for an entry with the name of a tasks file, and lose a host with a bad value."""
    entries = set(load(HARDEN / "meta/argument_specs.yml")["argument_specs"])
    assert entries and entries.isdisjoint(path.stem for path in (HARDEN / "tasks").iterdir())
    assert "argument_specs" not in load(HARDEN / "meta/main.yml")
