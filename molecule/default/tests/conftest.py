# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine for all tests; each module begins with it as converge left it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from support import manifest  # noqa: E402
from support.runs import Playbooks  # noqa: E402

from lab.machine import Machine  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def converged() -> tuple[Machine, str]:
    """The machine as converge left it, kept as the snapshot strict, and its manifest."""
    machine = Machine("dbhost")
    machine.save("strict")
    return machine, manifest.read(machine)


@pytest.fixture(scope="module", autouse=True)
def machine(converged: tuple[Machine, str]) -> Machine:
    """The machine as converge left it: it boots from the snapshot unless nothing of it has changed.

    Before each module, because tests with testinfra's `host` alone do not name it.
    """
    machine, as_converged = converged
    if not machine.running or manifest.read(machine) != as_converged:
        machine.load("strict")
    return machine


@pytest.fixture
def playbooks(machine: Machine, tmp_path: Path) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory."""
    return Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], tmp_path, {})
