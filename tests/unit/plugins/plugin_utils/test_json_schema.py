# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reading of plugins/plugin_utils/report.schema.json is jsonschema's, and what fits it can be shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import ups
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.history import with_history
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.page import render
from ansible_collections.durable.dbhost.plugins.module_utils.policy.show.report import details
from ansible_collections.durable.dbhost.plugins.plugin_utils import html, junit, sarif
from ansible_collections.durable.dbhost.plugins.plugin_utils.json_schema import misfits
from ansible_collections.durable.dbhost.plugins.plugin_utils.merge import schema
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import captured, reports
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.told_power import leased, power

#: One value of each kind, and what is nearly right.
OTHERS: tuple[Any, ...] = (None, 1, True, "x", "", [], {}, [1], ["x"], [{}], {"x": 1}, {"x": {}})


def paths(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value in another one."""
    yield where
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from paths(value[key], (*where, key))


def short(value: Any) -> Any:
    """Return a value with the first of each list alone: what is true of it is true of the others."""
    if isinstance(value, dict):
        return {key: short(inner) for key, inner in value.items()}
    return [short(inner) for inner in value[:1]] if isinstance(value, list) else value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a value with another one in one place."""
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = put(value[path[0]], path[1:], new)
    return copied


def every() -> Iterator[dict[str, Any]]:
    """Yield reports with something in each field."""
    found = [*reports(6), *captured(), *captured(False, None)]
    yield from found
    yield {**found[0], "power": ups.section(power(guard=leased("tight", "ONBATT")))}
    yield with_history(
        found[2], json.dumps({**found[3], "host": found[2]["host"], "time": "2026-01-30T12:00:00Z"})
    )


def spoilt() -> Iterator[Any]:
    """Yield reports with one value replaced, each place once."""
    seen = set()
    for each in every():
        report = short(json.loads(json.dumps(each)))
        assert list(misfits(schema(), report)) == []
        for path in paths(report):
            if path not in seen:
                seen.add(path)
                yield from (put(report, path, new) for new in OTHERS)


def test_it_reads_the_schema_as_the_reference_does_and_all_that_fits_can_be_shown() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="NOT RUN: jsonschema is not here")
    reference = jsonschema.Draft202012Validator(schema())
    count = {True: 0, False: 0}
    for report in spoilt():
        fits = next(misfits(schema(), report), None) is None
        assert fits == reference.is_valid(report)
        count[fits] += 1
        if fits:
            assert render([report])
            assert details([report])
            assert junit.render([report])
            assert sarif.render([report])
            assert html.render([report])
    assert min(count.values()) > 100


def test_a_keyword_that_is_not_known_is_no_keyword_that_is_passed_over() -> None:
    with pytest.raises(KeyError):
        list(misfits({"minimum": 3}, 1))


def test_a_misfit_says_where_what_was_seen_and_what_was_wanted() -> None:
    report = put(reports(1)[0], ("verdict",), "fine")
    (said,) = misfits(schema(), report)
    assert said.startswith("verdict: observed 'fine', expected one of at_risk, blocked")
