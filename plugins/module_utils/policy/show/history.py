# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a host since its last report. Pure: the last one is a file of any form."""

from __future__ import annotations

from typing import Any

from ...host import json_text
from ...rows import VERDICTS
from .assessment import SCHEMA

_KEY = ("layer", "target", "setting")
_OBSERVED = ("running", "persisted", "verdict")


def with_history(report: dict[str, Any], earlier: str) -> dict[str, Any]:
    """Return a report with the changes since an earlier one in `since`, None without an earlier one.

    A report of the same run copies `since`: each batch of a play reports the earlier batches again.
    """
    last = _read(earlier, report["host"])
    if last is None:
        return {**report, "since": None}
    if last["time"] == report["time"]:
        return {**report, "since": last.get("since")}
    before, after = _rows(last), _rows(report)
    differs = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    settings = [{**dict(zip(_KEY, key)), "was": before.get(key), "now": after.get(key)} for key in differs]
    return {**report, "since": {"time": last["time"], "verdict": last["verdict"], "settings": settings}}


def _rows(report: dict[str, Any]) -> dict[tuple[str, ...], dict[str, str]]:
    return {
        tuple(str(row[name]) for name in _KEY): {name: row[name] for name in _OBSERVED}
        for row in report["settings"]
    }


def _read(text: str, host: str) -> dict[str, Any] | None:
    """Return an earlier report, None for a text that is no report of this host."""
    try:
        found = json_text.loads(text)
        # The compared parts have the same form in all versions.
        fits = (
            found["schema"] in range(1, SCHEMA + 1) and found["host"] == host and found["verdict"] in VERDICTS
        )
        _rows(found)
    except (ValueError, TypeError, KeyError):
        return None
    return found if fits and isinstance(found.get("time"), str) else None
