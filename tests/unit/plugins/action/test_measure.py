# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two actions that the measuring playbooks have on the controller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleActionFail

from ansible_collections.durable.dbhost.plugins.action import keep_report, managed_mounts
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.small_host import SmallHost


def run(action: Any, host: str = "db1", **arguments: Any) -> dict[str, Any]:
    """Return what an action returns."""
    task = MagicMock(args=arguments, async_val=0, diff=False, check_mode=False)
    made = action.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock())
    result: dict[str, Any] = made.run(task_vars={"inventory_hostname": host})
    return result


PROFILE = {
    "summary": "s",
    "write_cache": "disabled",
    "barrier": "on",
    "data_mode": "ordered",
    "atime": "noatime",
    "rests_on": "device",
}


def choose(**arguments: Any) -> dict[str, Any]:
    """Return the managed mounts of a small host."""
    storage = {"ansible_facts": {"durable_storage": collect(SmallHost(), "now", ())}}
    engines = {"ansible_facts": {"durable_engines": {"engines": [], "unattributed": [], "writers": []}}}
    base = {
        "storage": storage,
        "engines": engines,
        "shipped": {"strict": PROFILE},
        "profiles": {},
        "overrides": {},
    }
    return run(managed_mounts, **{**base, **arguments})


def test_the_mounts_and_the_profile_are_the_policy_s() -> None:
    found = choose(mounts=["/srv/pgdata"], profile="strict", overrides={"atime": "relatime"})
    assert found["mounts"] == ["/srv/pgdata"]
    assert found["profile"]["atime"] == "relatime"
    assert choose(mounts=["/srv/pgdata"], profile="")["profile"] is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"mounts": ["/nowhere"]}, "nothing is mounted"),
        ({"mounts": []}, "no managed mount"),
        ({"mounts": ["/srv/pgdata"], "profile": "stritc"}, "stritc"),
        ({"storage": {"msg": "it broke"}}, "it broke"),
    ],
)
def test_without_a_mount_nothing_is_measured(arguments: Any, why: str) -> None:
    with pytest.raises(AnsibleActionFail, match=why):
        choose(**arguments)


def test_files_are_written_below_the_directory_and_stale_ones_removed(tmp_path: Path) -> None:
    given = {"name": "proof", "show": "text", "dir": str(tmp_path / "report")}
    first = run(keep_report, "../db1", files={"txt": "one", "yml": "attested"}, **given)
    assert first["paths"] == [f"{tmp_path}/report/proof-..%2Fdb1.{suffix}" for suffix in ("txt", "yml")]
    second = run(keep_report, "../db1", files={"txt": "caf\udce9", "yml": ""}, **given)
    assert os.listdir(tmp_path / "report") == ["proof-..%2Fdb1.txt"]
    assert Path(second["paths"][0]).read_text() == "caf\\xe9\n"


def test_without_a_directory_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(keep_report, name="proof", show="text", files={"txt": "one"}, dir="")["paths"] == []
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AnsibleActionFail, match="durable_report_dir"):
        run(keep_report, name="proof", show="", files={"txt": "one"}, dir=str(tmp_path / "file"))
