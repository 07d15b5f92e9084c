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
from ansible_collections.durable.dbhost.plugins.module_utils.measure import (
    compared,
    plot,
    plug_job,
    plug_verdict,
)
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


JOB = {"patterns": ["dsync"], "clients": 1, "size": 1, "rate": 500, "seconds": 30}
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


def _row(**changes: Any) -> Any:
    row = {"mount": "/srv/<a>&b", "pattern": "dsync", "commit_delay": None, "clients": 1, "rate": 100.0}
    return {**row, "variant": "as it is", "mean": 1.0, "p99": None, "spread": 0.1, "runs": 3, **changes}


def _compared(**changes: Any) -> Any:
    row = {"file_system": "raw device", "options": "defaults", "scheduler": "none", "of_raw": 100.0}
    return _row(**{**row, **changes})


PLOTS = [
    plot.svg("Commits", [_row(), _row(clients=4), _row(variant="x", commit_delay=2)], {}, "a command"),
    compared.svg([_compared(), _compared(file_system="ext4", scheduler="bfq")], "a command"),
]


@pytest.mark.parametrize("drawn", PLOTS)
def test_a_plot_is_stored_as_it_is_drawn(drawn: str, tmp_path: Path) -> None:
    found = run(
        keep_report, name="b", show="x", files={"svg": drawn}, variables={"durable_report_dir": str(tmp_path)}
    )
    assert Path(found["paths"][0]).read_text() == drawn


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("</svg>", "<script>alert(1)</script></svg>"),
        ("</svg>", '<image href="https://x/"/></svg>'),
        ("</svg>", '<a href="javascript:alert(1)"><text>x</text></a></svg>'),
        ("</svg>", '<p xmlns="http://www.w3.org/1999/xhtml">x</p></svg>'),
        ("<rect ", '<rect onload="alert(1)" '),
        ("<svg ", '<svg xmlns:l="http://www.w3.org/1999/xlink" l:href="x" '),
        ("<style>", "<style>@import url(https://x/);"),
        ("<svg ", '<!DOCTYPE svg [<!ENTITY x "y">]><svg '),
        ("<svg ", '<?xml-stylesheet href="https://x/"?><svg '),
        ("</svg>", ""),
    ],
)
def test_a_plot_with_other_parts_is_refused_and_nothing_is_written(
    before: str, after: str, tmp_path: Path
) -> None:
    files = {"txt": "x", "svg": PLOTS[0].replace(before, after, 1)}
    with pytest.raises(AnsibleActionFail, match="parts that this collection does not draw"):
        run(keep_report, name="b", show="x", files=files, variables={"durable_report_dir": str(tmp_path)})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("reason", ["{{ lookup('pipe', 'id') }}", "{% set x = 1 %}", "a\x1b[2Kb", "a\u202eb"])
def test_an_attestation_that_ansible_would_evaluate_is_refused(reason: str, tmp_path: Path) -> None:
    """The host writes it, and people copy it into the inventory."""
    job = plug_job.make("0123456789abcdef", "boot-1", [{"target": "/a", "device": "8:1"}], JOB)
    losses = plug_job.Losses(2000, 1500, 0, ())
    text = plug_verdict.attestation(job, losses, "storage team", "2026-02-01", "none")
    variables = {"durable_report_dir": str(tmp_path)}
    assert run(keep_report, name="p", show=text, files={"yml": text}, variables=variables)["paths"]
    forged = text.replace("none lost", reason, 1)
    assert forged != text
    with pytest.raises(AnsibleActionFail, match="what Ansible evaluates"):
        run(keep_report, "db2", name="p", show=forged, files={"yml": forged}, variables=variables)
    assert os.listdir(tmp_path) == ["p-db1.yml"]


def test_a_table_to_copy_from_has_no_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "durable_overrides: {scheduler_virtual: none}\ndurable_profile: {{ x }} {% y %} {# z #} {{{\n"
    plain = (
        "durable_overrides: {scheduler_virtual: none}\ndurable_profile: { { x }} { % y %} { # z #} { { {\n"
    )
    variables = {"durable_report_dir": str(tmp_path)}
    found = run(keep_report, name="b", show=table, files={"txt": table, "json": "{{}}"}, variables=variables)
    assert [Path(path).read_text() for path in found["paths"]] == [plain, "{{}}\n"]
    assert plain in capsys.readouterr().out


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
