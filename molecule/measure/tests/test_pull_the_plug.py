# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power of the machine is cut under commits: none is lost with barriers, and without them many are, and it is told.

Two names of the one machine, each with a volatile disk of its own, go through the same cut. The witness is this host.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from support import power
from support.runs import Playbooks, Run, connection, inventory

from lab.machine import Machine
from lab.process import free_port

#: Name of the machine -> mount options of its disk.
HOSTS = {"safe": "defaults", "unsafe": "barrier=0"}
#: Where the machine reaches this host: ssh forwards it.
ADDRESS = "127.0.0.1"
MACHINE = "pull"
WANTED = 1200
LIMIT = 300.0


class Cut(NamedTuple):
    """The machine after the cut, with the playbooks that know both of its names."""

    machine: Machine
    playbooks: Playbooks
    directory: Path


def pull(playbooks: Playbooks, host: str, state: str, **variables: Any) -> Run:
    """Run pull-the-plug for one name of the machine."""
    return playbooks.run(
        "pull-the-plug",
        variables={
            "durable_hosts": host,
            "durable_plug": state,
            "durable_confirm": "pull-the-plug",
            "durable_witness": "witness",
            **variables,
        },
    )


def witness_log(directory: Path, host: str) -> Path:
    """Return what the witness writes down of a host."""
    return directory / "witness" / f"witness-{host}.log"


def names(machine: Machine, directory: Path, ports: dict[str, int]) -> dict[str, Any]:
    """Return an inventory with both names of the machine, and the witness."""
    hosts: dict[str, Any] = {
        host: {
            **connection(machine),
            "durable_mounts": [f"/srv/{host}"],
            "durable_plug_limits": {"clients": 6, "size": 1, "rate": 200},
            "durable_witness_port": ports[host],
            "durable_witness_address": ADDRESS,
            "durable_witness_listen": "127.0.0.2",
            "durable_witness_directory": str(directory / "witness"),
        }
        for host in HOSTS
    }
    hosts["witness"] = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
    }
    return {"plugs": {"hosts": hosts}}


def acknowledged(directory: Path, host: str) -> int:
    """Return how many commits of a host were acknowledged."""
    return witness_log(directory, host).read_text().count("\na ")


def wait_for_commits(directory: Path, host: str, count: int) -> None:
    """Return when so many commits of a host were acknowledged."""
    deadline = time.monotonic() + LIMIT
    while acknowledged(directory, host) < count:
        assert time.monotonic() < deadline, f"{host}: too few commits within {LIMIT:.0f} s"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def cut(machine: Machine, playbooks: Playbooks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cut]:
    """The machine, after its power was cut under commits on both disks and it was booted again."""
    if "PLUG" in machine.run(["lsblk", "--nodeps", "--noheadings", "--output", "SERIAL"]).stdout:
        machine.reset()  # they are of an earlier run
    directory = tmp_path_factory.mktemp("cut")
    ports = {host: free_port() for host in HOSTS}
    with ExitStack() as stack:
        disks = {}
        for host, options in HOSTS.items():
            disk = disks[host] = power.volatile_disk(directory / f"{host}-before")
            stack.enter_context(disk.served_for(machine))
            power.plug_in(machine, disk, f"PLUG{host}", f"/srv/{host}", options)
            wire = power.Wire(("127.0.0.1", ports[host]), ("127.0.0.2", ports[host]))
            stack.callback(wire.cut)
            stack.enter_context(power.forwarded(machine, ports[host]))
        playbooks.inventories.append(inventory(directory / "names.yml", names(machine, directory, ports)))
        for host in HOSTS:
            run = pull(playbooks, host, "run")
            assert run.code == 0, "the commits did not begin"
        # Somebody flushes the unsafe disk once, so that files are there, and commits alone can be missing.
        machine.run(["sh", "-c", f"sync -f /srv/unsafe; sync {power.link('PLUGunsafe')}"])
        synced = {host: acknowledged(directory, host) for host in HOSTS}
        for host, count in synced.items():
            wait_for_commits(directory, host, count + WANTED)
        machine.cut()
        for disk in disks.values():
            disk.stop()
        machine.boot()
        for host, disk in disks.items():
            left = power.after_cut(disk, directory / f"{host}-after")
            stack.enter_context(left.served_for(machine))
            power.plug_in(machine, left, f"PLUG{host}", f"/srv/{host}", HOSTS[host])
        inventory(directory / "names.yml", names(machine, directory, ports))
        yield Cut(machine, playbooks, directory)


def test_on_the_safe_disk_no_commit_is_lost_and_that_is_attested(cut: Cut) -> None:
    run = pull(cut.playbooks, "safe", "verify", durable_attested_by="the lab")
    report = run.reports["pull-the-plug-safe"]
    assert (run.code, report["verdict"], report["ended"]) == (0, "kept", {})
    assert report["losses"]["acknowledged"] >= WANTED
    assert report["losses"]["checked"] > 0
    assert report["losses"]["lost"] == 0
    text = (cut.playbooks.directory / "durable-report/pull-the-plug-safe.yml").read_text()
    (claim,) = yaml.safe_load(text)["durable_attestations_host"]
    assert (claim["claim"], claim["by"]) == ("plug_pulled", "the lab")
    assert "virtual machine" in text
    # All of it is taken away.
    assert cut.machine.run(["ls", "-A", "/srv/safe"]).stdout.split() == ["lost+found"]
    assert not witness_log(cut.directory, "safe").exists()


def test_on_the_unsafe_disk_losses_are_told_and_nothing_is_attested(cut: Cut) -> None:
    run = pull(cut.playbooks, "unsafe", "verify", durable_attested_by="the lab")
    report = run.reports["pull-the-plug-unsafe"]
    assert (run.code, report["verdict"], report["ended"]) == (2, "lost", {})
    assert report["losses"]["lost"] > 0
    assert "acknowledged commits are lost" in run.output
    assert not (cut.playbooks.directory / "durable-report/pull-the-plug-unsafe.yml").exists()
    # The evidence stays until it is cleaned away.
    assert ".durable-plug-" in cut.machine.run(["ls", "-A", "/srv/unsafe"]).stdout
    assert pull(cut.playbooks, "unsafe", "clean").code == 0
    assert ".durable-plug-" not in cut.machine.run(["ls", "-A", "/srv/unsafe"]).stdout
    assert not witness_log(cut.directory, "unsafe").exists()
