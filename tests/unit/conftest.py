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


def pytest_configure(config: pytest.Config) -> None:
    """Note which entries of the catalogue of findings the tests produce, by their ids."""
    if config.args == ["tests/unit"] and not (config.option.keyword or config.option.markexpr):
        config.pluginmanager.register(_Produced(), "produced")


class _Produced:
    """Fails a run of all unit tests in which no test produced some finding of the catalogue.

    A finding that no test produces may never be found, or may end the assessment by a value that it does not get.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Note the id of each reason that is made."""
        from ansible_collections.durable.dbhost.plugins.module_utils import rows

        make, ids = rows.Reason.__new__, self.ids

        def noted(cls: Any, id: str, *rest: Any, **named: Any) -> Any:
            ids.add(id)
            return make(cls, id, *rest, **named)

        rows.Reason.__new__ = noted  # type: ignore[method-assign,assignment]

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a process of xdist has noted."""
        self.ids.update(getattr(node, "workeroutput", {}).get("produced", ()))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Hand the ids to the process that began this one, or compare them with the catalogue."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["produced"] = sorted(self.ids)
            return
        if exitstatus != 0 or session.config.getoption("--one-case"):
            return
        from ansible_collections.durable.dbhost.plugins.module_utils.policy import catalogue

        missing = sorted(catalogue.IDS - self.ids)
        if missing:
            print(f"\nno test produces these findings of the catalogue: {', '.join(missing)}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
