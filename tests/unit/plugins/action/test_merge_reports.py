# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The merge_reports action: what it reads, what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleActionFail

from ansible_collections.durable.dbhost.plugins.action import merge_reports as action
from ansible_collections.durable.dbhost.plugins.plugin_utils import output
from ansible_collections.durable.dbhost.plugins.plugin_utils.merge import TIME
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes import fleet


@pytest.fixture(name="collected")
def two_slices(tmp_path: Path) -> Path:
    """Return a directory with the reports of two slices: db3 has drifted, db4 is well; of two hours ago."""
    for report in fleet.reports(4)[2:]:
        path = tmp_path / f"in/{report['verdict']}/{report['host']}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({**report, "time": time.strftime(TIME, time.gmtime(time.time() - 7200))}))
    return tmp_path / "in"


def run(*directories: Path | str, out: Any = "", **args: Any) -> dict[str, Any]:
    """Return what the action returns."""
    given = {"directories": [str(each) for each in directories], **args}
    task = MagicMock(args=given, async_val=0, diff=False, check_mode=False)
    templar = MagicMock(template=lambda value: value)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), templar, None)
    found = plugin.run(
        task_vars={
            "durable_report_dir": str(out),
            "durable_report_formats": ["json", "text", "html", "junit", "sarif"],
        }
    )
    assert isinstance(found, dict)
    return found


def test_the_page_and_its_files_are_of_all_and_no_file_is_of_one_host(
    collected: Path, tmp_path: Path
) -> None:
    found = run(collected, out=tmp_path / "out", hosts=["db3", "db4"])
    assert found["verdicts"] == {"db3": "drifted", "db4": "attested"}
    assert (found["failing"], found["changed"]) == (["db3"], False)
    assert found["failure"] == "1 of 2 hosts fail (the page says why)"
    assert found["page"][0] == "2 hosts: 1 drifted, 1 attested"
    assert "1 of 2 hosts fails (1 drifted): exit code 2" in found["page"]
    assert sorted(os.listdir(tmp_path / "out")) == ["report.html", "report.sarif", "report.txt", "report.xml"]
    assert "2 hosts, checked 20" in (tmp_path / "out/report.html").read_text()


def test_where_no_host_fails_there_is_no_failure(collected: Path) -> None:
    assert run(collected / "attested", hosts=["db4", "localhost"])["failure"] is None


def test_a_host_of_the_play_without_a_report_fails(collected: Path) -> None:
    found = run(collected / "attested", hosts=["db4", "db6"])
    assert (found["verdicts"], found["failing"]) == ({"db6": "unknown", "db4": "attested"}, ["db6"])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_text("{"), "no JSON"),
        (lambda path: path.write_text(f'["{"x" * 9 * 2**20}"]'), "longer than 8 MiB"),
        (lambda path: path.symlink_to("/etc/passwd"), "symbolic link"),
        (os.mkfifo, "no JSON"),
    ],
)
def test_a_file_that_is_no_report_is_named_and_fails(spoil: Any, said: str, collected: Path) -> None:
    path = collected / "attested/db9.json"
    spoil(path)
    found = run(collected / "attested", hosts=["db4"])
    assert found["failing"] == [str(path)]
    assert said in " ".join(found["page"])


def test_a_directory_that_is_not_there_is_named_and_fails(collected: Path) -> None:
    found = run(collected / "attested", collected / "gone", hosts=["db4"])
    assert found["failing"] == [str(collected / "gone")]


def test_a_link_to_a_directory_is_not_followed(collected: Path) -> None:
    (collected / "attested/there").symlink_to(collected / "drifted")
    assert run(collected / "attested", hosts=["db4"])["failing"] == []


def test_directories_that_hold_each_other_are_read_once(collected: Path) -> None:
    found = run(collected, collected / "attested", hosts=["db3", "db4"])
    assert "    note: merged from 2 reports" in found["page"]


def test_more_than_anybody_reads_is_refused(collected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_FILES", 1)
    with pytest.raises(AnsibleActionFail, match=r"durable_reports: .*: more than 1 files"):
        run(collected)


@pytest.mark.parametrize("given", [[], None, 7, [""]])
def test_no_directory_is_refused(given: Any) -> None:
    with pytest.raises(AnsibleActionFail, match="expected a directory with reports"):
        run(directories=given)


def test_a_directory_without_a_report_is_refused(tmp_path: Path) -> None:
    """A check of nothing would pass."""
    with pytest.raises(AnsibleActionFail, match="observed no report in"):
        run(tmp_path)


@pytest.mark.parametrize("given", ["soon", 0, -1, "nan", "inf", 10**6, []])
def test_an_age_that_is_none_is_refused(given: Any, collected: Path) -> None:
    with pytest.raises(AnsibleActionFail, match="durable_reports_max_hours: observed"):
        run(collected, max_hours=given)


def test_the_age_is_the_one_that_was_given(collected: Path) -> None:
    assert run(collected, max_hours="1")["verdicts"] == {"db3": "unknown", "db4": "unknown"}


def test_both_inputs_are_refused_at_once() -> None:
    with pytest.raises(
        AnsibleActionFail, match=r"durable_reports: observed \[\].*durable_reports_max_hours: observed"
    ):
        run(max_hours="soon")
