# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet of stand-ins: whom each answers as, and the table."""

from __future__ import annotations

import calendar
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.fleet_check import _RECORDER, _REPLAYER, _as_of_now, tables
from benchmarks.keeping import DOCS, RESULTS
from benchmarks.lines import document


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_stand_in_gives_the_answers_of_its_address_in_turn(tmp_path: Path) -> None:
    for address, answers in {"127.1.0.1": ["one", "two"], "127.1.0.2": ["other"]}.items():
        place = tmp_path / "answers" / address
        place.mkdir(parents=True)
        (place / "next").write_text("1\n")
        for number, answer in enumerate(answers, 1):
            (place / str(number)).write_text(answer)
    python = script(tmp_path / "python", _REPLAYER.format(answers=tmp_path / "answers"))

    def ask(address: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "SSH_CONNECTION": f"127.0.0.1 4711 {address} 2022"}
        return subprocess.run(
            [str(python)], input="a module", env=environment, capture_output=True, text=True, check=False
        )

    assert [ask("127.1.0.1").stdout, ask("127.1.0.2").stdout, ask("127.1.0.1").stdout] == [
        "one",
        "other",
        "two",
    ]
    # the control: what was never recorded is no answer
    assert ask("127.1.0.2").returncode != 0
    assert ask("127.1.0.9").returncode != 0


def test_what_python_says_is_kept_and_said(tmp_path: Path) -> None:
    python = script(tmp_path / "python", _RECORDER.format(keep=tmp_path / "kept"))
    (tmp_path / "kept").mkdir()
    for number in (1, 2):
        done = subprocess.run(
            [str(python), "-"],
            input=f"print({number}); raise SystemExit({number})",
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (number, f"{number}\n")
    assert [(tmp_path / "kept" / each).read_text() for each in ("1", "2")] == ["1\n", "2\n"]


def test_one_host_more_is_the_difference_of_the_fewest_and_the_most() -> None:
    def run(playbook: str, hosts: int, cpu: float) -> dict[str, Any]:
        verdicts = ["drifted"] if "varied" in playbook else []
        cost = {"wall": 1.0, "cpu": cpu, "memory": 50.0}
        return {"playbook": playbook, "hosts": hosts, "verdicts": verdicts, **cost}

    ours = [run("durable.dbhost", hosts, 2 + hosts / 10) for hosts in (1, 10, 101)]
    stock = [run("stock modules", hosts, 2.0 + hosts) for hosts in (1, 11)]
    shown = tables(
        {
            "runs": [*ours, run("durable.dbhost, varied hosts", 50, 100.0), *stock],
            "ssh": {"connection": 0.079, "version": "OpenSSH_9.2p1"},
            "kinds": 5,
            "executions": {"stock modules": 17, "durable.dbhost": 1},
            "bytes": 40000,
            "taken": "2026-01-31",
            "processors": 2,
            "versions": {"ansible-core": "2.21", "ansible": "12"},
            "load": 1.0,
        }
    )
    assert "costs 0.10 s" in shown["fleet_slopes"]
    assert "stock modules 1.00 s, 10.0 times" in shown["fleet_slopes"]
    assert "0.08 s of each are the connection of ssh (OpenSSH_9.2p1)" in shown["fleet_slopes"]
    assert "verdicts drifted" in shown["fleet_where"]


def test_an_answer_is_given_now_and_says_nothing_else_than_was_recorded() -> None:
    recorded = '{"time": "2026-01-31T10:00:00Z", "said": "2026-01-31T10:00:00Z"}'
    before, given, after = time.time() - 1, json.loads(_as_of_now(recorded)), time.time() + 1
    assert given["said"] == "2026-01-31T10:00:00Z"
    assert before <= calendar.timegm(time.strptime(given["time"], "%Y-%m-%dT%H:%M:%SZ")) <= after


def test_the_page_shows_the_results_that_are_kept() -> None:
    page = "".join(path.read_text(encoding="utf-8") for path in DOCS)
    shown = tables(json.loads((RESULTS / "fleet_check.json").read_text(encoding="utf-8")))
    assert document(page, shown) == page
    assert set(shown) <= set(re.findall(r"<!-- measured: (\w+) -->", page))
