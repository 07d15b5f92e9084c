# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the stages of the tests, four at a time or as many as memory carries, up to the first failure.

What this machine cannot run is named, with the reason, and never counted as passed.
The whole output of each stage is stored in tests/output/.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import venvs
from progress import Outcome, Times, in_words
from stages import GROUPS, Stage, Unknown, all_stages, select
from venvs import ROOT

# After all others: the repository's own directories are not to hide a module.
sys.path.append(str(ROOT))

from lab.reaper import reaped

OUTPUT = ROOT / "tests/output"
LAST = "last.json"
TAIL = 60
#: Of these, so many the summary repeats (`ends`): the end of a long output is often all that is stored of it.
REPEATED = 12
#: Stages that run beside each other: machines wait as often as they compute, so four keep two processors busy. Each
#: takes up to 4 GiB, three emulated machines and a little.
TOGETHER = max(2, min(4, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 2 // (9 * 2**30)))
#: Whoever writes to the screen writes whole lines.
SCREEN = threading.Lock()
#: By name: an environment is made by one who needs it, for all.
MAKING: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
#: Lines of pytest, Ansible, ansible-test and the lab that say what failed.
WHY = re.compile(r"(FAILED|ERROR) \S+\.py|\bE   |fatal: |LabError|^(ERROR|FATAL): ")
COLOUR = re.compile(r"\x1b\[[\d;]*m")


class Failed(Exception):
    """A stage failed; the arguments are the lines that say why."""


class BrokenOff(Exception):
    """A stage was ended because the user interrupted the run."""


class Board:
    """Which stages wait, which run, and the results of the others. All workers share it."""

    def __init__(self, stages: list[Stage]) -> None:
        self.waiting = list(stages)
        self.numbers: dict[str, int] = {}
        self.running: dict[str, float] = {}
        self.processes: set[subprocess.Popen[bytes]] = set()
        self.is_broken_off = False
        self.outcome = Outcome(not_reached=[stage.name for stage in stages])
        self.times = Times(OUTPUT / "times.json")
        self.changed = threading.Condition()
        self.total = len(stages)

    def take(self) -> Stage | None:
        """Return the next stage that can begin, once there is one; None when none will begin any more."""
        with self.changed:
            while self.waiting and not self.outcome.failed and not self.is_broken_off:
                for stage in self.waiting:
                    if not self._is_pending(stage.needs):
                        self.waiting.remove(stage)
                        self.running[stage.name] = time.monotonic()
                        self.numbers[stage.name] = len(self.numbers) + 1
                        return stage
                self.changed.wait()
            return None

    def lacks(self, stage: Stage) -> str:
        """Return why a stage cannot run although its turn has come, '' if it can."""
        return f"needs {stage.needs}, which did not run" if stage.needs in self.outcome.impossible else ""

    def end(self, stage: Stage, failure: Exception | None) -> None:
        """Note the result of a stage."""
        with self.changed:
            elapsed = time.monotonic() - self.running.pop(stage.name)
            if not isinstance(failure, BrokenOff):
                self.outcome.not_reached.remove(stage.name)
            if failure is None:
                self.outcome.passed.append(stage.name)
                self.times.note(stage.name, elapsed)
            elif isinstance(failure, venvs.Unavailable):
                self.outcome.impossible[stage.name] = str(failure)
            elif not isinstance(failure, BrokenOff):
                self.outcome.failed[stage.name] = reasons(failure)
            self.outcome.save(OUTPUT / LAST)
            self.changed.notify_all()

    def hold(self, process: subprocess.Popen[bytes]) -> None:
        """Note the process of a stage, which ends when the run is broken off."""
        with self.changed:
            self.processes.add(process)
            if self.is_broken_off:
                process.terminate()

    def break_off(self) -> None:
        """End all that runs, and begin nothing more."""
        with self.changed:
            self.is_broken_off = True
            self.changed.notify_all()
            for process in self.processes:
                process.terminate()

    def label(self, stage: Stage) -> str:
        """Return how far the run is with this stage, and its name."""
        width = len(str(self.total))
        return f"[{self.numbers[stage.name]:>{width}}/{self.total}] {stage.name}"

    def left(self) -> str:
        """Say how long the rest takes, as far as that is known."""
        with self.changed:
            now = time.monotonic()
            running = {name: now - since for name, since in self.running.items()}
            return self.times.left(running, [stage.name for stage in self.waiting], TOGETHER)

    def _is_pending(self, name: str) -> bool:
        return name in self.outcome.not_reached


def reasons(failure: Exception) -> list[str]:
    """Return the lines that say why a stage failed."""
    if isinstance(failure, Failed):
        return list(failure.args)
    return [f"{type(failure).__name__}: {failure}"]


def say(text: str) -> None:
    """Print whole lines, whichever thread prints."""
    with SCREEN:
        print(text, flush=True)


@functools.lru_cache(maxsize=1)
def python_directories() -> str:
    """Return a PATH on which each pythonX.Y is one that works, as far as there is one."""
    found = (venvs.find_python((f"3.{minor}",)) for minor in range(9, 15))
    directories = dict.fromkeys(str(Path(python).parent) for python in found if python)
    return ":".join((*directories, os.environ["PATH"]))


def environment_of(stage: Stage, venv: Path) -> dict[str, str]:
    """Return the variables for a stage: the tools of its virtual environment come first."""
    return {
        # Tools are installed as their sources alone: what may not keep its bytecode compiles them at each start.
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        # Newer than the defaults: the collection has to work where users have set it.
        "ANSIBLE_INJECT_FACT_VARS": "false",
        **stage.environment,
        "PATH": f"{venv / 'bin'}:{python_directories()}",
    }


def start(stage: Stage, venv: Path) -> subprocess.Popen[bytes]:
    """Start the stage's command with the tools of its virtual environment."""
    return subprocess.Popen(
        reaped((str(venv / "bin" / stage.command[0]), *stage.command[1:])),
        cwd=stage.directory,
        env=environment_of(stage, venv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def follow(process: subprocess.Popen[bytes], log: Path, margin: str) -> tuple[int, float]:
    """Copy the output to the log and, if there is a margin, behind it to the screen.

    Return the exit code, and the seconds of processor of the command and all its descendants (0 if unknown).
    """
    assert process.stdout is not None
    with log.open("wb") as file:
        for line in process.stdout:
            file.write(line)
            file.flush()
            if margin:
                with SCREEN:
                    sys.stdout.buffer.write(margin.encode() + line.rstrip(b"\n") + b"\n")
                    sys.stdout.buffer.flush()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except ChildProcessError:  # break_off() has waited for it
        return process.wait(), 0.0
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


def prepare(stage: Stage) -> Path:
    """Make the environments of a stage and return its own. Raises Unavailable."""
    made = []
    for name in filter(None, (stage.venv, stage.also)):
        with MAKING[name]:
            made.append(venvs.ensure(name))
    return made[0]


def run(board: Board, stage: Stage, venv: Path) -> float:
    """Run the command of a stage, and return its seconds of processor. Raises Failed and BrokenOff."""
    log = OUTPUT / f"{stage.slug}.log"
    process = start(stage, venv)
    board.hold(process)
    code, processor = follow(process, log, f"    {stage.name} | " if stage.live else "")
    if code == 0:
        return processor
    if board.is_broken_off:
        raise BrokenOff
    lines = COLOUR.sub("", log.read_text(errors="replace")).splitlines()
    why = [line for line in lines if WHY.search(line)]
    # What was shown live is long gone by now, except what says why.
    shown = why if stage.live else lines
    say(
        "\n".join(
            [
                f"{stage.name}: exit code {code}",
                *(f"    | {line}" for line in shown[-TAIL:]),
                f"    all of it: {log.relative_to(ROOT)}",
            ]
        )
    )
    raise Failed(*ends(why or lines or ["it printed nothing"]))


def ends(lines: list[str]) -> list[str]:
    """Return so many lines as are repeated: the last ones, and the first, where a long comparison says what it is of."""
    left_out = len(lines) - REPEATED
    first = REPEATED // 3
    return lines if left_out <= 0 else [*lines[:first], f"... {left_out} lines", *lines[first + left_out :]]


def attempt(board: Board, stage: Stage) -> Exception | float:
    """Run one stage if this machine can; return what came between, or its seconds of processor if it passed."""
    try:
        if reason := board.lacks(stage):
            raise venvs.Unavailable(reason)
        venv = prepare(stage)
        before = board.times.seconds.get(stage.name)
        say(f"{board.label(stage)} ..." + (f" {in_words(before)} last time" if before else ""))
        return run(board, stage, venv)
    # Every exception: a worker that dies silently would leave a stage without a result.
    except Exception as failure:
        return failure


def verdict(result: Exception | float, seconds: float) -> str:
    """Return briefly how a stage ended."""
    if isinstance(result, venvs.Unavailable):
        return f"NOT RUN: {result}"
    if isinstance(result, BrokenOff):
        return "broken off"
    if isinstance(result, Exception):
        return f"FAILED, {seconds:.1f} s"
    return f"ok, {seconds:.1f} s, {result:.1f} s of processor"


def work(board: Board) -> None:
    """Run one stage after the other, until none is left or one has failed."""
    while stage := board.take():
        started = time.monotonic()
        result = attempt(board, stage)
        board.end(stage, result if isinstance(result, Exception) else None)
        ended = f"{board.label(stage)}: {verdict(result, time.monotonic() - started)}"
        say("; ".join(filter(None, (ended, board.left()))))


def run_all(stages: list[Stage]) -> Outcome:
    """Run the stages until the first failure; other running stages may end. Re-raises KeyboardInterrupt."""
    board = Board(stages)
    with ThreadPoolExecutor(TOGETHER) as pool:
        workers = [pool.submit(work, board) for _ in range(TOGETHER)]
        try:
            for worker in workers:
                worker.result()
        except KeyboardInterrupt:
            board.break_off()
            raise
    return board.outcome


def own_machines() -> None:
    """Let machines that the lab brings up from now on end with this process, however it ends (lab/watch.py)."""
    os.environ.setdefault("DBHOST_LAB_OWNER", str(os.getpid()))


def header(stages: list[Stage]) -> str:
    """Say what is going to run."""
    counts = {group: sum(stage.group == group for stage in stages) for group in GROUPS}
    rows = [f"  {counts[group]:>2} {group}: {GROUPS[group]}" for group in GROUPS if counts[group]]
    expected = Times(OUTPUT / "times.json").left({}, [stage.name for stage in stages], TOGETHER)
    return "\n".join([f"== {len(stages)} stages, {TOGETHER} at a time; {expected or 'no times'}", *rows])


def show_failed() -> None:
    """Say what failed in the last run, and why."""
    last = Outcome.load(OUTPUT / LAST)
    logs = (str((OUTPUT / f"{Stage('', name, '', ()).slug}.log").relative_to(ROOT)) for name in last.failed)
    print("\n".join([*last.failures(), *(f"  all of it: {log}" for log in logs)] or ["nothing failed"]))
    print(f"{len(last.passed)} passed, {len(last.failed)} failed, {len(last.not_reached)} not reached")


def main() -> int:
    """Run the requested stages, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = ", ".join(("check", *GROUPS))
    parser.add_argument("name", nargs="?", default="", help=f"one stage, or one of these sets: {known}")
    parser.add_argument("--failed", action="store_true", help="only say what failed in the last run, and why")
    arguments = parser.parse_args()
    if arguments.failed:
        show_failed()
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dbhost-test-") as scratch:
        try:
            stages = select(all_stages(Path(scratch)), arguments.name)
        except Unknown as unknown:
            parser.error(str(unknown))
        OUTPUT.mkdir(parents=True, exist_ok=True)
        venvs.link_collection()
        say(header(stages))
        own_machines()
        try:
            outcome = run_all(stages)
        except KeyboardInterrupt:
            say("broken off")
            return 128 + signal.SIGINT
    print(f"\n== summary, {time.monotonic() - started:.0f} s")
    print("\n".join(outcome.summary()))
    return 1 if outcome.failed or not outcome.passed else 0


if __name__ == "__main__":
    sys.exit(main())
