# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has changed since the last report, which is a file and may be anything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.history import with_history

from ...fakes.fleet import reports

EARLY, LATE = "2026-01-30T12:00:00Z", "2026-01-31T12:00:00Z"


def at(time: str, verdict: str, **given: Any) -> dict[str, Any]:
    """Return a report of that time, of the host db1."""
    (found,) = (each for each in reports(6) if each["verdict"] == verdict)
    return {**found, "host": "db1", "time": time, **given}


def test_a_first_report_has_nothing_before_it() -> None:
    assert with_history(at(LATE, "drifted"), "")["since"] is None


def test_the_same_again_is_no_difference() -> None:
    found = with_history(at(LATE, "drifted"), json.dumps(at(EARLY, "drifted")))
    assert found["since"] == {"time": EARLY, "verdict": "drifted", "settings": []}


def test_a_report_of_an_earlier_version_counts() -> None:
    found = with_history(at(LATE, "drifted"), json.dumps(at(EARLY, "attested", schema=1)))
    assert found["since"]["verdict"] == "attested"


def test_each_setting_that_is_otherwise_is_named_with_both_values() -> None:
    before = at(EARLY, "drifted")
    after = at(LATE, "drifted", settings=[dict(row) for row in before["settings"]])
    row = after["settings"][0]
    row.update(running="off", verdict="drift_running")
    gone = after["settings"].pop()
    since = with_history(after, json.dumps(before))["since"]
    by_key = {(each["target"], each["setting"]): each for each in since["settings"]}
    assert len(by_key) == 2
    changed = by_key[row["target"], row["setting"]]
    assert (changed["was"]["running"], changed["now"]["running"]) == ("on", "off")
    assert by_key[gone["target"], gone["setting"]]["now"] is None


def test_a_play_that_goes_on_in_batches_compares_with_the_run_before() -> None:
    first = with_history(at(LATE, "drifted"), json.dumps(at(EARLY, "attested")))
    again = with_history(at(LATE, "drifted"), json.dumps(first))
    assert again["since"]["verdict"] == "attested"
    assert again == first


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "{", "null", "17", '"x"', "[" * 100000, "{}"),
        json.dumps({"schema": 1, "host": "db1", "verdict": "fine", "settings": [], "time": EARLY}),
        json.dumps({"schema": 1, "host": "db2", "verdict": "durable", "settings": [], "time": EARLY}),
        json.dumps({"schema": 0, "host": "db1", "verdict": "durable", "settings": [], "time": EARLY}),
        json.dumps({"schema": 1, "host": "db1", "verdict": "durable", "settings": [1], "time": EARLY}),
        json.dumps({"schema": 1, "host": "db1", "verdict": "durable", "settings": None, "time": EARLY}),
        json.dumps({"schema": 1, "host": "db1", "verdict": ["durable"], "settings": [], "time": EARLY}),
        json.dumps({"schema": 1, "host": "db1", "verdict": "durable", "settings": [], "time": 7}),
        json.dumps({"schema": 1, "host": "db1", "verdict": "durable", "settings": []}),
    ],
    ids=range(15),
)
def test_what_is_no_report_of_this_host_is_none(text: str) -> None:
    assert with_history(at(LATE, "drifted"), text)["since"] is None
