# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that answer more than a module does: refused by name, in bounded memory, and the others go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible")

import yaml

from ansible_collections.durable.dbhost.plugins.action import engine_facts
from ansible_collections.durable.dbhost.plugins.module_utils.host import bounds

ROOT = Path(__file__).resolve().parents[4]
#: What stands for a host's Python: it answers whatever it is asked.
ANSWERS = {
    "flood": "for part in range(400): say('x' * 2**20)",
    "lines": "for part in range(400): say('\\n' * 2**20)",
    "complaints": "for part in range(400): sys.stderr.write('x' * 2**20)",
    "values": """say('{"ansible_facts": {"durable_engines": [' + '[],' * 1_300_000 + '[]]}}')""",
    "shape": """say('{"ansible_facts": {"durable_engines": {"engines": [' + '1,' * 140_000 + '1]}}}')""",
    "letters": """say('{"ansible_facts": {"durable_engines": {"x": "' + '\\U0001f600' * 900_000 + '"}}}')""",
}
REFUSED = ("flood", "lines", "complaints", "values")
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - durable.dbhost.engine_facts:
      register: engines
      failed_when: false
    - durable.dbhost.assess:
      register: found
    - copy:
        dest: "{{ playbook_dir }}/{{ inventory_hostname }}.json"
        content: "{{ {'engines': engines.msg | default(''), 'why': (found.assessment | from_json).why} | to_json }}"
      vars:
        ansible_python_interpreter: "{{ ansible_playbook_python }}"
"""
#: Prints the largest peak of its child and of that one's children, in KiB.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.stderr.write(done.stdout)
sys.exit(done.returncode)
"""


def play(path: Path, hosts: tuple[str, ...]) -> tuple[int, dict[str, Any]]:
    """Return the peak of the controller's processes in MiB, and {host: what came of it}."""
    (path / "ansible_collections/durable").mkdir(parents=True)
    (path / "ansible_collections/durable/dbhost").symlink_to(ROOT)
    inventory: dict[str, Any] = {"good": {"ansible_python_interpreter": sys.executable}}
    for name in hosts:
        program = path / name
        program.write_text(
            f"#!{sys.executable}\nimport sys\nsay = sys.stdout.write\n{ANSWERS[name]}\n", "utf-8"
        )
        program.chmod(0o755)
        inventory[name] = {"ansible_python_interpreter": str(program)}
    (path / "hosts.yml").write_text(
        yaml.safe_dump({"all": {"vars": {"ansible_connection": "local"}, "hosts": inventory}})
    )
    (path / "play.yml").write_text(PLAY)
    argv = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.yml", "play.yml"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *argv],
        cwd=path,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(path), "ANSIBLE_LOCALHOST_WARNING": "false"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = {name: json.loads((path / f"{name}.json").read_text()) for name in inventory}
    return int(done.stdout) // 1024, found


@pytest.mark.skipif(os.geteuid() != 0, reason="the host that is well wants root")
def test_a_host_that_floods_the_controller_is_unknown_and_the_others_go_on(tmp_path: Path) -> None:
    peak, found = play(tmp_path, tuple(ANSWERS))
    print(f"largest peak of a process of the controller: {peak} MiB")
    assert peak < 200
    assert found["good"]["engines"] == ""
    assert "not_managed" not in found["good"]["why"]
    for name in REFUSED:
        assert "its answer was refused" in found[name]["engines"]
        assert 'no facts: "its answer was refused' in found[name]["why"][0]
    for name in set(ANSWERS) - set(REFUSED):
        assert found[name]["why"][0].startswith("no facts: ")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("x" * bounds.ANSWER, None),
        ("x" * (bounds.ANSWER + 1), f"observed {bounds.ANSWER + 1} bytes"),
        ("[" * bounds.VALUES, None),
        ("{" * bounds.VALUES + ",", f"observed {bounds.VALUES + 1} values"),
    ],
)
def test_what_is_too_much(said: str, why: str | None) -> None:
    assert bounds.too_much(said, "") == why


@pytest.mark.parametrize(
    ("diff", "shown"),
    [
        ([{"before": "", "after": "a\x1b[2J\n"}], [{"before": "", "after": "a\\x1b[2J\n"}]),
        ([{"before": "", "after": "", "prepared": "\x1b[2J"}], [{"before": "", "after": ""}]),
        ("\x1b[2J", []),
        ({"before": "\x1b[2J"}, []),
        (7, []),
    ],
)
def test_differences_of_a_host_are_printable_or_none(
    diff: Any, shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_facts.ActionBase, "_execute_module", lambda *_args, **_more: {"diff": diff})
    plugin = engine_facts.Bounded.__new__(engine_facts.ActionModule)
    assert plugin._execute_module() == {"diff": shown}


def test_every_module_that_runs_on_a_host_is_run_so() -> None:
    routed = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["plugin_routing"]["modules"]
    modules = {path.stem for path in (ROOT / "plugins/modules").glob("*.py")}
    own = {path.stem for path in (ROOT / "plugins/action").glob("*.py")}
    assert {name: {"action_plugin": "durable.dbhost.engine_facts"} for name in modules - own} == routed
    bounded = {name for name in own if "Bounded" in (ROOT / f"plugins/action/{name}.py").read_text()}
    free = {
        name
        for name in own
        if "_requires_connection = False" in (ROOT / f"plugins/action/{name}.py").read_text()
    }
    # What never connects has no answer; refusing a play's variables is done on the controller too.
    assert own == bounded | free
