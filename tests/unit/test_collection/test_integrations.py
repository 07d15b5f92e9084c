# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples for other programs use names and values of this collection; `make integrations` runs those programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.variable_names import INPUTS
from ansible_collections.durable.dbhost.plugins.module_utils.rows import FAIL_ON, VERDICTS
from ansible_collections.durable.dbhost.plugins.module_utils.watch import metrics
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import FORMATS

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs/integrations.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((EXAMPLES / "grafana/durable_dbhost.json").read_text())
SURVEY = json.loads((EXAMPLES / "awx/survey.json").read_text())
SCHEDULE = json.loads((EXAMPLES / "awx/schedule.json").read_text())
#: Of AWX's documentation: the types of a question, and of them those with choices.
TYPES = {"text", "textarea", "password", "integer", "float", "multiplechoice", "multiselect"}


def load(name: str) -> Any:
    """Return a YAML file of the examples."""
    return yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "directory", ["prometheus", "grafana", "eda", "awx", "ci", "execution-environment", "runner", "pull"]
)
def test_the_page_names_each_directory(directory: str) -> None:
    assert f"../examples/{directory}" in PAGE


def test_the_comparison_describes_the_move_from_each() -> None:
    text = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^## (\S+)\n+((?:(?!^## ).*\n)+)", text, re.M))
    assert list(parts) == ["storage", "postgresql", "microsoft.sql.server", "TuneD", "dev-sec"]
    assert all(re.search(r"\b([Dd]elete|[Rr]emove|unset)\b", part) for part in parts.values())
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\d) \| (\d) \|.*", parts["microsoft.sql.server"], re.M)
    assert rows == [("true", "on", "1", "0"), ("false", "off", "0", "0")]


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    for panel in DASHBOARD["panels"]:
        (target,) = panel["targets"]
        named = re.findall(r"durable_dbhost_(\w+)", target["expr"])
        assert named and set(named) <= set(metrics.HELP), panel["title"]
        assert set(re.findall(r"\$\{?(\w+)", json.dumps(panel))) <= names, panel["title"]
        assert panel["description"].endswith("."), panel["title"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_no_panels_overlap() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _y in cells) < 24


def test_the_survey_is_one_that_awx_accepts() -> None:
    assert {"name", "description", "spec"} <= set(SURVEY)
    for question in SURVEY["spec"]:
        assert question["type"] in TYPES and question["question_name"] and question["required"] is True
        assert re.fullmatch(r"\w+", question["variable"])
        if question["type"] == "multiselect":
            assert set(question["default"].split("\n")) <= set(question["choices"])
        else:
            assert question["min"] <= len(question["default"]) <= question["max"]


def test_the_survey_sets_inputs_of_a_play_and_no_permission() -> None:
    questions = {question["variable"]: question for question in SURVEY["spec"]}
    assert set(questions) == {"durable_hosts", "durable_serial", "durable_fail_on"} <= INPUTS
    assert tuple(questions["durable_fail_on"]["default"].split("\n")) == FAIL_ON
    assert set(questions["durable_fail_on"]["choices"]) == {*VERDICTS} - {"durable"}


def test_the_schedule_answers_the_survey() -> None:
    assert set(SCHEDULE["extra_data"]) == {question["variable"] for question in SURVEY["spec"]}
    assert tuple(SCHEDULE["extra_data"]["durable_fail_on"]) == FAIL_ON
    assert re.fullmatch(r"DTSTART;TZID=[\w/]+:\d{8}T\d{6} RRULE:FREQ=DAILY;INTERVAL=\d+", SCHEDULE["rrule"])


@pytest.mark.parametrize(
    ("name", "file"), [("gitlab-ci.yml", "report.xml"), ("github-drift.yml", "report.sarif")]
)
def test_a_pipeline_only_checks_and_stores_a_file_that_it_requests(name: str, file: str) -> None:
    text = (EXAMPLES / "ci" / name).read_text(encoding="utf-8")
    (command,) = re.findall(r"ansible-playbook .*\n.*--extra-vars '(.+)'", text)
    assert re.findall(r"ansible-playbook .*--check .*durable\.dbhost\.harden_db$", text, re.M)
    formats = json.loads(command)["durable_report_formats"]
    assert set(formats) <= set(FORMATS)
    assert {"report.xml": "junit", "report.sarif": "sarif"}[file] in formats
    assert f"durable-report/{file}" in text


def test_alertmanager_sends_alerts_that_there_are() -> None:
    (group,) = load("prometheus/durable_dbhost.rules.yml")["groups"]
    (route,) = load("eda/alertmanager.yml")["route"]["routes"]
    (matcher,) = route["matchers"]
    named = re.fullmatch(r'alertname =~ "(.+)"', matcher)
    assert named and set(named[1].split("|")) <= {rule["alert"] for rule in group["rules"]}
    # The rulebook reads this label of the group.
    assert route["group_by"] == ["instance"]


def test_an_alert_starts_a_check_and_nothing_else() -> None:
    (rule,) = load("eda/rulebook.yml")[0]["rules"]
    assert rule["action"]["run_playbook"]["name"] == "check.yml"
    (play,) = load("eda/check.yml")
    assert (play["check_mode"], play["roles"]) == (True, ["durable.dbhost.harden"])


@pytest.mark.parametrize(
    ("instance", "is_host"),
    [
        ("db1", True),
        ("db1.example.com:9100", True),
        ("10.0.0.1:9100", True),
        ("", False),
        ("all:!db1", False),
        ("db1,db2", False),
        ("*", False),
        ("{{ lookup('pipe', 'id') }}", False),
        ("-i /tmp/x", False),
    ],
)
def test_the_rulebook_takes_names_of_hosts_only(instance: str, is_host: bool) -> None:
    (rule,) = load("eda/rulebook.yml")[0]["rules"]
    pattern = re.search(r'match\("(.+)"\)', rule["condition"])
    assert pattern
    assert bool(re.match(pattern[1], instance)) is is_host
