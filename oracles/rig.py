# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of the lab with this package and the collection's code."""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from lab import archive
from lab.machine import Machine

ROOT = Path(__file__).resolve().parent.parent
HOME = "/root/oracles"
PACKAGE = "ansible_collections/durable/dbhost/plugins/module_utils"
#: The scenarios whose machines have the programs -> the oracles that are asked there; each is a module of this package.
SCENARIOS = {"engines": ("fstab", "units", "firebird", "mariadb", "postgresql"), "power": ("upsmon",)}
NAMES = tuple(name for names in SCENARIOS.values() for name in names)
#: Of each in a scenario: cases, or seconds if these are over first.
FEW, SHORTLY = 300, 6.0
#: Seconds more than asked for that a run may take: the last case, and what it prepares.
GRACE = 120.0


def install(machine: Machine) -> None:
    """Put the code as it is now on a machine."""
    with tempfile.TemporaryDirectory() as scratch:
        packed = Path(scratch, "oracles.tar")
        with tarfile.open(packed, "w") as tar:
            for path in sorted((ROOT / "oracles").rglob("*.py")):
                tar.add(path, str(path.relative_to(ROOT)))
            archive.add_module_utils(tar, PACKAGE)
        machine.put(packed, "/root/oracles.tar")
    machine.run(["sh", "-ec", f"rm -rf {HOME}; mkdir {HOME}; tar -C {HOME} -xf /root/oracles.tar"])


def ask(machine: Machine, name: str, first: int, count: int, seconds: float) -> dict[str, Any]:
    """Run an oracle's cases on a machine that has the code; return what guest.run returns."""
    words = ["python3", "-m", "oracles.guest", name, str(first), str(count), str(seconds)]
    script = ["sh", "-ec", 'cd "$1" && shift && exec "$@"', "sh", HOME, *words]
    found: dict[str, Any] = json.loads(machine.run(script, timeout=seconds + GRACE).stdout)
    return found


def ask_shortly(machine: Machine, name: str) -> tuple[str, bool]:
    """Run a few cases, the same each time, on a machine of a scenario; return what `report` does."""
    return report(name, ask(machine, name, 0, FEW, SHORTLY))


def report(name: str, found: dict[str, Any]) -> tuple[str, bool]:
    """Return a text of what came out, and whether it is well.

    It is not where a disagreement has no name, or where not a single case was agreed on.
    """
    cases = found["agreed"] + found["declined"] + found["disagreed"]
    lines = [
        f"{name}: {cases} cases in {found['seconds']:.0f} s: {found['agreed']} agreed, {found['declined']} declined,"
        f" {found['disagreed']} disagreed"
    ]
    for label, of_class in sorted(found["disagreements"].items()):
        lines.append(
            f"  {of_class['count']} {label or 'WITHOUT A NAME'}: {found['known'].get(label, 'nobody knows why')}"
        )
        if not label:
            lines += [f"    SEED={seed} COUNT=1: {seen}" for seed, seen in of_class["seen"]]
    return "\n".join(lines), "" not in found["disagreements"] and found["agreed"] > 0
