# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rooms of module_utils: imports run one way, in no circle, and docs/architecture.md names what is there."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_core_alike

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "plugins/module_utils"
#: From the lowest: a room imports from itself and from those before it.
ROOMS = (
    *(
        "host",
        "profiles",
        "attestations",
        "rows",
        "catalog",
        "facts",
        "enforce",
        "next_boot",
        "storage",
        "engines",
        "ups",
        "undo",
    ),
    *("host_facts", "policy", "watch", "capture", "measure"),
)


def files() -> Iterator[tuple[str, Path]]:
    """Yield each module's dotted name with its file."""
    for path in SOURCES.rglob("*.py"):
        if path.name != "__init__.py":
            yield ".".join(path.relative_to(SOURCES).with_suffix("").parts), path


FILES = dict(files())


@functools.cache
def imported(name: str) -> frozenset[str]:
    """Return the dotted names of the modules that one imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(FILES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            package = name.split(".")[: -node.level]
            base = ".".join([*package, *([node.module] if node.module else [])])
            named = [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
            found |= {base} & set(FILES) or set(named) & set(FILES)
    return frozenset(found)


def room(name: str) -> str:
    """Return the room of a module: its folder, or itself."""
    return name.partition(".")[0]


def test_every_room_has_its_place() -> None:
    assert {room(name) for name in FILES} == set(ROOMS)


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_import_runs_up(name: str) -> None:
    mine = ROOMS.index(room(name))
    assert not {other for other in imported(name) if ROOMS.index(room(other)) > mine}


def test_an_import_that_runs_up_would_be_seen() -> None:
    assert "host.seam" in imported("storage.flush")
    assert "policy.assess.compare" in imported("policy.show.assessment")


def sent(module: str) -> set[str]:
    """Return the modules that a module sends to a host: each import statement counts, wherever it is."""
    text = (ROOT / f"plugins/modules/{module}.py").read_text(encoding="utf-8")
    found: set[str] = set()
    waiting: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and ".plugins.module_utils" in str(node.module):
            base = str(node.module).partition(".plugins.module_utils")[2].lstrip(".")
            waiting += {base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)} & set(FILES)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imported(name)
    return found


@pytest.mark.parametrize("module", ["host_facts", "apply"])
def test_a_host_gets_only_what_a_host_runs(module: str) -> None:
    gets = sent(module)
    assert {"engines.postgresql.observe", "facts.classes"} <= gets
    assert not {name for name in gets if room(name) in ("policy", "watch", "capture", "measure")}
    assert not gets & {"facts.storage", "facts.engines", "facts.ups", "facts.schema", "profiles", "rows"}
    assert not {name for name in gets if re.search(r"findings|judges|rules$", name)} - {
        *(
            "next_boot.udev_rules",
            "next_boot.foreign_rules",
            "storage.cache_rules",
            "storage.scheduler_rules",
        ),
    }


#: Modules of the policy outside of its parts: the catalogue of findings, and types.
OUTSIDE = ("catalogue", "kinds", "report_types")
#: The parts of the policy, each with the parts that it may import.
PARTS = {**dict.fromkeys(OUTSIDE, ()), "expect": (), "assess": ("expect",), "show": ("assess", "expect")}


@pytest.mark.parametrize("name", sorted(name for name in FILES if room(name) == "policy"))
def test_the_parts_of_the_policy_import_in_one_direction(name: str) -> None:
    own = name.split(".")[1]
    others = {other.split(".")[1] for other in imported(name) if room(other) == "policy"} - {own}
    assert others <= {*OUTSIDE, *PARTS[own]}


def test_no_module_imports_itself_by_a_way_round() -> None:
    left = {name: imported(name) for name in FILES}
    while free := {name for name, others in left.items() if not others & set(left)}:
        left = {name: others for name, others in left.items() if name not in free}
    assert not left


@pytest.mark.parametrize("name", ["policy", "facts", "engines", "storage", "ups", "host", "enforce"])
def test_the_page_names_only_files_that_are_there(name: str) -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(rf"`({name}/[\w/]+\.py)`", text)
    assert named
    assert not [path for path in named if not (SOURCES / path).exists()]


def test_the_page_names_each_room() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    (drawing,) = re.findall(r"```text\n(measure/.*?)```", text, re.S)
    folders = {path.name for path in SOURCES.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    rows = [re.findall(r"([a-z_]+)/(?=\s)", row) for row in re.findall(r"^ *[a-z_]+/.*", drawing, re.M)]
    assert {each for row in rows for each in row} == folders
    # Top to bottom in the drawing is from the last to the first here.
    below = [each for row in rows[1:] for each in row]
    assert below == sorted(below, key=ROOMS.index, reverse=True)
    for module in (each for each in ROOMS if each not in folders):
        assert f"{module}.py" in drawing


def _bound(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a module binds, without those of `if` and `try`."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    names = (each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
    return [each.id for each in names if isinstance(each.ctx, ast.Store)]


@pytest.mark.parametrize("name", FILES)
def test_a_module_binds_each_name_once(name: str) -> None:
    """A second constant of one name replaces the first in every module that imports it, and no checker reports it."""
    found = [each for row in ast.parse(FILES[name].read_text(encoding="utf-8")).body for each in _bound(row)]
    assert sorted(found) == sorted(set(found))
