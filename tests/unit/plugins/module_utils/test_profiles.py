# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles: what they may say, and that a wrong one is refused with what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.profiles import (
    VALUES,
    BadInput,
    Profile,
    choose,
    loosened_by,
    rank,
)

from .fakes.runs import OWN, PROFILES, shipped


def own(**changes: Any) -> dict[str, Any]:
    return {"ours": {**OWN, **changes}}


def test_the_shipped_ones_are_the_promised_ones() -> None:
    assert tuple(shipped()) == PROFILES
    chosen = {name: choose(name, shipped(), {}, {})[0] for name in PROFILES}
    assert {name: (p.write_cache, p.barrier, p.data_mode, p.rests_on) for name, p in chosen.items()} == {
        "strict": ("disabled", "on", "ordered", "device"),
        "flush": ("enabled", "on", "ordered", "flush"),
        "protected": ("enabled", "on", "ordered", "non_volatile_cache"),
        "ups": ("enabled", "on", "ordered", "ups"),
        "disposable": ("enabled", "off", "writeback", "nothing"),
    }
    assert [name for name, p in chosen.items() if not p.promises_durability] == ["disposable"]


def test_own_profile_and_override() -> None:
    profile, pinned = choose("ours", shipped(), own(), {"data_mode": "journal"})
    assert pinned == Profile(name="ours", **OWN)
    assert profile == pinned._replace(data_mode="journal")


@pytest.mark.parametrize(
    ("name", "profiles", "overrides", "message"),
    [
        ("strikt", {}, {}, "durable_profile: observed 'strikt'; expected one of disposable, .* pin one"),
        ("Strict", {}, {}, "durable_profile: observed 'Strict'"),
        (True, {}, {}, "durable_profile: observed True"),
        (["strict"], {}, {}, r"durable_profile: observed \['strict'\]"),
        ("", {}, {}, "durable_profile: observed ''"),
        ("strict", {"strict": OWN}, {}, "durable_profiles: observed strict, which this collection ships"),
        ("strict", [OWN], {}, "durable_profiles: observed .* expected a mapping"),
        ("ours", {"ours": "fast"}, {}, "profile ours: observed 'fast'; expected a mapping"),
        (
            "ours",
            {"ours": {"barrier": "on"}},
            {},
            "profile ours: observed no atime, data_mode, rests_on, summary, write_cache; expected atime, .*optional: engines",
        ),
        (
            "ours",
            own(scheduler="none", x=1),
            {},
            "profile ours: observed 'scheduler'; expected only atime, .*, optional: engines, scheduler_rotational",
        ),
        (
            "ours",
            own(barrier=True),
            {},
            "profile ours: barrier: observed the boolean True .* expected one of off, keep, on; write the value in quotes",
        ),
        (
            "ours",
            own(barrier="yes"),
            {},
            "profile ours: barrier: observed 'yes'; expected one of off, keep, on",
        ),
        (
            "ours",
            own(write_cache=None),
            {},
            "profile ours: write_cache: observed None; expected one of enabled, keep, disabled",
        ),
        ("ours", own(rests_on="hope"), {}, "profile ours: rests_on: observed 'hope'; expected one of device"),
        ("ours", own(rests_on=[]), {}, r"profile ours: rests_on: observed \[\]"),
        ("ours", own(rests_on="device"), {}, "rests_on 'device' says that no volatile cache is in use"),
        ("ours", own(barrier="off"), {}, "barrier 'off' breaks the guarantee of rests_on 'flush'"),
        ("ours", own(data_mode="writeback"), {}, "data_mode 'writeback' breaks the guarantee"),
        ("ours", own(engines="relaxed"), {}, "profile ours: engines 'relaxed' breaks the guarantee"),
        ("strict", {}, {"engines": "relaxed"}, "durable_overrides: engines 'relaxed' breaks the guarantee"),
        (
            "ours",
            own(barrier="off", write_cache="disabled", rests_on="nothing"),
            {},
            "profile ours: barrier 'off' with write_cache 'disabled' contradict",
        ),
        (
            "strict",
            {},
            {"barrier": "off"},
            "durable_overrides: barrier 'off' with write_cache 'disabled' contradict",
        ),
        (
            "disposable",
            {},
            {"write_cache": "disabled"},
            "durable_overrides: barrier 'off' with .* contradict",
        ),
        ("flush", {}, {"barrier": "off"}, "durable_overrides: barrier 'off' breaks the guarantee"),
        ("ours", own(barrier="off", rests_on="ups"), {}, "profile ours: barrier 'off' with rests_on 'ups'"),
        ("ups", {}, {"barrier": "off"}, "durable_overrides: barrier 'off' with rests_on 'ups'"),
        ("ups", {}, {"write_cache": "disabled"}, "write_cache 'disabled' with rests_on 'ups' contradict"),
        (
            "ours",
            own(write_cache="disabled", rests_on="ups"),
            {},
            "write_cache 'disabled' with rests_on 'ups'",
        ),
        ("flush", {}, {"barrier": False}, "durable_overrides: barrier: observed the boolean False"),
        (
            "flush",
            {},
            {"barriers": "on"},
            "durable_overrides: observed 'barriers'; expected one of write_cache",
        ),
        ("flush", {}, {"rests_on": "nothing"}, "durable_overrides: observed 'rests_on'"),
        ("flush", {}, {"atime": "nodiratime"}, "durable_overrides: atime: observed 'nodiratime'"),
        (
            "flush",
            {},
            "barrier=on",
            "durable_overrides: observed 'barrier=on'; expected a mapping of write_cache, barrier",
        ),
    ],
)
def test_bad_input_names_seen_wanted_and_what_to_do(
    name: Any, profiles: Any, overrides: Any, message: str
) -> None:
    with pytest.raises(BadInput) as caught:
        choose(name, shipped(), profiles, overrides)
    assert re.search(message, str(caught.value))


