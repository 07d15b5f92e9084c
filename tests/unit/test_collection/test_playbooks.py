# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbooks make of two assessments, and that each role hands on all that it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.policy.expect.variable_names import INPUTS, OWN
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.documents import with_fragments

nativetypes = pytest.importorskip("jinja2.nativetypes")

ROOT = Path(__file__).resolve().parents[3]
#: Roles of one task, except what they refuse: a module of the collection.
ENGINES = ("mssql", "faircom", "firebird", "postgresql", "mariadb", "power")


def tasks(path: str) -> list[dict[str, Any]]:
    """Return the tasks of a file."""
    found = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


def test_looking_costs_one_execution_however_many_engines_there_are() -> None:
    """Only these actions ask the host; none is in a loop; a converged host has no step, and is asked once."""
    (block,) = [task["block"] for task in tasks("roles/harden/tasks/main.yml") if "block" in task]
    assert not any("loop" in task for task in block)
    assert [task.get("when") for task in block if "durable.dbhost.assess" in task] == [None]
    (change,) = [task for task in block if "ansible.builtin.include_tasks" in task]
    # What a killed run has left armed is the one other reason.
    assert change["ansible.builtin.include_tasks"]["file"] == (
        "{{ 'change.yml' if harden_before.steps | default(true) or harden_before.switch.state == 'armed'"
        " else 'unchanged.yml' }}"
    )
    assert "when" not in change
    assert tasks("roles/harden/tasks/unchanged.yml") == []
    assert len(block) == 2
    for name in ("assess", "managed_mounts"):
        text = (ROOT / f"plugins/action/{name}.py").read_text(encoding="utf-8")
        assert len(re.findall(r"\bexecute\(\s*self\b", text)) == 1


def test_all_layers_are_released_in_one_execution_once_nothing_puts_them_back() -> None:
    release = tasks("playbooks/release_db.yml")[0]["tasks"]
    (end,) = release[1:]
    assert [task["name"] for task in end["block"]] == [
        "Release the watch",
        "Release the layers, the guard of a UPS first",
        "Fail if a layer could not be released",
    ]
    # Those before it have changed the host: it rests on no look.
    assert end["block"][1]["durable.dbhost.apply"] == {"release": True}


@pytest.mark.parametrize("role", ENGINES)
def test_a_role_hands_every_option_to_its_module_which_takes_no_more(role: str) -> None:
    specs = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text(encoding="utf-8"))
    options = set(specs["argument_specs"]["main"]["options"])
    _refusal, task, whole = tasks(f"roles/{role}/tasks/main.yml")
    assert whole["vars"] == {"durable_layers": [role]}
    assert whole["when"] == f"not ({task['when']})"
    (module,) = [name for name in task if name.startswith("durable.dbhost.")]
    assert set(task[module].values()) == {f"{{{{ {option} }}}}" for option in options}
    text = (ROOT / f"plugins/modules/{module.rpartition('.')[2]}.py").read_text(encoding="utf-8")
    documented = with_fragments(text.split('DOCUMENTATION = r"""')[1].split('"""')[0])["options"]
    assert set(task[module]) == set(documented)
    assert task["register"] == f"{role}_result"


@pytest.mark.parametrize("playbook", ["prove_fua", "benchmark", "compare_filesystems", "pull_the_plug"])
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


def test_a_disk_is_overwritten_on_one_host_alone() -> None:
    """Names below by-id can be those of places, as clouds give them: the same on each host."""
    (play,) = tasks("playbooks/compare_filesystems.yml")
    names = [task["name"] for task in play["tasks"]]
    assert names.index("Require one host") < names.index("Compare file systems")
    (check,) = (task for task in play["tasks"] if task["name"] == "Require one host")
    assert check["ansible.builtin.assert"]["that"] == "ansible_play_hosts_all | length == 1"
    assert "when" not in check


