# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program as one file, built from the modules that it imports. The same modules give the same bytes."""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import importlib.util
import io
import os
import sys
import zipfile
from collections.abc import Iterator

_ROOT = __name__.rpartition(".host.")[0]
#: The package that the program is made of.
_NAME = "durable_dbhost"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_FILE_MODE = 0o100644 << 16


@functools.lru_cache(maxsize=2)
def build(module: str, end: str = "sys.exit(code)\n") -> bytes:
    """Return a program that calls main() of a module of ours, and ends with the `code` that this returns.

    Raises ImportError where the source of a module cannot be had.
    """
    start = f"from {_NAME}{module[len(_ROOT) :]} import main"
    files = {"__main__.py": f"import os\nimport sys\n\n{start}\n\ncode = main()\n{end}"}
    for name in sorted(_closure(module)):
        is_package = bool(_spec(name).submodule_search_locations is not None)
        path = (_NAME + name[len(_ROOT) :]).replace(".", "/")
        files[f"{path}/__init__.py" if is_package else f"{path}.py"] = _source(name)
    target = io.BytesIO()
    # Not compressed: what compresses differs from host to host.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path, _LONG_AGO)
            entry.create_system, entry.external_attr = 3, _FILE_MODE
            archive.writestr(entry, files[path])
    return target.getvalue()


def interpreter() -> str:
    """Return the Python that runs the program: the one that runs this, by the name that stays the longest."""
    usual = "/usr/bin/python3"
    same = os.path.realpath(usual) == os.path.realpath(sys.executable)
    return usual if same else sys.executable


def _closure(first: str) -> set[str]:
    """Return the names of a module, of all that it imports of ours, and of the packages that they are in."""
    found: set[str] = set()
    waiting = [first]
    while waiting:
        name = waiting.pop()
        if name in found or not (name + ".").startswith(_ROOT + "."):
            continue
        found.add(name)
        if name != _ROOT:
            waiting.append(name.rpartition(".")[0])
        waiting += _imported(name)
    return found


def _imported(name: str) -> Iterator[str]:
    is_package = _spec(name).submodule_search_locations is not None
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(_source(name))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
        yield base
        for alias in node.names:
            if _is_module(f"{base}.{alias.name}"):
                yield f"{base}.{alias.name}"


def _is_module(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False  # Its supposed package is a module.


def _spec(name: str) -> importlib.machinery.ModuleSpec:
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ImportError(f"{name}: no such module")
    return spec


def _source(name: str) -> str:
    loader = _spec(name).loader
    source = loader.get_source(name) if hasattr(loader, "get_source") else None  # type: ignore[union-attr]
    if source is None:
        # An empty package has an empty source, and a namespace none.
        if _spec(name).submodule_search_locations is not None:
            return ""
        raise ImportError(f"{name}: its source cannot be had")
    return str(source)
