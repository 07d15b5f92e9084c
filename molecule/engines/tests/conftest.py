# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine with real servers; each module goes back to the moment after converge."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from support import mysqls  # noqa: E402
from support.runs import Playbooks  # noqa: E402

from lab.machine import Machine  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def states() -> Iterator[Machine]:
    """The machine as converge left it: first as it runs, then each time from the snapshot strict."""

    def each() -> Iterator[Machine]:
        machine = Machine("engines")
        machine.save("strict")
        yield machine
        while True:
            machine.load("strict")
            yield machine

    return each()


@pytest.fixture(scope="module")
def machine(states: Iterator[Machine]) -> Machine:
    """The machine, at the moment after converge."""
    return next(states)


@pytest.fixture(scope="module")
def postgresql(machine: Machine) -> str:
    """The version of the release's PostgreSQL, as it is in names and paths."""
    return machine.run(["ls", "/usr/lib/postgresql"]).stdout.strip()


@pytest.fixture(scope="module")
def mysql(machine: Machine) -> mysqls.Mysql:
    """MariaDB, or MySQL on Debian's unstable distribution."""
    return mysqls.of(machine)


@pytest.fixture(scope="module")
def playbooks(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory."""
    directory = tmp_path_factory.mktemp("playbooks")
    return Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], directory, {})
