# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of support/faults.py: no host is less safe by a run that meets it, and the next run repairs it.

`make scenario NAME=faults` tries all; `make test` those that are short (DBHOST_LAB_WHOLE=1 tries all there too).
"""

from __future__ import annotations

import pytest
from support.fault_runs import Faults, cells, faults_of
from support.faults import ROWS, Fault
from support.whole import IS_WHOLE

TRIED = [row for row in ROWS if IS_WHOLE or row.is_short]


@pytest.mark.parametrize("fault", TRIED, ids=lambda fault: fault.name)
def test_a_run_with_a_fault_makes_no_host_less_safe_and_the_next_one_repairs_it(
    faults: Faults, results: dict[str, tuple[str, ...]], fault: Fault
) -> None:
    result = faults.tried(fault)
    assert faults_of(result, fault) == []
    results[fault.name] = cells(result)
