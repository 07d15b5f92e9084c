# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tests stage by stage, up to the first failure.

What this machine cannot run is named, with the reason, and never counted as passed.
The whole output of each stage is kept in tests/output/.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import venvs
from stages import GROUPS, Stage, stages_of
from venvs import ROOT

OUTPUT = ROOT / "tests/output"
TAIL = 60
#: Of these, what the summary repeats: the end of a long output is often all that is kept of it.
REPEATED = 12
WIDTH = 200
#: Stages that run beside each other: two are what two processors carry.
TOGETHER = 2
#: For environments that are made, and what is counted.
ONE_AT_A_TIME = threading.Lock()
#: Lines of pytest, Ansible and the lab that say what failed.
WHY = re.compile(r"(FAILED|ERROR) \S+\.py|\bE   |fatal: |LabError")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


@dataclass
class Outcome:
    """What became of the stages."""

    passed: int = 0
    #: The lines that say why, by stage.
    failed: dict[str, list[str]] = field(default_factory=dict)
    impossible: list[str] = field(default_factory=list)
    not_reached: list[str] = field(default_factory=list)


@functools.lru_cache(maxsize=1)
def python_directories() -> str:
    """Return a PATH on which each pythonX.Y is one that works, as far as there is one."""
    found = (venvs.find_python((f"3.{minor}",)) for minor in range(9, 15))
    directories = dict.fromkeys(str(Path(python).parent) for python in found if python)
    return ":".join((*directories, os.environ["PATH"]))


def start(stage: Stage, venv: Path) -> subprocess.Popen[bytes]:
    """Start the stage's command with the tools of its virtual environment."""
    environment = {
        **os.environ,
        # Newer than the defaults: the collection has to work where users have set it.
        "ANSIBLE_INJECT_FACT_VARS": "false",
        **stage.environment,
        "PATH": f"{venv / 'bin'}:{python_directories()}",
    }
    return subprocess.Popen(
        (str(venv / "bin" / stage.command[0]), *stage.command[1:]),
        cwd=stage.directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def follow(process: subprocess.Popen[bytes], log: Path, live: bool, margin: str) -> int:
    """Copy the output to the log, and to the screen, behind a margin, for a long stage; return the exit code."""
    assert process.stdout is not None
    with log.open("wb") as file:
        for line in process.stdout:
            file.write(line)
            file.flush()
            if live:
                sys.stdout.buffer.write(f"    {margin}| ".encode() + line)
                sys.stdout.buffer.flush()
    return process.wait()


def run(stage: Stage, venv: Path) -> list[str] | None:
    """Run one stage and say how it went; return None if it passed, and else the lines that say why."""
    log = OUTPUT / f"{stage.slug}.log"
    started = time.monotonic()
    print(f"  {stage.name} ...", end="\n" if stage.live else " ", flush=True)
    code = follow(start(stage, venv), log, stage.live, f"{stage.name} " if stage.beside else "")
    elapsed = f"{time.monotonic() - started:.1f} s"
    again = f"  {stage.name} ... " if stage.live else ""
    if code == 0:
        print(f"{again}ok, {elapsed}", flush=True)
        return None
    print(f"{again}FAILED (exit code {code}), {elapsed}")
    lines = COLOUR.sub("", log.read_text(errors="replace")).splitlines()
    why = [line for line in lines if WHY.search(line)]
    # What was shown live is long gone by now, but for what says why.
    shown = why if stage.live else lines
    print("\n".join(f"    | {line}" for line in shown[-TAIL:]))
    print(f"    all of it: {log.relative_to(ROOT)}", flush=True)
    return (why or lines or ["it printed nothing"])[-REPEATED:]


def run_all(stages: list[Stage]) -> Outcome:
    """Run the stages until the first failure; what runs beside it is let end."""
    outcome = Outcome()
    group = ""
    for batch in batches(stages):
        if batch[0].group != group:
            group = batch[0].group
            print(f"\n== {group}: {GROUPS[group]}", flush=True)
        with ThreadPoolExecutor(TOGETHER if batch[0].beside else 1) as pool:
            list(pool.map(functools.partial(take, outcome), batch))
    return outcome


def batches(stages: list[Stage]) -> list[list[Stage]]:
    """Return each stage alone, but neighbours that run beside each other as one batch."""
    found: list[list[Stage]] = []
    for stage in stages:
        if found and stage.beside and found[-1][-1].beside:
            found[-1].append(stage)
        else:
            found.append([stage])
    return found


def take(outcome: Outcome, stage: Stage) -> None:
    """Run one stage, unless one before it has failed, and note what became of it."""
    if outcome.failed:
        outcome.not_reached.append(stage.name)
        return
    try:
        with ONE_AT_A_TIME:
            venv = venvs.ensure(stage.venv)
            if stage.also:
                venvs.ensure(stage.also)
    except venvs.Unavailable as reason:
        print(f"  {stage.name} ... NOT RUN: {reason}", flush=True)
        outcome.impossible.append(f"{stage.name}: {reason}")
        return
    why = run(stage, venv)
    with ONE_AT_A_TIME:
        if why is None:
            outcome.passed += 1
        else:
            outcome.failed[stage.name] = why


def summary(outcome: Outcome) -> list[str]:
    """Return the lines that say what became of the stages, the most important last."""
    return [
        *(f"  not run: {line}" for line in outcome.impossible),
        *(f"  not reached: {name}" for name in outcome.not_reached),
        *(
            line
            for name, why in outcome.failed.items()
            for line in (f"  failed: {name}", *(f"    | {line[:WIDTH]}" for line in why))
        ),
        f"{outcome.passed} passed, {len(outcome.failed)} failed",
    ]


def main() -> int:
    """Run the groups that are asked for, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    groups = parser.parse_args().groups or list(GROUPS)
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    started = time.monotonic()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    venvs.link_collection()
    with tempfile.TemporaryDirectory(prefix="dbhost-test-") as scratch:
        outcome = run_all(stages_of(groups, Path(scratch)))
    print(f"\n== summary, {time.monotonic() - started:.0f} s")
    print("\n".join(summary(outcome)))
    return 1 if outcome.failed or not outcome.passed else 0


if __name__ == "__main__":
    sys.exit(main())
