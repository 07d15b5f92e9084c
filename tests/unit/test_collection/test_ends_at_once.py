# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that has answered ends at once, as Ansible itself runs it, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import reply

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
#: Python loads it in each process: it says which of them took apart what they had made, except the command itself.
WITNESS = """
import os


class Witness:
    # What it needs goes with all else, so it has it of its own.
    path, open = os.environ["TAKEN_APART"] + f"/{os.getpid()}", open

    def __del__(self):
        self.open(self.path, "w").close()


with open("/proc/self/cmdline") as told:
    kept = None if "/bin/ansible" in told.read() else Witness()
"""
#: A module, what it is given, whether it refuses that, and whether its process takes apart what it has made.
ENDS: list[tuple[str, dict[str, object], bool, bool]] = [
    ("durable.dbhost.storage_facts", {"paths": []}, False, False),
    ("durable.dbhost.host_facts", {"databases": []}, False, False),
    ("durable.dbhost.write_cache", {"targets": []}, False, False),
    ("durable.dbhost.host_facts", {"databases": [], "margin": -1}, True, True),
    ("ansible.builtin.ping", {"data": "well"}, False, True),
]


@pytest.mark.skipif(os.geteuid() != 0, reason="what looks at a host wants root")
@pytest.mark.parametrize(("module", "given", "refuses", "is_taken_apart"), ENDS)
def test_a_module_that_has_answered_ends_at_once(
    tmp_path: Path, module: str, given: dict[str, object], refuses: bool, is_taken_apart: bool
) -> None:
    """A refusal, and a module of Ansible's own, end as Python does: there the witness shows that it is one."""
    for name in ("witness", "taken"):
        (tmp_path / name).mkdir()
    (tmp_path / "witness/sitecustomize.py").write_text(WITNESS)
    words = ["localhost", "--check", "-i", "localhost,", "-c", "local", "-m", module, "-a", json.dumps(given)]
    # Short: Ansible makes a socket in it, whose name has at most 108 characters.
    with tempfile.TemporaryDirectory() as temporary:
        done = subprocess.run(
            [str(BIN / "ansible"), *words, "-e", json.dumps({"ansible_python_interpreter": sys.executable})],
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections"),
                "ANSIBLE_PIPELINING": "true",
                "ANSIBLE_NOCOLOR": "1",
                "PYTHONPATH": str(tmp_path / "witness"),
                "TAKEN_APART": str(tmp_path / "taken"),
                "TMPDIR": temporary,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        left = os.listdir(temporary)
    print(done.stdout[:2000])
    assert (done.returncode != 0, "FAILED!" in done.stdout, "SUCCESS" in done.stdout) == (
        refuses,
        refuses,
        not refuses,
    )
    assert bool(os.listdir(tmp_path / "taken")) == is_taken_apart
    assert not left


def test_a_process_that_is_no_module_s_own_keeps_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As this one: it would end with 0 whatever failed in it."""
    registered: list[Any] = []
    answers: list[dict[str, Any]] = []
    monkeypatch.setattr(reply.atexit, "register", registered.append)
    module: Any = SimpleNamespace(exit_json=lambda **result: answers.append(result))
    reply.finish(module, changed=True, said="well")
    reply.observed(module, "durable_power", {})
    reply.observed_all(module, {}, {}, None, {})
    assert [answer["changed"] for answer in answers] == [True, False, False]
    assert not registered
