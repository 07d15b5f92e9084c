# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which commands shut the machine down at once: shutdown(8), halt(8), systemctl(1), telinit(8), by each option."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.ups import shutdown_commands
from ansible_collections.durable.dbhost.plugins.module_utils.ups.shutdown_commands import of_line, of_lines

DOWN = [
    "/sbin/shutdown -h +0",
    "/sbin/shutdown -h now",
    "shutdown -P now 'on battery; bye'",
    "shutdown -Ph +00",
    "shutdown --poweroff --no-wall now",
    "shutdown --halt now",
    "shutdown -t 5 -h 0",
    "shutdown -t5 -h now",
    "shutdown now",
    "poweroff",
    "/usr/sbin/poweroff --no-wall",
    "halt -p",
    "init 0",
    "/sbin/telinit 0",
    "systemctl poweroff",
    "/usr/bin/systemctl poweroff -i --no-wall --no-block",
    "systemctl --message=x halt",
    "systemctl poweroff --when=now",
    "systemctl start poweroff.target",
    "systemctl isolate halt.target",
    "loginctl poweroff",
    "sh -c 'shutdown -h now'",
    '/bin/sh -c "exec shutdown -h now"',
    "sudo -n /sbin/shutdown -h now",
    "logger on battery; /sbin/shutdown -h now",
    "echo on battery | wall; shutdown -h now",
    "'/sbin/shutdown' \"-h\" now",
    "shutdown -h now >/dev/null 2>&1",
    "shutdown -h now 2> /dev/null &",
    "shutdown -h now # at once",
    "shutdown -h now || logger failed",
]
NOT_DOWN = [
    ("", "nothing"),
    ("# /sbin/shutdown -h now", "nothing"),
    ("true", "nothing"),
    ("echo /sbin/shutdown -h now", "nothing"),
    ("echo ';' shutdown -h now; true", "nothing"),
    (r"echo \; shutdown -h now", "nothing"),
    ("logger 'shutdown -h now'", "nothing"),
    ("shutdown -k now", "warns only"),
    ("shutdown -hk now", "warns only"),
    ("shutdown -h now -k", "warns only"),
    ("shutdown -c", "cancels"),
    ("shutdown -r now", "restarts"),
    ("shutdown --reboot now", "restarts"),
    ("sh -c 'shutdown -r now'", "restarts"),
    ("shutdown -h", "a minute"),
    ("shutdown", "a minute"),
    ("shutdown -h +15", "15 min"),
    ("shutdown -h 1", "1 min"),
    ("shutdown -h 23:00", "until 23:00"),
    ("shutdown --show", "shows only"),
    ("poweroff -f", "kills the servers"),
    ("poweroff -w", "record only"),
    ("halt --wtmp-only", "record only"),
    ("poweroff --reboot", "restarts"),
    ("reboot", "restarts"),
    ("init 6", "restarts"),
    ("systemctl reboot", "restarts"),
    ("systemctl isolate reboot.target", "restarts"),
    ("systemctl suspend", "suspends"),
    ("systemctl poweroff -ff", "kills the servers"),
    ("systemctl --force poweroff", "kills the servers"),
    ("systemctl poweroff --when=+5min", "waits"),
    ("systemctl poweroff --dry-run", "shows only"),
    ("systemctl --user poweroff", "a user's manager"),
    ("exit 0; shutdown -h now", "ends before"),
    ("sleep 900; shutdown -h now", "waits first"),
]
UNCLEAR = [
    ("/usr/local/bin/ups-notify shutdown -h now", "/usr/local/bin/ups-notify"),
    ("/opt/bin/shutdown -h now", "/opt/bin/shutdown"),
    ("./shutdown -h now", "./shutdown"),
    ("shutdown -h $WHEN", "a $ or `"),
    ('shutdown -h "$WHEN"', "a $ or `"),
    ("shutdown -h `cat /etc/when`", "a $ or `"),
    ("""shutdown -h "'"$WHEN"'" now""", "a $ or `"),
    ("shutdown -h soon", "'soon'"),
    ("shutdown -h now#x", "'now#x'"),
    ("shutdown -x now", "option -x"),
    ("shutdown --nonsense now", "option --nonsense"),
    ("poweroff later", "argument later"),
    ("init 3", "not 0"),
    ("systemctl restart postgresql", "verb"),
    ("systemctl -H other poweroff", "option -H"),
    ("logger x && shutdown -h now", "(&&)"),
    ("true || shutdown -h now", "(||)"),
    ("(shutdown -h now)", "parentheses"),
    ("if true; then shutdown -h now; fi", "what if does"),
    ("shutdown -h 'now", "quotes"),
    ("echo shutdown -h now | sh", "what sh does"),
    ("sh /etc/down.sh", "what sh does"),
    ("env shutdown -h now", "what env does"),
    ('sh -c "sh -c \'sh -c \\"sh -c x\\"\'"', "quotes"),
]


