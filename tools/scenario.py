# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one molecule scenario, or some of its tests, and keep its machines on request.

The next run that keeps machines continues with them as they are; one that does not
keep them begins by throwing them away.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import run_tests
import venvs
from stages import WITH_SHORT_PART, Stage, all_stages, scenarios, select
from venvs import ROOT

from lab.reaper import reaped

CONFIG = ROOT / ".config/molecule/config.yml"


def commands(stage: Stage, keep: bool) -> list[tuple[str, ...]]:
    """Return what to run one after the other, as molecule's commands: to keep machines, all of its sequence but to destroy."""
    return (
        [("molecule", verb, "-s", stage.name) for verb in sequence_without_destroy(stage.name)]
        if keep
        else [stage.command]
    )


def sequence_without_destroy(name: str) -> list[str]:
    """Return a scenario's steps without `destroy`: one whose tests converge has no step for that."""
    # This runs with any Python, which has no YAML.
    own, shared = (
        path.read_text(encoding="utf-8").partition("test_sequence:")[2]
        for path in (ROOT / "molecule" / name / "molecule.yml", CONFIG)
    )
    return [verb for verb in re.findall(r"^ +- (\w+)$", own or shared, re.M) if verb != "destroy"]


def test_options(expression: str, environment: dict[str, str]) -> dict[str, str]:
    """Return the variables with which the verifier, which is pytest, runs the tests that match only."""
    if not expression:
        return environment
    options = f"{environment.get('PYTEST_ADDOPTS', '')} -k {shlex.quote(expression)}"
    return {**environment, "PYTEST_ADDOPTS": options.strip()}


def whole(name: str, environment: dict[str, str]) -> dict[str, str]:
    """Return the variables with which a scenario is run whole, unless the user's environment has a choice."""
    return {"DBHOST_LAB_WHOLE": "1", **environment} if name in WITH_SHORT_PART else environment


def matches(name: str, venv: Path, environment: dict[str, str]) -> bool:
    """Return whether any test of a scenario is selected: without one molecule would report success."""
    tests = str(ROOT / "molecule" / name / "tests")
    found = subprocess.run(
        (str(venv / "bin/pytest"), "--collect-only", "-q", tests), cwd=ROOT, env=environment, check=False
    )
    return found.returncode == 0


def call(stage: Stage, command: tuple[str, ...], environment: dict[str, str]) -> int:
    """Run a command in the open; return its exit code."""
    process = subprocess.Popen(reaped(command), cwd=stage.directory, env=environment)
    try:
        return process.wait()
    except KeyboardInterrupt:
        # By what a run of subprocess does then, what ends all the rest would be killed itself.
        process.terminate()
        process.wait()
        raise


def main() -> int:
    """Run what the scenario needs, then the scenario."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help=", ".join(scenarios()))
    parser.add_argument("--test", default="", metavar="EXPRESSION", help="as after pytest's -k")
    parser.add_argument("--keep", action="store_true", help="keep the machines for the next run")
    arguments = parser.parse_args()
    if arguments.name not in scenarios():
        parser.error(f"no such scenario: {arguments.name!r}; there are: {', '.join(scenarios())}")
    venvs.link_collection()
    if not arguments.keep:
        run_tests.own_machines()
    with tempfile.TemporaryDirectory(prefix="dbhost-test-") as scratch:
        *needed, stage = select(all_stages(Path(scratch)), arguments.name)
        return run(needed, stage, arguments.test, arguments.keep)


def run(needed: list[Stage], stage: Stage, expression: str, keep: bool) -> int:
    """Run a scenario's tests that match, after what it needs; return the first exit code that is not 0."""
    venv = run_tests.prepare(stage)
    bare = whole(stage.name, run_tests.environment_of(stage, venv))
    environment = test_options(expression, bare)
    if expression and not matches(stage.name, venv, environment):
        print(f"no test of {stage.name} matches {expression!r}; see molecule/{stage.name}/tests")
        return 1
    steps = [(each, each.command, bare) for each in needed]
    steps += [(stage, command, environment) for command in commands(stage, keep)]
    return next((code for each in steps if (code := call(*each))), 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except venvs.Unavailable as reason:
        sys.exit(f"not run: {reason}")
