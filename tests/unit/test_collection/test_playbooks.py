# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbooks make of two assessments, and that each role hands on all that it takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.durable.dbhost.plugins.module_utils.policy.variable_names import INPUTS, OWN

nativetypes = pytest.importorskip("jinja2.nativetypes")

ROOT = Path(__file__).resolve().parents[3]
#: Roles of one task, but for what they refuse: a module of the collection.
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


def test_looking_costs_three_executions_at_most_however_many_engines_there_are() -> None:
    """All but three of the tasks run on the controller; none is in a loop; the third is not always done."""
    (block,) = [task["block"] for task in tasks("playbooks/tasks/assess.yml")]
    calls = [name for task in block for name in task if name.startswith("durable.dbhost.")]
    routed = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["plugin_routing"]["modules"]
    # The action that bounds a host's answer bears the name of one of the modules that it runs there.
    on_host = [name for name in calls if name.rpartition(".")[2] in {*routed, "engine_facts"}]
    assert on_host == [f"durable.dbhost.{name}_facts" for name in ("engine", "storage", "power")]
    assert not any("loop" in task for task in block)


def rendered(path: str, name: str, **variables: Any) -> Any:
    """Return a variable of a file of variables, as Ansible reads it."""
    text = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    environment = nativetypes.NativeEnvironment()
    environment.filters.update(
        combine=lambda one, other: {**one, **other},
        dict2items=lambda value: [{"key": key, "value": item} for key, item in value.items()],
        items2dict=lambda value: {item["key"]: item["value"] for item in value},
    )
    found = text
    for part in name.split("."):
        found = found[part]
    return environment.from_string(found).render(**variables)


LINE = {"system": "rack@localhost", "power_value": 1, "user": "upsmon", "type": "primary"}


@pytest.mark.parametrize(
    ("given", "inputs", "password"),
    [
        ({}, {}, ""),
        ({"durable_ups": None}, {}, ""),
        ({"durable_ups": {"quiet": 60}}, {"quiet": 60}, ""),
        (
            {"durable_ups": {"quiet": 60, "monitor": {**LINE, "password": "hunter2"}}},
            {"quiet": 60, "monitor": LINE},
            "hunter2",
        ),
        ({"durable_ups": {"monitor": LINE}}, {"monitor": LINE}, ""),
        ({"durable_ups": {"monitor": "rack@localhost 1 u hunter2 primary"}}, {"monitor": "no mapping"}, ""),
        ({"durable_ups": "hunter2"}, "no mapping", ""),
        ({"durable_ups": ["hunter2"]}, "no mapping", ""),
    ],
)
def test_the_password_goes_to_the_step_that_writes_it_alone(
    given: dict[str, Any], inputs: Any, password: str
) -> None:
    path = "playbooks/vars/inputs.yml"
    found = rendered(path, "durable_inputs.ups", **given)
    assert found == inputs
    assert "hunter2" not in str(found)
    assert rendered(path, "durable_ups_password", **given) == password
    used = [
        name
        for name in sorted((ROOT / "playbooks").glob("**/*.yml"))
        if "collections" not in name.parts and "durable_ups_password" in name.read_text(encoding="utf-8")
    ]
    assert [name.name for name in used] == ["step.yml", "inputs.yml"]


@pytest.mark.parametrize(
    ("profile", "own", "asked"),
    [
        ("ups", {}, True),
        ("strict", {}, False),
        ("ours", {"ours": {"rests_on": "ups"}}, True),
        ("ours", {"ours": {"rests_on": "flush"}, "theirs": {"rests_on": "ups"}}, False),
        ("ours", {"ours": "ups"}, False),
        ("ups", "no mapping", True),
        (["ups"], {}, False),
        (None, {}, False),
    ],
)
def test_a_profile_that_rests_on_a_ups_is_found_by_its_own_word(profile: Any, own: Any, asked: bool) -> None:
    shipped = yaml.safe_load((ROOT / "playbooks/vars/profiles.yml").read_text(encoding="utf-8"))
    (block,) = tasks("playbooks/tasks/assess.yml")
    environment = nativetypes.NativeEnvironment()
    environment.filters.update(
        dict2items=lambda value: [{"key": key, "value": item} for key, item in value.items()],
        flatten=lambda value, levels: [item for part in value for item in part],
    )
    found = environment.from_string(block["vars"]["durable_rests_on_ups"]).render(
        **shipped, durable_inputs={"profile": profile, "profiles": own}
    )
    assert found is asked


