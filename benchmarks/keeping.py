# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of results: they are shown and kept, and those that are to be recorded go into the page too."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import lines
from benchmarks.rig import ROOT
from lab.errors import LabError

RESULTS = ROOT / "benchmarks/results"
#: The pages with tables of results.
DOCS = (ROOT / "docs/benchmarks.md", ROOT / "docs/evidence/benchmarks.md")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every benchmark has."""
    parser.add_argument("--release", default="bookworm")
    parser.add_argument("--record", action="store_true", help="write it to results/ and the pages in docs/")
    parser.add_argument("--show", type=Path, help="only show a result of before, or --record it")


def run(
    name: str,
    arguments: argparse.Namespace,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    tables: Callable[[dict[str, Any]], Mapping[str, str]],
) -> dict[str, Any] | None:
    """Measure, show and keep; return the result, None where it could not be measured.

    `tables`: {name of a place in the page: its text}.
    """
    try:
        result = json.loads(arguments.show.read_text()) if arguments.show else measure(arguments)
    except LabError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None
    kept = (RESULTS if arguments.record else ROOT / "tests/output") / f"{name}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(result, indent=1) + "\n")
    shown = tables(result)
    if arguments.record:
        for page in DOCS:
            page.write_text(lines.document(page.read_text(), shown))
    print("\n\n".join(f"{title}\n\n{text}" for title, text in shown.items()))
    print(f"\nall of it: {kept.relative_to(ROOT)}")
    return result
