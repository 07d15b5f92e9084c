# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report action: one whole file for each host, wherever its name would lead."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleActionFail

from ansible_collections.durable.dbhost.plugins.action import report as action
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import look
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost


def result(**changes: Any) -> dict[str, Any]:
    return {**look(SmallHost()), "looked_only": False, "was": "drifted", "error": "", **changes}


def run(hosts: dict[str, Any], directory: str) -> dict[str, Any]:
    """Return what the action returns for these hosts' variables."""
    task = MagicMock(args={"hosts": list(hosts)}, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(
        task, connection, MagicMock(), MagicMock(), MagicMock(template=lambda value: value), None
    )
    found = plugin.run(task_vars={"hostvars": hosts, "durable_report_dir": directory})
    assert isinstance(found, dict)
    return found


def test_each_host_gets_a_file_that_says_all(tmp_path: Path) -> None:
    hosts = {
        name: {"harden_concluded": {"report": result(verdict=verdict)}}
        for name, verdict in (("a", "durable"), ("b", "at_risk"))
    }
    found = run(hosts, str(tmp_path / "reports/today"))
    assert found["changed"] is False
    assert list(found["verdicts"].items()) == [("b", "at_risk"), ("a", "durable")]
    assert sorted(os.listdir(tmp_path / "reports/today")) == ["a.json", "b.json"]
    written = json.loads((tmp_path / "reports/today/b.json").read_text())
    assert (written["host"], written["schema"], written["verdict"]) == ("b", 1, "at_risk")
    assert written["settings"] == json.loads(json.dumps(result()["settings"]))


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        ".",
        "a/b",
        "a\nb",
        "a\x1b[2J",
        "-rf",
        "db 1",
        "dä",
        "::1",
        "a'b\"c",
    ],
)
def test_a_hostile_name_stays_in_the_directory(name: str, tmp_path: Path) -> None:
    directory = tmp_path / "inner/reports"
    run({name: {"harden_concluded": {"report": result()}}}, str(directory))
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert file.parent == directory
    assert json.loads(file.read_text())["host"] == name
    assert file.name.isascii()
    assert file.name.isprintable()


def test_no_directory_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run({"a": {"harden_concluded": {"report": result()}}}, "")
    assert os.listdir(tmp_path) == []


def test_a_relative_directory_is_below_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run({"a": {"harden_concluded": {"report": result()}}}, "reports")
    assert os.listdir(tmp_path / "reports") == ["a.json"]


def test_an_old_report_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("x" * 100000)
    run({"a": {"harden_concluded": {"report": result()}}}, str(tmp_path))
    assert json.loads((tmp_path / "a.json").read_text())["host"] == "a"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        AnsibleActionFail, match=r"durable_report_dir: .*/file/x: Not a directory; name a directory"
    ):
        run({"a": {"harden_concluded": {"report": result()}}}, str(tmp_path / "file/x"))


def test_a_host_without_a_result_is_passed_over(tmp_path: Path) -> None:
    assert run({"a": {}, "b": {"harden_concluded": {"report": result()}}}, str(tmp_path))["verdicts"] == {
        "b": "drifted"
    }
