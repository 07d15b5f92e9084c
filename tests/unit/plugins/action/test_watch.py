# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watch action: a host is not given inputs that each of its checks would refuse."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleActionFail

from ansible_collections.durable.dbhost.plugins.action import watch as action
from ansible_collections.durable.dbhost.plugins.plugin_utils.variables import collection_version


def run(monkeypatch: pytest.MonkeyPatch, state: str, **variables: Any) -> list[dict[str, Any]]:
    """Return the arguments with which the module was executed."""
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(action, "execute", lambda _self, _name, args, *_rest: given.append(args) or {})
    task = MagicMock(args={"state": state}, async_val=0, diff=False, check_mode=False)
    templar = MagicMock(template=lambda value: value)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), templar, None)
    plugin.run(task_vars=variables)
    return given


def test_a_name_that_nothing_reads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        AnsibleActionFail,
        match=r"durable_watch: no such variable.*durable_allow: observed.*reboot\? Nothing was changed\.$",
    ):
        run(monkeypatch, "present", durable_watch="yes", durable_allow=["reboots"])


def test_every_bad_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        AnsibleActionFail, match=r"durable_mounts\[0\]: observed 'srv'.*durable_profile: observed 'x'"
    ):
        run(monkeypatch, "present", durable_profile="x", durable_mounts=["srv"])


def test_known_inputs_reach_the_host_and_a_release_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    (known,) = run(monkeypatch, "present", durable_profile="strict")
    assert (known["inputs"]["profile"], known["version"]) == ("strict", collection_version())
    (released,) = run(monkeypatch, "released", durable_watch="yes")
    assert "inputs" not in released
