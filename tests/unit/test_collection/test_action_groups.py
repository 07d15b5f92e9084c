# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module that has a group's option is in the group, and says so; an option that one lacks would end a play."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
RUNTIME = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())
LAYER = "durable.dbhost.attributes.layer"
FACTS = "durable.dbhost.attributes.facts"


def documentation(path: Path) -> dict[str, Any]:
    """Return what a module documents of itself."""
    found = re.search(r'DOCUMENTATION = r"""(.*?)"""', path.read_text(encoding="utf-8"), re.S)
    assert found, path
    return yaml.safe_load(found[1])


MODULES = {path.stem: documentation(path) for path in (ROOT / "plugins/modules").glob("*.py")}
#: An action of a module's own may do its work on the controller alone.
ON_HOSTS = {*RUNTIME["plugin_routing"]["modules"], "capture", "engine_facts"}
#: These run others on the host, and are on the controller themselves.
RUN_OTHERS = {
    path.stem
    for path in (ROOT / "plugins/action").glob("*.py")
    if "import execute" in path.read_text("utf-8")
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


def test_what_runs_on_hosts_is_told_from_what_does_not() -> None:
    """Else a module that is new would be looked for in no group."""
    on_controller = {
        path.stem
        for path in (ROOT / "plugins/action").glob("*.py")
        if "_requires_connection" in path.read_text()
    }
    assert on_controller | ON_HOSTS | RUN_OTHERS == set(MODULES)
    assert not (on_controller | RUN_OTHERS) & ON_HOSTS


def test_the_documentation_names_each_group() -> None:
    text = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    assert set(re.findall(r"group/durable\.dbhost\.(\w+)", text)) == set(RUNTIME["action_groups"])
