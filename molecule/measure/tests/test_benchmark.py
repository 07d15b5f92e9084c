# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fio on a real disk: within its limits, and what was tried is put back, also when fio is killed under it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from support import truth
from support.background import in_background
from support.runs import Playbooks, Run

from lab.machine import Machine

MACHINE = "pull"
TARGET, SERIAL = "/srv/flush", "SCSI0001"
CONFIRM = "durable_confirm=benchmark"
#: Of all clients together, and of each.
RATE, SIZE = 100, 2
#: Seconds that a watcher may be late.
PATIENCE = 20.0
#: The mount's options, as they are, and while `sync` is tried.
PLAIN, SYNC = "rw,relatime", "rw,sync,relatime"
#: What a run must leave as it was. Of mountinfo not the first word, which counts mounts.
MANIFEST = """
ls -A "$1"
sed -n "s|^[0-9]* ||; \\|$1|p" /proc/self/mountinfo
cat "/sys/block/$2/queue/scheduler" /etc/fstab
pgrep -x fio || true
"""
#: Writes down each state of the mount and of the disk's scheduler that it sees, for as long as it runs. It looks more often
#: than the killer below, which ends what is to be seen.
WATCHER = """
import json, os, sys, time
target, disk = sys.argv[1:]
seen = []
while True:
    line = next(line for line in open("/proc/mounts") if line.split()[1] == target)
    running = open("/sys/block/%s/queue/scheduler" % disk).read().partition("[")[2].partition("]")[0]
    state = [line.split()[3], running]
    if seen[-1:] != [state]:
        seen.append(state)
        with open("/run/watched.new", "w") as file:
            json.dump(seen, file)
        os.replace("/run/watched.new", "/run/watched")
    time.sleep(0.02)
"""
#: Kills fio once it writes to a file system that was remounted.
KILLER = 'until grep -q " $1 ext4 rw,sync" /proc/mounts && pkill -KILL -x fio; do sleep 0.1; done'


#: Writes down each state of the disk's own cache that it sees: 0x01 is on.
CACHE_WATCHER = """
while sleep 0.2; do
    seen=$(sdparm --quiet --readonly --get WCE=1 -H "/dev/$1") && [ "$seen" != "$last" ] && echo "$seen" >> /run/caches
    last=$seen
done
"""


def seen_by(machine: Machine, parse: Callable[[str], list[Any]], path: str, last: object) -> list[Any]:
    """Return what a watcher wrote down, once that ends with `last`, or is late: it looks only a few times in a second."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = parse(machine.run(["cat", path]).stdout)
        if found[-1:] == [last] or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


def benchmark(playbooks: Playbooks, **limits: Any) -> Run:
    """Run benchmark on one mount, with two seconds for each run of fio."""
    asked = {
        "mounts": [TARGET],
        "patterns": ["direct_dsync"],
        "seconds": 2,
        "runs": 1,
        "size": SIZE,
        **limits,
    }
    return playbooks.run("benchmark", "-e", CONFIRM, variables={"durable_benchmark": asked})


@pytest.fixture(scope="module")
def disk(machine: Machine) -> str:
    """What the kernel calls the disk below."""
    return str(truth.read(machine)["disks"][SERIAL]["name"])


@pytest.fixture(scope="module")
def schedulers(machine: Machine, disk: str) -> tuple[str, str]:
    """The scheduler that the kernel has chosen for the disk, and another one."""
    chosen = machine.run(["cat", f"/sys/block/{disk}/queue/scheduler"]).stdout
    return ("mq-deadline", "none") if "[mq-deadline]" in chosen else ("none", "mq-deadline")


def manifest(machine: Machine, disk: str) -> str:
    """Return what a run must leave as it was."""
    return machine.run(["sh", "-c", MANIFEST, "manifest", TARGET, disk]).stdout


def test_it_measures_within_its_limits_recommends_and_puts_all_back(
    machine: Machine, playbooks: Playbooks, disk: str, schedulers: tuple[str, str]
) -> None:
    chosen, other = schedulers
    before = manifest(machine, disk)
    with in_background(machine, "watcher", "python3", "-c", WATCHER, TARGET, disk):
        run = benchmark(
            playbooks,
            clients=[1, 2],
            rate=RATE,
            schedulers=[other],
            mount_options=["noatime", "sync"],
        )
        watched = seen_by(machine, json.loads, "/run/watched", [PLAIN, chosen])
    assert run.code == 0
    assert manifest(machine, disk) == before
    report = run.reports["benchmark-pull"]
    variants = ["as it is", f"scheduler {other}", "mount option noatime", "mount option sync"]
    assert [(row["variant"], row["clients"]) for row in report["rows"]] == [
        (variant, clients) for variant in variants for clients in (1, 2)
    ]
    for row in report["rows"]:
        assert 0 < row["rate"] <= RATE * 1.1, row
        assert 0 < row["commits"] <= RATE * 2 * 1.5, row
        assert row["mean"] > 0, row
        assert 0.9 <= row["flushes_per_commit"] <= 1.1, row
    # Each was in force, one after the other; that what was is back in between may be too short to be seen.
    plain = [PLAIN, chosen]
    assert (watched[0], watched[-1]) == (plain, plain)
    assert [state for state in watched if state != plain] == [
        [PLAIN, other],
        ["rw,noatime", chosen],
        [SYNC, chosen],
    ]
    assert any("client(s): direct_dsync is the fastest way to commit" in line for line in report["advice"])
    assert any(f"reached the limit of {RATE} commits/s" in line for line in report["advice"])
    kept = playbooks.directory / "durable-report"
    assert "commits/s" in (kept / "benchmark-pull.txt").read_text()
    assert (kept / "benchmark-pull.svg").read_text().count("<circle") == len(report["rows"])


def test_when_fio_is_killed_all_is_put_back_all_the_same(
    machine: Machine, playbooks: Playbooks, disk: str, schedulers: tuple[str, str]
) -> None:
    before = manifest(machine, disk)
    with (
        in_background(machine, "watcher", "python3", "-c", WATCHER, TARGET, disk),
        in_background(machine, "killer", "sh", "-c", KILLER, "killer", TARGET),
    ):
        run = benchmark(playbooks, clients=[2], mount_options=["sync"])
        watched = json.loads(machine.run(["cat", "/run/watched"]).stdout)
    assert run.code == 2
    assert "fio: exit -9" in run.output
    assert [SYNC, schedulers[0]] in watched
    assert manifest(machine, disk) == before
    assert "benchmark-pull" not in run.reports


#: Processes and files of a scratch server, and shared memory.
REMAINS = """
ps -e -o comm= | grep -x -E 'postgres|pgbench|mariadbd|sysbench|timeout|isql-fb|firebird' | sort || true
ls -A /tmp/firebird || true
ls -A /srv/pg
ls /dev/shm
tail -n +2 /proc/sysvipc/shm
"""


#: Kills the module, which is the parent of the supervisor, which is the parent of the server's `timeout`.
MODULE_KILLER = """
until pgrep -x pgbench; do sleep 0.1; done
supervisor=$(ps -o ppid= -p "$(pgrep -o -f '[t]imeout --kill-after')")
kill -KILL $(ps -o ppid= -p $supervisor)
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_transactions_of_a_scratch_server_leave_nothing(
    machine: Machine, playbooks: Playbooks, is_killed: bool
) -> None:
    before = machine.run(["sh", "-c", REMAINS]).stdout
    with in_background(machine, "killer", "sh", "-c", MODULE_KILLER if is_killed else "sleep 600"):
        run = benchmark(
            playbooks,
            mounts=["/srv/pg"],
            patterns=["append_fsync"],
            transactions=["pgbench_tpcb"],
            clients=[1],
        )
    assert run.code == (2 if is_killed else 0)
    deadline = time.monotonic() + PATIENCE
    while machine.run(["sh", "-c", REMAINS]).stdout != before and time.monotonic() < deadline:
        time.sleep(0.5)
    assert machine.run(["sh", "-c", REMAINS]).stdout == before
    if not is_killed:
        rows = {row["pattern"]: row for row in run.reports["benchmark-pull"]["rows"]}
        assert "PostgreSQL" in rows["pgbench_tpcb"]["server"]
        assert rows["pgbench_tpcb"]["commits"] > 2
        prices = run.reports["benchmark-pull"]["prices"]
        assert {rate["pattern"] for price in prices for rate in price["rates"]} == set(rows)


