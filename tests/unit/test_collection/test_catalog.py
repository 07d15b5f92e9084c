# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of layers and engines, and all that has to agree with it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("ansible")

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.durable.dbhost.plugins.module_utils import catalog
from ansible_collections.durable.dbhost.plugins.module_utils.engines.contract import ENGINES
from ansible_collections.durable.dbhost.plugins.module_utils.engines.judges import JUDGES
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import plan
from ansible_collections.durable.dbhost.plugins.module_utils.rows import Setting
from ansible_collections.durable.dbhost.plugins.modules.apply import CODE
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.documents import with_fragments

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = ROOT / "plugins"
NAMES = [engine.name for engine in catalog.ENGINES]


def literals(path: Path) -> set[str]:
    """Return the texts of a source."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str
    }


def tasks(path: str) -> list[dict[str, Any]]:
    """Return the tasks of a file, those of a play's where it is a playbook."""
    found = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    rows = found[0]["tasks"] if "hosts" in found[0] else found
    assert isinstance(rows, list)
    return rows


@pytest.mark.parametrize(
    "path", sorted((PLUGINS / "module_utils/policy").rglob("*.py")), ids=lambda path: path.stem
)
def test_the_policy_knows_no_engine_by_its_name(path: Path) -> None:
    assert literals(path).isdisjoint(catalog.NAMES)


