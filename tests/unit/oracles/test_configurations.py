# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The random configurations of MariaDB and PostgreSQL: made again from their numbers, and of every kind."""

from __future__ import annotations

import random
from typing import Any

import pytest

from oracles import mariadb, postgresql


@pytest.mark.parametrize("oracle", [mariadb, postgresql])
def test_a_configuration_is_made_again_from_its_numbers(oracle: Any) -> None:
    made = [oracle.build(random.Random(seed), "/srv") for seed in range(200)]
    assert made == [oracle.build(random.Random(seed), "/srv") for seed in range(200)]
    assert len({str(one) for one in made}) == 200
    text = str(made)
    assert "{0}" not in text
    assert "include" in text
    assert any(one.arguments for one in made)
    assert all(name in text for name in oracle.NAMES)
