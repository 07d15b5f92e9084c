# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine for all rows, kept as converge left it; the table of results, once every row has passed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from support import fault_table  # noqa: E402
from support.fault_runs import Faults  # noqa: E402
from support.faults import NAMES  # noqa: E402

from lab.machine import Machine  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]
#: The machine, in the inventory too.
NAME = "faults"


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Faults:
    """What plants faults on the machine."""
    machine = Machine(NAME)
    inventories = [machine.inventory, SCENARIO / "inventory/hosts.yml"]
    found = Faults(machine, inventories, tmp_path_factory.mktemp("faults"))
    found.repair()
    machine.save("strict")
    return found


@pytest.fixture(scope="session")
def results() -> Iterator[dict[str, tuple[str, ...]]]:
    """What the table has of each row that has passed. It is written when all have."""
    found: dict[str, tuple[str, ...]] = {}
    yield found
    if set(found) == set(NAMES):
        fault_table.write(fault_table.rendered(found, NAMES))
    print(f"{len(found)} of {len(NAMES)} rows have passed")