def test_the_guard_is_released_where_its_step_has_no_mounts_and_first_of_all() -> None:
    (step,) = [task for task in tasks("playbooks/tasks/step.yml")[0]["block"] if "vars" in task][:1]
    environment = nativetypes.NativeEnvironment()
    licence = {
        "expires": "2026-06-30",
        "quiet": 60,
        "needed": {"durability": 1},
        "test_ups": True,
        "units": ["a"],
    }
    mounts = [{"mount": "/srv/pgdata"}]
    before = {"plan": {"tighten": {"power_guard": [], "power": []}, "loosen": {"power_guard": mounts}}}

    def given(phase: str, **more: Any) -> dict[str, Any]:
        return {
            name: environment.from_string(text).render(
                durable_step=[phase, "power_guard"],
                durable_before={**before, **more},
                durable_inputs={"allow": []},
                durable_ups_password="",
            )
            for name, text in step["vars"].items()
            if name.startswith("power")
        }

    released = given("tighten", licence=None)
    assert (released["power_guard_state"], released["power_guard_targets"]) == ("released", [])
    assert (released["power_state"], released["power_guard_expires"]) == ("released", "")
    issued = given("loosen", licence=licence)
    assert (issued["power_guard_state"], issued["power_guard_targets"]) == ("present", mounts)
    assert {name: issued[f"power_guard_{name}"] for name in licence} == licence
    release = [task["name"] for task in tasks("playbooks/release_db.yml")[0]["tasks"]]
    assert release[1:3] == ["Release the guard", "Release the monitor of the UPS"]


@pytest.mark.parametrize("role", ENGINES)
def test_a_role_hands_every_option_to_its_module_which_takes_no_more(role: str) -> None:
    specs = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text(encoding="utf-8"))
    options = set(specs["argument_specs"]["main"]["options"])
    _refusal, task = tasks(f"roles/{role}/tasks/main.yml")
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


@pytest.mark.parametrize(
    ("changed", "pending", "reboots"),
    [
        ([], [], False),
        (["/srv/pgdata"], [], False),
        # Of an earlier run: a boot did not bring it into effect, or is somebody's to make.
        ([], [("reboot", ["/srv/pgdata"])], False),
        (["/srv/other"], [("reboot", ["/srv/pgdata"])], False),
        (["/srv/pgdata"], [("reboot", ["/srv/pgdata"])], True),
        (["/srv/pgdata"], [("restart", ["/srv/pgdata"])], False),
        # A layer, by the disks below it.
        (["wwn:2"], [("reboot", ["wwn:1", "wwn:2"]), ("restart", ["x"])], True),
    ],
)
def test_a_run_reboots_only_for_what_it_has_changed(
    changed: list[str], pending: list[tuple[str, list[str]]], reboots: bool
) -> None:
    (reboot,) = [task for task in tasks("playbooks/harden_db.yml")[0]["tasks"] if "Reboot" in task["name"]]
    environment = nativetypes.NativeEnvironment()
    environment.filters["flatten"] = lambda lists: [item for each in lists for item in each]
    environment.filters["intersect"] = lambda one, other: sorted(set(one) & set(other))
    condition = reboot["when"][-1]
    assert "pending" in condition
    wanted = environment.compile_expression(condition)(
        durable_assessment={
            "assessment": {"pending": [{"needs": needs, "after": after} for needs, after in pending]}
        },
        durable_before={"changes": [{"target": target} for target in changed]},
    )
    assert wanted is reboots


@pytest.mark.parametrize(
    ("variables", "profile"),
    [({}, None), ({"durable_profile": None}, ""), ({"durable_profile": "strict"}, "strict")],
)
def test_an_empty_profile_is_no_host_without_one(variables: dict[str, Any], profile: str | None) -> None:
    """The policy refuses the empty name; without a name a host is only rated."""
    found = rendered("playbooks/vars/inputs.yml", "durable_inputs.profile", **variables)
    assert found == profile


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


@pytest.mark.parametrize("role", sorted(path.name for path in (ROOT / "roles").iterdir()))
def test_a_role_that_was_given_nothing_to_do_is_refused(role: str) -> None:
    """It would end well, and its host be taken for one that has been seen to."""
    condition = tasks(f"roles/{role}/tasks/main.yml")[0]["ansible.builtin.assert"]["that"]
    holds = nativetypes.NativeEnvironment().compile_expression(condition)
    cases = [([], "present", False), ([{}], "present", True), ([], "released", True)]
    for targets, state, fine in cases:
        assert holds(**{f"{role}_targets": targets, f"{role}_state": state}) is fine


@pytest.mark.parametrize("path", sorted((ROOT / "playbooks").glob("*.yml")), ids=lambda path: path.stem)
def test_no_playbook_passes_by_looking_at_no_host(path: Path) -> None:
    for play in tasks(str(path.relative_to(ROOT))):
        if "ansible.builtin.import_playbook" not in play:
            assert play["hosts"].startswith(
                "{{ lookup('durable.dbhost.hosts', durable_hosts | default('all')) }}"
            )