def test_transactions_of_sysbench_on_a_scratch_mariadb_leave_nothing(
    machine: Machine, playbooks: Playbooks
) -> None:
    before = machine.run(["sh", "-c", REMAINS]).stdout
    limits = {"patterns": [], "transactions": ["oltp_read_write", "oltp_write_only"], "clients": [2]}
    run = benchmark(playbooks, mounts=["/srv/pg"], **limits)
    assert run.code == 0
    assert machine.run(["sh", "-c", REMAINS]).stdout == before
    rows = run.reports["benchmark-pull"]["rows"]
    assert [row["pattern"] for row in rows] == limits["transactions"]
    for row in rows:
        assert "MariaDB" in row["server"]
        assert row["commits"] > 2
        assert row["p99"] > 0
        # Some commits share a flush.
        assert row["flushes_per_commit"] > 0.1, row


def test_transactions_of_firebird_need_no_server_and_leave_nothing(
    machine: Machine, playbooks: Playbooks
) -> None:
    before = machine.run(["sh", "-c", REMAINS]).stdout
    limits: dict[str, Any] = {"patterns": [], "transactions": ["firebird_tpcb"], "clients": [1, 4]}
    run = benchmark(playbooks, mounts=["/srv/pg"], **limits)
    assert run.code == 0
    assert machine.run(["sh", "-c", REMAINS]).stdout == before
    for row in run.reports["benchmark-pull"]["rows"]:
        assert "Firebird" in row["server"]
        assert row["commits"] > 0
        # Each commit forces its own writes.
        assert row["flushes_per_commit"] > 0.9, row


def state(machine: Machine) -> dict[str, Any]:
    """Return what is true of the disk, except how often it was flushed."""
    return {name: seen for name, seen in truth.read(machine)["disks"][SERIAL].items() if name != "flushes"}


def test_a_cache_is_off_for_a_while_and_the_profiles_have_their_price(
    machine: Machine, playbooks: Playbooks, disk: str
) -> None:
    before = state(machine)
    machine.run(["rm", "-f", "/run/caches"])
    with in_background(machine, "watcher", "sh", "-c", CACHE_WATCHER, "watcher", disk):
        run = benchmark(
            playbooks, patterns=["group_osync"], clients=[1, 80], size=1, write_caches=["disabled"]
        )
        watched = seen_by(machine, str.split, "/run/caches", "0x01")
    assert run.code == 0
    assert state(machine) == before
    assert (before["cache"], watched) == ("on", ["0x01", "0x00", "0x01"])
    priced = {price["profile"]: price["variant"] for price in run.reports["benchmark-pull"]["prices"]}
    assert (priced["strict"], priced["flush"], priced["ups"]) == ("write cache off", "as it is", None)
    assert all(
        row["flushes_per_commit"] < 1 for row in run.reports["benchmark-pull"]["rows"] if row["clients"] == 80
    ), "several commits share a flush"
