# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of a check of a converged host, beside a playbook of stock modules with the same result.

    python3 -m benchmarks.stock_check [--record]

One machine of the lab is brought to the same state by both playbooks; then each checks it, in turn. Exit
code 1 when a check finds anything to change; no time makes it fail.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import keeping, lines
from benchmarks.rig import ROOT
from lab import layout
from lab.errors import LabError
from lab.executions import Executions
from lab.machine import Machine
from lab.progress import say

STOCK = ROOT / "benchmarks/stock"
#: Where the stock collections are put once.
COLLECTIONS = ROOT / ".venv/stock"
NAME = "bench-stock"
#: In the order in which they are made to converge: this collection adds to what it finds.
PLAYBOOKS = {"stock modules": STOCK / "playbook.yml", "durable.dbhost": ROOT / "playbooks/harden-db.yml"}
_RECAP = re.compile(r"^\S+\s+: (ok=.*)$", re.M)


@dataclass(frozen=True)
class Cost:
    """What one run cost: seconds, CPU seconds of the controller, modules started, bytes to and from the host.

    `cpu` is of all processes of ansible-playbook, its calls of ssh with them. Bytes are those of the host's
    network interfaces, with all headers.
    """

    wall: float
    cpu: float
    executions: int
    sent: int
    received: int


class Site:
    """The machine, the two playbooks, and how they are run."""

    def __init__(self, machine: Machine, collections: Path, scratch: Path) -> None:
        self.machine = machine
        self.collections = collections
        self.scratch = scratch

    def converge(self) -> None:
        """Let both playbooks make their state. Raises LabError where one fails."""
        for name, playbook in PLAYBOOKS.items():
            say(f"converging: {name}")
            self._playbook(playbook, pipelining=False)

    def check(self, name: str, pipelining: bool, *options: str) -> Cost:
        """Check the machine by one of the playbooks. Raises LabError where it fails, or would change anything."""
        executions, own, before = Executions(self.machine), self._reading(), self._bytes()
        wall, cpu, said = self._playbook(PLAYBOOKS[name], pipelining, "--check", *options)
        after = self._bytes()
        counts = dict(re.findall(r"(\w+)=(\d+)", "".join(_RECAP.findall(said))))
        if counts.get("changed") != "0":
            raise LabError(f"{name} is not converged:\n{said}")
        sent, received = (after[way] - before[way] - own[way] for way in (0, 1))
        return Cost(wall, cpu, executions.count(), sent, received)

    def versions(self) -> dict[str, str]:
        """Return what took part."""
        said = subprocess.run([beside("ansible"), "--version"], capture_output=True, text=True, check=True)
        core = re.search(r"core (\S+?)\]", said.stdout)
        stock = re.search(r"^ansible==(\S+)$", (STOCK / "requirements.txt").read_text(), re.M)
        return {
            "ansible-core": core[1] if core else "unknown",
            "ansible": stock[1] if stock else "unknown",
            "kernel": self.machine.run(["uname", "-r"]).stdout.strip(),
        }

    def _reading(self) -> tuple[int, int]:
        """Return the bytes between two readings with nothing between them: those are not the playbook's."""
        first, second = self._bytes(), self._bytes()
        return second[0] - first[0], second[1] - first[1]

    def _bytes(self) -> tuple[int, int]:
        """Return the bytes that the machine has received and sent since it booted."""
        found = self.machine.run(["cat", "/proc/net/dev"]).stdout.splitlines()[2:]
        rows = [row.split(":")[1].split() for row in found if row.split(":")[0].strip() != "lo"]
        return sum(int(row[0]) for row in rows), sum(int(row[8]) for row in rows)

    def _playbook(self, playbook: Path, pipelining: bool, *options: str) -> tuple[float, float, str]:
        """Run a playbook; return seconds, CPU seconds, output. Raises LabError where it fails."""
        inventories = ["-i", str(self.machine.inventory), "-i", str(STOCK / "inventory")]
        words = [beside("ansible-playbook"), *inventories, str(playbook), *options]
        wall, cpu, code, said = timed(words, self.scratch, environment(self.collections, pipelining))
        if code != 0:
            raise LabError(f"{playbook.name} ended with {code}:\n{said}")
        return wall, cpu, said


