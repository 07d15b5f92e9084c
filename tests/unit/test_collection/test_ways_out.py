# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each way to a terminal, a log, the controller or its files goes through one of a few functions, which make it printable."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_core_alike

ROOT = Path(__file__).parents[3]
#: File -> the names of what leads out of the process, which it alone may use.
DOORS = {
    "plugins/module_utils/host/reply.py": {"exit_json", "fail_json", "warn", "stdout", "stderr"},
    "plugins/plugin_utils/output.py": {"Display", "AnsibleActionFail", "open", "replace", "unlink", "mkdir"},
    "plugins/module_utils/ups/guard/ipc.py": {"write"},
    # They are caught there, and not raised.
    "plugins/plugin_utils/interpreters.py": {"AnsibleError"},
    "plugins/plugin_utils/on_host.py": {"AnsibleError"},
    "plugins/plugin_utils/variables.py": {"AnsibleError"},
    # How much memory its process has; an error of the cleaning up is caught.
    "plugins/action/engine_facts.py": {"open", "AnsibleError"},
    # The state as JSON, and how to call it.
    "plugins/module_utils/ups/guard/main.py": {"stdout", "stderr"},
    # One line for the journal.
    "plugins/module_utils/undo/put_back.py": {"stdout"},
    "plugins/module_utils/watch/program.py": {"stdout"},
}
#: What shows, logs or hands on, wherever it stands.
SHOWS = {
    *(
        "exit_json",
        "fail_json",
        "warn",
        "deprecate",
        "print",
        "stdout",
        "stderr",
        "Display",
        "syslog",
        "logging",
    ),
    *("AnsibleError", "AnsibleActionFail", "AnsibleActionSkip", "AnsibleModuleError"),
}
#: What writes; the seam of a managed host (host.py) is another thing than the controller's own files.
WRITES = {
    *("open", "replace", "rename", "unlink", "remove", "mkdir", "makedirs", "mkstemp", "NamedTemporaryFile"),
    *("write_text", "write_bytes", "copy", "copyfile", "link", "symlink"),
}


def names_in(path: Path) -> Iterator[str]:
    """Yield each name of others that a file imports, calls, or takes from sys."""
    ours = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (
            node.level or (node.module or "").startswith("ansible_coll")
        ):
            ours |= {alias.name for alias in node.names}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in ours:
            yield node.func.id
        # `result.stdout` of a command that was run is no way out.
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "sys":
            yield node.attr


def files(*kinds: str) -> list[Path]:
    """Return the Python files of some kinds of plugins."""
    return [path for kind in kinds for path in sorted((ROOT / "plugins" / kind).rglob("*.py"))]


@pytest.mark.parametrize(
    "path",
    files("modules", "module_utils", "action", "plugin_utils"),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_nothing_is_shown_but_through_a_door(path: Path) -> None:
    own = DOORS.get(str(path.relative_to(ROOT)), set())
    assert set(names_in(path)) & SHOWS <= own


@pytest.mark.parametrize("path", files("action", "plugin_utils"), ids=lambda path: path.name)
def test_actions_write_files_through_one_door(path: Path) -> None:
    own = DOORS.get(str(path.relative_to(ROOT)), set())
    assert set(names_in(path)) & WRITES <= own


@pytest.mark.parametrize(
    "path", files("modules", "module_utils"), ids=lambda path: str(path.relative_to(ROOT))
)
def test_nobody_writes_to_a_standard_stream_by_its_number(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_write = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "write" and node.args
        if is_write and isinstance(node.args[0], ast.Constant) and node.args[0].value in (1, 2):
            assert "write" in DOORS.get(str(path.relative_to(ROOT)), set())


@pytest.mark.parametrize(
    "path",
    files("modules", "module_utils", "action", "plugin_utils"),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_nobody_calls_a_text_laid_out_by_himself(path: Path) -> None:
    calls = (
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    )
    named = {getattr(node.func, "id", getattr(node.func, "attr", "")) for node in calls}
    assert "Lines" not in named or path.name == "printable.py"


def test_the_doors_are_there() -> None:
    for name in DOORS:
        assert (ROOT / name).exists(), name


def test_texts_of_several_lines_are_laid_out() -> None:
    """A function that joins lines by itself forgets to make each of them printable."""
    for path in files("modules", "module_utils", "action"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if "capture" in path.parts or not isinstance(node, ast.FunctionDef):
                continue
            if node.name in ("table", "svg", "attestation", "as_diff"):
                assert "Lines" in ast.unparse(node.returns or ast.Constant("")), f"{path.name}: {node.name}"
            if path.parts[-2:] == ("policy", "report.py"):
                assert node.name != "render" or ast.unparse(node.returns) == "Lines"  # type: ignore[arg-type]
