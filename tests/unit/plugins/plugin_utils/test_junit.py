# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run as JUnit has tests: what is not right fails, what is unknown is an error, and nothing else is either."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from ansible_collections.durable.dbhost.plugins.plugin_utils.junit import render
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import reports


def suites(found: list[dict[str, Any]]) -> dict[str, ElementTree.Element]:
    """Return {host: its suite}."""
    root = ElementTree.fromstring(render(found))
    return {str(suite.get("name")): suite for suite in root.iter("testsuite")}


def test_each_setting_of_each_host_is_a_case() -> None:
    found = reports(6)
    told = suites(found)
    for report in found:
        suite = told[report["host"]]
        others = [each for each in report["reasons"] if not each["id"].startswith("setting.")]
        assert suite.get("tests") == str(len(report["settings"]) + len(others) + 1)
        wrong = [row for row in report["settings"] if row["class"] == "safety" and row["verdict"] != "ok"]
        unknown = [row for row in wrong if row["verdict"] == "unknown"]
        lost = [each for each in others if each["verdict"] == "unknown"]
        assert suite.get("errors") == str(len(unknown) + len(lost))
        failed = len(others) - len(lost) if report["fails"] else 0
        assert suite.get("failures") == str(len(wrong) - len(unknown) + report["fails"] + failed)


def test_a_failure_says_why_and_what_to_do() -> None:
    (found,) = (each for each in reports(6) if each["verdict"] == "at_risk")
    suite = suites([found])[found["host"]]
    (case,) = (each for each in suite if each.get("name") == "/srv/pgdata barrier")
    (failure,) = case
    assert "acknowledged commits can be lost; run harden_db" in str(failure.get("message"))
    (verdict,) = (each for each in suite if each.get("name") == "verdict at_risk")
    assert "mounted without barriers" in str(verdict[0].get("message"))
    (risk,) = (each for each in suite if str(each.get("name")).startswith("risk.barrier_off "))
    assert "mounted without barriers; run harden_db" in str(risk[0].get("message"))


def test_reasons_of_one_name_are_several_cases_and_those_of_settings_are_not_lost() -> None:
    (found,) = (each for each in reports(6) if each["verdict"] == "attested")
    kinds = ("unknown", "unknown", "setting.write_cache.write_cache")
    reasons = [
        {"id": kind, "verdict": "unknown", "reason": str(number), "fix": "", "targets": []}
        for number, kind in enumerate(kinds)
    ]
    suite = suites([{**found, "settings": [], "reasons": reasons}])[found["host"]]
    assert [case.get("name") for case in suite][1:] == [
        "unknown",
        "unknown (2)",
        "setting.write_cache.write_cache",
    ]
    assert suite.get("errors") == "3"


def test_a_setting_that_is_accepted_passes_and_no_other() -> None:
    (found,) = (each for each in reports(6) if each["verdict"] == "at_risk")
    row = {"finding": "setting.mount_options.barrier", "target": "/srv/pgdata"}
    before, after = (suites([{**found, "accepted": each}])[found["host"]] for each in ([], [row]))
    failed = [{str(case.get("name")) for case in suite if len(case)} for suite in (before, after)]
    assert failed[0] - failed[1] == {"/srv/pgdata barrier"}
    assert failed[1] <= failed[0]


def test_an_unknown_setting_is_an_error_and_a_hostile_name_is_a_name() -> None:
    (found,) = (each for each in reports(6) if each["verdict"] == "attested")
    row = {**found["settings"][0], "verdict": "unknown", "target": '"/><x a="\x00\ud800'}
    suite = suites([{**found, "host": "<a&b>", "settings": [row]}])["<a&b>"]
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert not list(suite.iter("x"))
