# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watch's program: collects, assesses and reports as a run does, without a controller.

    watch.pyz

Looks once; the report goes to a file, one line to the journal, and numbers to node_exporter's textfile collector where that
is wanted. Exit code 2 if the verdict is one that fails, 1 if nothing could be read. Changes nothing else.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time

from ..host import our_paths
from ..host.printable import line, printable
from ..host.seam import ChangeFailed, Host, Unobservable, expect_root
from ..host_facts import collect
from ..policy.show import report, results
from ..undo import installed
from . import metrics, orders

#: Priorities of the journal, as sd-daemon(3) has them.
_ERROR, _INFO = "<3>", "<6>"


def main() -> int:
    """Look once; return the exit code."""
    os.umask(0o022)
    host = Host()
    try:
        expect_root(host)
        return run_once(host, platform.node(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    except (ChangeFailed, Unobservable) as error:
        sys.stdout.write(f"{_ERROR}{line(str(error))}\n")
        return 1


def run_once(host: Host, name: str, now: str) -> int:
    """Look once, and tell; return the exit code. `now` is the host's UTC time in ISO 8601.

    Raises Unobservable and ChangeFailed.
    """
    given = orders.read(host)
    answer = collect(host, now, **results.question(given.inputs))
    found = results.assess_answer(
        given.inputs, now, {"ansible_facts": answer.facts, "failures": answer.failures}
    )
    switch = printable(installed.switch_of(host)._asdict())
    conclusion = results.conclude([{"assessment": printable(found), "switch": switch}], {}, {}, True)
    whole = report.with_outcomes({"host": name, "time": now, **conclusion})
    text = json.dumps(whole, indent=2, sort_keys=True)
    host.write_file(our_paths.WATCH_REPORT, f"{text}\n".encode(), 0o640)
    failed = results.failure(whole)
    if given.metrics:
        orders.write_metrics(host, given.metrics, metrics.render(whole, failed is not None, given.version))
    sys.stdout.write(
        f"{_ERROR}{line(name)} is {line(failed)}\n"
        if failed
        else f"{_INFO}{line(name)} is {line(str(whole['verdict']))}\n"
    )
    return 2 if failed else 0
