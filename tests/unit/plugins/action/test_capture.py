# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The capture action: one whole file for its owner alone, wherever the host's name would lead."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleActionFail

from ansible_collections.durable.dbhost.plugins.action import capture as action
from ansible_collections.durable.dbhost.plugins.plugin_utils import output

TEXT = '{\n "schema": 1\n}\n'
FOUND = {"changed": False, "recording": TEXT, "failed_at": None, "differs": []}


def run(
    host: str, answer: dict[str, Any] | None = None, variables: Any = None, **arguments: Any
) -> tuple[dict[str, Any], MagicMock]:
    """Return what the action returns, and how it executed the module."""
    task = MagicMock(args=arguments, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(
        task, connection, MagicMock(), MagicMock(), MagicMock(template=lambda value: value), None
    )
    execute = MagicMock(return_value={**FOUND} if answer is None else answer)
    plugin._execute_module = execute
    found = plugin.run(task_vars={"inventory_hostname": host, **(variables or {})})
    assert isinstance(found, dict)
    return found, execute


def test_the_module_runs_once_and_its_text_is_the_file(tmp_path: Path) -> None:
    found, execute = run("db1", dir=str(tmp_path / "new/dir"), databases=[{"paths": ["/a"]}])
    assert execute.call_count == 1
    assert execute.call_args.kwargs["module_name"] == "durable.dbhost.capture"
    assert execute.call_args.kwargs["module_args"] == {"databases": [{"paths": ["/a"]}]}
    path = tmp_path / "new/dir/capture-db1.json"
    assert path.read_text() == TEXT
    assert found["path"] == str(path)
    assert "recording" not in found
    assert os.listdir(path.parent) == [path.name]


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "capture-db1.json"
    path.write_text("old" * 1000)
    path.chmod(0o644)
    run("db1", dir=str(tmp_path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == TEXT


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
    run(name, dir=str(directory))
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert file.parent == directory
    assert file.name.startswith("capture-")
    assert file.name.isascii()
    assert file.name.isprintable()


def test_a_relative_directory_is_below_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("a", dir="reports")[0]["path"] == str(tmp_path / "reports/capture-a.json")
    assert os.listdir(tmp_path / "reports") == ["capture-a.json"]


def test_without_a_directory_the_recording_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("a", dir="")[0]["recording"] == TEXT
    assert os.listdir(tmp_path) == []


def test_the_directory_is_the_inventory_s_unless_the_task_says_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("a")[0]["path"] == str(tmp_path / "durable-report/capture-a.json")
    variables = {"durable_report_dir": "mine"}
    assert run("a", None, variables)[0]["path"] == str(tmp_path / "mine/capture-a.json")
    assert run("a", None, variables, dir="other")[0]["path"] == str(tmp_path / "other/capture-a.json")
    with pytest.raises(AnsibleActionFail, match="durable_report_dir: observed '', expected a directory"):
        run("a", None, {"durable_report_dir": ""})


@pytest.mark.parametrize("answer", [{"failed": True, "msg": "no"}, {"failed": True, "recording": TEXT}])
def test_a_module_that_failed_leaves_no_file(answer: dict[str, Any], tmp_path: Path) -> None:
    assert run("a", answer, dir=str(tmp_path))[0]["failed"] is True
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        AnsibleActionFail, match=r"durable_report_dir\): .*/file/x: Not a directory; name a dir"
    ):
        run("a", dir=str(tmp_path / "file/x"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (FOUND, "mount points, names of volumes and labels are not: read it before you send it."),
        (
            {**FOUND, "failed_at": "ValueError at ext4.py:56"},
            "not be collected to the end: ValueError at ext4.py:56.",
        ),
        ({**FOUND, "differs": ["disks.0.id"]}, "other values than the host for: disks.0.id."),
    ],
)
def test_people_are_told_where_it_is_and_what_it_holds(
    answer: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = MagicMock()
    monkeypatch.setattr(output, "Display", lambda: shown)
    run("db1", {**answer}, dir=str(tmp_path))
    (text,) = shown.display.call_args.args
    assert f"db1: {tmp_path}/capture-db1.json\n" in text
    assert said in text


@pytest.mark.parametrize(
    "wrong", [{"recording": 7}, {"recording": None}, {"differs": None}, {"differs": [7]}, {"failed_at": []}]
)
def test_an_answer_that_is_none_of_the_module_is_refused_by_name(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    with pytest.raises(AnsibleActionFail, match="not a result of this module"):
        run("db1", {**FOUND, **wrong}, dir=str(tmp_path))
    assert os.listdir(tmp_path) == []
