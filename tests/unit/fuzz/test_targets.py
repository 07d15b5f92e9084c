# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The short part of `make fuzz`: every parser has a target, and holds a few hundred strange texts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import fuzz.targets
from fuzz import kept, limits, parsers
from fuzz.mutate import mutate, stretch
from fuzz.target import CORPUS, TARGETS
from fuzz.target import kept as kept_of

assert fuzz.targets
#: Inputs beside the corpus, and bytes that they have at most; and the size of the sample, of either, for targets that
#: collect a whole host with each input.
INPUTS, LONGEST = 200, 4096
OF_HOSTS = dict.fromkeys(("captured_host", "redacted_host"), 40)
#: One of so many is made long.
LONG = 20
#: Processor seconds of an input here: what takes 0.3 on an idle computer took more than one beside machines of the lab.
SECONDS = 10.0


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_parser_is_not_brought_down(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what earlier runs kept, and by what is made of it: the same in every run."""
    monkeypatch.setattr(limits, "SECONDS", SECONDS)
    target, chance = TARGETS[name], random.Random(name)
    corpus = target.corpus()
    made = []
    for _input in range(OF_HOSTS.get(name, INPUTS)):
        data = chance.choice(corpus)
        if chance.randrange(LONG):
            made.append(mutate(data, chance, corpus, LONGEST))
        else:
            made.append(stretch(data, chance, LONGEST))
    for data in [*chance.sample(corpus, min(len(corpus), OF_HOSTS.get(name, len(corpus)))), *made]:
        target.check(data)


def test_every_parser_has_a_target() -> None:
    assert not parsers.missed(TARGETS.values()), "expected a target in fuzz/targets that calls them"


def test_what_is_no_parser_is_there() -> None:
    for place in parsers.NOT_PARSERS:
        path, _colon, name = place.partition(":")
        assert f"def {name}(" in (parsers.SOURCES / path).read_text("utf-8")


@pytest.mark.parametrize(
    "head", ["parse_x(said: str)", "x(text: str)", "_x(page: bytes)", "x(said: bytes, n: int)"]
)
def test_a_new_parser_without_a_target_is_found(
    head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new.py").write_text(f"def {head}:\n    pass\n")
    monkeypatch.setattr(parsers, "SOURCES", tmp_path)
    (found,) = parsers.parsers()
    assert found == f"new.py:{head.partition('(')[0]}"


def test_the_corpus_is_small_and_of_targets() -> None:
    assert {path.stem for path in CORPUS.glob("*")} <= set(TARGETS)
    for name in TARGETS:
        inputs = kept_of(name)
        assert len(inputs) <= kept.MOST
        assert all(len(data) <= kept.LONGEST for data in inputs)
