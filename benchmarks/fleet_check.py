# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's cost of checking a fleet, beside a playbook of stock modules.

    python3 -m benchmarks.fleet_check [--record]

A machine of the lab is brought to the same state by both playbooks, and what its Python says to each of their checks is kept.
Then a fleet of stand-ins says the same: an sshd in a network name space of its own, with an address for each host, and in the
place of Python a program that gives the next answer. All are converged, for both playbooks. Another fleet is for durable.dbhost
alone: of five hosts four answer with the captured facts of other machines, some of which want a change. Exit code 1 when a
host's verdict is not the one of its kind; no time makes it fail. Needs root, and sshd.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import keeping, lines
from benchmarks.rig import ROOT
from benchmarks.stock_check import (
    COLLECTIONS,
    NAME,
    PLAYBOOKS,
    STOCK,
    Site,
    beside,
    environment,
    fetch,
    timed,
)
from lab import layout
from lab.errors import LabError
from lab.machine import Machine
from lab.progress import say

#: What other hosts of the fleet say of their storage: captured machines of the lab.
CAPTURES = ("loose", "default", "hardened", "stacked")
#: Which of their mounts are managed: no server is there by which they would be found.
MOUNTS = ["/srv/pgdata", "/srv/maria", "/srv/mssql"]
PORT = 2022
#: Hosts that are looked at at once, as for a fleet of this size.
FORKS = 20
_OURS = "durable.dbhost"
_VARIED = f"{_OURS}, varied hosts"
_KEEP = "/var/tmp/bench-answers"
_PYTHON = "/usr/local/bin/bench-python"
#: In the place of Python on the machine: the same, and what it says is kept.
_RECORDER = """#!/bin/sh
number=$(( $(ls {keep} | wc -l) + 1 ))
python3 "$@" > {keep}/$number
code=$?
cat {keep}/$number
exit $code
"""
#: In the place of Python on a host of the fleet: takes the module, and gives the next answer of the host with this address.
_REPLAYER = """#!/bin/sh
cat > /dev/null
set -- $SSH_CONNECTION
cd "{answers}/$3" || exit 1
read -r number < next
echo $((number + 1)) > next
exec cat "$number"
"""
_SSHD = """Port {port}
ListenAddress 0.0.0.0
HostKey {scratch}/host_key
AuthorizedKeysFile {scratch}/user_key.pub
PidFile none
StrictModes no
UsePAM no
MaxStartups 1000
MaxSessions 1000
"""


#: When facts were collected.
_TOLD = re.compile(r'("time": ?)"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"')


@dataclass(frozen=True)
class Cost:
    """What one check cost: seconds; CPU seconds and MiB of the controller, the most that all its processes had together."""

    wall: float
    cpu: float
    memory: float


