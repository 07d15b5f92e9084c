# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two actions that the measuring playbooks have on the controller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleActionFail

from ansible_collections.durable.dbhost.plugins.action import keep_report, managed_mounts
from ansible_collections.durable.dbhost.plugins.module_utils.storage.collect import collect
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost


def run(action: Any, host: str = "db1", variables: Any = None, **arguments: Any) -> dict[str, Any]:
    """Return what an action returns; `variables` are the host's."""
    task = MagicMock(args=arguments, async_val=0, diff=False, check_mode=False)
    templar = MagicMock(template=lambda value: value)
    made = action.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), templar, MagicMock())
    result: dict[str, Any] = made.run(task_vars={"inventory_hostname": host, **(variables or {})})
    return result


FACTS = {
    "durable_storage": collect(SmallHost(), "now", ()),
    "durable_engines": {"engines": [], "unattributed": [], "writers": []},
}


#: A profile of a user's own.
OURS = {
    "summary": "As we like it.",
    "write_cache": "enabled",
    "barrier": "on",
    "data_mode": "ordered",
    "atime": "noatime",
    "rests_on": "flush",
}


def choose(answer: Any = None, **variables: Any) -> dict[str, Any]:
    """Return the managed mounts of a small host; `variables` are its own, without their prefix."""
    executed = MagicMock(return_value={"ansible_facts": FACTS} if answer is None else answer)
    with patch.object(managed_mounts.ActionModule, "_execute_module", executed):
        return run(managed_mounts, variables={f"durable_{name}": value for name, value in variables.items()})


def test_the_mounts_and_the_profile_are_the_policy_s() -> None:
    found = choose(mounts=["/srv/pgdata"], profile="strict", overrides={"atime": "relatime"})
    assert found["mounts"] == ["/srv/pgdata"]
    assert found["profiles"]["/srv/pgdata"]["atime"] == "relatime"
    assert choose(mounts=["/srv/pgdata"])["profiles"] == {}
    own = choose(mounts=["/srv/pgdata"], profiles={"ours": OURS})
    assert own["known"]["ours"]["write_cache"] == "enabled"
    assert list(own["known"])[:2] == ["strict", "flush"]


def test_a_mount_with_a_profile_of_its_own_is_one_of_them() -> None:
    found = choose(mounts=["/srv/pgdata"], profile="strict", mount_profiles={"/srv/maria": "disposable"})
    assert (found["mounts"], found["lasting"]) == (["/srv/pgdata", "/srv/maria"], ["/srv/pgdata"])
    assert {target: each["name"] for target, each in found["profiles"].items()} == {
        "/srv/pgdata": "strict",
        "/srv/maria": "disposable",
    }
    assert choose(mounts=["/srv/pgdata"], profile="disposable")["lasting"] == ["/srv/pgdata"]
    with pytest.raises(AnsibleActionFail, match="durable_mount_profiles: observed /srv/none"):
        choose(mounts=["/srv/pgdata"], mount_profiles={"/srv/none": "strict"})


@pytest.mark.parametrize(
    ("answer", "variables", "why"),
    [
        (None, {"mounts": ["/nowhere"]}, "nothing is mounted"),
        (None, {"mounts": []}, "no managed mount"),
        (None, {"mounts": ["/srv/pgdata"], "profile": "stritc"}, "stritc"),
        ({"failed": True, "msg": "it broke"}, {}, "durable_storage: not collected: it broke"),
        ({"ansible_facts": FACTS, "failures": {"durable_engines": "no /proc"}}, {}, None),
        (
            {
                "ansible_facts": {"durable_storage": {}},
                "failures": {"durable_engines": "no /proc"},
            },
            {},
            "durable_engines: not collected: no /proc",
        ),
        ({"ansible_facts": 1, "failures": 2}, {}, "not collected: no reason given"),
    ],
)
def test_without_a_mount_nothing_is_measured(answer: Any, variables: Any, why: str | None) -> None:
    with pytest.raises(AnsibleActionFail, match=why or "no managed mount"):
        choose(answer, **variables)


def test_files_are_written_below_the_directory_and_stale_ones_removed(tmp_path: Path) -> None:
    variables = {"durable_report_dir": str(tmp_path / "report")}
    given = {"name": "proof", "show": "text", "variables": variables}
    first = run(keep_report, "../db1", files={"txt": "one", "yml": "attested"}, **given)
    assert first["paths"] == [f"{tmp_path}/report/proof-..%2Fdb1.{suffix}" for suffix in ("txt", "yml")]
    second = run(keep_report, "../db1", files={"txt": "caf\udce9", "yml": ""}, **given)
    assert os.listdir(tmp_path / "report") == ["proof-..%2Fdb1.txt"]
    assert Path(second["paths"][0]).read_text() == "caf\\xe9\n"


def test_without_a_directory_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        run(
            keep_report, name="proof", show="text", files={"txt": "one"}, variables={"durable_report_dir": ""}
        )["paths"]
        == []
    )
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AnsibleActionFail, match="durable_report_dir"):
        run(
            keep_report,
            name="proof",
            show="",
            files={"txt": "one"},
            variables={"durable_report_dir": str(tmp_path / "file")},
        )
