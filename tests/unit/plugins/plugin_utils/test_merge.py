# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of several runs as one fleet: nothing that is missing, old or spoilt passes for a host that is well."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.plugin_utils import merge as module
from ansible_collections.durable.dbhost.plugins.plugin_utils.merge import TIME, Fleet, merge
from ansible_collections.durable.dbhost.plugins.plugin_utils.output import Found
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes import fleet
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import NOW

ROOT = Path(__file__).resolve().parents[4]
MOMENT = datetime.strptime(NOW, TIME)


@pytest.fixture(name="reports", scope="module")
def one_of_each_kind() -> list[dict[str, Any]]:
    """Return reports of hosts db1 to db6."""
    return fleet.reports(6)


@pytest.fixture(name="well")
def one_that_is_well(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the report of a host that is well."""
    (found,) = (report for report in reports if report["verdict"] == "attested")
    assert found["fails"] is False
    return found


def text(report: Any, path: str = "/reports/db.json", **changed: Any) -> Found:
    """Return a report as a file."""
    return Found(path, json.dumps({**report, **changed}))


def hours_ago(hours: float) -> str:
    return (MOMENT - timedelta(hours=hours)).strftime(TIME)


def merged(*files: Found, expected: tuple[str, ...] = ("db4",), max_hours: float = 48) -> Fleet:
    return merge(files, expected, MOMENT, max_hours)


def only(found: Fleet) -> dict[str, Any]:
    (report,) = found.reports
    return report


def test_slices_make_the_fleet_of_one_run(reports: list[dict[str, Any]]) -> None:
    slices = [text(report, f"/{number % 2}/{report['host']}.json") for number, report in enumerate(reports)]
    found = merged(*slices, expected=tuple(report["host"] for report in reports))
    assert {report["host"]: report for report in found.reports} == {
        report["host"]: json.loads(json.dumps(report)) for report in reports
    }
    assert found.reports[0]["verdict"] == "at_risk"
    assert found.notes == ["merged from 6 reports"]


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (Found("/r/db9.json", "", "Permission denied"), "Permission denied"),
        (Found("/r/db9.json", '{"schema": 1'), "no JSON"),
        (Found("/r/db9.json", ""), "no JSON"),
        (Found("/r/db9.json", '{"schema": NaN}'), "no JSON"),
        (Found("/r/db9.json", "[]"), "all of it: observed [], expected object"),
        (Found("/r/db9.json", '{"schema": 1}'), "expected time, host"),
        (Found("/r/benchmark-db9.json", "[]"), "expected object"),
        (Found("/r/db9.json", '{"rows": []}'), "expected schema, time"),
    ],
)
def test_what_is_no_report_is_named_and_fails(spoilt: Found, said: str, well: dict[str, Any]) -> None:
    found = merged(text(well), spoilt, expected=(well["host"],))
    first, second = found.reports
    assert (first["host"], first["verdict"], first["fails"]) == (spoilt.path, "unknown", True)
    assert said in first["why"][0]
    assert (second["host"], second["verdict"]) == (well["host"], "attested")


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 1},
        {"schema": True},
        {"verdict": "fine"},
        {"fails": "no"},
        {"time": "today"},
        {"time": "2026-99-99T00:00:00Z"},
        {"settings": [{}]},
        {"host": 1},
        {"host": ""},
        {"stack": None},
    ],
    ids=str,
)
def test_a_report_of_another_schema_is_no_report(change: dict[str, Any], well: dict[str, Any]) -> None:
    report = only(merged(text(well, "/r/x.json", **change), expected=()))
    assert (report["host"], report["verdict"], report["fails"]) == ("/r/x.json", "unknown", True)
    assert next(iter(change)) in report["why"][0]


def test_a_report_that_a_host_made_of_itself_counts(well: dict[str, Any]) -> None:
    """docs/watch.md: without what a controller adds."""
    watched = {key: value for key, value in well.items() if key not in ("collection", "since")}
    report = only(merged(text(watched), expected=(well["host"],)))
    assert (report["verdict"], report["since"]) == ("attested", None)


def test_what_was_measured_is_passed_over(well: dict[str, Any]) -> None:
    measured = Found("/r/benchmark-db1.json", '{"host": "db1", "rows": []}')
    assert only(merged(text(well), measured, expected=()))["host"] == well["host"]


def test_a_capture_in_the_directory_is_no_report(well: dict[str, Any]) -> None:
    capture = Found("/r/capture-db1.json", '{"calls": {}, "schema": 3, "engines": null}')
    assert only(merged(text(well), capture, expected=()))["host"] == well["host"]
    named = merged(text(well, "/r/capture-1.json", host="capture-1"), expected=("capture-1",))
    assert only(named)["verdict"] == "attested"


def test_a_host_may_be_named_as_a_measurement(well: dict[str, Any]) -> None:
    found = merged(text(well, "/r/benchmark-1.json", host="benchmark-1"), expected=("benchmark-1",))
    assert only(found)["verdict"] == "attested"


def test_the_names_of_measurements_are_those_of_the_playbooks() -> None:
    written = set()
    for path in (ROOT / "playbooks").rglob("*.yml"):
        if "collections" not in path.relative_to(ROOT).parts:
            calls = path.read_text(encoding="utf-8").split("durable.dbhost.keep_report:")[1:]
            written |= {
                re.findall(r"name: (\S+)", call)[0] for call in calls if re.search(r"^ +json:", call, re.M)
            }
    assert written
    assert written <= set(module.MEASUREMENTS)


@pytest.mark.parametrize("worse_is", ["older", "newer"])
def test_the_newest_report_of_a_host_counts_and_it_is_said(worse_is: str, well: dict[str, Any]) -> None:
    ages = {"older": (3, 1), "newer": (1, 3)}[worse_is]
    bad = text(well, "/1/db.json", time=hours_ago(ages[0]), verdict="at_risk", fails=True)
    good = text(well, "/2/db.json", time=hours_ago(ages[1]))
    for files in ((bad, good), (good, bad)):
        found = merged(*files, expected=(well["host"],))
        assert only(found)["verdict"] == {"older": "attested", "newer": "at_risk"}[worse_is]
        assert f"{well['host']}: 2 reports; the newest counts, of {hours_ago(1)}" in found.notes


def test_of_two_reports_of_one_moment_the_worse_counts(well: dict[str, Any]) -> None:
    bad, good = text(well, verdict="drifted", fails=True), text(well)
    for files in ((bad, good), (good, bad)):
        assert only(merged(*files, expected=()))["verdict"] == "drifted"


def test_the_same_report_twice_is_one(well: dict[str, Any]) -> None:
    found = merged(text(well, "/1/db.json"), text(well, "/2/db.json"), expected=(well["host"],))
    assert only(found)["verdict"] == "attested"
    assert not any("newest counts" in note for note in found.notes)


@pytest.mark.parametrize(
    ("age", "verdict", "said"),
    [
        (47.9, "attested", ""),
        (48.1, "unknown", "hours ago"),
        (-0.9, "attested", ""),
        (-1.1, "unknown", "clock"),
    ],
)
def test_a_report_counts_for_so_long(age: float, verdict: str, said: str, well: dict[str, Any]) -> None:
    report = only(merged(text(well, time=hours_ago(age)), expected=()))
    assert (report["verdict"], report["fails"]) == (verdict, verdict != "attested")
    assert said in " ".join(report["why"])


def test_a_report_of_a_time_to_come_hides_no_later_one(well: dict[str, Any]) -> None:
    """It would be the newest for ever."""
    files = text(well, time="2099-01-01T00:00:00Z"), text(well, verdict="at_risk", fails=True)
    assert only(merged(*files, expected=()))["verdict"] == "unknown"


def test_a_host_without_a_report_is_unknown(well: dict[str, Any]) -> None:
    found = merged(text(well), expected=(well["host"], "db7"))
    assert [(report["host"], report["verdict"], report["fails"]) for report in found.reports] == [
        ("db7", "unknown", True),
        (well["host"], "attested", False),
    ]
    assert "no report of it" in found.reports[0]["why"][0]


def test_without_an_inventory_it_is_said_that_no_host_is_missed(well: dict[str, Any]) -> None:
    assert any("no inventory" in note for note in merged(text(well), expected=()).notes)
    assert not any("no inventory" in note for note in merged(text(well), expected=("db7",)).notes)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_several_machines_that_call_themselves_alike_are_no_host(host: str, well: dict[str, Any]) -> None:
    one = text(well, "/1/localhost.json", host=host)
    assert only(merged(one, expected=()))["verdict"] == "attested"
    found = only(merged(one, text(well, "/2/localhost.json", host=host, time=hours_ago(1)), expected=()))
    assert (found["verdict"], found["fails"]) == ("unknown", True)
    assert "a unique name" in found["why"][0]
