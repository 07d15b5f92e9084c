# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of an oracle counts, and when it is well."""

from __future__ import annotations

import importlib
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from oracles import rig
from oracles.contract import Answer, agreed, compare, declined, disagreed
from oracles.guest import MOST_SHOWN, run

KNOWN = {"old": "the program is of yesterday"}


def one_of(*answers: Answer) -> Any:
    return lambda numbers: numbers.choice(answers)


def test_a_case_is_made_again_from_its_seed() -> None:
    drawn: list[float] = []

    def case(numbers: random.Random) -> Answer:
        drawn.append(numbers.random())
        return agreed

    run(case, {}, 7, 3, 60)
    run(case, {}, 8, 1, 60)
    assert drawn[3] == drawn[1]
    assert len(set(drawn)) == 3


def test_the_time_ends_a_run() -> None:
    assert run(one_of(agreed), {}, 0, 10, -1)["agreed"] == 0


def test_known_and_unknown_are_told_apart() -> None:
    answers = one_of(agreed, declined, disagreed("a", "old"), disagreed("b"), disagreed("c", "forgotten"))
    found = run(answers, KNOWN, 0, 500, 60)
    assert found["agreed"] + found["declined"] + found["disagreed"] == 500
    assert set(found["disagreements"]) == {"old", ""}
    assert len(found["disagreements"][""]["seen"]) == MOST_SHOWN
    assert sum(one["count"] for one in found["disagreements"].values()) == found["disagreed"]


def test_what_our_reading_raises_is_a_disagreement() -> None:
    def case(numbers: random.Random) -> Answer:
        raise KeyError("x")

    found = run(case, KNOWN, 3, 1, 60)
    assert found["disagreements"][""]["seen"] == [[3, "raised KeyError: 'x'"]]


def test_comparing() -> None:
    assert compare("a=1", 1, 1) == agreed
    assert compare("a=1", 1, 2, "old").known == "old"
    assert "theirs 2" in compare("a=1", 1, 2).seen


@pytest.mark.parametrize(
    ("answers", "well"),
    [
        ((agreed,), True),
        ((agreed, disagreed("x", "old")), True),
        ((agreed, disagreed("x")), False),
        # An oracle that can tell nothing has not agreed either.
        ((declined,), False),
    ],
)
def test_only_what_has_no_name_fails(answers: tuple[Answer, ...], well: bool) -> None:
    text, was_well = rig.report("some", run(one_of(*answers), KNOWN, 100, 50, 60))
    assert was_well is well
    assert ("SEED=1" in text) is (disagreed("x") in answers)
    assert ("the program is of yesterday" in text) is (disagreed("x", "old") in answers)


@pytest.mark.parametrize("scenario", rig.SCENARIOS)
def test_each_scenario_asks_its_oracles(scenario: str) -> None:
    tests = (rig.ROOT / f"molecule/{scenario}/tests/test_oracles.py").read_text()
    assert f'rig.SCENARIOS["{scenario}"]' in tests
    packages = yaml.safe_load((rig.ROOT / f"lab/layouts/{scenario}.yml").read_text())["packages"]
    assert set(packages) & set(yaml.safe_load((rig.ROOT / "oracles/layout.yml").read_text())["packages"])


@pytest.mark.parametrize("name", rig.NAMES)
def test_every_oracle_keeps_the_contract(name: str) -> None:
    oracle = importlib.import_module(f"oracles.{name}")
    assert callable(oracle.prepare)
    assert all(isinstance(why, str) and len(why) > 20 for why in oracle.KNOWN.values())


def test_every_module_that_makes_cases_is_asked() -> None:
    modules = {
        path.stem for path in Path(rig.ROOT / "oracles").glob("*.py") if "\ndef prepare(" in path.read_text()
    }
    assert modules == set(rig.NAMES)
