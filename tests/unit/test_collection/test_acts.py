# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/trust.md lists what the modules do as root: each module that acts, and all programs that it starts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_core_alike

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "plugins/module_utils"
#: The methods of the seam (host/seam.py) by act.
METHODS = {
    "mount": {"set_mount_options", "set_mount_atime", "make_mount_writable", "try_mount", "sync_mount"},
    "write": {"write_file", "remove_file", "write_attribute"},
    "program": {"run", "change"},
    "socket": {"ask"},
}
HOSTS = ("host", "self.host", "self._host", "self._inner")
#: Calls that act without the seam.
DIRECT = {
    "subprocess.Popen": "program",
    "socket.socket": "socket",
    "socket.create_connection": "socket",
}
#: Calls that no module makes: each would act on a name, or pass a text to a shell.
NEVER = {
    "os.system",
    "os.popen",
    "subprocess.run",
    "subprocess.call",
    "subprocess.check_output",
    "subprocess.check_call",
}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield (act, call) of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = ast.unparse(node.func)
        if name in DIRECT:
            yield DIRECT[name], node
        for act, methods in METHODS.items():
            if node.func.attr in methods and ast.unparse(node.func.value) in HOSTS:
                yield act, node


def acting() -> dict[str, set[str]]:
    """Return {act: modules}."""
    found: dict[str, set[str]] = {act: set() for act in METHODS}
    for path in SOURCES.rglob("*.py"):
        for act, _call in calls(path):
            found[act].add(str(path.relative_to(SOURCES)))
    return found


def table() -> list[tuple[str, set[str], str, str]]:
    """Return (act, modules, what, rule) of each row of the page."""
    text = (ROOT / "docs/trust.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (mount|write|program|socket) \| (.*?) \| (.*) \| (.*?) \|$", text, re.M)
    return [
        (act, set(re.findall(r"`([\w/]+\.py)`", modules)), what, rule) for act, modules, what, rule in rows
    ]


@pytest.mark.parametrize("act", METHODS)
def test_the_table_lists_each_module_that_acts_and_no_other(act: str) -> None:
    listed = {module for row in table() if row[0] == act for module in row[1]}
    assert listed == acting()[act]


def test_each_row_names_its_rule() -> None:
    rules = set(re.findall(r"^\| (R\d) \|", (ROOT / "docs/trust.md").read_text(encoding="utf-8"), re.M))
    assert rules == {f"R{number}" for number in range(1, 8)}
    for act, modules, _what, rule in table():
        assert rule.strip(), (act, modules)
        assert set(re.findall(r"R\d", rule)) <= rules


def started(path: Path) -> set[str]:
    """Return the programs that a module names as the first word of a list for the seam."""
    names = set()
    for act, call in calls(path):
        first = call.args[0] if call.args else None
        if (
            act == "program"
            and isinstance(first, ast.List)
            and first.elts
            and isinstance(first.elts[0], ast.Constant)
        ):
            names.add(str(first.elts[0].value))
    return names


@pytest.mark.parametrize("module", sorted(acting()["program"]))
def test_the_row_of_a_module_names_the_programs_that_it_starts(module: str) -> None:
    named = {
        word
        for row in table()
        if row[0] == "program" and module in row[1]
        for word in re.findall(r"`([^`]+)`", row[2])
    }
    assert started(SOURCES / module) <= named


def test_a_program_of_the_table_is_one_that_a_module_of_its_row_names() -> None:
    for act, modules, what, _rule in table():
        if act == "program":
            texts = "\n".join(
                path.read_text(encoding="utf-8")
                for module in modules
                for path in (SOURCES / module).parent.glob("*.py")
            )
            for word in re.findall(r"`([a-z][\w.-]+)`", what):
                assert word in texts or word.startswith("mkfs."), (word, modules)


def test_nothing_is_started_without_the_seam() -> None:
    """No shell, and no program beside those of the table."""
    found = [
        (path.name, ast.unparse(node.func))
        for folder in ("module_utils", "modules")
        for path in (ROOT / "plugins" / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in NEVER
    ]
    assert found == []


def test_mount_is_never_run_by_name() -> None:
    for path in SOURCES.rglob("*.py"):
        assert not {"mount", "umount", "sh", "bash"} & started(path), path
