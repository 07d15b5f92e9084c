# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What README and docs print is run as a reader does it: the collection built and installed, an inventory, the commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import pages
from support.runs import ROOT, bare_environment, connection, inventory

from lab.machine import Machine

ROWS = pages.table()["default"]
START = ROOT / "docs/start.md"


@pytest.fixture(scope="module")
def reader(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sources, in which a reader has written the files of the tutorial."""
    directory = tmp_path_factory.mktemp("reader") / "sources"
    pages.copy_of_sources(directory)
    written = directory / "inventory"
    (written / "group_vars").mkdir(parents=True)
    (configuration,) = pages.blocks(START, "ini")
    hosts, mounts = pages.blocks(START, "yaml")
    (directory / "ansible.cfg").write_text(configuration)
    (written / "hosts.yml").write_text(hosts)
    (written / "group_vars/databases.yml").write_text(mounts)
    inventory(written / "zz-connection.yml", {"databases": {"hosts": {"db1": connection(machine)}}})
    return directory


@pytest.mark.parametrize("row", ROWS, ids=[f"{number}-{row['page']}" for number, row in enumerate(ROWS, 1)])
def test_a_command_ends_as_printed(reader: Path, machine: Machine, row: dict[str, Any]) -> None:
    if row.get("machine") == "host":
        machine.run(["sh", "-c", row["command"]])
        return
    environment = {
        **bare_environment(),
        "HOME": str(reader.parent),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command = pages.with_names(row["command"], {"/var/lib/durable-report": str(reader.parent / "kept")})
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=reader,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == row.get("code", 0)
    assert "[ERROR]" not in done.stderr
    assert "[WARNING]" not in done.stderr
