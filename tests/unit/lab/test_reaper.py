# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ends with the process that asked for it: its exit code. That it ends: test_progress.py and test_run_tests.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.reaper import reaped

ROOT = Path(__file__).resolve().parents[3]
#: Every command has ended before the reaper has its id.
LATE = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from lab import reaper
class Late(subprocess.Popen):
    def __init__(self, *args):
        super().__init__(*args)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
subprocess.Popen = Late
sys.exit(reaper.main(str(os.getppid()), "sh", "-c", "exit 3"))
"""


@pytest.mark.parametrize(
    ("code", "wanted"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)], ids=["good", "bad", "killed"]
)
def test_the_exit_code_is_the_command_s(code: str, wanted: int) -> None:
    assert subprocess.run(reaped(("sh", "-c", code)), check=False).returncode == wanted


def test_a_command_may_end_at_once() -> None:
    """Its exit code was lost on a busy computer."""
    assert subprocess.run((sys.executable, "-c", LATE, str(ROOT)), check=False).returncode == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_what_is_left_ends_when_a_terminal_ends_the_command(number: signal.Signals) -> None:
    """It tells all of its foreground; what has a session of its own is not told."""
    script = "setsid sleep 1000 >/dev/null & echo $!; wait"
    words = reaped(("sh", "-c", script))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, process_group=0) as group:
        assert group.stdout
        lost = int(group.stdout.readline())
        os.killpg(group.pid, number)
        assert group.wait(30) == 128 + number
    with pytest.raises(ProcessLookupError):
        os.kill(lost, 0)
