# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine with real servers; each module goes back to the moment after converge."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from support.runs import Playbooks  # noqa: E402

from lab.machine import Machine  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def converged() -> Machine:
    """The machine as converge left it, kept as the snapshot strict."""
    machine = Machine("engines")
    machine.save("strict")
    return machine


@pytest.fixture(scope="module")
def machine(converged: Machine) -> Machine:
    """The machine, back at the moment after converge."""
    converged.load("strict")
    return converged


@pytest.fixture
def playbooks(machine: Machine, tmp_path: Path) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory."""
    return Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], tmp_path, {})
