# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine for each kernel, as converge left it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from lab.machine import Machine  # noqa: E402

MACHINES = ("kernel510", "kernel61", "kernel612", "newest")


@pytest.fixture(scope="session", params=MACHINES)
def machine(request: pytest.FixtureRequest) -> Machine:
    """The machine, as converge left it: each test takes its own traces away."""
    return Machine(request.param)


@pytest.fixture(scope="session")
def kernel(machine: Machine) -> tuple[int, int]:
    """The version of its kernel: (6, 1) for 6.1."""
    found = re.match(r"(\d+)\.(\d+)", machine.run(["uname", "-r"]).stdout)
    assert found
    return int(found[1]), int(found[2])
