# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the collection's policy chooses for SQL Server, beside what the cells of a device cost."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.mssql import rules as mssql
from proof import choice, evidence
from proof.cells import LOSES, SAFE, Setting, matrix
from proof.choice import choices, choose, is_cheapest, problems

CACHED = {
    "kernel": "6.1.0-9-amd64",
    "mount": "rw,relatime",
    "write_cache": "write back",
    "fua": "0",
    "cache_type": "write back",
}
TAKES_FUA = {**CACHED, "fua": "1"}
OFF = {**CACHED, "write_cache": "write through", "cache_type": "write through"}
FLUSH, FUA = "direct_fdatasync", "direct_dsync"


def cell(device: str, workload: str, flushes: float, writes: float, **values: Any) -> dict[str, Any]:
    """Return the evidence of a cell whose one client sent so much for each commit, beside a write of noise."""
    setting = Setting("flush", device, "ext4")
    row = {
        "clients": 1,
        "noise": 1,
        "kernel": {"flushes": flushes, "writes": writes + 1},
        "trace": {"fua": 0.0, "flushes": 0.0},
        "log": {"fua": 0.0, "flushes": flushes},
        "minimum": {"flushes": None},
        "commit_seconds": {"p50": 0.01},
    }
    return {
        "cell": f"{setting.name}/{workload}",
        "setting": asdict(setting),
        "workload": workload,
        "expects": SAFE,
        "problems": [],
        "seen": CACHED,
        "accounting": [row],
        **values,
    }


@pytest.mark.parametrize(
    ("seen", "is_attested", "chosen", "against"),
    [
        (CACHED, True, FLUSH, "FUA unsupported"),
        (TAKES_FUA, True, FUA, ""),
        (TAKES_FUA, False, FLUSH, "only claims to take FUA"),
        (OFF, True, FLUSH, "its cache is only switched off"),
        ({**TAKES_FUA, "mount": "rw,nobarrier"}, True, FLUSH, "without barriers"),
        ({**TAKES_FUA, "mount": "rw,data=journal"}, True, FLUSH, "data=journal"),
        ({**TAKES_FUA, "kernel": "5.4.0"}, True, FLUSH, "sends FUA since"),
        ({**TAKES_FUA, "cache_type": "none"}, True, FLUSH, "unknown"),
        ({**TAKES_FUA, "fua": "unknown"}, True, FLUSH, "unknown"),
    ],
)
@pytest.mark.fact(26)
def test_the_policy_is_asked_with_the_facts_of_the_device(
    seen: dict[str, str], is_attested: bool, chosen: str, against: str
) -> None:
    """As the guest told them; what is unknown speaks against FUA."""
    way, reasons = choose(seen, "ext4", is_attested)
    assert way == chosen
    assert against in "; ".join(reasons)
    assert bool(reasons) == (chosen == FLUSH)


@pytest.mark.parametrize(
    ("chosen", "costs", "cheapest"),
    [
        (FUA, {FUA: (0.0, 1.0), FLUSH: (1.0, 1.0)}, True),
        (FLUSH, {FUA: (0.0, 1.0), FLUSH: (1.0, 1.0)}, False),
        (FLUSH, {FUA: (1.0, 1.0), FLUSH: (1.02, 1.1)}, True),
        (FUA, {FUA: (0.0, 2.0), FLUSH: (0.0, 1.0)}, False),
        (FUA, {FUA: (0.0, 2.0), FLUSH: (1.0, 1.0)}, True),
        ("direct", {FUA: (0.0, 1.0), FLUSH: (0.0, 1.0)}, False),
    ],
)
def test_fewest_flushes_and_then_fewest_writes(
    chosen: str, costs: dict[str, tuple[float, float]], cheapest: bool
) -> None:
    """What a journal adds by itself does not decide; 0/0 is never a choice."""
    assert is_cheapest(chosen, costs) == cheapest


