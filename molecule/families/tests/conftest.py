# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine at a time: each family's, from its first boot to its release."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule"), str(ROOT / "playbooks/collections")]

from support import stand_ins  # noqa: E402
from support.families import FAMILIES, Family  # noqa: E402
from support.runs import Playbooks  # noqa: E402

from lab.layout import load  # noqa: E402
from lab.machine import Machine  # noqa: E402

SCENARIO = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module", params=FAMILIES.values(), ids=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    """The family whose machine runs."""
    assert isinstance(request.param, Family)
    return request.param


@pytest.fixture(scope="module")
def machine(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The machine as its layout made it, with both stand-ins, and then as each test leaves it."""
    machine = Machine(family.name)
    machine.up(load(ROOT / f"lab/layouts/{family.name}.yml"), family.release)
    try:
        stand_ins.install(machine, tmp_path_factory.mktemp("stand_ins"))
        machine.run(["systemctl", "enable", "--quiet", "--now", *stand_ins.UNITS])
        yield machine
    finally:
        machine.down()


@pytest.fixture
def playbooks(machine: Machine, tmp_path: Path) -> Playbooks:
    """The collection's playbooks, with the scenario's own inventory."""
    inventories = [machine.inventory, SCENARIO / "inventory/hosts.yml"]
    return Playbooks(inventories, tmp_path, {}, limit=machine.name)