def environment(collections: Path, pipelining: bool) -> dict[str, str]:
    """Return the environment of a playbook that is measured."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(Path.home()),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_PATH": f"{ROOT / 'playbooks/collections'}:{collections}",
        "ANSIBLE_DEPRECATION_WARNINGS": "false",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_PIPELINING": str(pipelining).lower(),
    }


def timed(
    words: Sequence[str],
    directory: Path,
    variables: dict[str, str],
    begun: Callable[[int], object] = lambda _: None,
) -> tuple[float, float, int, str]:
    """Run a command in a session of its own; return seconds, CPU seconds, exit code, output. `begun` is told its process."""
    with (directory / "output").open("w+") as output:
        started = time.monotonic()
        process = subprocess.Popen(
            words,
            cwd=directory,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        begun(process.pid)
        _pid, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return wall, used.ru_utime + used.ru_stime, process.returncode, output.read()


def beside(program: str) -> str:
    """Return the path of a program of this environment."""
    return str(Path(sys.executable).with_name(program))


def fetch(collections: Path) -> None:
    """Put the stock collections there, where they are not. Raises LabError."""
    if (collections / "ansible_collections").exists():
        return
    say(f"fetching the stock collections into {collections}")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    done = subprocess.run(
        [*pip, "--target", str(collections), "--requirement", str(STOCK / "requirements.txt")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"pip cannot fetch the stock collections: {done.stderr.strip()}")


def checks(site: Site, runs: int) -> Iterator[dict[str, Any]]:
    """Yield what each check cost; all four ways take turns, so that other work on the computer meets each."""
    ways = [(name, pipelining) for pipelining in (False, True) for name in PLAYBOOKS]
    # The first of each warms caches up, and is left out.
    for number in range(-1, runs):
        for name, pipelining in ways:
            cost = site.check(name, pipelining)
            say(f"{name}, pipelining {pipelining}: {cost.wall:.1f} s, {cost.executions} executions")
            if number >= 0:
                yield {"playbook": name, "pipelining": pipelining, **asdict(cost)}


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return all results."""
    fetch(arguments.collections)
    machine = Machine(NAME)
    try:
        machine.up(layout.load(STOCK / "layout.yml"), arguments.release)
        with tempfile.TemporaryDirectory() as scratch:
            site = Site(machine, arguments.collections.resolve(), Path(scratch))
            site.converge()
            return {
                "runs": list(checks(site, arguments.runs)),
                "taken": time.strftime("%Y-%m-%d", time.gmtime()),
                "kind": machine.record().hardware.kind,
                "processors": os.cpu_count(),
                "versions": site.versions(),
                "load": os.getloadavg()[2],
            }
    finally:
        if not arguments.keep:
            machine.down()


def rows(runs: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield a row of the table for each playbook, with and without pipelining: the medians, and the fastest."""
    for pipelining in (False, True):
        for name in reversed(PLAYBOOKS):
            own = [run for run in runs if (run["playbook"], run["pipelining"]) == (name, pipelining)]
            middle = {field: median(run[field] for run in own) for field in Cost.__annotations__}
            yield [
                name,
                "on" if pipelining else "off",
                f"{middle['wall']:.1f}",
                f"{min(run['wall'] for run in own):.1f}",
                f"{middle['cpu']:.1f}",
                f"{middle['executions']:.0f}",
                f"{middle['sent'] / 1024:.0f}",
                f"{middle['received'] / 1024:.0f}",
            ]


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Return the table, and where it was measured, by name."""
    said = result["versions"]
    count = len(result["runs"]) // (2 * len(PLAYBOOKS))
    head = ["converged check by", "pipelining", "s", "fastest, s", "controller CPU, s", "executions"]
    return {
        "stock_where": (
            f"{result['taken']}; the median of {count} runs each, in turn; a machine of the kind `{result['kind']}` on a"
            f" computer with {result['processors']} processors and a load of {result['load']:.0f} all the while; kernel"
            f" {said['kernel']}, ansible-core {said['ansible-core']}, the collections of ansible {said['ansible']}."
        ),
        "stock": lines.table([*head, "sent, KiB", "received, KiB"], rows(result["runs"])),
    }


def main() -> int:
    """Measure, show, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="of each; the median counts")
    parser.add_argument(
        "--collections", type=Path, default=COLLECTIONS, help="where the stock collections lie"
    )
    parser.add_argument("--keep", action="store_true", help="leave the machine for the next run")
    keeping.add_options(parser)
    return 0 if keeping.run("stock_check", parser.parse_args(), measure, tables) else 1


if __name__ == "__main__":
    sys.exit(main())
