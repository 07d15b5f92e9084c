# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of a running PostgreSQL: direct writes with FUA on one disk, writes and flushes on another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from support.background import in_background
from support.runs import Playbooks, Run

from lab.machine import Machine

MACHINE = "measure"
#: Cluster -> what its writes become, and its port; each has its own mount.
FOUND = {"fua": "FUA", "flush": "flush"}
PORTS = {"fua": "5432", "flush": "5433"}
SECONDS = 10
#: What a run must leave as it was: files except those of the servers, traces, processes.
MANIFEST = """
ls -A /srv/fua /srv/flush
grep . /sys/block/*/trace/enable
ls /sys/kernel/debug/block/*
pgrep -l "blktrace|blkparse" || true
"""
#: Another program that waits for its writes to the same disk.
OTHER = """
while :; do dd if=/dev/zero of="/srv/$1/other" bs=4096 count=50 oflag=dsync status=none; done
"""


def observe(playbooks: Playbooks) -> Run:
    """Observe the servers on both mounts."""
    limits = {"observe": "postgres", "seconds": SECONDS}
    return playbooks.run(
        "prove-fua",
        "-e",
        "durable_confirm=prove-fua",
        variables={
            "durable_prove_fua": limits,
            "durable_mounts": [f"/srv/{name}" for name in FOUND],
        },
    )


def rows(run: Run) -> dict[str, dict[str, Any]]:
    """Return the row of each cluster."""
    return {row["mount"].removeprefix("/srv/"): row for row in run.reports["prove-fua-measure"]["rows"]}


def manifest(machine: Machine) -> str:
    """Return what a run must leave as it was."""
    return machine.run(["sh", "-c", MANIFEST]).stdout


@pytest.fixture(scope="module", autouse=True)
def servers(machine: Machine) -> Iterator[None]:
    """Both clusters run."""
    version = machine.run(["ls", "/usr/lib/postgresql"]).stdout.strip()
    units = [f"postgresql@{version}-{name}.service" for name in FOUND]
    machine.run(["systemctl", "start", *units])
    yield
    machine.run(["systemctl", "stop", *units])


@pytest.fixture(scope="module")
def load(machine: Machine, servers: None) -> Iterator[None]:
    """Transactions commit on both."""
    as_server = ("runuser", "-u", "postgres", "--", "pgbench")
    with ExitStack() as stack:
        for name in FOUND:
            machine.run([*as_server, "-q", "-i", "-p", PORTS[name], "postgres"])
            argv = (*as_server, "-n", "-c", "2", "-R", "5", "-T", "900", "-p", PORTS[name], "postgres")
            stack.enter_context(in_background(machine, f"load-{name}", *argv))
        machine.run(["sh", "-c", "until [ $(pgrep -c -x pgbench) -eq 2 ]; do sleep 0.5; done"])
        yield


def test_without_transactions_nothing_is_known(machine: Machine, playbooks: Playbooks) -> None:
    before = manifest(machine)
    run = observe(playbooks)
    assert run.code == 0
    assert {name: (row["found"], row["safety"]) for name, row in rows(run).items()} == dict.fromkeys(
        FOUND, ("unknown", "unknown")
    )
    assert manifest(machine) == before


@pytest.mark.fact(17)
def test_each_servers_writes_are_what_its_disk_makes_of_them(
    machine: Machine, playbooks: Playbooks, load: None
) -> None:
    before = manifest(machine)
    run = observe(playbooks)
    assert run.code == 0
    assert {name: (row["found"], row["safety"]) for name, row in rows(run).items()} == {
        name: (found, "ok") for name, found in FOUND.items()
    }
    assert all(row["commits"] >= 20 for row in rows(run).values())
    assert manifest(machine) == before


def test_another_program_on_the_disk_makes_flushes_unknown_and_no_fua(
    machine: Machine, playbooks: Playbooks, load: None
) -> None:
    with ExitStack() as stack:
        for name in FOUND:
            stack.enter_context(in_background(machine, f"other-{name}", "sh", "-c", OTHER, "other", name))
        found = rows(observe(playbooks))
    assert (found["fua"]["found"], found["fua"]["safety"]) == ("FUA", "ok")
    assert (found["flush"]["found"], found["flush"]["safety"]) == ("flush", "unknown")
    assert "other programs write synchronously to the same disks" in found["flush"]["why"]
