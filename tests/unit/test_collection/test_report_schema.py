# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""plugins/plugin_utils/report.schema.json says what a report is: every report fits it, and it knows every field and word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.assessment import SCHEMA
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.history import with_history
from ansible_collections.durable.dbhost.plugins.module_utils.rows import VERDICTS
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import reports

pytestmark = pytest.mark.every_core_alike

jsonschema = pytest.importorskip("jsonschema", reason="NOT RUN: jsonschema is not here")

SCHEMA_FILE = json.loads(
    (Path(__file__).parents[3] / "plugins/plugin_utils/report.schema.json").read_text(encoding="utf-8")
)


#: Made once: jsonschema.validate() holds the schema itself against its own each time.
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA_FILE)


@pytest.fixture(name="fleet", scope="module")
def a_fleet() -> list[dict[str, Any]]:
    """Return reports of each kind, as they are written: of a check, of a run, and with what was before."""
    found = [*reports(6), *reports(6, looked_only=False)]
    earlier = {**found[2], "host": found[0]["host"], "time": "2026-01-30T12:00:00Z"}
    found.append(with_history(found[0], json.dumps(earlier)))
    assert found[-1]["since"]["settings"]
    return [json.loads(json.dumps(report)) for report in found]


def test_every_report_fits(fleet: list[dict[str, Any]]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA_FILE)
    for report in fleet:
        VALIDATOR.validate(report)


def test_every_field_is_needed_and_each_one_is_there(fleet: list[dict[str, Any]]) -> None:
    assert set(SCHEMA_FILE["required"]) == set(SCHEMA_FILE["properties"])
    for report in fleet:
        assert set(report) - {"steps"} == set(SCHEMA_FILE["required"])
        for field in SCHEMA_FILE["required"]:
            with pytest.raises(jsonschema.ValidationError):
                VALIDATOR.validate({key: report[key] for key in report if key != field})


def without_description(schema: Any, path: str = "") -> Iterator[str]:
    """Yield each property below a schema that says not what it is."""
    for name, inner in schema.items() if isinstance(schema, dict) else ():
        if name == "properties":
            yield from (f"{path}.{key}" for key, each in inner.items() if not each.get("description"))
        yield from without_description(inner, f"{path}.{name}")


def test_every_property_has_a_description() -> None:
    assert list(without_description(SCHEMA_FILE)) == []


def test_the_words_are_those_of_the_policy() -> None:
    assert tuple(SCHEMA_FILE["$defs"]["verdict"]["enum"]) == VERDICTS
    assert SCHEMA_FILE["properties"]["schema"]["const"] == SCHEMA


@pytest.mark.parametrize(
    ("field", "value"),
    [("verdict", "fine"), ("time", "today"), ("why", "text"), ("fails", "yes"), ("settings", [{}])],
)
def test_what_is_no_report_does_not_fit(field: str, value: Any, fleet: list[dict[str, Any]]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({**fleet[0], field: value})
