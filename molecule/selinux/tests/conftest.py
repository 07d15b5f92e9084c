# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine for all tests, in the order in which they stand."""

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
def machine() -> Machine:
    """The machine as converge left it, and then as each test leaves it."""
    return Machine("selinux")


@pytest.fixture
def playbooks(machine: Machine, tmp_path: Path) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory."""
    return Playbooks([machine.inventory, SCENARIO / "inventory/hosts.yml"], tmp_path, {})
