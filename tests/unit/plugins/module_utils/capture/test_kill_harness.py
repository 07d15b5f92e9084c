# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The harness of scenario `default` that kills a run before each change: it has to know every change."""

from __future__ import annotations

import ast
from pathlib import Path

from ansible_collections.durable.dbhost.plugins.module_utils.capture.recording import _CHANGES

HARNESS = Path(__file__).parents[5] / "molecule/support/kill_harness.py"
#: They lock, write what is there already to a disk, or mount an image of their own: nothing of the host is changed.
NO_CHANGES = {"hold", "make_lock", "sync", "sync_mount", "try_mount"}


def test_a_run_dies_before_each_call_that_changes_a_host() -> None:
    (mortal,) = (
        node
        for node in ast.parse(HARNESS.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "MortalHost"
    )
    methods = {node.name for node in mortal.body if isinstance(node, ast.FunctionDef)}
    assert set(_CHANGES) - NO_CHANGES <= methods
