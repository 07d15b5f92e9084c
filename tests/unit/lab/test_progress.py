# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Long steps: what is shown of them, how they fail, and that they end with who began them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.progress import stream

ROOT = Path(__file__).resolve().parents[3]
#: Begins what begins a process in a session of its own, and writes down which.
OWNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from lab.progress import stream
stream(["sh", "-c", "setsid sleep 1000 & echo $! > pid.new; mv pid.new pid; wait"], Path("log"))
"""


def test_some_lines_are_shown_and_all_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    stream(["printf", "I: one\ntwo\n"], log, prefix="I: ")
    assert log.read_text() == "I: one\ntwo\n"
    shown = capsys.readouterr().err
    assert "one" in shown
    assert "two" not in shown


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["sh", "-c", "echo why; exit 3"], "sh ended with 3 .*\nwhy"),
        (["not-here"], "not-here ended with 127"),
    ],
)
def test_a_step_that_fails_says_why(argv: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=said):
        stream(argv, tmp_path / "log")


def test_a_step_ends_with_who_began_it(tmp_path: Path) -> None:
    """An image that nobody waits for would be built for minutes yet."""
    with subprocess.Popen([sys.executable, "-c", OWNER, str(ROOT)], cwd=tmp_path) as owner:
        deadline = time.monotonic() + 20
        while not (tmp_path / "pid").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        left = Path("/proc", (tmp_path / "pid").read_text().strip())
        assert left.exists()
        owner.kill()
    while left.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left.exists()
