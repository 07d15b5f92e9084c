# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run in JUnit's format: a suite for each host, a case for its verdict and for each setting. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from ..module_utils.host.printable import name, printable
from ..module_utils.policy.show.report import worst_first
from .as_text import Report


def render(reports: Iterable[Report]) -> str:
    """Return the XML. A case fails as its host or setting does; what is unknown is an error, what is slow or accepted passes."""
    root = Element("testsuites", name="durable.dbhost")
    for report in printable(worst_first(reports)):
        suite = SubElement(root, "testsuite", name=report["host"], timestamp=report["time"].rstrip("Z"))
        why = "; ".join(filter(None, (report["error"], *report["why"][:1])))
        fails = report["fails"] or report["error"]
        _case(suite, "host", f"verdict {report['verdict']}", "failure" if fails else None, why)
        count: Counter[str] = Counter()
        for each in report["reasons"]:
            # Those of settings have their cases below, if the report has the settings.
            if report["settings"] and each["id"].startswith(("setting.", "boot.")):
                continue
            kind = "error" if each["verdict"] == "unknown" else "failure" if fails else None
            title = " ".join((each["id"], *map(name, each["targets"])))
            count[title] += 1
            number = f" ({count[title]})" if count[title] > 1 else ""
            _case(
                suite,
                "reason",
                f"{title}{number}",
                kind,
                "; ".join(filter(None, (each["reason"], each["fix"]))),
            )
        accepted = {(each["finding"], each["target"]) for each in report["accepted"]}
        for row in report["settings"]:
            is_accepted = (row["finding"], row["target"]) in accepted
            _case(
                suite,
                row["layer"],
                f"{name(row['target'])} {row['setting']}",
                None if is_accepted else _kind(row),
                f"{row['why']}; {row['remedy']}",
            )
        cases = list(suite)
        suite.set("tests", str(len(cases)))
        for kind in ("failure", "error"):
            suite.set(f"{kind}s", str(sum(case.find(kind) is not None for case in cases)))
    return f"{tostring(root, encoding='unicode', xml_declaration=True)}\n"


def _kind(row: Mapping[str, Any]) -> str | None:
    """Return what a setting's verdict is to JUnit."""
    if row["verdict"] in ("ok", "tightened") or row["class"] != "safety":
        return None
    return "error" if row["verdict"] == "unknown" else "failure"


def _case(suite: Element, part: str, title: str, kind: str | None, why: str) -> None:
    case = SubElement(suite, "testcase", classname=f"{suite.get('name')}.{part}", name=title)
    if kind:
        SubElement(case, kind, message=why)
