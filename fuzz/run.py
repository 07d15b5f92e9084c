# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run targets one after the other, each in a process of its own, and say what came of it."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import fuzz.targets
from fuzz import ROOT, kept
from fuzz.target import TARGETS, Target, keep

assert fuzz.targets
OUTPUT = ROOT / "tests/output/fuzz"
#: Bytes of an input, and of a long one: enough for what grows with the square of a length to show within a second.
_MOST, LONGEST = 4096, 64 * 1024
#: How the file of an input begins that brought a target down.
FOUND = "found-"
#: Behind the bounds of one input, for a call into C that never comes back, or takes all memory.
_HANGS, _MOST_MIB = 60, 2048
_RUNS = re.compile(r"stat::number_of_executed_units: (\d+)")
_COVERED = re.compile(r"cov: (\d+)")


class Outcome(NamedTuple):
    """What came of a target: how many inputs were tried, branches reached, the input that brought it down, its exit code."""

    target: Target
    runs: int
    branches: int
    found: Path | None
    code: int

    @property
    def is_well(self) -> bool:
        """Whether inputs were tried up to the end. One that ended otherwise may have left no input: killed, or broken itself."""
        return not self.found and self.runs > 0 and self.code == 0

    def line(self) -> str:
        """Return it in one line."""
        said = f"{self.target.name}: {self.runs} inputs, {self.branches} branches"
        if self.found:
            return f"{said}; BROUGHT DOWN by {self.found.relative_to(ROOT)}"
        if self.is_well:
            return f"{said}; ok"
        return f"{said}; ENDED with exit code {self.code}: see {_log_of(self.target).relative_to(ROOT)}"


def main(argv: Sequence[str]) -> int:
    """Run what is asked for; return 1 where an input brought a parser down, or a target did not come to its end."""
    arguments = _parser().parse_args(argv)
    chosen = [TARGETS[name] for name in arguments.targets or TARGETS]
    if arguments.input:
        for target in chosen:
            target.check(arguments.input.read_bytes())
        return 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = []
        for outcome in pool.map(lambda target: fuzz_one(target, arguments.minutes * 60), chosen):
            outcomes.append(outcome)
            print(f"[{len(outcomes)}/{len(chosen)}] {outcome.line()}", flush=True)
    if arguments.keep:
        for outcome in outcomes:
            inputs = [path.read_bytes() for path in _corpus_of(outcome.target).iterdir()]
            keep(outcome.target.name, kept.choose(outcome.target, inputs))
    down = [outcome for outcome in outcomes if outcome.found]
    print(
        f"{sum(outcome.runs for outcome in outcomes)} inputs, {len(down)} of {len(chosen)} targets brought down"
    )
    for outcome in down:
        print(f"again: {sys.executable} -m fuzz {outcome.target.name} --input {outcome.found}")
    return 0 if all(outcome.is_well for outcome in outcomes) else 1


def fuzz_one(target: Target, seconds: float) -> Outcome:
    """Run one target for some seconds, or until an input brings it down."""
    directory = directory_of(target)
    shutil.rmtree(directory, ignore_errors=True)
    corpus = _corpus_of(target)
    corpus.mkdir(parents=True)
    for number, data in enumerate(target.corpus()):
        (corpus / f"seed-{number}").write_bytes(data)
    options = [
        *(f"-max_total_time={seconds:.0f}", f"-max_len={_MOST}", f"-artifact_prefix={directory}/{FOUND}"),
        *(f"-timeout={_HANGS}", f"-rss_limit_mb={_MOST_MIB}", "-print_final_stats=1"),
    ]
    with _log_of(target).open("wb") as file:
        ended = subprocess.run(
            [sys.executable, "-m", "fuzz.instrumented", target.name, *options, str(corpus)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    said = _log_of(target).read_text(errors="replace")
    runs, branches = _RUNS.search(said), _COVERED.findall(said)
    found = sorted(directory.glob(f"{FOUND}*"))
    return Outcome(
        target,
        int(runs[1]) if runs else 0,
        int(branches[-1]) if branches else 0,
        found[0] if found else None,
        ended.returncode,
    )


def directory_of(target: Target) -> Path:
    """Return where the log, the corpus and the input lie that a run of a target leaves."""
    return OUTPUT / target.name


def _log_of(target: Target) -> Path:
    return directory_of(target) / "log"


def _corpus_of(target: Target) -> Path:
    return directory_of(target) / "corpus"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzz", description="Every parser against texts that nobody wrote.")
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", choices=[[], *TARGETS], help="all without one"
    )
    parser.add_argument("--minutes", type=float, default=5, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument(
        "--keep", action="store_true", help="keep the inputs that take new ways, in fuzz/corpus"
    )
    parser.add_argument("--input", type=Path, help="only parse this file, and show what is raised")
    return parser