def test_each_device_has_its_cheapest_way() -> None:
    """FUA where it is taken, forced flush where both cost a flush; without an attestation it is forced flush."""
    cells = [
        cell("virtio", FUA, 1.0, 1.0),
        cell("virtio", FLUSH, 1.0, 1.0),
        cell("scsi-fua", FUA, 0.0, 1.0, seen=TAKES_FUA),
        cell("scsi-fua", FLUSH, 1.0, 1.0, seen=TAKES_FUA),
    ]
    scsi, virtio = choices(cells)
    assert (scsi.setting, scsi.chosen, scsi.unattested) == ("flush/scsi-fua/ext4", FUA, FLUSH)
    assert scsi.costs == {FUA: (0.0, 1.0), FLUSH: (1.0, 1.0)}
    assert (virtio.setting, virtio.chosen) == ("flush/virtio/ext4", FLUSH)
    assert problems([scsi, virtio]) == []


def test_a_choice_that_costs_more_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said on the page and by the exit code: a policy that always flushes, and one that takes 0/0."""
    cells = [
        cell("scsi-fua", FUA, 0.0, 1.0, seen=TAKES_FUA),
        cell("scsi-fua", FLUSH, 1.0, 1.0, seen=TAKES_FUA),
    ]
    with monkeypatch.context() as patched:
        patched.setattr(mssql, "against_fua", lambda *_: ["it does not like it"])
        (wrong,) = problems(choices(cells))
    assert wrong.startswith("flush/scsi-fua/ext4: forced flush (3982, 1/1) is chosen")
    assert "FUA (3979, 1/0) 0.00 and 1.00" in wrong
    monkeypatch.setattr(mssql, "_FUA", {**mssql._FUA, "writethrough": "0"})
    (wrong,) = problems(choices(cells))
    assert "0/0 is chosen" in wrong


@pytest.mark.fact(28)
def test_0_0_is_told_and_not_compared() -> None:
    """Where the cache is off it is the cheapest, shown to be safe here, and refused all the same."""
    cells = [
        cell("virtio", FUA, 1.0, 1.0, seen=OFF),
        cell("virtio", FLUSH, 1.0, 1.0, seen=OFF),
        cell("virtio", "direct", 0.0, 1.0, seen=OFF),
    ]
    (found,) = choices(cells)
    assert (found.chosen, found.refused, found.problem) == (FLUSH, (0.0, 1.0), "")


def test_only_what_was_shown_is_compared() -> None:
    """Not a cell with a problem, a control, a plant, a device that harden_db has no rule for, nor one way alone."""
    good = cell("virtio", FLUSH, 1.0, 1.0)
    planted = asdict(replace(Setting("flush", "virtio", "ext4"), plant="barrier0"))
    ruleless = asdict(Setting("defaults", "nbd", "ext4"))
    for other in (
        cell("virtio", FUA, 0.0, 1.0, problems=["loses"]),
        cell("virtio", FUA, 0.0, 1.0, expects=LOSES),
        cell("virtio", FUA, 0.0, 1.0, setting=planted),
        cell("virtio", FUA, 0.0, 1.0, setting=ruleless),
        good,
    ):
        assert choices([good, other]) == []


def test_the_page_has_the_choice_and_what_is_wrong_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each device in a row."""
    sums = {
        "cuts": 1000,
        "losing": 0,
        "bound": 0.003,
        "without_volatile": 0,
        "lost_without_volatile": 0,
        "damaged": 0,
    }
    more = {
        "totals": sums,
        "control": "",
        "seeds": [],
        "plant": "",
        "hardened": {"verdict": "attested"},
        "versions": {},
    }
    cells = [
        cell("scsi-fua", FUA, 0.0, 1.0, seen=TAKES_FUA, **more),
        cell("scsi-fua", FLUSH, 1.0, 1.0, seen=TAKES_FUA, **more),
    ]
    text = evidence.page(cells)
    assert (
        "| flush/scsi-fua/ext4 | 0.00 flushes, 1.00 writes | 1.00 flushes, 1.00 writes | FUA (3979, 1/0) | "
        "forced flush (3982, 1/1) | nothing | not safe |"
    ) in text
    assert "what is chosen for SQL Server" not in text
    monkeypatch.setattr(mssql, "against_fua", lambda *_: ["it does not like it"])
    assert "- what is chosen for SQL Server: flush/scsi-fua/ext4: forced flush" in evidence.page(cells)


def test_the_workloads_are_cells() -> None:
    """A name that no cell has would compare nothing, and nobody would see it."""
    assert {*choice.WAYS, choice.REFUSED} <= {found.workload for found in matrix()}