def test_no_error_of_a_profile_hides_another_nor_those_of_the_overrides() -> None:
    batch = {**OWN, "write_cache": True, "barrier": "yes", "rest_on": "flush"}
    del batch["rests_on"]
    with pytest.raises(BadInput) as caught:
        choose(
            "batch",
            shipped(),
            {"batch": batch, "strict": OWN},
            {"bariers": "on", "atime": "none", "readahead": 5},
        )
    starts = (
        "durable_profiles: observed strict, which this collection ships; expected a name of your own",
        "profile batch: observed no rests_on; expected atime",
        "profile batch: observed 'rest_on'; expected only atime",
        "profile batch: write_cache: observed the boolean True",
        "profile batch: barrier: observed 'yes'",
        "durable_overrides: observed 'bariers'",
        "durable_overrides: atime: observed 'none'",
        "durable_overrides: readahead: observed 5",
    )
    assert len(caught.value.errors) == len(starts)
    assert [said for said, start in zip(caught.value.errors, starts) if not said.startswith(start)] == []
    assert "Did you mean rests_on?" in caught.value.errors[2]


def test_a_variable_without_a_value_is_an_empty_one() -> None:
    assert choose("strict", shipped(), None, None) == choose("strict", shipped(), {}, {})


@pytest.mark.parametrize("word", ["on", "off", "yes", "no"])
def test_an_unquoted_word_of_yaml_is_refused(word: str) -> None:
    overrides = yaml.safe_load(f"{{barrier: {word}}}")
    with pytest.raises(BadInput, match="in quotes"):
        choose("flush", shipped(), {}, overrides)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ({"write_cache": "enabled"}, ["write_cache"]),
        ({"data_mode": "journal"}, []),
        ({"atime": "relatime"}, []),
        ({}, []),
    ],
)
def test_which_overrides_weaken_strict(override: dict[str, str], expected: list[str]) -> None:
    profile, pinned = choose("strict", shipped(), {}, override)
    assert loosened_by(profile, pinned) == expected


def test_rank_is_of_known_words_only() -> None:
    for setting, values in VALUES.items():
        assert [rank(setting, value) for value in values] == list(range(len(values)))
        with pytest.raises(ValueError, match="not in"):
            rank(setting, "unknown")


@pytest.mark.parametrize("value", ["keep", "short", -1, 0, 1, 60000])
def test_a_commit_delay_in_ms(value: Any) -> None:
    assert choose("strict", shipped(), {}, {"commit_delay": value})[0].commit_delay == value


@pytest.mark.parametrize("value", [-2, 60001, True, 1.0, "1", "long", None, [], {}])
def test_a_commit_delay_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match=r"commit_delay: observed .* expected 'keep', 'short', or ms"):
        choose("strict", shipped(), {}, {"commit_delay": value})