@pytest.mark.parametrize(
    "path", sorted((PLUGINS / "module_utils/engines").glob("*.py")), ids=lambda path: path.stem
)
def test_what_all_engines_share_imports_none_of_them_but_the_contract(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {
        (node.module or "").partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    assert modules.isdisjoint(NAMES) or path.name in ("contract.py", "judges.py")


def test_the_contract_has_the_engines_of_the_catalogue_in_its_order() -> None:
    assert list(ENGINES) == NAMES == [engine.observer.NAME for engine in ENGINES.values()]
    assert {path.name for path in (PLUGINS / "module_utils/engines").iterdir() if path.is_dir()} - {
        "__pycache__"
    } == set(NAMES)
    assert list(JUDGES) == NAMES
    for name, judge in JUDGES.items():
        assert set(judge.full) == set(catalog.engine(name).checks)
        assert set(judge.relaxed) <= set(judge.full)
        assert bool(judge.rows) == catalog.engine(name).has_databases
        for function in ("find", "installed", "observe"):
            assert callable(getattr(ENGINES[name].observer, function))


@pytest.mark.parametrize("name", catalog.LAYERS)
def test_each_layer_has_its_module_and_role(name: str) -> None:
    layer = catalog.LAYERS[name]
    assert (PLUGINS / f"modules/{layer.module}.py").exists()
    assert any(f"durable.dbhost.{layer.module}" in task for task in tasks(f"roles/{name}/tasks/main.yml"))
    assert any(layer == name for _phase, layer in catalog.STEPS)


def test_every_role_is_a_layer_and_every_step_of_one() -> None:
    roles = {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()} - {"harden", "watch"}
    assert roles == set(catalog.LAYERS) == {layer for _phase, layer in catalog.STEPS}


def test_release_takes_all_layers_the_guard_first_and_nothing_but_the_word() -> None:
    steps = catalog.release()
    assert [step["layer"] for step in steps] == list(catalog.LAYERS)
    assert steps[0]["layer"] == "power_guard"
    for step in steps:
        assert (step["phase"], step["arguments"]) == ("release", {"state": "released"})
        spec = CODE[step["layer"]].ARGUMENTS.spec
        assert not ArgumentSpecValidator(spec).validate(step["arguments"]).error_messages


@pytest.mark.parametrize("layer", catalog.LAYERS.values(), ids=lambda layer: layer.name)
def test_a_step_gives_a_layer_s_module_what_it_takes(layer: catalog.Layer) -> None:
    phase = next(phase for phase, name in catalog.STEPS if name == layer.name)
    lease = dict.fromkeys(("expires", "quiet", "needed", "test_ups", "units"), 1)
    row = Setting(
        **dict.fromkeys(
            ("target", "setting", "wanted_running", "wanted_persisted", "running", "persisted"), "a"
        ),
        **dict.fromkeys(("verdict", "why", "remedy"), ""),
        layer=layer.name,
        klass="safety",
        phase=phase,
        evidence={"persisted": {"source": "/etc/fstab"}, "mounts": ["/srv/a"], "requested": "a"},
    )
    found = plan.steps(plan.build([row], True), [row], [], lease)
    assert [(step["phase"], step["layer"]) for step in found] == [(phase, layer.name)]
    taken = CODE[layer.name].ARGUMENTS
    assert set(found[0]["arguments"]) <= set(taken.spec)
    for may, option in ((layer.restarts, "restart"), (layer.alters, "alter_system")):
        assert may == (option in taken.permissions) == (option in found[0]["arguments"])
    assert {*layer.options, *layer.secrets} <= set(taken.shared)
    assert {name for name, spec in taken.shared.items() if spec.get("no_log")} == set(layer.secrets)
    text = (PLUGINS / f"modules/{layer.module}.py").read_text(encoding="utf-8")
    documented = with_fragments(text.split('DOCUMENTATION = r"""')[1].split('"""')[0])["options"]
    assert set(documented) == set(taken.spec)


def test_the_module_of_all_steps_knows_each_layer() -> None:
    assert set(CODE) == set(catalog.LAYERS)


def test_documents_name_every_engine() -> None:
    (said,) = re.findall(
        r"^`engine` is one of (.+?)\.", (ROOT / "docs/variables.md").read_text(), re.M | re.S
    )
    assert re.findall(r"`(\w+)`", said) == list(catalog.NAMES)
    schema = json.loads((ROOT / "plugins/plugin_utils/report.schema.json").read_text(encoding="utf-8"))
    row = schema["$defs"]["setting"]["properties"]["layer"]["description"]
    assert set(re.findall(r"`(\w+)`", row)) == set(catalog.LAYERS)
    documented = (PLUGINS / "modules/engine_facts.py").read_text(encoding="utf-8")
    (words,) = re.findall(r"description: (V\(mssql\).*)$", documented, re.M)
    assert re.findall(r"V\((\w+)\)", words) == NAMES
    listed = (ROOT / "docs/engines.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"(engines/{name}.md)" in listed
        assert (ROOT / f"docs/engines/{name}.md").exists()


#: Headings of docs/extending.md.
SUBJECTS = (
    *(
        "An engine",
        "A file system",
        "A layer",
        "A kind of disk",
        "A tool of a RAID controller",
        "A key of a profile",
    ),
    *("A fact", "A finding", "A verdict"),
)
#: Subjects that may need fewer places than the others, or another one.
FEW = {"A fact": 3, "A finding": 3, "A verdict": 7}


def places(subject: str) -> list[str]:
    """Return the paths in the first cell of each row of a subject in docs/extending.md."""
    text = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    part = text[text.index(f"## {subject}\n") :].partition("\n## ")[0]
    return [
        path for cell in re.findall(r"^\| (`[^|]+) \|", part, re.M) for path in re.findall(r"`([^`]+)`", cell)
    ]


def in_repository(path: str) -> Path:
    """Return where a path of docs/extending.md is."""
    return next(
        (base / path for base in (PLUGINS / "module_utils", ROOT) if (base / path).exists()), ROOT / path
    )


def test_extending_has_few_places_for_each_subject() -> None:
    text = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.M) == list(SUBJECTS)
    assert all(1 < len(places(subject)) <= FEW.get(subject, 6) for subject in SUBJECTS)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_file_that_extending_names_is_there(subject: str) -> None:
    text = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    part = text[text.index(f"## {subject}\n") :].partition("\n## ")[0]
    named = re.findall(r"`([^`\s]+/[^`\s]*|[^`\s]+\.(?:py|md|yml))`", part)
    own = ("observe.py", "rules.py", "apply.py", "engines/toy/")
    missing = [path for path in named if path not in own and not in_repository(path).exists()]
    assert named and missing == []


def sources_with(texts: set[str]) -> set[str]:
    """Return the sources of plugins that have one of these as a text of their own."""
    return {str(path.relative_to(PLUGINS)) for path in PLUGINS.rglob("*.py") if literals(path) & texts}


def test_no_source_but_those_that_extending_names_knows_an_engine() -> None:
    """What else names one is no place to touch: it has a default for all others."""
    more = {
        "module_utils/ups/rehearsal.py",  # what some write to the journal after an unclean end
        "module_utils/engines/managers.py",  # Patroni is PostgreSQL's
        "module_utils/measure/transactions.py",  # pgbench and sysbench each measure servers of one protocol
    }
    found = {path for path in sources_with(set(NAMES)) if path.startswith("module_utils/")}
    own = {path for path in found if re.match(rf"module_utils/engines/({'|'.join(NAMES)})/", path)}
    assert found - own - more <= {f"module_utils/{path}" for path in places("An engine")}


def test_no_source_but_those_that_extending_names_knows_xfs_from_other_file_systems() -> None:
    more = {
        "module_utils/storage/fua.py",  # named beside the table
        "module_utils/measure/file_systems.py",  # how each is created for a comparison
        "module_utils/measure/variants.py",  # a benchmark of barriers, where it can be made
        "module_utils/engines/faircom/rules.py",  # a warning about XFS alone
        "module_utils/policy/assess/requirements.py",  # a reason about btrfs alone
        "module_utils/storage/boot_faults.py",  # named beside the table
        "module_utils/storage/boot_findings.py",  # the command for another UUID; named beside the table
        "module_utils/storage/device_names.py",  # members of btrfs share a UUID; named beside the table
        "module_utils/next_boot/remounts.py",  # TuneD changes ext alone; named beside the table
        "module_utils/storage/root_image.py",  # the next root of a transactional system is a snapshot of btrfs
    }
    found = {path for path in sources_with({"xfs", "btrfs"}) if path.startswith("module_utils/")}
    assert found - more <= {f"module_utils/{path}" for path in places("A file system")}


def test_the_module_of_each_layer_is_bounded_as_others_are() -> None:
    routed = yaml.safe_load((ROOT / "meta/runtime.yml").read_text(encoding="utf-8"))["plugin_routing"][
        "modules"
    ]
    assert {layer.module for layer in catalog.LAYERS.values()} <= set(routed)
