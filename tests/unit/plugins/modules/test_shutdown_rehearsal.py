# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""shutdown_rehearsal: it only reads, refuses what it does not know, and attests nothing that was not kept."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible")

import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Result
from ansible_collections.durable.dbhost.plugins.module_utils.ups import rehearsal
from ansible_collections.durable.dbhost.plugins.modules import shutdown_rehearsal
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.nut_host import NutHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.ups.test_rehearsal import (
    JOB,
    ROWS,
    BackHost,
    ended,
    now,
    ready,
    text_of,
    without,
)

from .run_module import run_module

WORD = {"by": "storage team", "today": "2026-01-31"}


def test_the_documentation_is_the_argument_spec() -> None:
    documented = yaml.safe_load(shutdown_rehearsal.DOCUMENTATION)["options"]
    assert set(documented) == set(shutdown_rehearsal.SPEC)
    for name, option in shutdown_rehearsal.SPEC.items():
        for key in ("type", "elements", "default", "choices", "required"):
            assert documented[name].get(key) == option.get(key), (name, key)


def test_a_plan_changes_nothing_and_can_be_read_again(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = ready(NutHost())
    result = run_module(shutdown_rehearsal, host, monkeypatch, capsys, state="planned", engines=ROWS)
    assert (result["changed"], result["monitor"], host.mutations) == (False, "nut", [])
    assert rehearsal.loads(result["job"]).engines[0].name == "15/main"


def test_processes_of_nobody_s_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    result = run_module(
        shutdown_rehearsal,
        ready(NutHost()),
        monkeypatch,
        capsys,
        state="planned",
        engines=ROWS,
        unattributed=[{"pid": 7, "name": "postgres", "why": "x"}],
    )
    assert "(postgres), expected only known servers" in result["msg"]


@pytest.mark.parametrize(
    ("old", "given", "verdict", "attested"),
    [
        (ended(), WORD, "kept", True),
        (ended(), {}, "kept", False),
        (without("Stopped MariaDB"), WORD, "not_kept", False),
    ],
)
def test_only_what_was_kept_is_attested(
    old: list[dict[str, Any]],
    given: dict[str, Any],
    verdict: str,
    attested: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    host = BackHost(Result(0, text_of(old), ""), Result(0, text_of(now()), ""))
    result = run_module(
        shutdown_rehearsal, host, monkeypatch, capsys, state="read", job=rehearsal.dumps(JOB), **given
    )
    assert (result["verdict"], bool(result["attestation"]), host.mutations) == (verdict, attested, [])
    assert result["table"].startswith(f"test-shutdown: {verdict}\n")


def test_a_job_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    result = run_module(shutdown_rehearsal, NutHost(), monkeypatch, capsys, state="read", job="{}")
    assert "job: expected what the state planned has returned" in result["msg"]
