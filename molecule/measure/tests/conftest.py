# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine for all tests; each module goes back to the moment after it was made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from support.runs import Playbooks  # noqa: E402

from lab.machine import Machine  # noqa: E402
from lab.prepared import READY  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def machine() -> Machine:
    """The machine, back at the moment after it was made."""
    made = Machine("measure")
    made.load(READY)
    return made


@pytest.fixture(scope="module")
def playbooks(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory."""
    inventories = [machine.inventory, SCENARIO / "inventory/hosts.yml"]
    return Playbooks(inventories, tmp_path_factory.mktemp("run"), {"ANSIBLE_PIPELINING": "true"})
