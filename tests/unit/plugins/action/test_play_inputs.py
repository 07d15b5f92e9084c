# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The play_inputs action: what no play can read is refused where it stands."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible.errors import AnsibleActionFail

from ansible_collections.durable.dbhost.plugins.action import play_inputs as action


def run(
    monkeypatch: pytest.MonkeyPatch,
    hosts: dict[str, Any],
    extra: dict[str, Any],
    pinned: bool = False,
    **told: Any,
) -> dict[str, Any]:
    """Return what the action returns for these hosts' own variables and these extra ones."""
    monkeypatch.setattr(action, "load_extra_vars", lambda _loader: extra)
    task = MagicMock(args={"pinned": pinned}, async_val=0, diff=False, check_mode=False)
    connection = MagicMock(_shell=MagicMock(tmpdir=None))
    templar = MagicMock(template=lambda value: value)
    plugin = action.ActionModule(task, connection, MagicMock(), MagicMock(), templar, None)
    found = plugin.run(task_vars={"hostvars": hosts, "ansible_play_hosts_all": list(hosts), **told})
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", ["durable_hosts", "durable_serial"])
def test_one_host_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with pytest.raises(
        AnsibleActionFail, match=rf"{name}: observed in the inventory.*expected -e {name}=.* \(of b\)"
    ):
        run(monkeypatch, {"a": {}, "b": {name: "1"}}, {})


def test_extra_variables_reach_the_play(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"durable_serial": 1}
    assert run(monkeypatch, {"a": extra, "b": extra}, extra)["changed"] is False


def test_other_variables_are_nobodys_business(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, {"a": {"durable_profile": "strict"}}, {})["changed"] is False


def test_a_run_without_a_pinned_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AnsibleActionFail, match="No host of this run has a durable_profile"):
        run(monkeypatch, {"a": {}, "b": {}}, {}, pinned=True)
    with pytest.raises(
        AnsibleActionFail, match=r"^No host .*Also: durable_profil: .*Did you mean durable_profile\? \(of b\)"
    ):
        run(monkeypatch, {"a": {}, "b": {"durable_profil": "strict"}}, {}, pinned=True)
    pinned = {"durable_profile": "strict"}
    assert run(monkeypatch, {"a": {}, "b": pinned}, {}, pinned=True)["changed"] is False
    # Of a play's own variables hostvars knows nothing.
    assert run(monkeypatch, {"a": {}}, {}, pinned=True, **pinned)["changed"] is False


@pytest.mark.parametrize("formats", ["json", ["jsn"], {"json": 1}, 7])
def test_files_of_no_known_form_are_refused_before_a_host_is_asked(
    monkeypatch: pytest.MonkeyPatch, formats: Any
) -> None:
    with pytest.raises(
        AnsibleActionFail,
        match=r"durable_report_formats: observed .*expected a list of json, text, html, junit, sarif",
    ):
        run(monkeypatch, {"a": {}}, {}, durable_report_formats=formats)
    assert run(monkeypatch, {"a": {}}, {}, durable_report_formats=["junit", "sarif"])["changed"] is False


@pytest.mark.parametrize("directory", [5, ["a"], {"a": 1}, True])
def test_a_directory_that_is_no_path_is_refused_before_a_host_is_asked(
    monkeypatch: pytest.MonkeyPatch, directory: Any
) -> None:
    with pytest.raises(AnsibleActionFail, match=r"durable_report_dir: observed .*expected a path as text"):
        run(monkeypatch, {"a": {}}, {}, durable_report_dir=directory)
    assert run(monkeypatch, {"a": {}}, {}, durable_report_dir="")["changed"] is False


def test_no_error_hides_another_and_each_names_its_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = {
        "a": {"durable_hosts": "all", "durable_allow": ["reboots"]},
        "b": {"durable_serial": "ten", "durable_report_dir": 5, "durable_allow": ["reboots"]},
        "c": {"durable_report_formats": ["pdf"], "durable_profle": "strict", "durable_allow": "reboot"},
        "d": {"durable_profile": "stritc", "durable_mounts": ["srv"]},
    }
    with pytest.raises(AnsibleActionFail) as caught:
        run(monkeypatch, hosts, {})
    said = caught.value.message
    for start, end in (
        ("durable_hosts: observed in the inventory", "delete it there (of a)"),
        ("durable_serial: observed in the inventory", "delete it there (of b)"),
        ("durable_report_dir: observed 5", "'/var/lib/durable-report' (of b)"),
        ("durable_report_formats: observed ['pdf']", "sarif (of c)"),
        ("durable_allow: observed ['reboots']", "Did you mean reboot? (of a, b)"),
        ("durable_allow: observed 'reboot'", "write a list: durable_allow: [reboot] (of c)"),
        ("durable_profle: no such variable", "Did you mean durable_profile? (of c)"),
        ("durable_profile: observed 'stritc'", "Did you mean strict? (of d)"),
        ("durable_mounts[0]: observed 'srv'", "Did you mean /srv? (of d)"),
    ):
        (each,) = [each for each in said.split(". Also: ") if each.startswith(start)]
        assert each.removesuffix(". Nothing was changed.").endswith(end), each
    assert said.endswith(". Nothing was changed.")


@pytest.mark.parametrize("wrong", [{"durable_report_dir": 5}, {"durable_report_formats": ["pdf"]}])
def test_the_report_variables_of_one_host_are_checked(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]
) -> None:
    with pytest.raises(
        AnsibleActionFail, match=r"durable_report_\w+: observed .* \(of b\)\. Nothing was changed"
    ):
        run(monkeypatch, {"a": {}, "b": wrong}, {})
