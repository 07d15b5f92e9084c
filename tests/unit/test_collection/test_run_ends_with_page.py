# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people and programs see of a run's end: playbooks run as users run them, on hosts that nobody can reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

release = pytest.importorskip("ansible.release")
ROOT = Path(__file__).resolve().parents[3]
#: Nothing listens at that port.
AWAY = {"ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_ssh_executable": "/bin/false"}
HOSTS = {
    "databases": {"vars": {**AWAY, "durable_profile": "strict"}, "hosts": {"db10": {}, "db2": {}, "db1": {}}}
}
#: In place of ansible.posix.json, which ansible-core has not: all results in one document at the end.
JSON_CALLBACK = '''
import json
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: json
type: stdout
short_description: one document
description: one document
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "json"
    results = {}

    def v2_runner_on_ok(self, result):
        found = result.result if hasattr(result, "result") else result._result
        self.results[result.task_name] = json.loads(self._dump_results(found))

    def v2_playbook_on_stats(self, stats):
        self._display.display(json.dumps(self.results))
'''


@pytest.fixture(name="directory")
def a_directory_to_run_in(tmp_path: Path) -> Path:
    """Return a directory with an inventory."""
    (tmp_path / "hosts.yml").write_text(json.dumps(HOSTS))
    return tmp_path


def run(
    directory: Path, *options: str, playbook: str = "harden-db", **environment: str
) -> tuple[int, str, str]:
    """Return the exit code of a check, and what it wrote to its two streams."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    path = ROOT / f"playbooks/{playbook}.yml"
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.yml", str(path), *options],
        cwd=directory,
        env={**kept, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_page_is_the_last_thing_that_the_play_shows(directory: Path) -> None:
    code, out, _err = run(directory, "--check")
    assert code == 2
    page = out.index("3 hosts: 3 unreachable")
    failed = [out.index(f"fatal: [{host}]") for host in ("db1", "db2", "db10")]
    assert max(failed) < page < out.index("PLAY RECAP")
    assert "unreachable    3  db1, db2, db10  (strict)" in out
    assert "3 of 3 hosts fail (3 unreachable): exit code 2" in out
    # What all hosts say is an error once; ansible-core before 2.19 shows none.
    is_old = tuple(map(int, release.__version__.split(".")[:2])) < (2, 19)
    assert out.count("[ERROR]") == (0 if is_old else 1)
    assert sorted(os.listdir(directory / "durable-report"))[:3] == ["db1.json", "db10.json", "db2.json"]


@pytest.mark.parametrize("callback", ["default", "durable.dbhost.brief"])
def test_a_run_of_which_no_host_fails_ends_as_its_page_says(directory: Path, callback: str) -> None:
    passes = ("-e", json.dumps({"durable_fail_on": ["at_risk"]}))
    code, out, err = run(directory, "--check", *passes, ANSIBLE_STDOUT_CALLBACK=callback)
    assert "no host fails: exit code 0" in out
    assert (code, err) == (0, "")
    assert not any(word in out for word in ("fatal:", "[ERROR]", "FAILED", "Fail for"))
    # No host is one that was skipped because all is well.
    assert "skipping" not in out


def test_what_programs_read_is_theirs_alone(directory: Path) -> None:
    (directory / "callbacks").mkdir()
    (directory / "callbacks/json.py").write_text(JSON_CALLBACK)
    code, out, _err = run(
        directory,
        playbook="audit",
        ANSIBLE_STDOUT_CALLBACK="json",
        ANSIBLE_CALLBACK_PLUGINS=str(directory / "callbacks"),
    )
    assert code == 2
    (found,) = (result for result in json.loads(out).values() if "page" in result)
    assert found["page"][0] == "3 hosts: 3 unreachable"


@pytest.mark.parametrize("playbook", ["harden-db", "audit"])
def test_with_the_brief_callback_the_page_is_all_but_titles(directory: Path, playbook: str) -> None:
    code, out, err = run(directory, playbook=playbook, ANSIBLE_STDOUT_CALLBACK="durable.dbhost.brief")
    assert code == 2
    before, page = out.split("3 hosts: 3 unreachable")
    assert not any(
        row.startswith(("ok:", "skipping:", "fatal:", "[ERROR]", "TASK")) for row in before.split("\n")
    )
    assert "PLAY RECAP" not in out
    assert page.rstrip().endswith(", one .json for each host")
    assert err == ""


def test_the_brief_callback_shows_what_else_fails_and_then_the_recap(directory: Path) -> None:
    formats = ("-e", '{"durable_report_formats": "jsn"}')
    code, out, _err = run(directory, *formats, ANSIBLE_STDOUT_CALLBACK="durable.dbhost.brief")
    assert code == 2
    assert "durable_report_formats: observed 'jsn'; expected a list" in out
    assert "exception" not in out


def test_the_brief_callback_has_a_line_for_each_error_of_the_input(directory: Path) -> None:
    wrong = ("-e", json.dumps({"durable_report_formats": ["jsn"], "durable_allow": ["rebot"]}))
    code, out, err = run(directory, *wrong, ANSIBLE_STDOUT_CALLBACK="durable.dbhost.brief")
    assert (code, err) == (2, "")
    rows = out.split("\n")
    start = next(
        number for number, row in enumerate(rows) if row.startswith("fatal: ") and row.endswith(": 2 errors")
    )
    assert rows[start + 1].startswith("  durable_report_formats: observed ['jsn']")
    assert rows[start + 2].startswith("  durable_allow: observed ['rebot']")
    assert rows[start + 2].endswith(". Nothing was changed.")
    assert "PLAY RECAP" in out


def test_a_directory_that_cannot_be_written_fails_the_run_after_the_page(directory: Path) -> None:
    (directory / "file").touch()
    code, out, _err = run(directory, "--check", "-e", "durable_report_dir=file/x")
    assert code == 2
    assert "3 hosts: 3 unreachable" in out
    assert "note: durable_report_dir:" in out
    assert "Details:" not in out


#: In the place of Python: what the two modules of a release answer.
PYTHON = """#!/bin/sh
case "$*" in
    *AnsiballZ_watch*) exec cat {0}/watch.json ;;
    *) exec cat {0}/apply.json ;;
