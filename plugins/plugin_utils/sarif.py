# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reasons of a run's hosts as a SARIF 2.1.0 log. Pure.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypedDict

from ..module_utils.host.printable import printable
from ..module_utils.policy.show.report import worst_first
from ..module_utils.rows import by_rank
from .as_text import Report

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: Rule of the result for a host's `error`.
ERROR = "error"
#: Verdict of a reason -> level of its result; `note` for any other verdict.
LEVELS = by_rank(("error", "drifted"), ("warning", "unverified"))
#: Names the fingerprint and the version of its input.
FINGERPRINT = "hostIdTargets/v1"
#: Syntax of links, and of placeholders with its literal form (3.11.6, 3.11.5).
_LINK = re.compile(r"\]\(")
_BRACES = str.maketrans({"{": "{{", "}": "}}"})


class _Result(TypedDict):
    ruleId: str
    level: str
    message: Mapping[str, str]
    locations: list[Mapping[str, object]]
    partialFingerprints: Mapping[str, str]


def render(reports: Iterable[Report]) -> str:
    """Return the log as JSON: one run, with a result for each reason and each error of the hosts, worst first."""
    ordered = printable(worst_first(reports))
    results = [each for number, report in enumerate(ordered) for each in _results(number, report)]
    versions = sorted({report["collection"] for report in ordered} - {""})
    driver = {
        "name": "durable.dbhost",
        **({"version": ", ".join(versions)} if versions else {}),
        "rules": [
            {"id": rule, "shortDescription": {"text": rule}}
            for rule in sorted({result["ruleId"] for result in results})
        ],
    }
    run = {
        "tool": {"driver": driver},
        "logicalLocations": [_named(report["host"]) for report in ordered],
        "results": results,
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return f"{json.dumps(log, indent=2)}\n"


def _results(number: int, report: Report) -> Iterator[_Result]:
    """Yield the results of a host; `number`: the host's place in the run's `logicalLocations`.

    The fingerprint of the second result with the same rule and targets differs from that of the first.
    """
    host = report["host"]
    count: Counter[str] = Counter()
    for rule, level, text, targets in _findings(report):
        key = json.dumps([host, rule, sorted(targets)])
        count[key] += 1
        fingerprint = hashlib.sha256(f"{key} {count[key]}".encode()).hexdigest()
        places = [_named(each, f"{host}:{each}", parentIndex=number) for each in targets]
        yield {
            "ruleId": rule,
            "level": level,
            "message": {"text": _literal(text)},
            "locations": [{"logicalLocations": [each]} for each in places or [_named(host, index=number)]],
            "partialFingerprints": {FINGERPRINT: fingerprint},
        }


def _findings(report: Report) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield (rule, level, text, targets) of a host's error, then of each reason."""
    if report["error"]:
        yield ERROR, "error", report["error"], []
    for each in report["reasons"]:
        text = f"{each['reason']}\nFix: {each['fix']}" if each["fix"] else each["reason"]
        yield each["id"], LEVELS.get(each["verdict"], "note"), text, each["targets"]


def _named(name: str, full: str = "", **more: int) -> Mapping[str, object]:
    """Return a logical location; `full`: its name with that of its parent, '' without a parent."""
    return {"name": name, "fullyQualifiedName": full or name, **more}


def _literal(text: str) -> str:
    """Return a text that viewers show without a link or a placeholder in it."""
    return _LINK.sub("] (", text).translate(_BRACES)
