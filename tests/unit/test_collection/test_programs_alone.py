# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each program that a host runs without a controller has all modules that it imports, and so has each module of Ansible's."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import program as programs
from ansible_collections.durable.dbhost.plugins.module_utils.undo import put_back
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import main as guard
from ansible_collections.durable.dbhost.plugins.module_utils.watch import program as watch

pytestmark = pytest.mark.every_core_alike

UTILS = Path(programs.__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "module", [watch.__name__, guard.__name__, put_back.__name__], ids=lambda name: name[-14:]
)
def test_a_program_can_be_imported_alone(module: str, tmp_path: Path) -> None:
    path = tmp_path / "program.pyz"
    path.write_bytes(programs.build(module))
    name = "durable_dbhost" + module.rpartition(".module_utils")[2]
    code = f"import sys; sys.path.insert(0, {str(path)!r}); from {name} import main"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_code_of_a_host_imports_by_a_name_that_it_makes() -> None:
    """Ansible and the programs above pack what import statements name, and nothing else."""
    made = []
    for path in UTILS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called.rpartition(".")[2] in ("import_module", "__import__"):
                made.append(f"{path.relative_to(UTILS)}: {called}")
    assert made == []
