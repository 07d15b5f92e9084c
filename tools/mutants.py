# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change one thing of the sources at a time, in a copy, and see a test fail.

The mutants are data, in `mutants.yml` next to this file. One that no test notices has survived: then a test is
missing, or its entry says in `survives` why no test can be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import yaml
from venvs import ROOT

LIST = ROOT / "tools/mutants.yml"
#: Where paths of sources and of tests begin.
SOURCES, TESTS = "plugins/module_utils", "tests/unit/plugins/module_utils"
#: What no test of a mutant reads.
_LEFT_OUT = ("docs/evidence/", "molecule/", "proof/", "benchmarks/", "oracles/")
#: Of all mutants at most these may survive, each with its reason.
MOST_SURVIVE = 0.03
#: Seconds for the tests of one mutant: some never end.
_LIMIT = 600
_FAILED, _PASSED, _ENDLESS = 1, 0, 124
_WORDS = {_PASSED: "survived", _FAILED: "killed  ", _ENDLESS: "no end  "}


class Wrong(Exception):
    """The list cannot be used as it is."""


class Mutant(NamedTuple):
    """One change: in `file`, `old` becomes `new`, and one of `tests` is to fail. `survives`: why none does."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str = ""


def read(path: Path = LIST) -> list[Mutant]:
    """Return the mutants of a file. Raises Wrong for one that is incomplete, or named like another."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = [_mutant(row, document["tests"]) for row in document["mutants"]]
    names = [mutant.name for mutant in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Wrong(f"{path.name}: observed twice: {', '.join(twice)}")
    return found


def _mutant(row: dict[str, Any], tests: dict[str, list[str]]) -> Mutant:
    extra = set(row) - set(Mutant._fields)
    missing = {"name", "file", "old", "new"} - set(row)
    chosen = row.get("tests", tests.get(row.get("file", "")))
    if extra or missing or not chosen:
        raise Wrong(
            f"{row.get('name', row)}: not known {sorted(extra)}, missing {sorted(missing)}, tests {chosen}"
        )
    return Mutant(**{**row, "tests": tuple(chosen)})


def mutated(mutant: Mutant, text: str) -> str:
    """Return a source with the change. Raises Wrong unless its old text is there exactly once."""
    count = text.count(mutant.old)
    if count != 1 or mutant.old == mutant.new:
        raise Wrong(
            f"{mutant.name}: its old text is {count} times in {mutant.file}; expected once, and another new one"
        )
    return text.replace(mutant.old, mutant.new)


def copy_checkout(target: Path) -> None:
    """Copy the files that git knows, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith(_LEFT_OUT) and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)


def run_tests(checkout: Path, tests: tuple[str, ...]) -> int:
    """Return the exit code of tests in a copy, up to the first that fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    paths = [f"{TESTS}/{test}" for test in tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(
            [*command, *paths],
            cwd=checkout,
            env=environment,
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _ENDLESS  # What never ends is noticed; on a busy machine look again.
    return ended.returncode


def survivors(mutants: list[Mutant], checkouts: list[Path]) -> Iterator[Mutant]:
    """Try each mutant in one of the copies, tell of it, and yield those that no test notices. Raises Wrong."""
    free: Queue[Path] = Queue()
    for checkout in checkouts:
        free.put(checkout)

    def tried(mutant: Mutant | None, tests: tuple[str, ...]) -> int:
        checkout = free.get()
        try:
            return run_tests(checkout, tests) if mutant is None else _try(mutant, checkout)
        finally:
            free.put(checkout)

    with ThreadPoolExecutor(len(checkouts)) as pool:
        try:
            every = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
            alone = [(test,) for test in every]
            for test, code in zip(every, pool.map(tried, [None] * len(every), alone), strict=True):
                if code == _ENDLESS:
                    raise Wrong(f"{test}: no end after {_LIMIT} s without any mutant; is the machine busy?")
                if code != _PASSED:
                    raise Wrong(f"{test}: fails without any mutant; fix that first")
            codes = pool.map(tried, mutants, [mutant.tests for mutant in mutants])
            for number, (mutant, code) in enumerate(zip(mutants, codes, strict=True), 1):
                if code not in _WORDS:
                    raise Wrong(f"{mutant.name}: the tests ended with {code}: it breaks more than it changes")
                print(f"{number:3}/{len(mutants)} {_WORDS[code]} {mutant.name}", flush=True)
                if code == _PASSED:
                    yield mutant
        finally:
            pool.shutdown(cancel_futures=True)


def _try(mutant: Mutant, checkout: Path) -> int:
    source = checkout / SOURCES / mutant.file
    before = source.read_text(encoding="utf-8")
    source.write_text(mutated(mutant, before), encoding="utf-8")
    try:
        return run_tests(checkout, mutant.tests)
    finally:
        source.write_text(before, encoding="utf-8")


def judge(mutants: list[Mutant], alive: list[Mutant]) -> list[str]:
    """Return what is wrong with the outcome, one line each."""
    wrong = [f"survived: {mutant.name} ({mutant.file})" for mutant in alive if not mutant.survives]
    wrong += [
        f"killed by now, remove its reason: {mutant.name}"
        for mutant in mutants
        if mutant.survives and mutant not in alive
    ]
    if len(alive) > MOST_SURVIVE * len(mutants):
        wrong.append(f"{len(alive)} of {len(mutants)} survive; expected at most {MOST_SURVIVE:.0%}")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants whose name or file has a word in it; all without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="a part of a mutant's name or file")
    chosen = parser.parse_args(arguments).word
    try:
        mutants = [mutant for mutant in read() if chosen in f"{mutant.name} {mutant.file}"]
        for mutant in mutants:
            mutated(mutant, (ROOT / SOURCES / mutant.file).read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
            # One for each processor: a copy has one mutant at a time.
            copies = [Path(scratch) / str(number) for number in range(os.cpu_count() or 1)]
            for copy in copies:
                copy_checkout(copy)
            alive = list(survivors(mutants, copies))
    except Wrong as error:
        print(error, file=sys.stderr)
        return 2
    for mutant in alive:
        if mutant.survives:
            print(f"survives: {mutant.name}: {mutant.survives}")
    wrong = judge(mutants, alive)
    print("\n".join([*wrong, f"{len(mutants) - len(alive)} of {len(mutants)} killed"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
