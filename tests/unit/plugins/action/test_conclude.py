# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conclude action: of which looks a report is made."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.action import conclude as action
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import look
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost


@pytest.mark.parametrize(("looked_only", "verdict"), [(True, "drifted"), (False, "durable")])
def test_where_a_play_only_looks_nothing_of_an_earlier_one_counts(looked_only: bool, verdict: str) -> None:
    """An audit may follow a change in one run."""
    first, later = ({**look(SmallHost()), "verdict": word} for word in ("drifted", "durable"))
    registered: dict[str, Any] = {
        "harden_before": {"assessment": first},
        "harden_last": {"assessment": later},
        "harden_applied": {"error": "of the change"},
    }
    task = MagicMock(
        args={"hosts": ["db1"], "looked_only": looked_only}, async_val=0, diff=False, check_mode=False
    )
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), MagicMock(), None)
    report = plugin.run(task_vars={"hostvars": {"db1": registered}})["reports"]["db1"]
    assert (report["verdict"], report["error"]) == (verdict, None if looked_only else "of the change")
