# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine for all tests; a test that asks for `strict` begins with it as converge left it, booted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from support.runs import Playbooks  # noqa: E402

from lab.machine import Machine  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]
#: The machine, in the inventory too.
NAME = "interrupted"


@pytest.fixture(scope="session")
def machine() -> Machine:
    """The machine, kept as converge left it in the snapshot strict."""
    found = Machine(NAME)
    found.save("strict")
    return found


@pytest.fixture
def strict(machine: Machine) -> Machine:
    """The machine as converge left it, booted."""
    machine.load("strict")
    return machine


@pytest.fixture
def playbooks(machine: Machine, tmp_path: Path) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory."""
    return Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], tmp_path, {})
