# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Defects of fstab, crypttab and mount units: a check notices each, a run makes none worse, and the next boot comes to what
both have said of it: emergency mode, / read-only, a mount left out, or nothing of these.

DBHOST_LAB_WHOLE=1 plants all of support/boot_defects.py, on a root with ext4 and on one with XFS; else a sample, on ext4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from support.boot_defects import FILE, ON_EXT4, ON_XFS, SOUND, Defect
from support.boot_ground import BOOTS, FSTAB, READ_ONLY, STOPS, STOPS_OR_READ_ONLY, WITHOUT, Ground
from support.runs import Playbooks, Run
from support.whole import IS_WHOLE

from lab.machine import Machine

SAMPLE = (
    "a slip in an option",
    "a slip on /",
    "bind mounts that need each other",
    "a masked mount",
    "a slip with noauto",
)
TABLES = {"ext4": ON_EXT4, "xfs": ON_XFS}
ALL = [(root, name) for root, table in TABLES.items() for name in table]
PLANTED = [(root, name) for root, name in ALL if IS_WHOLE or (root == "ext4" and name in SAMPLE)]
#: One release is enough for what does not depend on it.
on_bookworm = pytest.mark.parametrize("machine", ["bookworm"], indirect=True)
MANAGED = ("/srv/extjournal", "/srv/xfslog", "/srv/btrfs", "/srv/ext3", "/srv/journaled", "/srv/bound")
#: How a row's reason begins -> what the next boot comes to; the worst first.
PROMISES = {
    "the next boot stops: ": STOPS,
    "the next boot stops or leaves / read-only: ": STOPS_OR_READ_ONLY,
    "the next boot leaves / read-only: ": READ_ONLY,
    "the next boot leaves a mount out: ": WITHOUT,
    "the next boot does not mount ": WITHOUT,
    "the next boot mounts an empty directory ": BOOTS,
}


@pytest.fixture(scope="module")
def grounds(machine: Machine) -> Iterator[dict[str, Ground]]:
    """The machine with each root that was asked for, made when it is; given back as it was."""
    machine.save("as-found")
    yield {}
    machine.load("as-found")


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, str], str]:
    """What the boot came to with each defect."""
    return {}


@pytest.fixture
def ground(machine: Machine, grounds: dict[str, Ground], planted: tuple[str, str]) -> Ground:
    """The machine with the root that is wanted, up and sound."""
    root = planted[0]
    if root not in grounds:
        if grounds:
            machine.load("as-found")
            grounds.clear()
        grounds[root] = Ground(machine, root)
        grounds[root].prepare()
    else:
        grounds[root].put_back()
    return grounds[root]


def report(run: Run) -> dict[str, Any]:
    (found,) = run.reports.values()
    return found


def rows(run: Run) -> list[dict[str, str]]:
    """Return what is said of lines and units that a boot reads."""
    return [row for row in report(run)["settings"] if row["wanted_persisted"] == "known"]


def promised(run: Run) -> str | None:
    """Return what a report says that the next boot comes to, None where it does not tell."""
    said = rows(run)
    found = [boot for words, boot in PROMISES.items() if any(row["why"].startswith(words) for row in said)]
    is_open = report(run)["verdict"] == "blocked" or any(row["verdict"] == "unknown" for row in said)
    return found[0] if found else None if is_open else BOOTS


def foreign(fstab: str) -> list[str]:
    """Return the lines of an fstab that are not ours to change."""
    lines = fstab.split("\n")
    return [
        line
        for line in lines
        if line[:16] != "# durable.dbhost" and line.split()[1:2] not in [[each] for each in MANAGED]
    ]


def assert_noticed(defect: Defect, run: Run) -> None:
    """Require that a check names the defect, the place and the remedy, and fails; of what is sound that it is silent."""
    if defect.setting == SOUND:
        assert (run.code, rows(run)) == (0, [])
        return
    assert run.code != 0
    if defect.setting == FILE:
        assert report(run)["verdict"] == "blocked"
        assert any(defect.said in why for why in report(run)["why"]), report(run)["why"]
        return
    told = [row for row in rows(run) if row["setting"] == defect.setting]
    words = [f"{row['why']}; {row['remedy']}" for row in told]
    assert any(defect.said in said for said in words), rows(run)
    assert any("/etc/" in said for said in words) and all(row["remedy"] for row in told)


@on_bookworm
@pytest.mark.parametrize("planted", PLANTED, ids="-".join)
def test_a_boot_comes_to_what_is_said_of_it(
    ground: Ground, playbooks: Playbooks, outcomes: dict[tuple[str, str], str], planted: tuple[str, str]
) -> None:
    defect = TABLES[planted[0]][planted[1]]
    for path, text in defect.plant(ground.files).items():
        ground.write(path, text)
    before, mounts = ground.read(FSTAB), ground.mounts()
    ground.sh("sleep 0.1; touch /root/stamp; sleep 0.1")
    check = playbooks.run("harden-db", "--check")
    assert_noticed(defect, check)
    assert (ground.changed_since("/root/stamp"), ground.mounts()) == ("", mounts)

    run = playbooks.run("harden-db")
    after = ground.read(FSTAB)
    assert foreign(after) == foreign(before)
    assert promised(run) == promised(check)
    assert {(row["target"], row["setting"]) for row in rows(run)} <= {
        (row["target"], row["setting"]) for row in rows(check)
    }

    came, detail = ground.boot(defect.mounts)
    outcomes[planted] = came
    print(f"{planted}: said {promised(run)}, came to {came}: {detail}")
    assert came in defect.boot.split(" or "), detail
    assert promised(run) in (defect.boot, None), detail


# With the machine of the others: pytest may run tests of another module between these and one without, and forget the outcomes.
@on_bookworm
@pytest.mark.usefixtures("machine")
def test_none_was_left_out(outcomes: dict[tuple[str, str], str]) -> None:
    counts = {root: Counter(came for (on, _name), came in outcomes.items() if on == root) for root in TABLES}
    print(f"{len(outcomes)} of {len(ALL)} defects and oddities were planted and booted with: {counts}")
    assert sorted(outcomes) == sorted(PLANTED)
