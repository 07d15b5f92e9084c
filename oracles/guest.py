# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on the machine: the cases of one oracle, one seed after the other. Prints JSON.

python3 -m oracles.guest NAME FIRST_SEED COUNT SECONDS
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from oracles.contract import AGREED, DECLINED, DISAGREED, Answer, Case

#: Disagreements that are shown of each class.
MOST_SHOWN = 5


def ask(case: Case, seed: int) -> Answer:
    """Return what a case says for a seed. Whatever our reading raises is a disagreement."""
    try:
        return case(random.Random(seed))
    except Exception as error:
        return Answer(DISAGREED, f"raised {type(error).__name__}: {error}")


def run(case: Case, known: dict[str, str], first: int, count: int, seconds: float) -> dict[str, Any]:
    """Ask so many cases, or as many as the time allows; return the counts, and disagreements by class.

    `disagreements` is {class: {count, seen: [[seed, text]]}}; the class '' is of those that nobody named.
    """
    counts = dict.fromkeys((AGREED, DECLINED, DISAGREED), 0)
    found: dict[str, dict[str, Any]] = {}
    started = time.monotonic()
    for seed in range(first, first + count):
        if time.monotonic() - started > seconds:
            break
        answer = ask(case, seed)
        counts[answer.verdict] += 1
        if answer.verdict == DISAGREED:
            of_class = found.setdefault(
                answer.known if answer.known in known else "", {"count": 0, "seen": []}
            )
            of_class["count"] += 1
            of_class["seen"] += [[seed, answer.seen]][: MOST_SHOWN - len(of_class["seen"])]
    return {**counts, "disagreements": found, "known": known, "seconds": time.monotonic() - started}


def main(name: str, first: str, count: str, seconds: str) -> None:
    """Run one oracle in a directory of its own and print what came out."""
    oracle = importlib.import_module(f"oracles.{name}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)
        case = oracle.prepare(Path(directory))
        json.dump(run(case, oracle.KNOWN, int(first), int(count), float(seconds)), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
