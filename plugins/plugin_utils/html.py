# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a run for a browser: the fleet by verdict, and each host as the stack that its commits go through. Pure."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from ..module_utils.host.printable import name as shown
from ..module_utils.host.printable import printable
from ..module_utils.policy.expect.chosen_layers import GROUPS
from ..module_utils.policy.show.page import (
    Group,
    basis,
    by_remedy,
    groups,
    reasons,
)
from ..module_utils.policy.show.report import change_line, power_lines, worst_first
from ..module_utils.rows import VERDICTS
from .as_text import Report

_TEMPLATE = "report.html.j2"
_FINDINGS = "https://github.com/durable-db/dbhost/blob/main/docs/findings.md"
#: Verdict of a host -> how loud it is drawn; what is not here is calm.
TONES = {
    **dict.fromkeys(("at_risk",), "bad"),
    **dict.fromkeys(("blocked", "unreachable", "unknown"), "poor"),
    **dict.fromkeys(("drifted", "pending"), "warn"),
    **dict.fromkeys(("attested", "durable"), "good"),
    **dict.fromkeys(("unverified",), "fair"),
}
#: Tones, the loudest first; the last one is that of what nothing is known to be wrong with, and nothing verified.
_LOUDEST = ("bad", "poor", "warn", "fair", "good", "")
#: Verdict of a setting -> its tone, worst first.
_SETTING_TONES = {
    "drift_running": "bad",
    "unknown": "poor",
    "drift_persisted": "warn",
    "pending": "warn",
    "tightened": "fair",
    "ok": "good",
}


#: A row of a report's `settings`.
_Setting = Mapping[str, Any]


class _Box(TypedDict):
    """One part of the way of a commit, as the page draws it."""

    kind: str
    name: str
    lines: list[str]
    tone: str


