# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make `ansible_collections.durable.dbhost` mean this checkout, whatever its directory's name.

ansible-test brings a loader of its own and is left alone. Plain pytest gets packages that have
no files and only a path: it works without ansible-core, and on the Python of old hosts.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def find_collection() -> None:
    """Register the three levels of the collection's package, unless a loader knows them."""
    try:
        known = importlib.util.find_spec("ansible_collections.durable.dbhost")
    except ModuleNotFoundError:
        known = None
    if known:
        return
    name = ""
    for level, path in (("ansible_collections", []), ("durable", []), ("dbhost", [str(ROOT)])):
        name = f"{name}.{level}".lstrip(".")
        package = ModuleType(name)
        package.__path__ = path
        sys.modules[name] = package


find_collection()
# A shell that runs in the background leaves it ignored, and what tests start could not be told to end.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which a second environment runs a sample."""
    parser.addoption(
        "--one-case",
        action="store_true",
        help="run the first case of each parametrized test alone; DBHOST_TESTS_WHOLE=1 runs all of them all the same",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[Any]) -> None:
    """Deselect all but the first case of each test, if asked to."""
    if not config.getoption("--one-case") or os.environ.get("DBHOST_TESTS_WHOLE") == "1":
        return
    first: dict[tuple[Any, str], Any] = {}
    for item in items:
        first.setdefault((item.parent, getattr(item, "originalname", item.name)), item)
    chosen = set(map(id, first.values()))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = [item for item in items if id(item) in chosen]
