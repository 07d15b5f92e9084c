# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-ins for SQL Server and FairCom DB (tests/stand_ins) on a lab machine."""

from __future__ import annotations

import tarfile
from pathlib import Path

from lab.machine import Machine

ROOT = Path(__file__).resolve().parents[2]
UNITS = ("mssql-server", "faircom")


def install(machine: Machine, directory: Path) -> None:
    """Put both in place, stopped. `directory` takes the archive that is sent."""
    archive = directory / "stand_ins.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(ROOT / "tests/stand_ins", "stand_ins")
    machine.put(archive, "/root/stand_ins.tar")
    machine.run(["tar", "-C", "/root", "-xf", "/root/stand_ins.tar"])
    machine.run(["sh", "/root/stand_ins/install_stand_ins.sh", "mssql", "faircom"])