def render(reports: Iterable[Report], missing: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """Return the page, of the reports as the files have them; it needs no network and no other file."""
    ordered = printable(worst_first(reports))
    return _template().render(
        run=_run(ordered),
        hosts=[_host(report) for report in ordered],
        fleet=_fleet(ordered),
        groups=[_group(group) for group in groups(ordered)],
        engines=sorted({engine["engine"] for report in ordered for engine in report["engines"]}),
        changed=[report for report in ordered if _has_changed(report)],
        missing=printable(list(missing)),
        notes=printable(list(notes)),
        tones=TONES,
    )


@functools.lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(_TEMPLATE)


def _run(ordered: list[Report]) -> dict[str, str] | None:
    """Return what was done, when, and by which version: of reports that were merged, from the first to the last."""
    if not ordered:
        return None
    did = {"checked" if report["looked_only"] else "applied" for report in ordered}
    times = sorted({report["time"] for report in ordered})
    versions = sorted({report["collection"] for report in ordered} - {""})
    return {
        "did": " or ".join(sorted(did, reverse=True)),
        "time": " to ".join(dict.fromkeys((times[0], times[-1]))),
        "collection": ", ".join(versions),
    }


def _fleet(ordered: list[Report]) -> list[tuple[str, int]]:
    """Return (verdict, number of hosts), worst first."""
    count = Counter(report["verdict"] for report in ordered)
    return [(verdict, count[verdict]) for verdict in VERDICTS if count[verdict]]


def _group(group: Group) -> Mapping[str, object]:
    return {
        "verdict": group.verdict,
        "hosts": group.hosts,
        "by_remedy": by_remedy(group),
        "basis": basis(group),
    }


def _has_changed(report: Report) -> bool:
    since = report.get("since")
    return since is not None and (since["verdict"] != report["verdict"] or bool(since["settings"]))


def _host(report: Report) -> Mapping[str, object]:
    """Return a report with what the page draws of it."""
    by_target: dict[str, list[_Setting]] = {}
    for row in report["settings"]:
        by_target.setdefault(row["target"], []).append(row)
    tones = _tones(report, by_target)
    return {
        **report,
        "findings": reasons(report),
        **{
            key: [{**each, "link": _link(each["id"])} for each in report[key]] for key in ("reasons", "notes")
        },
        "lanes": list(_lanes(report, tones)),
        "targets": _targets(report["settings"]),
        "lines": [(change["state"], change_line(change)) for change in report["changes"]],
        "power_lines": power_lines(report["power"]) if report["power"] else [],
        "words": " ".join(
            [
                report["host"],
                str(report["profile"]),
                *(f"{e.get('product', e['engine'])} {e['version']}" for e in report["engines"]),
            ]
        ).lower(),
    }


def _link(finding: str) -> str:
    """Return where a finding is explained; an anchor of a heading has no dots."""
    return f"{_FINDINGS}#{''.join(finding.lower().split('.'))}"


def _tones(report: Report, by_target: dict[str, list[_Setting]]) -> dict[str, str]:
    """Return {target: the tone of the worst that was found of it}: of its settings, and of the host's other findings."""
    accepted = {(each["finding"], each["target"]) for each in report["accepted"]}
    left = {
        target: [row for row in rows if (row["finding"], target) not in accepted]
        for target, rows in by_target.items()
    }
    found = {target: [_tone(rows) or "fair"] for target, rows in left.items()}
    for each in report["reasons"]:
        for target in each["targets"]:
            found.setdefault(target, []).append(TONES.get(each["verdict"], ""))
    return {target: _worst(tones) for target, tones in found.items()}


def _targets(settings: Iterable[_Setting]) -> list[tuple[str, list[Mapping[str, object]]]]:
    """Return (heading, its rows). Layers of storage share the names of disks and mounts; other names are of one layer."""
    found: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for row in settings:
        layer = "" if row["layer"] in GROUPS["storage"] else row["layer"]
        found.setdefault((layer, row["target"]), []).append(_row(row))
    return [(f"{layer} {shown(target)}".lstrip(), rows) for (layer, target), rows in found.items()]


def _worst(tones: Iterable[str]) -> str:
    return min(tones, key=_LOUDEST.index, default="")


def _tone(rows: list[_Setting]) -> str:
    """Return the tone of the worst of some settings; one of speed alone is no trouble."""
    verdicts = {row["verdict"] for row in rows if row["class"] == "safety"}
    return next((tone for verdict, tone in _SETTING_TONES.items() if verdict in verdicts), "")


def _row(row: _Setting) -> Mapping[str, object]:
    """Return a setting with its evidence as text, each source once."""
    sides = [row["evidence"].get(side) or {} for side in ("running", "persisted")]
    texts = [each.get("source") for each in sides] + [each.get("reason") for each in sides]
    tone = _SETTING_TONES.get(row["verdict"], "")
    return {
        **row,
        "evidence": "; ".join(dict.fromkeys(str(each) for each in texts if each)),
        "tone": "warn" if row["class"] != "safety" and tone != "good" else tone,
    }


def _lanes(report: Report, tones: dict[str, str]) -> Iterator[list[_Box]]:
    """Yield each managed mount as the boxes of its way: engines with their files, file system, layers, disks, power."""
    disks = {disk["name"]: disk for disk in report["stack"]["disks"]}
    for mount in report["stack"]["mounts"]:
        lane = [
            _engine(engine, mount["target"], tones) for engine in report["engines"] if _uses(engine, mount)
        ]
        journal = [f"data={mount['data_mode']}"] if mount["data_mode"] != "none" else []
        lane.append(
            {
                "kind": "file system",
                "name": mount["target"],
                "lines": [str(mount["fstype"]), f"barriers {mount['barrier']}", *journal],
                "tone": tones.get(mount["target"], ""),
            }
        )
        lane += [
            {
                "kind": layer["type"],
                "name": layer["label"] or layer["name"],
                "lines": [layer["detail"]] if layer["detail"] else [],
                "tone": _worst(tones.get(name, "") for name in (layer["label"], layer["name"])),
            }
            for layer in mount["layers"]
        ]
        names = mount["disks"] if isinstance(mount["disks"], list) else []
        lane += [_disk(disks[name], tones) for name in names if name in disks]
        if not names:
            lane.append(
                {
                    "kind": "disk",
                    "name": "unknown",
                    "lines": ["the layers below are not understood"],
                    "tone": "poor",
                }
            )
        lane.append(_power(report))
        yield lane


def _uses(engine: Mapping[str, Any], mount: Mapping[str, Any]) -> bool:
    return any(row["mount"] == mount["target"] for row in engine["files"])


def _engine(engine: Mapping[str, Any], target: str, tones: dict[str, str]) -> _Box:
    places = sorted({row["directory"] for row in engine["files"] if row["mount"] == target})
    opened = sorted({row["opened"] for row in engine["files"] if row["mount"] == target})
    return {
        "kind": engine.get("product", engine["engine"]),
        "name": f"{engine['name']} {engine['version']}",
        "lines": [
            *places[:3],
            *(["..."] if len(places) > 3 else []),
            f"opened {', '.join(map(str, opened))}",
        ],
        "tone": _worst(
            tones.get(name, "") for name in (engine["name"], f"{engine['engine']} {engine['name']}")
        ),
    }


def _disk(disk: Mapping[str, Any], tones: dict[str, str]) -> _Box:
    cache = disk["write_cache"]
    return {
        "kind": " ".join(
            filter(None, (disk["transport"], "disk" if disk["kind"] == "physical" else disk["kind"]))
        ),
        "name": disk["name"],
        "lines": [
            *filter(None, (disk["model"], disk["id"])),
            f"cache {cache['device']}, kernel: {cache['kernel']}",
        ],
        "tone": _worst(tones.get(name, "") for name in (disk["id"] or "", disk["name"])),
    }


def _power(report: Report) -> _Box:
    power = report["power"]
    upses = [ups["system"] for ups in power["upses"]] if power else []
    guard = power["guard"]["state"] if power else ""
    lines = [f"guard {guard}"] if upses and guard else []
    return {
        "kind": "power",
        "name": ", ".join(upses) or "no UPS known",
        "lines": lines,
        "tone": "bad" if guard == "failed" else "",
    }
