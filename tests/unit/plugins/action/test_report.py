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
from ansible_collections.durable.dbhost.plugins.plugin_utils import output
from ansible_collections.durable.dbhost.plugins.plugin_utils.as_text import packed
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import NOW, look
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost

#: What is written of all hosts together.
OF_RUN = ["report.html", "report.txt"]


def result(**changes: Any) -> dict[str, Any]:
    return {
        **look(SmallHost()),
        "looked_only": False,
        "was": "drifted",
        "error": "",
        "time": NOW,
        "collection": "1.0.0",
        **changes,
    }


def concluded(host: str, **changes: Any) -> dict[str, Any]:
    """Return the variables of a host, of whose batch others are concluded too."""
    reports = {"another": packed(result()), host: packed(result(**changes))}
    return {"harden_concluded": {"reports": reports, "failures": {}}}


def run(hosts: dict[str, Any], directory: str, **variables: Any) -> dict[str, Any]:
    """Return what the action returns for these hosts' variables."""
    task = MagicMock(args={"hosts": list(hosts)}, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    plugin = action.ActionModule(
        task, connection, MagicMock(), MagicMock(), MagicMock(template=lambda value: value), None
    )
    found = plugin.run(task_vars={"hostvars": hosts, "durable_report_dir": directory, **variables})
    assert isinstance(found, dict)
    return found


def test_each_host_gets_a_file_that_says_all(tmp_path: Path) -> None:
    hosts = {name: concluded(name, verdict=verdict) for name, verdict in (("a", "durable"), ("b", "at_risk"))}
    found = run(hosts, str(tmp_path / "reports/today"))
    assert found["changed"] is False
    assert list(found["verdicts"].items()) == [("b", "at_risk"), ("a", "durable")]
    assert sorted(os.listdir(tmp_path / "reports/today")) == ["a.json", "b.json", *OF_RUN]
    written = json.loads((tmp_path / "reports/today/b.json").read_text())
    assert (written["host"], written["schema"], written["verdict"]) == ("b", 2, "at_risk")
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
    run({name: concluded(name)}, str(directory))
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in OF_RUN]
    assert file.parent == directory
    assert json.loads(file.read_text())["host"] == name
    assert file.name.isascii()
    assert file.name.isprintable()


def test_no_directory_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run({"a": concluded("a")}, "")
    assert os.listdir(tmp_path) == []


def test_a_relative_directory_is_below_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run({"a": concluded("a")}, "reports")
    assert sorted(os.listdir(tmp_path / "reports")) == ["a.json", *OF_RUN]


def test_an_old_report_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("x" * 100000)
    run({"a": concluded("a")}, str(tmp_path))
    assert json.loads((tmp_path / "a.json").read_text())["host"] == "a"
    assert sorted(os.listdir(tmp_path)) == ["a.json", *OF_RUN]


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        AnsibleActionFail, match=r"durable_report_dir: .*/file/x: Not a directory; name a directory"
    ):
        run({"a": concluded("a")}, str(tmp_path / "file/x"))


def test_a_host_without_a_result_is_passed_over(tmp_path: Path) -> None:
    assert run({"a": {}, "b": concluded("b")}, str(tmp_path))["verdicts"] == {"b": "drifted"}


def test_the_page_is_shown_where_no_file_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AnsibleActionFail):
        run({"a": concluded("a")}, str(tmp_path / "file/x"))
    said = capsys.readouterr().out
    assert "1 host: 1 drifted" in said
    assert "note: durable_report_dir:" in said


@pytest.mark.parametrize("callback", ["json", "ansible.posix.jsonl", "community.general.null"])
def test_nothing_is_shown_where_programs_read(
    callback: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output.constants, "DEFAULT_STDOUT_CALLBACK", callback)
    found = run({"a": concluded("a")}, str(tmp_path))
    assert capsys.readouterr().out == ""
    assert found["page"][0] == "1 host: 1 drifted"


@pytest.mark.parametrize(
    ("formats", "files"),
    [
        (["json"], ["a.json"]),
        (["html", "text"], ["report.html", "report.txt"]),
        (["junit"], ["report.xml"]),
        (["sarif"], ["report.sarif"]),
        ([], None),
    ],
)
def test_the_files_are_those_that_were_asked_for(
    formats: list[str], files: list[str] | None, tmp_path: Path
) -> None:
    hosts = {"a": concluded("a")}
    found = run(hosts, str(tmp_path / "there"), durable_report_formats=formats)
    assert (sorted(os.listdir(tmp_path / "there")) if files else None) == files
    assert any(row.startswith("Details: ") for row in found["page"]) is bool(files)