class Fleet:
    """Stand-ins for hosts, and how they are checked."""

    def __init__(self, scratch: Path, answers: dict[str, list[list[str]]], collections: Path) -> None:
        """Take, for each playbook, the answers of each kind of host."""
        self._scratch, self._answers, self._collections = scratch, answers, collections
        self._inside: list[str] = []
        self._address = {number: f"127.{1 + number // 250}.0.{1 + number % 250}" for number in range(2000)}

    @contextmanager
    def served(self) -> Iterator[None]:
        """Let sshd serve all of them. Raises LabError."""
        sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
        if not sshd or os.geteuid() != 0:
            raise LabError(
                "observed no sshd, or no root; expected both: apt-get install openssh-server, and run as root"
            )
        for name in ("host_key", "user_key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._scratch / name)]
            subprocess.run(words, check=True)
        config = self._scratch / "sshd_config"
        config.write_text(_SSHD.format(port=PORT, scratch=self._scratch))
        replayer = self._scratch / "python"
        replayer.write_text(_REPLAYER.format(answers=self._scratch / "answers"))
        replayer.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        # it listens everywhere, so nobody is to come there but this
        words = [
            "unshare",
            "--net",
            "sh",
            "-c",
            'ip link set lo up && exec "$0" "$@"',
            sshd,
            "-D",
            "-f",
            str(config),
        ]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        self._inside = ["nsenter", f"--net=/proc/{server.pid}/ns/net"]
        try:
            _await_listener(server)
            yield
        finally:
            server.terminate()
            server.wait()

    def kind(self, playbook: str, number: int) -> int:
        """Return which kind of host a host of this number is."""
        return number % len(self._answers[_OURS]) if playbook == _VARIED else 0

    def check(self, playbook: str, hosts: int) -> tuple[Cost, dict[str, Any]]:
        """Check so many hosts; return what that cost, and the verdict of each where the playbook tells one. Raises LabError."""
        played = _OURS if playbook == _VARIED else playbook
        is_ours, kinds = played == _OURS, self._answers[played]
        for number in range(hosts):
            place = self._scratch / "answers" / self._address[number]
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            (place / "next").write_text("1\n")
            for at, answer in enumerate(kinds[self.kind(playbook, number)], 1):
                (place / str(at)).write_text(_as_of_now(answer))
        inventory = self._scratch / "fleet.json"
        inventory.write_text(json.dumps({"databases": {"hosts": dict(self._hosts(playbook, hosts))}}))
        reports = self._scratch / "durable-report"
        shutil.rmtree(reports, ignore_errors=True)
        words = [
            "-i",
            str(STOCK / "inventory"),
            "-i",
            str(inventory),
            "--limit",
            "db*",
            "--check",
            f"--forks={FORKS}",
        ]
        cost, code, said = measured(
            [*self._inside, beside("ansible-playbook"), *words, str(PLAYBOOKS[played])],
            self._scratch,
            self._collections,
        )
        failed = re.findall(r"^(\S+)\s+: .*(?:unreachable|failed)=[1-9]", said, re.M)
        if not is_ours and (code or failed):
            raise LabError(f"{playbook} ended with {code}, hosts that failed: {failed[:5]}\n{said[-4000:]}")
        found = {path.stem: json.loads(path.read_text())["verdict"] for path in reports.glob("db*.json")}
        if is_ours and (len(found) != hosts or "unknown" in found.values()):
            raise LabError(f"{hosts} hosts, and these verdicts: {Counter(found.values())}\n{said[-4000:]}")
        return cost, found

    def connection(self, count: int = 20) -> float:
        """Return the CPU seconds that ssh itself takes for one connection to a host and a command that does nothing."""
        (_name, host), *_others = self._hosts(_OURS, 1)
        words = ["ssh", "-i", host["ansible_ssh_private_key_file"], "-p", str(PORT)]
        words += [*host["ansible_ssh_common_args"].split(), f"root@{host['ansible_host']}", "true"]
        return (
            sum(timed([*self._inside, *words], self._scratch, dict(os.environ))[1] for _ in range(count))
            / count
        )

    def _hosts(self, playbook: str, hosts: int) -> Iterator[tuple[str, dict[str, Any]]]:
        for number in range(hosts):
            yield (
                f"db{number + 1}",
                {
                    **({"durable_mounts": MOUNTS} if self.kind(playbook, number) else {}),
                    "ansible_host": self._address[number],
                    "ansible_port": PORT,
                    "ansible_user": "root",
                    # whom a task would become may be unknown on this computer
                    "ansible_become": False,
                    "ansible_python_interpreter": str(self._scratch / "python"),
                    "ansible_ssh_private_key_file": str(self._scratch / "user_key"),
                    "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
                },
            )


def _await_listener(server: subprocess.Popen[bytes]) -> None:
    """Wait until it listens in its name space. Raises LabError."""
    end = time.monotonic() + 20
    while time.monotonic() < end and server.poll() is None:
        if f":{PORT:04X} 00000000:0000 0A" in Path(f"/proc/{server.pid}/net/tcp").read_text():
            return
        time.sleep(0.1)
    raise LabError(f"sshd does not listen: it ended with {server.poll()}")


def measured(words: Sequence[str], directory: Path, collections: Path) -> tuple[Cost, int, str]:
    """Run a playbook; return what it cost, its exit code and what it said."""
    peak = _Peak()
    # what ssh keeps of the stand-ins goes with them
    variables = {**environment(collections, pipelining=True), "HOME": str(directory)}
    try:
        wall, cpu, code, said = timed(words, directory, variables, peak.watch)
    finally:
        memory = peak.end()
    return Cost(wall, cpu, memory), code, said


class _Peak:
    """Looks twice a second at the memory of all processes of a session; shared pages count once."""

    def __init__(self) -> None:
        self._session, self._most = 0, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def watch(self, session: int) -> None:
        """Begin."""
        self._session = session
        self._thread.start()

    def end(self) -> float:
        """Return the most that was seen, in MiB."""
        self._ended.set()
        if self._session:
            self._thread.join()
        return self._most / 1024

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            self._most = max(self._most, sum(self._now()))

    def _now(self) -> Iterator[int]:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (
                    os.getsid(int(process.name)) == self._session
                    and b"ssh\0" not in (process / "cmdline").read_bytes()[:9]
                ):
                    yield int(re.findall(r"^Pss: +(\d+)", (process / "smaps_rollup").read_text(), re.M)[0])
            except (OSError, IndexError):
                continue


def recorded(
    arguments: argparse.Namespace, scratch: Path
) -> tuple[dict[str, list[list[str]]], dict[str, str]]:
    """Return, for each playbook, the answers of each kind of host; and the versions. Raises LabError."""
    machine = Machine(NAME)
    try:
        machine.up(layout.load(STOCK / "layout.yml"), arguments.release)
        site = Site(machine, arguments.collections.resolve(), scratch)
        site.converge()
        found = {}
        for name in PLAYBOOKS:
            recorder = _RECORDER.format(keep=_KEEP)
            machine.run(
                ["sh", "-c", f"rm -rf {_KEEP}; mkdir -m 1777 {_KEEP}; cat > {_PYTHON}; chmod 755 {_PYTHON}"],
                input=recorder,
            )
            site.check(name, True, "-e", f"ansible_python_interpreter={_PYTHON}")
            count = int(machine.run(["sh", "-c", f"ls {_KEEP} | wc -l"]).stdout)
            found[name] = [[machine.run(["cat", f"{_KEEP}/{each}"]).stdout for each in range(1, count + 1)]]
        found[_OURS] += list(_other_kinds(found[_OURS][0]))
        return found, site.versions()
    finally:
        machine.down()


def _other_kinds(answers: Sequence[str]) -> Iterator[list[str]]:
    """Yield what hosts with other storage and no server say: their facts, and what apply says, which a check asks of one with
    something to change."""
    (first,) = answers
    for name in CAPTURES:
        answer = json.loads(first)
        facts = answer["ansible_facts"]
        storage = json.loads((ROOT / f"tests/fixtures/captures/{name}.facts.json").read_text())
        engines = facts["durable_engines"]
        facts["durable_engines"] = {
            key: [] if isinstance(value, list) else value for key, value in engines.items()
        }
        facts["durable_storage"] = {**storage, "boot_id": engines["boot_id"]}
        yield [json.dumps(answer), json.dumps({"changed": True, "taken": [], "switch": "none"})]


def _as_of_now(answer: str) -> str:
    """Return an answer with the time at which it is given: one of an older run is refused."""
    return _TOLD.sub(time.strftime(r'\1"%Y-%m-%dT%H:%M:%SZ"', time.gmtime()), answer)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return all results. Raises LabError."""
    fetch(arguments.collections)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        answers, versions = recorded(arguments, scratch)
        fleet = Fleet(scratch, answers, arguments.collections.resolve())
        with fleet.served():
            runs = list(_runs(fleet, arguments))
            connection = fleet.connection()
        return {
            "runs": runs,
            "ssh": {"connection": connection, "version": _ssh_version()},
            "kinds": len(answers[_OURS]),
            "executions": {name: len(kinds[0]) for name, kinds in answers.items()},
            "bytes": sum(len(kind[0]) for kind in answers[_OURS]) // len(answers[_OURS]),
            "taken": time.strftime("%Y-%m-%d", time.gmtime()),
            "processors": os.cpu_count(),
            "versions": versions,
            "load": os.getloadavg()[2],
        }


def _ssh_version() -> str:
    """Return what the ssh of this computer calls itself."""
    return subprocess.run(["ssh", "-V"], check=True, capture_output=True, text=True).stderr.partition(",")[0]


def _runs(fleet: Fleet, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    of_kind: dict[int, str] = {}
    stock = next(iter(PLAYBOOKS))
    for playbook, sizes in ((_OURS, arguments.hosts), (_VARIED, arguments.varied), (stock, arguments.stock)):
        for hosts in sizes:
            cost, verdicts = fleet.check(playbook, hosts)
            say(f"{playbook}, {hosts} hosts: {cost.wall:.1f} s, {cost.cpu:.1f} s CPU, {cost.memory:.0f} MiB")
            for number in range(len(verdicts)):
                kind = fleet.kind(playbook, number)
                verdict = verdicts[f"db{number + 1}"]
                if of_kind.setdefault(kind, verdict) != verdict:
                    raise LabError(f"db{number + 1} is {verdict}, and others of its kind {of_kind[kind]}")
            yield {
                "playbook": playbook,
                "hosts": hosts,
                "verdicts": sorted(set(verdicts.values())),
                **asdict(cost),
            }


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Return the tables, and where they were measured, by name."""
    runs = result["runs"]
    rows = [
        [
            run["playbook"],
            str(run["hosts"]),
            f"{run['wall']:.1f}",
            f"{run['cpu']:.1f}",
            f"{run['cpu'] / run['hosts']:.2f}",
            f"{run['memory']:.0f}",
        ]
        for run in runs
    ]
    said = result["versions"]
    executions = ", ".join(f"{name} {count}" for name, count in result["executions"].items())
    names = [name for name in dict.fromkeys(run["playbook"] for run in runs) if name != _VARIED]
    slopes = {name: _slope([run for run in runs if run["playbook"] == name]) for name in names}
    ours, stock = slopes[_OURS], max(slopes.values())
    head = ["check by", "hosts", "s", "controller CPU, s", "of this for each host, s", "peak memory, MiB"]
    return {
        "fleet_where": (
            f"{result['taken']}; a computer with {result['processors']} processors, which the stand-ins share, and a load"
            f" of {result['load']:.0f}; {FORKS} forks; ansible-core {said['ansible-core']}, the collections of ansible"
            f" {said['ansible']}. {result['kinds']} kinds of varied hosts, {result['bytes'] // 1024} KiB an answer, verdicts"
            f" {', '.join(sorted({word for run in runs for word in run['verdicts']}))};"
            f" executions for each converged host: {executions}."
        ),
        "fleet": lines.table(head, rows),
        "fleet_slopes": (
            f"One host more costs {ours:.2f} s of the controller's CPU; by stock modules {stock:.2f} s, {stock / ours:.1f}"
            f" times as much. {result['ssh']['connection']:.2f} s of each are the connection of ssh"
            f" ({result['ssh']['version']})."
        ),
    }


def _slope(runs: Sequence[dict[str, Any]]) -> float:
    """Return the CPU seconds of one host more, between the fewest and the most hosts."""
    first, last = min(runs, key=lambda run: run["hosts"]), max(runs, key=lambda run: run["hosts"])
    return float((last["cpu"] - first["cpu"]) / max(1, last["hosts"] - first["hosts"]))


def _sizes(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> int:
    """Measure, show, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--hosts", type=_sizes, default=[1, 10, 50, 200], help="how many, as 1,10,50,200")
    parser.add_argument(
        "--varied", type=_sizes, default=[50, 200], help="the same for hosts of several kinds"
    )
    parser.add_argument("--stock", type=_sizes, default=[1, 10, 50], help="the same for stock modules")
    parser.add_argument(
        "--collections", type=Path, default=COLLECTIONS, help="where the stock collections lie"
    )
    keeping.add_options(parser)
    return 0 if keeping.run("fleet_check", parser.parse_args(), measure, tables) else 1


if __name__ == "__main__":
    sys.exit(main())
