# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The SARIF log has one result for each reason and error of each host, and only properties that SARIF 2.1.0 defines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.plugin_utils.json_schema import misfits
from ansible_collections.durable.dbhost.plugins.plugin_utils.sarif import FINGERPRINT, render
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fleet import captured, reports

TEXT = {"type": "string"}


def array(items: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", "items": items}


def record(required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object without other properties; `required`: names with a space between them."""
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": {"enum": []},
    }


#: What SARIF 2.1.0 requires, of the properties that are written. SARIF permits no property that it does not define.
PLACE = record(
    "name", name=TEXT, fullyQualifiedName=TEXT, index={"type": "number"}, parentIndex={"type": "number"}
)
MESSAGE = record("text", text=TEXT)
RESULT = record(
    "ruleId level message locations partialFingerprints",
    ruleId=TEXT,
    level={"enum": ["error", "warning", "note"]},
    message=MESSAGE,
    locations=array(record("logicalLocations", logicalLocations=array(PLACE))),
    partialFingerprints=record(FINGERPRINT, **{FINGERPRINT: {"type": "string", "pattern": "^[0-9a-f]{64}$"}}),
)
RULE = record("id", id=TEXT, shortDescription=MESSAGE)
DRIVER = record("name rules", name={"const": "durable.dbhost"}, version=TEXT, rules=array(RULE))
RUN = record(
    "tool results", tool=record("driver", driver=DRIVER), logicalLocations=array(PLACE), results=array(RESULT)
)
LOG = record("$schema version runs", **{"$schema": TEXT}, version={"const": "2.1.0"}, runs=array(RUN))


def run(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the only run of the log, which is valid."""
    log = json.loads(render(found))
    assert list(misfits(LOG, log)) == []
    (only,) = log["runs"]
    names = [rule["id"] for rule in only["tool"]["driver"]["rules"]]
    assert names == sorted({result["ruleId"] for result in only["results"]})
    for result in only["results"]:
        for location in result["locations"]:
            (place,) = location["logicalLocations"]
            # The host is in the list of the run; a target is in its host.
            host = only["logicalLocations"][place.get("parentIndex", place.get("index"))]
            full = f"{host['name']}:{place['name']}" if "parentIndex" in place else host["name"]
            assert place["fullyQualifiedName"] == full
    return dict(only)


def reason(kind: str = "risk.x", verdict: str = "at_risk", **changes: Any) -> dict[str, Any]:
    return {"id": kind, "verdict": verdict, "reason": "wrong", "fix": "", "targets": [], **changes}


def report(host: str = "db1", *reasons: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the report of a host with these reasons alone."""
    return {**reports(1)[0], "host": host, "error": None, "reasons": list(reasons), **changes}


def fingerprints(*found: dict[str, Any]) -> list[str]:
    return [each["partialFingerprints"][FINGERPRINT] for each in run(list(found))["results"]]


def texts(value: Any) -> Iterator[str]:
    """Yield each text in a value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


@pytest.mark.parametrize("found", [reports(6), captured(), captured(False, None)])
def test_each_reason_of_each_host_is_a_result(found: list[dict[str, Any]]) -> None:
    results = run(found)["results"]
    assert len(results) == sum(len(each["reasons"]) for each in found) > 0
    for each in found:
        mine = [
            result
            for result in results
            if result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].partition(":")[0]
            == each["host"]
        ]
        assert [result["ruleId"] for result in mine] == [wrong["id"] for wrong in each["reasons"]]
        for result, wrong in zip(mine, each["reasons"]):
            assert result["message"]["text"].partition("\n")[0] == wrong["reason"]
            named = [location["logicalLocations"][0]["name"] for location in result["locations"]]
            assert named == (wrong["targets"] or [each["host"]])
    prints = [result["partialFingerprints"][FINGERPRINT] for result in results]
    assert len(set(prints)) == len(prints)


def test_two_hosts_are_listed_worst_first_with_level_fix_and_version() -> None:
    wrong = reason(fix="run harden_db", targets=["/srv/pgdata", "sda"])
    later = reason("setting.x", "pending", reason="waits for a reboot")
    only = run(
        [
            report("db2", later, verdict="pending"),
            report("db10", wrong, reason("by_design", "attested"), verdict="at_risk", collection="9.8.7"),
        ]
    )
    assert only["tool"]["driver"]["version"] == f"{reports(1)[0]['collection']}, 9.8.7"
    assert [place["name"] for place in only["logicalLocations"]] == ["db10", "db2"]
    first, second, third = only["results"]
    assert [each["level"] for each in only["results"]] == ["error", "note", "warning"]
    assert first["message"]["text"] == "wrong\nFix: run harden_db"
    assert third["message"]["text"] == "waits for a reboot"
    assert [place["logicalLocations"][0]["fullyQualifiedName"] for place in first["locations"]] == [
        "db10:/srv/pgdata",
        "db10:sda",
    ]
    assert second["locations"] == [
        {"logicalLocations": [{"name": "db10", "fullyQualifiedName": "db10", "index": 0}]}
    ]
    assert third["locations"][0]["logicalLocations"][0]["index"] == 1


def test_no_host_is_a_run_without_results() -> None:
    only = run([])
    assert only == {
        "tool": {"driver": {"name": "durable.dbhost", "rules": []}},
        "logicalLocations": [],
        "results": [],
    }


def test_an_error_without_reasons_is_a_result() -> None:
    (result,) = run([report("db1", error="apply: no answer")])["results"]
    assert (result["ruleId"], result["level"]) == ("error", "error")
    assert result["message"]["text"] == "apply: no answer"
    assert result["locations"][0]["logicalLocations"][0]["name"] == "db1"


def test_an_error_comes_before_the_reasons() -> None:
    results = run([report("db1", reason(), error="apply: no answer")])["results"]
    assert [each["ruleId"] for each in results] == ["error", "risk.x"]


def test_hostile_text_adds_no_line_no_link_and_no_placeholder() -> None:
    bad = "a\nFix: rm -rf /\x1b[2J\u202e\ud800\"}]'{0}[here](http://x)\\[b\\](http://y)"
    only = run([report(bad, reason(reason=bad, fix=bad, targets=[bad]), error=bad), report("db1", reason())])
    for text in texts(only):
        lines = text.split("\n")
        assert all(line.isprintable() for line in lines)
    error, wrong, _other = only["results"]
    assert "\n" not in error["message"]["text"]
    _reason, fix = wrong["message"]["text"].split("\n")
    assert fix.startswith("Fix: a\\nFix: rm -rf /")
    for result in (error, wrong):
        assert "](" not in result["message"]["text"]
        assert "{0}" not in result["message"]["text"].replace("{{", "").replace("}}", "")
        assert result["message"]["text"].count("{{0}}") == result["message"]["text"].count("{0}") > 0
    assert "\n" not in wrong["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]


def test_a_fingerprint_is_that_of_host_id_and_targets() -> None:
    (mine,) = fingerprints(report("db1", reason(targets=["sda", "sdb"])))
    (later,) = fingerprints(
        report("db1", reason(verdict="drifted", reason="other", fix="other", targets=["sdb", "sda"]))
    )
    assert later == mine
    others = fingerprints(
        report("db2", reason(targets=["sda", "sdb"])),
        report("db1", reason("risk.y", targets=["sda", "sdb"]), reason(targets=["sda"])),
    )
    assert len({mine, *others}) == 4


def test_two_reasons_with_the_same_id_and_targets_have_two_fingerprints() -> None:
    both = fingerprints(report("db1", reason(), reason(reason="other")))
    assert len(set(both)) == 2
    assert fingerprints(report("db1", reason())) == both[:1]
