# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""unit_mounts: a check run touches nothing, and predicts what a run then does; release takes it back."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.modules import unit_mounts
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.engines.test_unit_mounts import (
    DROP_IN,
    PG,
    UnitHost,
)

from .run_module import run_module

TARGETS = [{"unit": PG, "mounts": ["/srv/pgdata"]}]


def test_check_predicts_a_run_a_second_run_does_nothing_and_release_takes_it_back(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = UnitHost()

    def run(check: bool, **arguments: Any) -> dict[str, Any]:
        found = run_module(unit_mounts, host, monkeypatch, capsys, check, **arguments)
        assert isinstance(found, dict)
        return found

    predicted = run(True, targets=TARGETS)
    assert host.mutations == []
    done = run(False, targets=TARGETS)
    assert done == predicted
    assert done["changed"] is True and DROP_IN in host.files
    assert run(False, targets=TARGETS)["changed"] is False
    released = run(True, state="released")
    assert DROP_IN in host.files
    assert run(False, state="released") == released
    assert released["changed"] is True and DROP_IN not in host.files
    assert run(False, state="released")["changed"] is False


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "target",
    [
        {"unit": PG},
        {"mounts": ["/srv/a"]},
        {"unit": PG, "mounts": []},
        {"unit": "gone.service", "mounts": ["/srv/a"]},
    ],
)
def test_a_wrong_target_is_refused(
    check: bool, target: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    host = UnitHost()
    result = run_module(unit_mounts, host, monkeypatch, capsys, check, targets=[target])
    assert result["failed"] is True and host.mutations == []
