# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of ours on a host are written once, and documented."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ansible_collections.durable.dbhost.plugins.module_utils.host import our_paths

ROOT = Path(__file__).resolve().parents[5]
SOURCES = ROOT / "plugins/module_utils"
PLACES = re.compile(r"/(etc|run|var/lib|usr/local)\b")


def literals(path: Path) -> Iterator[str]:
    """Yield the texts of a source that are no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_no_other_source_names_a_path_of_ours() -> None:
    found = {
        f"{path.relative_to(SOURCES)}: {text}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "our_paths.py"
        for text in literals(path)
        if "durable-dbhost" in text and PLACES.search(text)
    }
    assert found == set()


def test_every_path_of_ours_is_in_the_table_of_what_lies_on_a_host() -> None:
    text = (ROOT / "docs/files.md").read_text(encoding="utf-8")
    table = text[text.index("| path | what |") :].partition("\n\n")[0]
    listed = [word.rstrip("/") for word in re.findall(r"`(/[^`]+)`", table)]
    texts = (value for name, value in vars(our_paths).items() if name.isupper())
    said = [value for value in texts if isinstance(value, str)]
    ours = [path for path in [*said, *our_paths.UPS_WAY] if path.startswith("/")]
    # Of a directory its files need not be listed, nor the directory of files that are.
    missing = [
        path for path in ours if not any(path.startswith(one) or one.startswith(f"{path}/") for one in listed)
    ]
    assert len(ours) > 15
    assert missing == []
    # A directory with listed files covers no other file.
    leaves = [path for path in ours if not any(one.startswith(f"{path}/") for one in ours)]
    below = tuple(f"{leaf}/" for leaf in leaves)
    named = [one for one in listed if "durable-dbhost" in one and "<" not in one]
    assert [one for one in named if one not in ours and not one.startswith(below)] == []
