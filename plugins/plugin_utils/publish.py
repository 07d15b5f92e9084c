# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run: its page on the terminal, and its files on the controller."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from urllib.parse import quote

from ..module_utils.policy.show.history import with_history
from ..module_utils.policy.show.page import render
from ..module_utils.policy.show.report import details
from . import html, junit, sarif
from .as_text import Report
from .output import keep, measured, refused, remove, rename, show, stored
from .variables import REPORT_DIR, Unreadable, Variables


def publish(
    inventory: Variables,
    reports: list[Report],
    missing: Sequence[str] = (),
    notes: Sequence[str] = (),
    of_hosts: bool = True,
) -> list[str]:
    """Show the page, write the files, and return the page's lines.

    `reports`: worst first; `missing` and `notes` as the page takes them; `of_hosts`: whether each report is also written to
    a separate file, and says what has changed since the one that was there. An earlier report that this run does
    not replace is renamed, so that it is not read as one of this run. The page is shown also where its files cannot be
    written. Raises AnsibleActionFail.
    """
    chosen = inventory.report_dir()
    formats = [name for name in inventory.report_formats() if of_hosts or name != "json"]
    directory = os.path.abspath(chosen) if chosen else ""
    where, failed = "", ""
    if directory:
        try:
            if of_hosts:
                # Without files of hosts this run renews none.
                renewed = [report["host"] for report in reports]
                for host in [*missing, *([] if "json" in formats else renewed)]:
                    rename(directory, _file(host), _stale(host))
                reports = [_since(directory, report) for report in reports]
            files = _write(directory, formats, reports, missing, notes)
            where = f"{directory}: {', '.join(files)}" if files else ""
        except OSError as error:
            failed = (
                f"durable_report_dir: {directory}: {error.strerror}; name a directory that this user may write,"
                " or '' for none"
            )
    page = render(reports, missing, [*([failed] if failed else []), *notes], where)
    show(page.splitlines())
    if failed:
        raise refused(failed)
    return page.splitlines()


def benchmark_of(inventory: Variables) -> str | None:
    """Return the text of a host's stored benchmark, '' without one, None if it cannot be read."""
    try:
        directory = str(inventory.get("durable_report_dir", REPORT_DIR))
        name = measured("benchmark", inventory.host, "json")
        return stored(os.path.abspath(directory), name) if directory else ""
    except (OSError, Unreadable):
        # It does not end the run: the report has a note.
        return None


def _file(host: str) -> str:
    return f"{quote(host, safe='')}.json"


def _stale(host: str) -> str:
    """Return the name of an earlier report of a host that the last run did not reach: it has no effect."""
    return f"{quote(host, safe='')}.stale"


def _since(directory: str, report: Report) -> Report:
    host = report["host"]
    return with_history(report, stored(directory, _file(host)) or stored(directory, _stale(host)))


def _write(
    directory: str,
    formats: list[str],
    reports: list[Report],
    missing: Sequence[str],
    notes: Sequence[str],
) -> list[str]:
    """Write the files, and return what they are called. Raises OSError."""
    whole: dict[str, tuple[str, Callable[[], str]]] = {
        "html": ("report.html", lambda: html.render(reports, missing, notes)),
        "text": ("report.txt", lambda: details(reports)),
        "junit": ("report.xml", lambda: junit.render(reports)),
        "sarif": ("report.sarif", lambda: sarif.render(reports)),
    }
    for report in reports if "json" in formats else ():
        text = json.dumps(report, indent=2, sort_keys=True, default=str)
        keep(directory, _file(report["host"]), f"{text}\n")
        remove(directory, _stale(report["host"]))
    chosen = [whole[each] for each in whole if each in formats]
    for name, render_it in chosen:
        keep(directory, name, render_it())
    hosts = [_file(report["host"]) for report in reports]
    each = hosts[0] if len(hosts) == 1 else "one .json for each host"
    return [*(name for name, _render in chosen), *([each] if hosts and "json" in formats else [])]
