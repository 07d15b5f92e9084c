# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two machines; a module names the one that it needs, and goes back to the moment after it was made if that is kept."""

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
def machine(request: pytest.FixtureRequest) -> Machine:
    """The machine that the module wants. One that cannot be frozen is left as it was by all tests."""
    made = Machine(request.module.MACHINE)
    if made.freezes:
        made.load(READY)
    return made


@pytest.fixture(scope="module")
def playbooks(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory of this machine."""
    inventories = [machine.inventory, SCENARIO / f"inventory/{machine.name}.yml"]
    return Playbooks(inventories, tmp_path_factory.mktemp("run"), {})