esac
"""


#: Options of a mount before and after the release, and how --diff marks their lines.
FSTAB, SIGNS = {"before": "barrier=1", "after": "barrier=0"}, {"before": "-", "after": "+"}


@pytest.mark.parametrize(("callback", "check"), [("default", True), ("durable.dbhost.brief", False)])
def test_a_release_ends_with_its_page(directory: Path, callback: str, check: bool) -> None:
    """db1 answers, and db2 is unreachable."""
    changes = [
        {
            "target": "/srv/db",
            "setting": "options",
            "when": "persisted",
            "before": "barrier=1",
            "after": "barrier=0",
        }
    ]
    taken = {"step": ["release", "mount_options"], "class": "safety", "failures": [], "changes": changes}
    lines = {side: f"UUID=db /srv/db ext4 {options} 0 2\n" for side, options in FSTAB.items()}
    headers = {f"{side}_header": "/etc/fstab" for side in FSTAB}
    taken["diff"] = [{"before": "", "after": ""}, {**headers, **lines}]
    gone = {
        "target": "/etc/x.timer",
        "setting": "x",
        "when": "persisted",
        "before": "present",
        "after": "absent",
    }
    unit = {"before_header": "/etc/x.timer", "after_header": "/etc/x.timer (absent)"}
    forged = {**unit, "before": "OnCalendar\x1b[2J\n", "after": ""}
    (directory / "watch.json").write_text(json.dumps({"changed": True, "changes": [gone], "diff": [forged]}))
    (directory / "apply.json").write_text(json.dumps({"changed": True, "taken": [taken]}))
    (directory / "python").write_text(PYTHON.format(directory))
    (directory / "python").chmod(0o755)
    hosts = {
        "db1": {"ansible_connection": "local", "ansible_python_interpreter": str(directory / "python")},
        "db2": AWAY,
    }
    (directory / "hosts.yml").write_text(
        json.dumps({"databases": {"vars": {"durable_profile": "strict"}, "hosts": hosts}})
    )
    options = ["--check"] if check else ["--diff"]
    code, out, _err = run(directory, *options, playbook="release_db", ANSIBLE_STDOUT_CALLBACK=callback)
    assert code == 2
    page = " ".join(out[out.index("not released  db2\n  cause     ") :].split())
    assert page.startswith(
        "not released db2 cause Ansible cannot write its own files there; free space or make"
    )
    warning = "barrier=0 {}; commits can be lost after the next boot; fix: delete barrier=0 from /etc/fstab"
    stays = "/etc/fstab: 1 mount in effect at once: watch timer unchanged until reboot: mount options"
    if check:
        warning = warning.format("would be restored")
        assert f"would be released db1 warning /srv/db: {warning} remove /etc/x.timer restore {stays}" in page
        assert "durable_profile" not in page
    else:
        warning = warning.format("is restored")
        following = "next delete durable_profile for db1; otherwise the next run manages it again"
        done = f"released db1 warning /srv/db: {warning} removed /etc/x.timer restored {stays} {following}"
        assert done in page
    assert ("PLAY RECAP" in out) is (callback == "default")
    assert "included:" not in out
    shown = [
        "--- before: /etc/fstab",
        "+++ after: /etc/fstab",
        *(f"{SIGNS[side]}{lines[side]}" for side in FSTAB),
    ]
    assert [row.rstrip("\n") in out.split("\n") for row in shown] == [not check] * 4
    # What a host's root forges does not move the terminal, and a file that is not there has no line.
    assert "\x1b[2J" not in out
    assert ("+++ after: /etc/x.timer (absent)\n@@ -1 +0,0 @@\n-OnCalendar\\x1b[2J\n" in out) is not check


def test_a_value_of_a_vault_is_a_text(directory: Path) -> None:
    """ansible-core before 2.19 hands a templar's caller an object that is no str."""
    (directory / "key").write_text("a key\n")
    encrypted = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("ansible-vault")), "encrypt_string", "strict"),
            *("--vault-password-file", "key"),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    _tag, *lines = encrypted.split("\n")
    tagged = "\n".join(("!vault |", *(f"    {row.strip()}" for row in lines)))
    (directory / "host_vars").mkdir()
    (directory / "host_vars/db1.yml").write_text(
        f"durable_profile: {tagged}\ndurable_overrides:\n  barriers: {tagged}\n"
    )
    code, out, _err = run(directory, "--check", "-l", "db1", "--vault-password-file", "key")
    assert code == 2
    assert "unreachable    1  db1  (strict)" in out, out
