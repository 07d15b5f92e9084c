# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report as numbers, in the text format of Prometheus. Pure."""

from __future__ import annotations

import calendar
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..host.printable import line
from ..rows import VERDICTS

_PREFIX = "durable_dbhost"
#: Name -> what it says; all of them are gauges. Times are in seconds since the epoch.
HELP = {
    "info": "1 for the collection that installed the watch, and the pinned profile.",
    "assessed_timestamp_seconds": "When the host was last collected.",
    "verdict": "1 for the host's verdict, 0 for each other one.",
    "failing": "Whether the verdict is one that fails.",
    "reasons": "Reasons for the verdict.",
    "reasons_by_id": "Reasons by host, id and verdict.",
    "settings": "Settings by layer, class and verdict.",
    "attestation_expires_timestamp_seconds": "The end of the last day on which an attestation holds.",
}
_DAY = 86400


def render(report: Mapping[str, Any], failing: bool, version: str) -> str:
    """Return the whole file; `version` is that of the collection."""
    lines = []
    for name, rows in _families(report, failing, version):
        lines += [f"# HELP {_PREFIX}_{name} {HELP[name]}", f"# TYPE {_PREFIX}_{name} gauge"]
        lines += [f"{_PREFIX}_{name}{_labels(labels)} {value}" for labels, value in rows]
    return "\n".join([*lines, ""])


_Rows = list[tuple[dict[str, str], int]]


def _families(report: Mapping[str, Any], failing: bool, version: str) -> Iterator[tuple[str, _Rows]]:
    profile = str(report["profile"] or "")
    yield "info", [({"version": line(version), "profile": profile}, 1)]
    yield "assessed_timestamp_seconds", [({}, _seconds(report["time"], "%Y-%m-%dT%H:%M:%SZ"))]
    yield (
        "verdict",
        [({"verdict": each, "profile": profile}, int(each == report["verdict"])) for each in VERDICTS],
    )
    yield "failing", [({}, int(failing))]
    yield "reasons", [({}, len(report["why"]))]
    # Unlike the assessment, the host's name has not passed through `printable`.
    host = line(report["host"])
    reasons = [{**each, "host": host} for each in report["reasons"]]
    yield "reasons_by_id", _counted(("host", "id", "verdict"), reasons)
    yield "settings", _counted(("layer", "class", "verdict"), report["settings"])
    # Of several of one claim and target the one that lasts longest counts, and node_exporter refuses equal labels.
    expires = {
        (each["claim"], each["target"]): _seconds(each["expires"], "%Y-%m-%d") + _DAY
        for each in sorted(report["attestations"], key=lambda each: str(each["expires"]))
    }
    yield (
        "attestation_expires_timestamp_seconds",
        [({"claim": claim, "target": target}, end) for (claim, target), end in expires.items()],
    )


def _counted(names: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> _Rows:
    """Return the number of rows for each combination of values of the fields `names`, which are the labels."""
    counts = Counter(tuple(row[name] for name in names) for row in rows)
    return [(dict(zip(names, key)), number) for key, number in sorted(counts.items())]


def _seconds(text: str, form: str) -> int:
    return calendar.timegm(time.strptime(text, form))


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    escaped = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(escaped)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
