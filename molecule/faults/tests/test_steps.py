# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A power cut, and a reboot, before each change of a run: the host comes up at least as safe as it was, and the next run ends it.

The run is that of support/kill_harness.py: policy and layers without Ansible, which die before one change. What the disk had
not flushed is another question: docs/proof.md has its cuts.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fault_runs import Faults
from support.faults import STEPS
from support.kill_points import Deaths
from support.layout import TARGETS, id_of
from support.whole import whole_only

#: SCSI below ext4 and virtio below XFS: between them every kind of step that there is.
MANAGED = {target: TARGETS[target] for target in ("/srv/pgdata", "/srv/faircom")}
#: More steps than a run can have.
MOST = 100


@whole_only("a boot for each step: make scenario NAME=faults")
@pytest.mark.parametrize("what", STEPS)
def test_a_host_that_loses_power_or_boots_at_any_step_comes_up_as_safe_as_before(
    faults: Faults, results: dict[str, tuple[str, ...]], tmp_path: Path, what: str
) -> None:
    machine = faults.fresh()
    deaths = Deaths(machine, MANAGED, tmp_path)
    deaths.install(("strict", "disposable"), {serial: id_of(serial) for serial in MANAGED.values()})
    assert "ended" in deaths.enforce("disposable")
    # The mode of a journal changes at a mount.
    machine.reset()
    allowed = deaths.weaknesses(deaths.truth())
    assert allowed
    for number in range(1, MOST):
        assert deaths.enforce("disposable")["ended"]["changes"] == []
        last = deaths.enforce("strict", number)
        if what == STEPS[0]:
            machine.reset()
        else:
            machine.reboot()
        seen = deaths.weaknesses(deaths.truth())
        print(f"{number:>3} {last.get('killed_before', 'came to its end')}: {sorted(seen)}")
        assert seen <= allowed, f"before change {number}: {sorted(seen - allowed)}"
        ended = deaths.enforce("strict")["ended"]
        assert ended["changes"] == []
        assert {row["setting"] for row in ended["pending"]} <= {"data_mode"}
        left = deaths.weaknesses(deaths.truth())
        assert {weakness for weakness in left if not weakness.endswith(" writeback")} == set()
        if "killed_before" not in last:
            assert seen == set()
            results[what] = (
                f"{number - 1} steps",
                "at each as safe as before, or safer",
                "no change is left",
            )
            return
    raise AssertionError(f"the run has more than {MOST} steps")
