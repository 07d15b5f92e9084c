# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module's main() on a host of dicts, and returns what it would send to the controller."""

from __future__ import annotations

import contextlib
import json
from types import ModuleType
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.enforce import runner
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.fake_host import FakeHost


def run_module(
    module: ModuleType,
    host: FakeHost,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    check: bool = False,
    **arguments: Any,
) -> dict[str, Any]:
    """Return the module's result, with what `--diff` shows."""
    basic = pytest.importorskip("ansible.module_utils.basic")
    # The layers' modules share their main.
    monkeypatch.setattr(module if hasattr(module, "Host") else runner, "Host", lambda: host)
    given = {**arguments, "_ansible_check_mode": check, "_ansible_diff": True}
    with _given(basic, given, monkeypatch), pytest.raises(SystemExit) as ended:
        module.main()
    result = json.loads(capsys.readouterr().out)
    assert isinstance(result, dict)
    assert bool(ended.value.code) == bool(result.get("failed"))
    return result


def _given(basic: ModuleType, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a context in which a module reads these arguments."""
    try:
        from ansible.module_utils.testing import patch_module_args
    except ImportError:  # ansible-core before 2.19
        text = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", text)
        return contextlib.nullcontext()
    return patch_module_args(arguments)
