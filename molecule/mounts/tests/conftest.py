# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine for each Debian release, as converge left it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from support.runs import Playbooks  # noqa: E402

from lab.machine import Machine  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]
RELEASES = ("bullseye", "bookworm", "trixie")


@pytest.fixture(scope="session", params=RELEASES)
def machine(request: pytest.FixtureRequest) -> Machine:
    """The machine, as converge left it."""
    return Machine(request.param)


@pytest.fixture
def playbooks(machine: Machine, tmp_path: Path) -> Playbooks:
    """The collection's playbooks, for this one machine of the scenario."""
    found = Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], tmp_path, {})
    found.limit = machine.name
    return found
