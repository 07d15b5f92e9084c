# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule's verify passes when it finds no tests: here that is a failure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = sorted(path.parent for path in ROOT.glob("molecule/*/molecule.yml"))


def test_there_is_a_scenario() -> None:
    assert SCENARIOS


@pytest.mark.parametrize(
    "config", [ROOT / ".config/molecule/config.yml", *(s / "molecule.yml" for s in SCENARIOS)]
)
def test_whoever_has_a_sequence_of_its_own_verifies(config: Path) -> None:
    text = config.read_text(encoding="utf-8")
    is_shared = config.name == "config.yml"
    assert re.search(r"^ +- verify$", text, re.M) or ("test_sequence" not in text and not is_shared)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.name)
def test_a_scenario_has_tests(scenario: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in scenario.glob("tests/test_*.py")]
    assert sum(len(re.findall(r"^ *def test_", text, re.M)) for text in texts) > 0
