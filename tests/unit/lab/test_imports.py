# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's modules import each other one way, also what they import for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def imported(path: Path) -> Iterator[str]:
    """Yield each name that a module imports; what comes from a package is that package's or a module in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield str(node.module)


def test_no_module_imports_one_that_imports_it() -> None:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.glob("lab/**/*.py")
    }
    graph = {name: {other for other in imported(path) if other in modules} for name, path in modules.items()}
    assert len(graph["lab.machine"]) > 5
    TopologicalSorter(graph).prepare()
