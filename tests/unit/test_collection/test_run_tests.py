# Copyright (c) 2026, durable.dbhost contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make test` never calls well what failed, or what did not run, and says how far it is."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.every_core_alike

TOOLS = Path(__file__).resolve().parents[3] / "tools"
NOTHING = Path("does-not-matter")


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return tools/run_tests.py with its output elsewhere, no environments to make, one stage at a time."""
    monkeypatch.syspath_prepend(str(TOOLS))
    found = importlib.import_module("run_tests")

    def ensure(name: str) -> Path:
        if name == "absent":
            raise found.venvs.Unavailable("needs what is not here")
        return NOTHING

    monkeypatch.setattr(found, "ROOT", tmp_path)
    monkeypatch.setattr(found, "OUTPUT", tmp_path)
    monkeypatch.setattr(found, "TOGETHER", 1)
    monkeypatch.setattr(found, "python_directories", lambda: os.environ["PATH"])
    monkeypatch.setattr(found.venvs, "ensure", ensure)
    return found


@pytest.fixture
def tools(runner: ModuleType) -> dict[str, ModuleType]:
    """Return the other modules of tools/."""
    return {name: importlib.import_module(name) for name in ("stages", "progress", "scenario")}


def stage(runner: ModuleType, name: str, code: str = "", venv: str = "here", **more: Any) -> Any:
    """Return a stage that runs Python code."""
    return runner.Stage("lint", name, venv, (sys.executable, "-c", code), Path.cwd(), **more)


def run(runner: ModuleType, *stages: tuple[str, str]) -> tuple[int, int, int, int]:
    """Run stages, given as (environment, Python code); count passed, failed, impossible, not reached."""
    found = runner.run_all([stage(runner, f"stage {n}", code, venv) for n, (venv, code) in enumerate(stages)])
    return len(found.passed), len(found.failed), len(found.impossible), len(found.not_reached)


def test_counts_what_passed(runner: ModuleType) -> None:
    assert run(runner, ("here", ""), ("here", "")) == (2, 0, 0, 0)


def test_stops_at_the_first_failure_and_shows_its_output(
    runner: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(runner, ("here", ""), ("here", "exit('the reason')"), ("here", "")) == (1, 1, 0, 1)
    assert "the reason" in capsys.readouterr().out


def test_what_a_stage_imports_is_compiled_once(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "imported.py").touch()
    assert run(runner, ("here", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import imported")) == (
        1,
        0,
        0,
        0,
    )
    assert list((tmp_path / "__pycache__").iterdir())


def test_names_what_this_machine_cannot_run(runner: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(runner, ("absent", ""), ("here", "")) == (1, 0, 1, 0)
    assert "NOT RUN: needs what is not here" in capsys.readouterr().out


def test_what_cannot_even_be_started_is_a_failure(runner: ModuleType) -> None:
    found = runner.run_all([runner.Stage("lint", "lost", "here", ("no-such-command",), Path.cwd())])
    assert (found.passed, list(found.failed)) == ([], ["lost"])
    assert "no-such-command" in found.failed["lost"][0]


#: A stage, as the runner starts it, of which something has left its session and lost its parent; it tells both ids.
OWNER = """
import sys
sys.path.insert(0, sys.argv[1])
import run_tests
from pathlib import Path
stage = run_tests.Stage("lint", "long", "here", (sys.executable, "-c", sys.argv[2]), Path.cwd())
process = run_tests.start(stage, Path("nowhere"))
print(process.stdout.readline().decode(), flush=True)
process.wait()
"""
STAGE = """
import os, signal, subprocess, sys, time
{stubborn}
lost = subprocess.run(["sh", "-c", "setsid sleep 1000 >/dev/null & echo $!"], stdout=subprocess.PIPE).stdout
print(os.getpid(), int(lost), flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize(
    "stubborn", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"], ids=["told", "killed"]
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_of_a_stage_is_left_when_the_runner_is_killed(number: signal.Signals, stubborn: str) -> None:
    argv = [sys.executable, "-c", OWNER, str(TOOLS), STAGE.format(stubborn=stubborn)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pids = owner.stdout.readline().split()
        assert all(Path("/proc", pid).exists() for pid in pids)
        owner.send_signal(number)
    deadline = time.monotonic() + 20
    while [pid for pid in pids if Path("/proc", pid).exists()] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (len(pids), ended(pids)) == (2, [])


def ended(pids: list[str]) -> list[str]:
    """Return which processes are there still, and end those."""
    left = [pid for pid in pids if Path("/proc", pid).exists()]
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    return left


BROKEN_OFF = """
import sys
tools, long = sys.argv[1:]
sys.path.insert(0, tools)
import run_tests
from pathlib import Path
run_tests.OUTPUT = Path.cwd()
run_tests.TOGETHER = 1
run_tests.venvs.ensure = lambda name: Path("nowhere")
run_tests.venvs.link_collection = lambda: None
run_tests.all_stages = lambda scratch: [
    run_tests.Stage("lint", name, "here", (sys.executable, "-c", code), Path.cwd())
    for name, code in (("before", ""), ("long", long), ("next", "open('begun', 'w')"))
]
sys.argv = ["run_tests"]
sys.exit(run_tests.main())
"""


def test_a_run_that_is_broken_off_begins_nothing_more_and_leaves_nothing(
    runner: ModuleType, tmp_path: Path
) -> None:
    """By a signal to itself alone: not all that sends one tells its stages too."""
    argv = [sys.executable, "-c", BROKEN_OFF, str(TOOLS), STAGE.format(stubborn="")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as owner:
        assert owner.stdout
        log, deadline = tmp_path / "long.log", time.monotonic() + 20
        while not (log.exists() and log.read_text().endswith("\n")) and time.monotonic() < deadline:
            time.sleep(0.05)
        owner.send_signal(signal.SIGINT)
        try:
            said = owner.communicate(timeout=30)[0]
        finally:
            owner.kill()
    left = ended(log.read_text().split())
    assert (owner.returncode, left, (tmp_path / "begun").exists()) == (130, [], False)
    assert said.endswith("long: broken off\nbroken off\n")
    last = json.loads((tmp_path / "last.json").read_text())
    assert (last["passed"], last["failed"], last["not_reached"]) == (["before"], {}, ["long", "next"])


SCENARIO = """
import os, sys
tools, long = sys.argv[1:]
sys.path.insert(0, tools)
import scenario
from pathlib import Path
stage = scenario.Stage("lab", "long", "here", (), Path.cwd())
scenario.call(stage, (sys.executable, "-c", long), dict(os.environ))
"""


def test_a_scenario_that_is_broken_off_leaves_nothing() -> None:
    argv = [sys.executable, "-c", SCENARIO, str(TOOLS), STAGE.format(stubborn="")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as owner:
        assert owner.stdout
        pids = owner.stdout.readline().split()
        owner.send_signal(signal.SIGINT)
        owner.wait(timeout=30)
    assert (len(pids), ended(pids)) == (2, [])


def test_what_a_stage_leaves_when_it_ends_by_itself_stays(runner: ModuleType, tmp_path: Path) -> None:
    """As a machine that is kept."""
    code = "from subprocess import *\nprint(Popen(['sleep', '1000'], stdout=DEVNULL, stderr=DEVNULL).pid)"
    found = runner.run_all([stage(runner, "keeps", code)])
    assert found.passed == ["keeps"]
    os.kill(int((tmp_path / "keeps.log").read_text()), signal.SIGKILL)


def test_a_long_stage_repeats_at_its_end_what_says_why(
    runner: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "print('FAILED tests/test_x.py::test_y'); print('a word'); exit(1)"
    found = runner.run_all([stage(runner, "long", code, live=True)])
    assert found.summary() == [
        "  failed: long",
        "    | FAILED tests/test_x.py::test_y",
        "0 passed, 1 failed",
    ]
    after = capsys.readouterr().out.rpartition("exit code")[2]
    assert "FAILED tests/test_x.py::test_y" in after
    assert "a word" not in after


def test_of_very_much_that_says_why_it_repeats_both_ends(runner: ModuleType) -> None:
    code = "for number in range(100): print(f' E   line {number}')\nexit(1)"
    *lines, _counts = runner.run_all([stage(runner, "long", code, live=True)]).summary()
    shown = [line.split()[-1] for line in lines[1:]]
    assert shown == ["0", "1", "2", "3", "lines", *(str(number) for number in range(92, 100))]
    assert "... 88 lines" in lines[5]


#: Each waits until the other has begun, and says whether it has.
MEET = """
import pathlib, sys, time
mine, other = map(pathlib.Path, {places!r})
mine.touch()
end = time.monotonic() + 20
while not other.exists() and time.monotonic() < end: time.sleep(0.01)
print('met' if other.exists() else 'alone')
if {code}: sys.exit({code})
"""


def test_two_run_beside_each_other_and_after_a_failure_none_begins(
    runner: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "TOGETHER", 2)
    a, b, c = (str(tmp_path / name) for name in "abc")
    found = runner.run_all(
        [
            stage(runner, "a", MEET.format(places=(a, b), code=1), live=True),
            stage(runner, "b", MEET.format(places=(b, a), code=1), live=True),
            stage(runner, "c", f"open({c!r}, 'w')"),
        ]
    )
    told = capsys.readouterr().out
    assert (sorted(found.failed), found.not_reached) == (["a", "b"], ["c"])
    assert "    a | met\n" in told and "    b | met\n" in told
    assert not Path(c).exists()


def test_a_stage_begins_when_what_it_needs_has_passed(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one behind it, which needs nothing, does not wait with it."""
    monkeypatch.setattr(runner, "TOGETHER", 2)
    made, other = tmp_path / "made", tmp_path / "other"
    slow = MEET.format(places=(str(tmp_path / "begun"), str(other)), code=0) + f"open({str(made)!r}, 'w')"
    found = runner.run_all(
        [
            stage(runner, "first", slow),
            stage(runner, "second", f"open({str(made)!r})", needs="first"),
            stage(runner, "third", f"open({str(other)!r}, 'w')"),
        ]
    )
    assert sorted(found.passed) == ["first", "second", "third"]
    assert found.passed.index("first") < found.passed.index("second")


def test_what_needs_a_stage_that_cannot_run_is_not_run_either(runner: ModuleType) -> None:
    stages = [stage(runner, "first", venv="absent"), stage(runner, "second", needs="first")]
    found = runner.run_all([*stages, stage(runner, "third", needs="second")])
    assert (found.passed, found.failed, found.not_reached) == ([], {}, [])
    assert list(found.impossible) == ["first", "second", "third"]
    assert found.impossible["third"] == "needs second, which did not run"
    assert found.summary()[-1] == "0 passed, 0 failed"


def test_says_how_far_it_is_and_how_long_the_rest_takes(
    runner: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "times.json").write_text('{"first": 1, "second": 600, "third": 300}')
    stages = [stage(runner, name) for name in ("first", "second", "third")]
    assert runner.header(stages).startswith("== 3 stages, 1 at a time; about 15 min left\n   3 lint: ")
    runner.run_all(stages)
    told = re.sub(r"\d+\.\d s", "0.0 s", capsys.readouterr().out).splitlines()
    assert told == [
        "[1/3] first ... 1 s last time",
        "[1/3] first: ok, 0.0 s, 0.0 s of processor; about 15 min left",
        "[2/3] second ... 10 min last time",
        "[2/3] second: ok, 0.0 s, 0.0 s of processor; about 5 min left",
        "[3/3] third ... 5 min last time",
        "[3/3] third: ok, 0.0 s, 0.0 s of processor",
    ]
    assert max(runner.Times(tmp_path / "times.json").seconds.values()) < 60


def test_a_failed_stage_says_nothing_of_how_long_it_takes(runner: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text('{"first": 600}')
    runner.run_all([stage(runner, "first", "exit(1)")])
    assert runner.Times(tmp_path / "times.json").seconds == {"first": 600}


def test_what_is_left(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    times = tools["progress"].Times(tmp_path / "times.json")
    assert times.left({"new": 5}, [], 2) == ""
    times.note("long", 600)
    times.note("short", 60)
    assert times.left({"long": 540}, ["short"], 1) == "about 2 min left"
    assert times.left({"long": 900}, ["short"], 2) == "about 60 s left"
    assert times.left({"long": 0}, ["short", "new"], 2) == "more than 10 min left"
    assert times.left({}, [], 2) == ""
    assert tools["progress"].spread([600, 300, 300, 60], 2) == 660


def test_what_failed_last_is_told_until_the_next_run(
    runner: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.run_all(
        [stage(runner, "good"), stage(runner, "bad one", "exit('the reason')"), stage(runner, "c")]
    )
    capsys.readouterr()
    runner.show_failed()
    assert capsys.readouterr().out.splitlines() == [
        "  failed: bad one",
        "    | the reason",
        "  all of it: bad-one.log",
        "1 passed, 1 failed, 1 not reached",
    ]
    runner.run_all([stage(runner, "good")])
    capsys.readouterr()
    runner.show_failed()
    assert capsys.readouterr().out == "nothing failed\n1 passed, 0 failed, 0 not reached\n"


def test_every_stage_can_be_named(tools: dict[str, ModuleType]) -> None:
    stages = tools["stages"]
    found = stages.all_stages(NOTHING)
    names = [each.name for each in found]
    assert len(set(names)) == len(names) == len({each.slug for each in found})
    assert not set(names) & {*stages.GROUPS, "check", ""}
    assert set(stages.AT_THE_END) == set(names[-len(stages.AT_THE_END) :])
    for each in found:
        (*needed, last) = stages.select(found, each.name)
        assert last is each
        assert {before.name for before in (*needed, each)} >= {after.needs for after in needed} - {""}
        assert each.needs in {"", *(before.name for before in needed)}
    long = {each.name for each in found if each.is_long}
    assert stages.select(found, "") == [each for each in found if each.name not in long]
    assert long == {
        each.name
        for group in ("unit", "sanity", "lab")
        for each in stages.select(found, group)
        if each.is_long
    }
    assert {f"unit tests, {venv}" for venv in stages.BETWEEN} <= long
    assert not long & {each.needs for each in found}
    assert {each.group for each in stages.select(found, "lint")} == {"lint"}


def test_both_ansible_cores_run_on_machines_and_the_pages_say_which_where(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = tools["stages"]
    old, new = stages.ON_MACHINES
    monkeypatch.setattr(stages, "ansibles_here", lambda names: names)
    lab = [each for each in stages.lab_stages(NOTHING) if each.name in stages.scenarios()]
    newest = [each.name for each in lab if each.venv == new]
    assert {each.venv for each in lab if each.name not in newest} == {old}
    (both,) = [each for each in lab if each.also]
    assert {both.venv, both.also} == {old, new}
    said = " and ".join(f"`{name}`" for name in newest)
    for page in ("docs/support.md", "tests/README.md"):
        assert f"{said} " in (stages.ROOT / page).read_text()
    monkeypatch.setattr(stages, "ansibles_here", lambda _names: (new,))
    assert {each.venv for each in stages.lab_stages(NOTHING) if each.group == "lab"} == {new, "browser"}


#: Debian's name of a release -> its number on the page.
RELEASES = {"bullseye": "11", "bookworm": "12", "trixie": "13", "sid": "sid"}


def test_the_support_page_has_each_scenario_and_the_releases_that_it_runs_on(
    tools: dict[str, ModuleType],
) -> None:
    stages = tools["stages"]
    page = (stages.ROOT / "docs/support.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d, sid]+) \|", page, re.M))
    ran = {}
    for name in stages.scenarios():
        platforms = (stages.ROOT / f"molecule/{name}/molecule.yml").read_text(encoding="utf-8")
        releases = re.findall(r"^ +release: (?:\$\{DBHOST_LAB_RELEASE:-)?(\w+)", platforms, re.M)
        numbers = {RELEASES[release] for release in releases}
        ran[name] = ", ".join(sorted(numbers))
    assert rows == ran
    distributions = (stages.ROOT / "docs/distributions.md").read_text(encoding="utf-8")
    for release in ("trixie", "bullseye", "sid"):
        (listed,) = re.findall(rf"\({release}\) \| scenarios ([^|]+)", distributions)
        listed = re.sub(r"\([^)]*\)|;.*", "", listed)
        named = {name for name, numbers in ran.items() if RELEASES[release] in numbers}
        assert set(re.findall(r"`(\w+)`", listed)) == named


def test_the_distributions_page_has_each_ansible_core_and_what_runs_on_it(
    tools: dict[str, ModuleType],
) -> None:
    stages = tools["stages"]
    page = (stages.ROOT / "docs/distributions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d., ]+|newest) \| (.+) \| (.+) \| (.+) \|$", page, re.M)
    cells = {version: rest for versions, *rest in rows for version in versions.split(", ")}
    named = {
        "ansible-latest" if version == "newest" else f"ansible-{version}": cells[version] for version in cells
    }
    assert set(named) == {*stages.ANSIBLES, *stages.BETWEEN, *stages.ON_MACHINES}
    by_command = {
        venv
        for venv, (_units, lab, _sanity) in named.items()
        if lab != "none" and not lab.startswith("by hand ")
    }
    assert by_command == set(stages.ON_MACHINES)
    assert {venv for venv, (_units, _lab, sanity) in named.items() if sanity != "none"} == set(
        stages.ON_MACHINES
    )
    old, new = (set(re.findall(r"`(\w+)`", named[venv][1])) for venv in stages.ON_MACHINES)
    assert named[stages.ON_MACHINES[0]][1].startswith("all scenarios except ") and old == new == set(
        stages.ON_NEWEST
    )
    assert {venv for venv, cell in named.items() if "for each change" in cell[0]} == set(stages.ANSIBLES)
    assert {venv for venv, cell in named.items() if "before a release" in cell[0]} == set(stages.BETWEEN)


def test_the_check_before_a_commit_is_lint_one_core_and_one_scenario(tools: dict[str, ModuleType]) -> None:
    stages = tools["stages"]
    found = stages.select(stages.all_stages(NOTHING), "check")
    lint = [each.name for each in stages.lint_stages()]
    # What takes longest begins first.
    *before, unit, scenario = found[: -len(lint)]
    assert [each.name for each in found[-len(lint) :]] == lint
    assert unit.name == f"all unit tests, {stages.ansibles_here(stages.ANSIBLES)[0]}"
    assert unit.command == ("pytest", "tests/unit", "-n", "2")
    assert [each.name for each in (*before, scenario)] == ["packages", "image", stages.FAST]
    assert stages.FAST in stages.scenarios()


def test_an_unknown_name_is_refused_with_those_that_are_known(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "mount"])
    with pytest.raises(SystemExit) as refused:
        runner.main()
    assert refused.value.code == 2
    told = capsys.readouterr().err
    assert "no stage is called 'mount'" in told
    assert {"check", "lab", "mounts", "ruff check"} <= {line.strip() for line in told.splitlines()}


@pytest.mark.parametrize(
    ("name", "verbs"), [("mounts", ["create", "converge", "verify"]), ("measure", ["create", "verify"])]
)
def test_a_scenario_that_keeps_its_machines_destroys_none(
    tools: dict[str, ModuleType], tmp_path: Path, name: str, verbs: list[str]
) -> None:
    stages, scenario = tools["stages"], tools["scenario"]
    (each,) = [each for each in stages.lab_stages(tmp_path) if each.name == name]
    assert scenario.commands(each, keep=False) == [("molecule", "test", "-s", name)]
    kept = scenario.commands(each, keep=True)
    assert [words[1] for words in kept] == verbs
    assert {words[2:] for words in kept} == {("-s", name)}


def test_some_tests_of_a_scenario_are_chosen_by_pytest_itself(
    tools: dict[str, ModuleType], capfd: pytest.CaptureFixture[str]
) -> None:
    scenario = tools["scenario"]
    venv = Path(sys.executable).parents[1]
    plain = {**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    assert scenario.test_options("", plain) == plain
    name = tools["stages"].FAST
    nothing = scenario.test_options("test_no_such and it's", plain)
    assert nothing["PYTEST_ADDOPTS"].startswith("-p no:cacheprovider -k ")
    assert not scenario.matches(name, venv, scenario.test_options("test_no_such_test", plain))
    assert scenario.matches(name, venv, scenario.test_options("test_ and not test_no_such", plain))
    assert "::test_" in capfd.readouterr().out


def test_a_scenario_with_a_short_part_is_whole_when_it_is_run_alone(tools: dict[str, ModuleType]) -> None:
    whole = tools["scenario"].whole
    assert whole("faults", {"PATH": "/bin"}) == {"PATH": "/bin", "DBHOST_LAB_WHOLE": "1"}
    assert whole("faults", {"DBHOST_LAB_WHOLE": "0"}) == {"DBHOST_LAB_WHOLE": "0"}
    assert whole("interrupted", {}) == {}


def test_an_unknown_scenario_is_refused_with_those_that_are_known(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["scenario.py", "mount"])
    with pytest.raises(SystemExit) as refused:
        tools["scenario"].main()
    assert refused.value.code == 2
    told = capsys.readouterr().err
    assert all(name in told for name in tools["stages"].scenarios())


def test_what_one_target_alone_needs_is_not_made_for_all(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(runner.venvs, "ensure", made.append)
    monkeypatch.setattr(runner.venvs, "link_collection", lambda: None)
    monkeypatch.setattr(sys, "argv", ["venvs.py", "--all"])
    assert runner.venvs.main() == 0
    assert made == [name for name, recipe in runner.venvs.RECIPES.items() if not recipe.alone]
    assert not {"fuzz", "ansible-2.18", "ansible-2.20"} & set(made)
    monkeypatch.setattr(sys, "argv", ["venvs.py", "fuzz"])
    assert runner.venvs.main() == 0
    assert made[-1] == "fuzz"


@pytest.mark.parametrize(
    ("argument", "whole", "passed"),
    [("--one-case", "0", {"one[1]", "two[a]", "plain"}), ("--one-case", "1", None), ("-v", "0", None)],
)
def test_a_sample_has_one_case_of_each_test(
    tmp_path: Path, argument: str, whole: str, passed: set[str] | None
) -> None:
    """Of `one` and `two` in two files each; without the option, or with DBHOST_TESTS_WHOLE=1, all of them."""
    text = (
        "import pytest\n"
        "@pytest.mark.parametrize('x', [1, 2, 3])\ndef test_one(x): pass\n"
        "@pytest.mark.parametrize('x', ['a', 'b'])\ndef test_two(x): pass\n"
        "def test_plain(): pass\n"
    )
    directory = tmp_path / "a/unit"
    directory.mkdir(parents=True)
    (directory / "conftest.py").write_text((TOOLS.parent / "tests/unit/conftest.py").read_text())
    for name in ("test_f.py", "test_g.py"):
        (directory / name).write_text(text)
    argv = [*(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", argument, "a/unit")]
    environment = {**os.environ, "DBHOST_TESTS_WHOLE": whole, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        argv, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    ).stdout
    found = re.findall(r"(test_\w\.py)::test_(\S+)", done)
    every = {"one[1]", "one[2]", "one[3]", "two[a]", "two[b]", "plain"}
    assert set(found) == {(file, name) for file in ("test_f.py", "test_g.py") for name in passed or every}
