# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of the report's parts, compared with the schema of the report and with the records that they describe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.policy import report_types
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.guard import Lease
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess.requirements import Requirement
from ansible_collections.durable.dbhost.plugins.module_utils.rows import Reason, Setting

SCHEMA = json.loads(
    (Path(__file__).parents[5] / "plugins/plugin_utils/report.schema.json").read_text(encoding="utf-8")
)


def fields(kind: Any) -> set[str]:
    return set(kind.__annotations__)


def of_schema(name: str) -> set[str]:
    """Return the fields that the schema has of a property of the report, or of each of its items."""
    found = SCHEMA["properties"][name]
    found = found.get("items", found)
    if "$ref" in found:
        found = SCHEMA["$defs"][found["$ref"].rpartition("/")[2]]
    return set(found["properties"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ReasonEntry", "reasons"),
        ("RequirementEntry", "requirements"),
        ("Row", "settings"),
        ("Pending", "pending"),
        ("MountEntry", "mounts"),
        ("Recommendation", "recommendation"),
        ("Since", "since"),
        ("Stack", "stack"),
    ],
)
def test_a_part_has_the_fields_of_the_schema(kind: str, name: str) -> None:
    assert fields(getattr(report_types, kind)) == of_schema(name)


def test_a_change_has_the_fields_of_the_schema_and_its_result() -> None:
    assert fields(report_types.Change) == of_schema("changes")
    assert fields(report_types.Outcome) == of_schema("changes") | {"state"}


def test_a_report_has_no_field_that_the_schema_lacks() -> None:
    # These two are inputs of `with_outcomes`, which removes them.
    assert fields(report_types.Report) - {"begun", "undone"} <= set(SCHEMA["properties"])


def test_the_types_have_the_fields_of_the_records_that_they_describe() -> None:
    assert fields(report_types.ReasonEntry) == set(Reason._fields)
    assert fields(report_types.RequirementEntry) == set(Requirement._fields)
    assert fields(report_types.LeaseTerms) == set(Lease._fields)
    assert fields(report_types.Row) - {"class"} == set(Setting._fields) - {"klass", "means"}
