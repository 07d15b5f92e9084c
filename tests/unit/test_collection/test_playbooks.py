# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbooks make of two assessments, and that each role hands on all that it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

nativetypes = pytest.importorskip("jinja2.nativetypes")

ROOT = Path(__file__).resolve().parents[3]
#: Roles of one task: a module of the collection.
ENGINES = ("mssql", "faircom", "firebird", "postgresql", "mariadb", "power")


def tasks(path: str) -> list[dict[str, Any]]:
    """Return the tasks of a file."""
    found = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


@pytest.mark.fact(53)
def test_what_was_exposed_stays_in_the_report_of_the_run_that_mends_it() -> None:
    (conclude,) = [task for task in tasks("playbooks/tasks/report.yml") if task["name"] == "Conclude"]
    environment = nativetypes.NativeEnvironment()
    environment.filters["combine"] = lambda one, other: {**one, **other}
    before = {"verdict": "at_risk", "plan": {}, "changes": [], "files": [], "exposed": ["pg_amcheck"]}
    after = {"assessment": {"verdict": "durable", "exposed": []}}
    found = environment.from_string(conclude["ansible.builtin.set_fact"]["durable_result"]).render(
        durable_before=before,
        durable_assessment=after,
        durable_error=None,
        durable_rate=False,
        ansible_check_mode=False,
    )
    assert (found["was"], found["verdict"], found["exposed"]) == ("at_risk", "durable", ["pg_amcheck"])


def test_looking_costs_two_executions_however_many_engines_there_are() -> None:
    """All but two of the tasks run on the controller; none is in a loop."""
    (block,) = [task["block"] for task in tasks("playbooks/tasks/assess.yml")]
    calls = [name for task in block for name in task if name.startswith("durable.dbhost.")]
    on_host = [name for name in calls if not (ROOT / f"plugins/action/{name.rpartition('.')[2]}.py").exists()]
    assert on_host == ["durable.dbhost.engine_facts", "durable.dbhost.storage_facts"]
    assert not any("loop" in task for task in block)


@pytest.mark.parametrize("role", ENGINES)
def test_a_role_hands_every_option_to_its_module_which_takes_no_more(role: str) -> None:
    specs = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text(encoding="utf-8"))
    options = set(specs["argument_specs"]["main"]["options"])
    (task,) = tasks(f"roles/{role}/tasks/main.yml")
    (module,) = [name for name in task if name.startswith("durable.dbhost.")]
    assert set(task[module].values()) == {f"{{{{ {option} }}}}" for option in options}
    text = (ROOT / f"plugins/modules/{module.rpartition('.')[2]}.py").read_text(encoding="utf-8")
    documented = yaml.safe_load(text.split('DOCUMENTATION = r"""')[1].split('"""')[0])["options"]
    assert set(task[module]) == set(documented)
    assert task["register"] == f"{role}_result"


@pytest.mark.parametrize("playbook", ["prove_fua", "benchmark", "pull_the_plug"])
def test_what_writes_to_mounts_wants_its_word_and_no_check_mode_before_it_asks_a_host(playbook: str) -> None:
    (play,) = tasks(f"playbooks/{playbook}.yml")
    assert play["vars"]["durable_measure"] == playbook.replace("_", "-")
    files = [task.get("ansible.builtin.import_tasks") for task in play["tasks"]]
    writers = [
        index
        for index, task in enumerate(play["tasks"])
        if {"durable.dbhost." + playbook, "when"} & set(task)
    ]
    assert files.index("tasks/measure.yml") < min(writers)
    word, check, *_rest = tasks("playbooks/tasks/measure.yml")
    assert word["ansible.builtin.assert"]["that"] == "durable_confirm | default('') == durable_measure"
    assert check["ansible.builtin.assert"]["that"] == "not ansible_check_mode"


@pytest.mark.parametrize(
    ("playbook", "module", "where"),
    [
        ("prove_fua", "prove_fua", "prove_fua.yml"),
        ("benchmark", "benchmark", "benchmark.yml"),
        ("pull_the_plug", "plug_writer", "tasks/plug_run.yml"),
    ],
)
def test_each_limit_that_a_user_may_name_reaches_its_module(playbook: str, module: str, where: str) -> None:
    (play,) = tasks(f"playbooks/{playbook}.yml")
    found = tasks(f"playbooks/{where}")
    given = [
        task
        for task in (found if "hosts" not in found[0] else found[0]["tasks"])
        if f"durable.dbhost.{module}" in task
    ]
    options = given[0][f"durable.dbhost.{module}"]
    assert set(play["vars"]["durable_known"]) == set(options) - {"mounts", "profile", "run", "state"}


def test_a_shutdown_wants_its_word_and_no_check_mode_and_is_of_one_host_at_a_time() -> None:
    (play,) = tasks("playbooks/test_shutdown.yml")
    assert (play["serial"], play["any_errors_fatal"]) == (1, True)
    names = [next((key for key in task if "." in key), "") for task in play["tasks"]]
    asked = [
        str(task["ansible.builtin.assert"]["that"])
        for task in play["tasks"][: names.index("durable.dbhost.engine_facts")]
        if "ansible.builtin.assert" in task
    ]
    assert asked[0] == "durable_confirm | default('') == 'test-shutdown'"
    assert asked[1] == "not ansible_check_mode"
    # What is begun is begun once, after all that may refuse it, and its end is read before anything is attested.
    assert names.count("ansible.builtin.reboot") == 1
    assert names.index("durable.dbhost.shutdown_rehearsal") < names.index("ansible.builtin.reboot")
    assert play["tasks"][-1]["when"] == "durable_seen.verdict != 'kept'"
