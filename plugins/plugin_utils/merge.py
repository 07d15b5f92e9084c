# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports of several runs as one fleet. A missing, outdated or malformed report makes its host unknown. Pure."""

from __future__ import annotations

import functools
import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from ..module_utils.host import json_text
from ..module_utils.policy import kinds
from ..module_utils.policy.expect.inputs import Inputs
from ..module_utils.policy.show.assessment import unobserved
from ..module_utils.policy.show.report import natural, with_outcomes, worst_first
from ..module_utils.policy.show.results import conclude
from ..module_utils.rows import VERDICTS
from .as_text import Report
from .json_schema import Schema, misfits
from .output import Found

#: How a report writes its time, UTC.
TIME = "%Y-%m-%dT%H:%M:%SZ"
#: What playbooks that measure write beside reports: NAME-HOST.json.
MEASUREMENTS = ("benchmark", "filesystems", "prove-fua", "pull-the-plug", "test-shutdown")
#: Names by which every machine calls itself.
_SELVES = ("localhost", "127.0.0.1", "::1")
#: How far the clocks of two machines may be apart.
_APART = timedelta(hours=1)
#: What a controller adds to a report: one that a host has made of itself is without.
_OF_CONTROLLER = {"collection": "", "since": None}
_SCHEMA_FILE = Path(__file__).with_name("report.schema.json")


class Fleet(NamedTuple):
    """Reports worst first, and the notes on all of them."""

    reports: list[Report]
    notes: list[str]


class _HostReport(NamedTuple):
    path: str
    report: Report
    time: datetime


def merge(files: Iterable[Found], expected: Sequence[str], now: datetime, max_hours: float) -> Fleet:
    """Return one report of each host.

    `files`: what lies where reports were collected; `expected`: hosts of which there must be one; `now`: UTC, without a
    zone; `max_hours`: the age of a report that still counts. Each file that is no report is a separate host, named as
    the file, whose verdict is `unknown`.
    """
    found_reports: dict[str, list[_HostReport]] = {}
    faults: list[Report] = []
    for file in files:
        found = _read(file)
        if isinstance(found, str):
            faults.append(_unknown(file.path, found, now))
        elif found is not None:
            found_reports.setdefault(found.report["host"], []).append(found)
    reports = [_of_host(host, each, now, max_hours) for host, each in found_reports.items()]
    absent = [
        _unknown(
            host,
            "no report of it: its run has not ended, or its report was not collected; see how its run went, and run"
            " it again",
            now,
        )
        for host in expected
        if host not in found_reports
    ]
    return Fleet(worst_first([*reports, *absent, *faults]), list(_notes(found_reports, expected)))


def _read(file: Found) -> _HostReport | str | None:
    """Return a report; why the file is none; None for measurements and captures, which have no verdict."""
    if file.fault:
        return f"no report: {file.fault}; make it readable, or remove the file"
    try:
        found = json_text.loads(file.text)
    except ValueError as error:
        return f"no report: no JSON ({error}); collect it again, or remove the file"
    name = posixpath.basename(file.path)
    if isinstance(found, dict):
        if ("schema" not in found and name.startswith(MEASUREMENTS)) or _is_capture(name, found):
            return None
        found = {**_OF_CONTROLLER, **found}
    wrong = next(misfits(schema(), found), "")
    if wrong:
        return (
            f"no report: {wrong}; run it again there with this version of the collection, or remove the file"
        )
    try:
        time = datetime.strptime(found["time"], TIME)
    except ValueError:
        return f"no report: time: observed {found['time']}, expected a date and time; remove the file"
    return _HostReport(file.path, found, time)


def _is_capture(name: str, found: Mapping[str, Any]) -> bool:
    """Return whether a file is a capture; a host may be called capture-1, and a report has no calls."""
    return name.startswith("capture-") and "calls" in found


def _of_host(host: str, reports: list[_HostReport], now: datetime, max_hours: float) -> Report:
    """Return the report of a host that counts: the newest, of one time the worst."""
    newest = max(reports, key=lambda each: (each.time, -VERDICTS.index(each.report["verdict"])))
    text = f"its newest report says {newest.report['verdict']}, of {newest.report['time']} ({newest.path})"
    if host in _SELVES and len(_times(reports)) > 1:
        return _unknown(
            host,
            f"{len(_times(reports))} reports, and every machine calls itself so; give each host a unique name in the"
            " inventory of its run",
            now,
        )
    if newest.time - now > _APART:
        return _unknown(
            host, f"{text}, which is still to come; set the clock of the machine that ran it", now
        )
    if now - newest.time > timedelta(hours=max_hours):
        return _unknown(host, f"{text}, more than {max_hours:g} hours ago; run it again", now)
    return newest.report


def _times(reports: list[_HostReport]) -> set[datetime]:
    return {each.time for each in reports}


def _notes(reports: dict[str, list[_HostReport]], expected: Sequence[str]) -> Iterable[str]:
    """Yield how the fleet was made, and of which hosts there were several reports."""
    count = sum(map(len, reports.values()))
    yield f"merged from {count} report{'s' * (count != 1)}"
    if not expected:
        yield "no inventory was given: a host without a report is not missed"
    for host in sorted(reports, key=natural):
        times = sorted(_times(reports[host]))
        if len(times) > 1:
            yield f"{host}: {len(times)} reports; the newest counts, of {times[-1].strftime(TIME)}"


def _unknown(host: str, why: str, now: datetime) -> Report:
    """Return the report of a host of which only a reason is known."""
    report = conclude([{"assessment": unobserved(Inputs(), kinds.NOT_MERGED.found(cause=why))}], {}, {}, True)
    of_run = {"time": now.strftime(TIME), "collection": "", "since": None}
    return {**with_outcomes({"host": host, **report}), **of_run}


@functools.lru_cache(maxsize=1)
def schema() -> Schema:
    """Return the JSON Schema of a report."""
    found: Schema = json.loads(_SCHEMA_FILE.read_text(encoding="utf-8"))
    return found
