# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run playbooks as a user does, and read what the user gets: exit code, recap, report, journal."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.executions import Executions as Executions
from lab.machine import Machine

from . import warm

ROOT = Path(__file__).resolve().parents[2]
_RECAP = re.compile(r"^(\S+)\s+: (ok=.*)$", re.M)


@dataclass
class Run:
    """A finished ansible-playbook."""

    code: int
    output: str
    recap: dict[str, dict[str, int]]
    reports: dict[str, dict[str, Any]]
    #: What is written of all hosts, in lines that are not broken.
    details: str = ""

    def settings(self, host: str) -> dict[tuple[str, str], str]:
        """Return {(target, setting): verdict} of a host's report."""
        rows = self.reports[host]["settings"]
        return {(row["target"], row["setting"]): row["verdict"] for row in rows}


@dataclass
class Playbooks:
    """Runs the collection's playbooks against an inventory, from a directory of its own.

    With pipelining, which takes a quarter off a run; `environment` may say otherwise. Each scenario converges without, and
    test_reports of `default` holds a report against one that was made so.
    """

    inventories: list[Path]
    directory: Path
    environment: dict[str, str]
    bin: Path = Path(sys.executable).parent
    limit: str = "all"
    collection: Path = ROOT
    #: The machines' Python: modules are packed compiled for it.
    python: str = "python3.11"

    def run(self, playbook: str, *options: str, variables: dict[str, Any] | None = None) -> Run:
        """Run `playbooks/PLAYBOOK.yml`. Each run's reports are its own."""
        reports = self.directory / "durable-report"
        details = reports / "report.txt"
        for old in (*reports.glob("*.json"), *reports.glob(details.name)):
            old.unlink()
        inventories = [option for path in self.inventories for option in ("-i", str(path))]
        extra = ["-e", json.dumps(variables)] if variables else []
        code, output = self._call(
            "ansible-playbook",
            [
                *inventories,
                str(self.collection / f"playbooks/{playbook}.yml"),
                *extra,
                f"--limit={self.limit}",
                *options,
            ],
        )
        print(output)
        recap = {
            host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)}
            for host, counts in _RECAP.findall(output)
        }
        found = {path.stem: json.loads(path.read_text()) for path in reports.glob("*.json")}
        text = details.read_text() if details.exists() else ""
        return Run(code, output, recap, found, text)

    def ask(self, host: str, module: str, arguments: dict[str, Any] | None = None) -> str:
        """Run one module, as `ansible -m` does, and return what it shows. Raises CalledProcessError."""
        inventories = [option for path in self.inventories for option in ("-i", str(path))]
        # Of an empty mapping ansible makes an argument without a name.
        given = ["-a", json.dumps(arguments)] if arguments else []
        words = [*inventories, host, "-m", module, *given]
        path = str(self.collection / "playbooks/collections")
        code, output = self._call("ansible", words, ANSIBLE_COLLECTIONS_PATH=path)
        if code:
            raise subprocess.CalledProcessError(code, words, output)
        return output

    def _call(self, command: str, arguments: list[str], **environment: str) -> tuple[int, str]:
        """Return the exit code of a command of Ansible's, and what it printed, errors among it."""
        environment = {**_users_environment(), **environment, **self.environment}
        server = _server(self.bin, self.collection, self.python, tuple(sorted(environment.items())))
        with tempfile.NamedTemporaryFile(prefix="output-") as output:
            code = server.run(command, arguments, self.directory, Path(output.name), 600.0)
            return code, output.read().decode("utf-8", "replace")


@functools.cache
def _server(
    program: Path, collection: Path, python: str, environment: tuple[tuple[str, str], ...]
) -> warm.Server:
    """Return the server for an environment. Another collection has other modules of the same names."""
    compiler = shutil.which(python) or ""
    server = warm.Server(program / "python", dict(environment), compiler, str(collection))
    atexit.register(server.close)
    return server


def bare_environment() -> dict[str, str]:
    """Return the environment without what Molecule sets for its own playbooks, and pytest again for each test."""
    others = ("ANSIBLE_", "MOLECULE_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    return {**kept, "ANSIBLE_NOCOLOR": "1"}


def _users_environment() -> dict[str, str]:
    """Return it with what the tests' own runs set."""
    return {**bare_environment(), "ANSIBLE_INJECT_FACT_VARS": "false", "ANSIBLE_PIPELINING": "true"}


def connection(machine: Machine) -> dict[str, Any]:
    """Return how to reach the machine, to give it a second name."""
    return dict(json.loads(machine.inventory.read_text())["all"]["hosts"][machine.name])


def inventory(path: Path, content: dict[str, Any]) -> Path:
    """Write one more inventory (YAML is a superset of JSON)."""
    path.write_text(json.dumps(content))
    return path


#: Stands in for ssh: does something before the n-th call, then is ssh.
_WRAPPER = """#!/bin/sh
echo call >> {calls}
if [ "$(wc -l < {calls})" -eq {number} ]; then {command}; fi
exec ssh "$@"
"""


def before_call(playbooks: Playbooks, host: str, number: int, command: str) -> None:
    """Make a shell command run just before the n-th module of the next run reaches the host.

    With pipelining each module is one call of ssh; `exit 255` is a lost connection.
    """
    wrapper, calls = playbooks.directory / "ssh", playbooks.directory / "calls"
    wrapper.write_text(_WRAPPER.format(calls=calls, number=number, command=command))
    wrapper.chmod(0o755)
    inventory = playbooks.directory / "wrapper.yml"
    variables = {"ansible_ssh_executable": str(wrapper)}
    inventory.write_text(json.dumps({"databases": {"hosts": {host: variables}}}))
    playbooks.inventories.append(inventory)
