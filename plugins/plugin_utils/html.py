# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a run for a browser: hosts by verdict, and the storage stack of each host. Pure."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from ..module_utils.catalog import is_engine
from ..module_utils.host.printable import name as shown
from ..module_utils.host.printable import printable
from ..module_utils.policy.expect.chosen_layers import GROUPS
from ..module_utils.policy.show.checklist import lines_of
from ..module_utils.policy.show.page import (
    Group,
    basis,
    by_remedy,
    groups,
    reasons,
)
from ..module_utils.policy.show.report import change_line, power_lines, worst_first
from ..module_utils.rows import VERDICTS, by_rank
from ..module_utils.ups import findings as of_power
from .as_text import Report

_TEMPLATE = "report.html.j2"
_FINDINGS = "https://github.com/durable-db/dbhost/blob/main/docs/findings.md"
#: Verdict of a host -> how loud it is drawn; what is not here is calm.
TONES = by_rank(
    ("bad", "at_risk"), ("poor", "unknown"), ("warn", "pending"), ("fair", "unverified"), ("good", "durable")
)
#: Tones, the loudest first; the last one is that of what nothing is known to be wrong with, and nothing verified.
_LOUDEST = ("bad", "poor", "warn", "fair", "good", "")
#: Findings of the power supply.
_OF_POWER = frozenset(kind.id for kind in of_power.KINDS)
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
    return {
        **report,
        "findings": reasons(report),
        **{
            key: [
                {**each, "link": _link(each["id"]), "targets": [*map(shown, each["targets"])]}
                for each in report[key]
            ]
            for key in ("reasons", "notes")
        },
        "lanes": list(_lanes(report)),
        "targets": _targets(report["settings"]),
        "lines": [(change["state"], change_line(change)) for change in report["changes"]],
        "answers": lines_of(report.get("checklist")),
        "power_lines": power_lines(report["power"]) if report["power"] else [],
        "search_text": " ".join(
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


class _Tones:
    """Tones of the parts of a host, by name: of the worst of a part's settings and of the findings that name it.

    Storage layers share the names of disks and mounts. Each engine has separate names, so a key has the engine.
    """

    def __init__(self, report: Report) -> None:
        accepted = {(each["finding"], each["target"]) for each in report["accepted"]}
        by_key: dict[str, list[_Setting]] = {}
        for row in report["settings"]:
            rows = by_key.setdefault(_key(row["layer"], row["target"]), [])
            rows += [row] if (row["finding"], row["target"]) not in accepted else []
        self._found = {key: [_tone(rows) or "fair"] for key, rows in by_key.items()}
        for _finding, target in accepted:
            # An accepted finding is not corrected.
            self._found.setdefault(target, []).append("fair")
        for each in report["reasons"]:
            kind, _dot, rest = each["id"].partition(".")
            layer = rest.partition(".")[0] if kind == "setting" else ""
            # A finding of a mount can be about a disk or layer below it.
            below = [name for value in each["observed"].values() for name in value.split(", ")]
            for name in {*(_key(layer, target) for target in each["targets"]), *below}:
                self._found.setdefault(name, []).append(TONES.get(each["verdict"], ""))

    def of(self, *names: str | None) -> str:
        """Return the tone of a part with these names."""
        return _worst(tone for name in names if name for tone in self._found.get(name, ()))

    def of_engine(self, engine: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> str:
        """Return the tone of an instance, with its databases and roles; `others`: all instances of the host."""
        kind, label = engine["engine"], _label(engine)
        labels = [_label(each) for each in others if each["engine"] == kind]
        of_nobody = (
            key
            for key in self._found
            if key.startswith(f"{kind} ") and not any(_is_of(key, each) for each in labels)
        )
        return self.of(engine["name"], *(key for key in self._found if _is_of(key, label)), *of_nobody)


def _key(layer: str, target: str) -> str:
    return f"{layer} {target}" if is_engine(layer) else target


def _label(engine: Mapping[str, Any]) -> str:
    return f"{engine['engine']} {engine['name']}"


def _is_of(key: str, label: str) -> bool:
    """Return whether a key is that of an instance, or of a setting, role or database of it."""
    return key == label or key.startswith(f"{label} ")


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


def _lanes(report: Report) -> Iterator[list[_Box]]:
    """Yield each managed mount as the boxes of its way: engines with their files, file system, layers, disks, power."""
    tones = _Tones(report)
    disks = {disk["name"]: disk for disk in report["stack"]["disks"]}
    may_lose = {each["target"] for each in report["mounts"] if each["judged"] == "accepted_loss"}
    for mount in report["stack"]["mounts"]:
        lane = [
            _engine(engine, mount["target"], tones.of_engine(engine, report["engines"]))
            for engine in report["engines"]
            if _uses(engine, mount)
        ]
        journal = [f"data={mount['data_mode']}"] if mount["data_mode"] != "none" else []
        tone = tones.of(mount["target"])
        lane.append(
            {
                "kind": "file system",
                "name": mount["target"],
                "lines": [str(mount["fstype"]), f"barriers {mount['barrier']}", *journal],
                "tone": tone,
            }
        )
        layers: list[_Box] = [
            {
                "kind": layer["type"],
                "name": layer["label"] or layer["name"],
                "lines": [layer["detail"]] if layer["detail"] else [],
                "tone": tones.of(layer["label"], layer["name"]),
            }
            for layer in mount["layers"]
        ]
        # A finding of the mount, such as a write hole, is one of a layer below it.
        lane += map(_not_good, layers) if tone in ("bad", "poor") else layers
        names = mount["disks"] if isinstance(mount["disks"], list) else []
        lane += [_disk(disks[name], tones.of(disks[name]["id"], name)) for name in names if name in disks]
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
        yield [_not_good(box) for box in lane] if mount["target"] in may_lose else lane


def _not_good(box: _Box) -> _Box:
    """Return a box that is not drawn as verified: it has the values of a profile, and commits can still be lost."""
    return {**box, "tone": "" if box["tone"] == "good" else box["tone"]}


def _uses(engine: Mapping[str, Any], mount: Mapping[str, Any]) -> bool:
    return any(row["mount"] == mount["target"] for row in engine["files"])


def _engine(engine: Mapping[str, Any], target: str, tone: str) -> _Box:
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
        "tone": tone,
    }


def _disk(disk: Mapping[str, Any], tone: str) -> _Box:
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
        "tone": tone,
    }


def _power(report: Report) -> _Box:
    power = report["power"]
    upses = [ups["system"] for ups in power["upses"]] if power else []
    guard = power["guard"]["state"] if power else ""
    lines = [f"guard {guard}"] if upses and guard else []
    rows = [row for row in report["settings"] if row["layer"] in GROUPS["power"]]
    found = [TONES.get(each["verdict"], "") for each in report["reasons"] if each["id"] in _OF_POWER]
    return {
        "kind": "power",
        "name": ", ".join(upses) or "no UPS known",
        "lines": lines,
        "tone": _worst((*found, _tone(rows), "bad" if guard == "failed" else "")),
    }
