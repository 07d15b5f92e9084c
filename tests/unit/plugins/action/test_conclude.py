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
from ansible_collections.durable.dbhost.plugins.plugin_utils.as_text import packed, unpacked
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import look
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost

BEGAN = 1_000


def concluded(registered: dict[str, Any], looked_only: bool = False) -> dict[str, Any]:
    """Return the report of a host with these results of its tasks."""
    arguments = {"hosts": ["db1"], "since": BEGAN, "looked_only": looked_only}
    task = MagicMock(args=arguments, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), MagicMock(), None)
    report: str = plugin.run(task_vars={"hostvars": {"db1": registered}})["reports"]["db1"]
    return unpacked(report)


def seen(verdict: str, clock: int, **told: Any) -> dict[str, Any]:
    """Return a result of assess."""
    return {"assessment": packed({**look(SmallHost()), "verdict": verdict}), "clock": clock, **told}


def test_nothing_of_an_earlier_play_counts() -> None:
    """An audit, or a run with nothing to change, may follow a change in one run."""
    report = concluded(
        {
            "harden_before": seen("drifted", BEGAN + 1),
            "harden_applied": {"error": "of the change", "clock": BEGAN - 3},
            "harden_after": seen("durable", BEGAN - 2, wants_reboot=True),
            "harden_rebooted": {"failed": True, "msg": "of the change"},
            "harden_last": seen("durable", BEGAN - 1),
        }
    )
    assert (report["verdict"], report["error"], report["begun"]) == ("drifted", None, [])


def test_what_this_play_has_seen_and_done_counts() -> None:
    report = concluded(
        {
            "harden_before": seen("drifted", BEGAN),
            "harden_applied": {"error": "of the change", "begun": [["add", "storage"]], "clock": BEGAN + 1},
            "harden_after": seen("drifted", BEGAN + 2, wants_reboot=True),
            "harden_rebooted": {"failed": True, "msg": "no answer"},
            "harden_last": seen("durable", BEGAN + 3),
        }
    )
    assert (report["was"], report["verdict"], report["begun"]) == ("drifted", "durable", [["add", "storage"]])
    assert report["error"] == "of the change; reboot: no answer"


@pytest.mark.parametrize("wants", [False, True])
def test_a_reboot_counts_that_this_play_has_asked_for(wants: bool) -> None:
    """Its result tells no time, and stays registered where a later play asks for none."""
    registered = {
        "harden_before": seen("drifted", BEGAN),
        "harden_after": seen("durable", BEGAN + 1, wants_reboot=wants),
        "harden_rebooted": {"failed": True, "msg": "no answer"},
    }
    assert concluded(registered)["error"] == ("reboot: no answer" if wants else None)


FAILED = {"failed": True, "msg": "Task failed: 'NoneType' object is not iterable"}


def test_a_host_of_which_no_look_succeeded_is_unknown_with_the_reason() -> None:
    """The reports of the others are made all the same."""
    report = concluded(
        {"harden_before": FAILED, "harden_last": {"failed": True, "msg": "of the second look"}}
    )
    assert (report["verdict"], report["why"]) == ("unknown", ["no facts: of the second look"])
    assert report["fails"]
    assert concluded({})["why"] == ["no facts: no collection of facts was run"]


def test_a_second_look_that_fails_is_an_error_of_the_host() -> None:
    """What was seen before the steps says nothing of the host after them."""
    report = concluded({"harden_before": seen("durable", BEGAN), "harden_last": FAILED})
    assert report["error"].startswith("the facts were not collected again: Task failed")


def test_a_host_that_was_removed_from_the_play_is_unknown_unless_it_has_a_report() -> None:
    """A task before the role, or an earlier play, has failed for it; an earlier batch has concluded its own hosts."""
    hostvars = {
        "db1": {"harden_before": seen("durable", BEGAN)},
        "lost": {"harden_concluded": {"reports": {"db1": "", "batch1": ""}}},
        "batch1": {"harden_concluded": {"reports": {"batch1": ""}}},
        "early": {},
    }
    arguments = {"hosts": ["db1"], "removed": ["lost", "batch1", "early"], "since": BEGAN}
    task = MagicMock(args=arguments, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), MagicMock(), None)
    reports = plugin.run(task_vars={"hostvars": hostvars})["reports"]
    assert sorted(reports) == ["db1", "early", "lost"]
    report = unpacked(reports["lost"])
    assert (report["verdict"], report["fails"]) == ("unknown", True)
    assert report["why"][0].startswith("no facts: the run failed for this host, or lost it,")
