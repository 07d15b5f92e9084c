# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a login of a managed host names is neither code nor layout on the controller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("ansible")

from ansible_collections.durable.dbhost.plugins.action import report as action
from ansible_collections.durable.dbhost.plugins.module_utils import attestations
from ansible_collections.durable.dbhost.plugins.module_utils.host.printable import line
from ansible_collections.durable.dbhost.plugins.module_utils.measure import plug_job, plug_verdict
from ansible_collections.durable.dbhost.plugins.module_utils.profiles import BadInput
from ansible_collections.durable.dbhost.plugins.module_utils.ups import rehearsal
from ansible_collections.durable.dbhost.plugins.plugin_utils import output
from ansible_collections.durable.dbhost.plugins.plugin_utils.as_text import packed
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.runs import look
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.small_host import SmallHost
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.measure.test_plug import (
    JOB as PLUGGED,
)
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.ups.test_rehearsal import (
    JOB,
    judged,
)

FORGED = "x\ndb1: durable\r\x1b[2J\x9b1A\u202e\u2028db1: durable\n"


def ansible_shows(text: str, place: Path) -> str:
    """Return what Ansible makes of a text that was copied into a host's variables."""
    (place / "group_vars").mkdir(parents=True)
    (place / "hosts").write_text("db1 ansible_connection=local\n")
    (place / "group_vars/all.yml").write_text(text)
    show = ["-m", "ansible.builtin.debug", "-a", "var=durable_attestations_host"]
    # As a person's own, whatever this test was started from.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
    environment = {**own, "ANSIBLE_HOME": str(place)}
    argv = [sys.executable, "-m", "ansible", "adhoc", "-i", str(place / "hosts"), "db1", *show]
    return subprocess.run(
        argv, env=environment, cwd=place, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def attested(name: str) -> str:
    """Return the attestation of a rehearsal with a server of that name."""
    job = JOB._replace(engines=(JOB.engines[0]._replace(name=name), *JOB.engines[1:]))
    return rehearsal.attestation(job, judged(), "storage team", "2026-01-31")


def test_a_server_s_working_directory_does_not_run_on_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    name = f"/srv/x{{{{ lookup('pipe', 'touch {ran}') }}}}"
    with pytest.raises(BadInput, match="expected a plain one"):
        attested(name)
    # Also where nobody had refused it.
    monkeypatch.setattr(attestations, "expect_plain", lambda names: None)
    text = attested(name)
    shown = ansible_shows(text, tmp_path / "written")
    assert "touch" in shown
    assert not ran.exists()
    # That text is an attack: without the tag it does run.
    ansible_shows(text.replace("!unsafe ", ""), tmp_path / "pasted")
    assert ran.exists()


@pytest.mark.parametrize(
    "name", ["{{ 1 }}", "{% if %}", "{# x #}", "a\n  - claim: plug_pulled", "\x1b[2J", "\u202e"]
)
def test_names_that_are_more_than_text_are_attested_nowhere(name: str) -> None:
    with pytest.raises(BadInput):
        attested(name)
    job = plug_job.loads(plug_job.dumps(PLUGGED))._replace(mounts=(name,))
    losses = plug_job.NOT_CHECKED._replace(acknowledged=5000, checked=5000)
    with pytest.raises(BadInput):
        plug_verdict.attestation(job, losses, "me", "2026-01-31", "none")
    with pytest.raises(BadInput):
        rehearsal.attestation(JOB, judged(), name, "2026-01-31")


def hostile(value: Any) -> Any:
    """Return a report with a forged line in each text that a host can have chosen."""
    if isinstance(value, dict):
        kept = ("verdict", "state", "phase", "layer", "when", "was", "class")
        return {key: inner if key in kept else hostile(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [hostile(inner) for inner in value]
    return value + FORGED if isinstance(value, str) else value


def test_no_name_forges_a_line_of_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = MagicMock()
    monkeypatch.setattr(output, "Display", lambda: shown)
    found = hostile(
        {
            **look(SmallHost()),
            "begun": [],
            "looked_only": True,
            "was": "drifted",
            "error": "e",
            "time": "now",
            "collection": "0",
        }
    )
    templar = MagicMock(template=lambda value: value)
    task = MagicMock(args={"hosts": ["db1"]}, async_val=0, diff=False, check_mode=False)
    plugin = action.ActionModule(
        task, MagicMock(_shell=MagicMock(tmpdir=None)), *[MagicMock()] * 2, templar, None
    )
    hostvars = {"db1": {"harden_concluded": {"reports": {"db1": packed(found)}}}}
    plugin.run(task_vars={"hostvars": hostvars, "durable_report_dir": str(tmp_path)})
    (text,) = shown.display.call_args.args
    assert all(line.isprintable() for line in text.split("\n"))
    assert [row for row in text.split("\n") if row.startswith(found["verdict"])] == [
        f"{found['verdict']:<12}   1  db1  ({line(found['profile'])})"
    ]
    written = (tmp_path / "report.txt").read_text()
    assert [row for row in written.split("\n") if row.startswith("db1: ")] == [
        f"db1: {found['verdict']}, profile {line(found['profile'])}"
    ]
    page = (tmp_path / "report.html").read_text()
    assert not set(page) & {"\x1b", "\r", "\u202e", "\u2028"}
    written = (tmp_path / "db1.json").read_text()
    assert written.isascii()
    assert not set(written) & {"\x1b", "\r"}