def test_the_last_report_is_compared_with(tmp_path: Path) -> None:
    for time, verdict in (("2026-01-30T12:00:00Z", "durable"), (NOW, "at_risk")):
        found = run({"a": concluded("a", time=time, verdict=verdict)}, str(tmp_path))
    assert "worse than in the last report: a" in found["page"]
    written = json.loads((tmp_path / "a.json").read_text())
    assert written["since"] == {"time": "2026-01-30T12:00:00Z", "verdict": "durable", "settings": []}


def test_a_host_without_a_pin_in_a_group_of_pinned_ones_is_named(tmp_path: Path) -> None:
    hosts = {name: concluded(name) for name in ("db1", "db10", "db2")}
    hosts["db1"]["durable_profile"] = "strict"
    groups = {"all": list(hosts), "databases": list(hosts), "web": ["db2"], "ungrouped": []}
    found = run(hosts, str(tmp_path), groups=groups)
    notes = [row for row in found["page"] if "a slip?" in row]
    assert notes == [
        "    note: db2, db10: no durable_profile, and others of the group databases have one: a slip?"
    ]


def test_the_report_of_a_host_that_the_run_did_not_reach_is_not_left_as_one_of_this_run(
    tmp_path: Path,
) -> None:
    """It is renamed, and what has changed since then is still said once the host has a report again."""
    both = {name: concluded(name, verdict="attested") for name in ("a", "b")}
    run(both, str(tmp_path))
    run({"a": both["a"], "b": {}}, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["a.json", "b.stale", *OF_RUN]
    later = {name: concluded(name, verdict="drifted", time="2026-02-01T12:00:00Z") for name in ("a", "b")}
    run(later, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["a.json", "b.json", *OF_RUN]
    assert json.loads((tmp_path / "b.json").read_text())["since"]["verdict"] == "attested"


def test_what_an_earlier_play_concluded_of_a_host_is_not_its_report(tmp_path: Path) -> None:
    """One that failed for a host leaves there what it concluded of all hosts."""
    earlier = {"a": packed(result(verdict="durable")), "b": packed(result(verdict="unknown"))}
    later = {"a": packed(result(verdict="drifted"))}
    hosts = {
        name: {"harden_concluded": {"reports": reports}} for name, reports in (("b", earlier), ("a", later))
    }
    wanted = {"a": "drifted", "b": "unknown"}
    assert run(hosts, str(tmp_path))["verdicts"] == wanted
    assert run(hosts, str(tmp_path), harden_concluded=hosts["a"]["harden_concluded"])["verdicts"] == wanted


def test_without_files_of_hosts_an_earlier_one_is_not_left_as_one_of_this_run(tmp_path: Path) -> None:
    run({"a": concluded("a")}, str(tmp_path))
    run({"a": concluded("a")}, str(tmp_path), durable_report_formats=["text"])
    assert sorted(os.listdir(tmp_path)) == ["a.stale", "report.html", "report.txt"]


@pytest.mark.parametrize("changes", [[{}], ["x"], 5, [{"target": "/x"}]])
def test_a_malformed_answer_of_one_host_leaves_the_page_of_the_others(changes: Any) -> None:
    found = action._released(
        "db1", {"release_watch": {"changes": changes}, "release_applied": {"released": {}}}
    )
    assert found.error.startswith("the answer of its watch is not one of the module's: ")


def test_a_removed_watch_is_reported_although_the_first_layer_failed() -> None:
    removed = {"target": "/x", "setting": "x", "when": "persisted", "before": "present", "after": "absent"}
    found = action._released(
        "db1", {"release_watch": {"changes": [removed]}, "release_applied": {"error": "refused"}}
    )
    assert (found.error, [row["target"] for row in found.changes["watch"]]) == ("refused", ["/x"])


def test_a_malformed_answer_does_not_hide_why_the_layers_were_not_released() -> None:
    found = action._released(
        "db1", {"release_watch": {"changes": 5}, "release_applied": {"error": "refused"}}
    )
    assert found.error == "refused"