@pytest.mark.parametrize(
    ("playbook", "module", "where"),
    [
        ("prove_fua", "prove_fua", "prove_fua.yml"),
        ("benchmark", "benchmark", "benchmark.yml"),
        ("compare_filesystems", "compare_filesystems", "compare_filesystems.yml"),
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
    own = {"mounts", "profiles", "known", "run", "state"}
    assert set(play["vars"]["durable_known"]) - own == set(options) - own


def test_a_benchmark_keeps_what_an_audit_reads_of_it() -> None:
    (play,) = tasks("playbooks/benchmark.yml")
    (kept,) = [
        task["durable.dbhost.keep_report"] for task in play["tasks"] if "durable.dbhost.keep_report" in task
    ]
    assert kept["name"] == "benchmark"
    read = (ROOT / "plugins/module_utils/policy/assess/costs.py").read_text(encoding="utf-8")
    names = set(re.findall(r'parsed\["(\w+)"\]', read))
    assert {"time", "disks", "prices"} <= names
    assert names <= set(re.findall(r"'(\w+)':", kept["files"]["json"]))


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
    assert play["tasks"][-1]["when"] == "durable_observed.verdict != 'kept'"


def test_every_name_that_begins_with_durable_is_known() -> None:
    files = [path for part in ("playbooks", "roles") for path in (ROOT / part).rglob("*.yml")]
    files = [path for path in files if "collections" not in path.relative_to(ROOT).parts]
    used = {
        name
        for path in files
        for name in re.findall(r"\bdurable_[a-z_]+\b", path.read_text(encoding="utf-8"))
    }
    assert used - INPUTS - OWN == set()
    documented = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    table = set(re.findall(r"`(durable_[a-z_]+)`", documented.partition("## Where they belong")[0]))
    assert table - INPUTS == set()
    hidden = {f"durable_{name}" for name in ("attestations_group", "attestations_host")}
    assert {name for name in INPUTS - table - hidden if not name.startswith("durable_witness")} == set()


@pytest.mark.parametrize(
    "role", sorted(path.name for path in (ROOT / "roles").iterdir() if path.name not in ("harden", "watch"))
)
def test_a_role_that_was_given_nothing_to_do_is_refused(role: str) -> None:
    """It would end well, and its host be taken for one that has been seen to."""
    condition = tasks(f"roles/{role}/tasks/main.yml")[0]["ansible.builtin.assert"]["that"]
    holds = nativetypes.NativeEnvironment().compile_expression(condition)
    cases = [([], "present", False), ([{}], "present", True), ([], "released", True)]
    for targets, state, fine in cases:
        given = {f"{role}_targets": targets, f"{role}_state": state}
        assert holds(**given) is fine
        # The layer is brought to the profile.
        assert holds(**given, durable_profile="strict") is True


@pytest.mark.parametrize("path", sorted((ROOT / "playbooks").glob("*.yml")), ids=lambda path: path.stem)
def test_no_playbook_passes_by_looking_at_no_host(path: Path) -> None:
    for play in tasks(str(path.relative_to(ROOT))):
        if "ansible.builtin.import_playbook" not in play:
            assert play["hosts"].startswith(
                "{{ lookup('durable.dbhost.hosts', durable_hosts | default('all')) }}"
            )


@pytest.mark.parametrize("entry", ["main", "audit"])
def test_a_host_is_in_the_report_whatever_fails_or_is_lost(entry: str) -> None:
    found = tasks(f"roles/harden/tasks/{entry}.yml")
    (work,) = [task for task in found if "block" in task]
    assert work["ignore_unreachable"] is True
    (again,) = work["rescue"]
    assert again["durable.dbhost.assess"]["failed"] == "{{ ansible_failed_result }}"
    names = [name for task in found for name in task if name.startswith("durable.dbhost.")]
    assert names == ["durable.dbhost.play_inputs", "durable.dbhost.conclude"]
    # What an earlier play has concluded, seen and done is not taken for this one's.
    assert found[0]["register"] == found[-2]["register"] == "harden_concluded"
    assert found[-2]["durable.dbhost.conclude"]["since"] == "{{ harden_concluded.clock }}"
    assert found[-2]["run_once"] is True


def test_the_report_is_the_last_thing_whatever_fails() -> None:
    (last,) = tasks("roles/harden/tasks/report.yml")
    (verdict,), (report,) = last["block"], last["always"]
    assert verdict["ansible.builtin.assert"]["that"] == "inventory_hostname not in harden_concluded.failures"
    # One process for all hosts, but only if no host fails: Ansible fails all of them for one that ran once.
    assert verdict["run_once"] == "{{ harden_concluded.failures | length == 0 }}"
    assert report["durable.dbhost.report"] == {"hosts": "{{ ansible_play_hosts_all }}"}
    assert report["run_once"] is True


def test_a_part_of_the_role_cannot_be_chosen() -> None:
    """A tag of one task would be a part of an order."""
    for path in (ROOT / "roles/harden/tasks").glob("*.yml"):
        assert "tags:" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["always", "tagged", "all", "untagged"])
def test_a_playbook_whose_steps_are_skipped_does_not_end_well(word: str) -> None:
    """Of a task that refused it Ansible would skip that one too."""
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ansible-playbook")), "-i", "localhost,", "-c", "local"),
            *("--check", "--skip-tags", word, str(ROOT / "playbooks/harden-db.yml")),
        ],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode != 0
    assert f"observed --skip-tags {word}; expected no --tags" in " ".join((done.stdout + done.stderr).split())
