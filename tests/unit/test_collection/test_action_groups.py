# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module that has a group's option is in the group, and says so; an option that one lacks would end a play."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.documents import with_fragments

ROOT = Path(__file__).resolve().parents[3]
RUNTIME = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())
LAYER = "durable.dbhost.attributes.layer"
FACTS = "durable.dbhost.attributes.facts"


def documentation(path: Path) -> dict[str, Any]:
    """Return what a module documents of itself."""
    found = re.search(r'DOCUMENTATION = r"""(.*?)"""', path.read_text(encoding="utf-8"), re.S)
    assert found, path
    return with_fragments(found[1])


MODULES = {path.stem: documentation(path) for path in (ROOT / "plugins/modules").glob("*.py")}
#: Those that work on the controller alone have an action that connects to no host.
ON_HOSTS = set(MODULES) - {
    path.stem
    for path in (ROOT / "plugins/action").glob("*.py")
    if "_requires_connection = False" in path.read_text(encoding="utf-8")
}


def with_fragment(name: str) -> set[str]:
    """Return the modules whose documentation has a fragment."""
    return {module for module, found in MODULES.items() if name in found["extends_documentation_fragment"]}


def with_options(*names: str) -> set[str]:
    """Return the modules on hosts that have all of these options."""
    return {module for module in ON_HOSTS if set(names) <= set(MODULES[module].get("options", {}))}


def test_a_group_has_the_modules_with_its_option_and_they_say_so() -> None:
    groups = {name: set(members) for name, members in RUNTIME["action_groups"].items()}
    layers = {name for name in with_options("targets", "state") if released(name)}
    assert groups == {"facts": with_options("databases"), "layers": layers}
    assert (with_fragment(FACTS), with_fragment(LAYER)) == (groups["facts"], groups["layers"])


def released(module: str) -> bool:
    """Tell whether a module can take back what it did."""
    return MODULES[module]["options"]["state"]["choices"] == ["present", "released"]


def test_the_documentation_names_each_group() -> None:
    text = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    assert set(re.findall(r"group/durable\.dbhost\.(\w+)", text)) == set(RUNTIME["action_groups"])