@pytest.mark.parametrize("command", DOWN)
def test_a_command_that_shuts_down_at_once(command: str) -> None:
    assert of_line(command) == ("met", "", 0)


@pytest.mark.parametrize(("command", "why"), NOT_DOWN)
def test_a_command_that_does_not_is_named_by_what_it_does(command: str, why: str) -> None:
    found = of_line(command)
    assert found.state == "unmet"
    assert why in found.why


@pytest.mark.parametrize(("command", "why"), UNCLEAR)
def test_a_command_that_is_not_understood_is_unknown_with_the_reason(command: str, why: str) -> None:
    found = of_line(command)
    assert found.state == "unknown"
    assert why in found.why
    assert found.seconds is None


@pytest.mark.parametrize(
    ("command", "seconds"), [("shutdown -h +3", 180), ("shutdown", 60), ("shutdown 23:00", None)]
)
def test_the_wait_is_counted(command: str, seconds: float | None) -> None:
    assert of_line(command).seconds == seconds


def test_of_a_script_the_first_line_that_acts_decides() -> None:
    assert of_lines(["", "# x", "echo bye | wall", "shutdown -h now", "shutdown -c"]).state == "met"
    assert of_lines(["shutdown -k now", "shutdown -h now"]).state == "unmet"
    assert of_lines(["notify", "shutdown -h now"]).state == "unknown"
    assert of_lines([]).state == "unmet"


def test_shells_in_each_other_come_to_an_end() -> None:
    command = "shutdown -h now"
    for _ in range(8):
        command = f"sh -c '{command}'" if "'" not in command else f'sh -c "{command}"'
    assert of_line(command).state in ("met", "unknown")
    assert shutdown_commands._of_line("shutdown -h now", 9).why == "too many shells in each other"


@pytest.mark.parametrize("command", DOWN)
def test_a_real_shell_runs_one_shutdown_in_each_line_that_counts(command: str, tmp_path: Path) -> None:
    """Each program is a script that writes down its arguments, and no other can be found: sh itself reads the line."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    for name in (
        "shutdown",
        "poweroff",
        "halt",
        "init",
        "telinit",
        "systemctl",
        "loginctl",
        "wall",
        "logger",
    ):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/ran\n', encoding="utf-8")
    (tmp_path / "sudo").write_text('#!/bin/sh\nshift\nexec "$@"\n', encoding="utf-8")
    for script in tmp_path.iterdir():
        script.chmod(0o755)
    line = re.sub("/(usr/)?s?bin/", f"{tmp_path}/", command)
    subprocess.run(["/bin/sh", "-c", line], env={"PATH": str(tmp_path)}, timeout=20, check=False)
    # Of a command in the background the shell does not wait for the end.
    deadline = time.monotonic() + 20
    while not (tmp_path / "ran").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    ran = (tmp_path / "ran").read_text(encoding="utf-8").splitlines()
    stops = [row for row in ran if row.split()[0] not in ("wall", "logger")]
    assert len(stops) == 1
    assert of_line(stops[0].partition(" on ")[0]).state == "met"
