# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts that a monitor runs, run by a shell: they tell the guard, wait for nobody, and run what was there."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.our_paths import CHAINED, FIFO
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apcupsd_scripts, hook


@pytest.fixture
def here(tmp_path: Path) -> Path:
    text = hook.TEXT.replace(FIFO, str(tmp_path / "fifo")).replace(CHAINED, str(tmp_path / "kept"))
    (tmp_path / "hook").write_text(text, encoding="ascii")
    return tmp_path


def call(path: Path, *words: str, event: str = "ONBATT") -> subprocess.CompletedProcess[str]:
    argv = ["/bin/sh", str(path), *words]
    environment = {"NOTIFYTYPE": event, "PATH": os.environ["PATH"]}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=20, check=False)


def test_the_guard_reads_the_event(here: Path) -> None:
    os.mkfifo(here / "fifo")
    reader = os.open(here / "fifo", os.O_RDWR | os.O_NONBLOCK)
    assert call(here / "hook", "UPS on battery").returncode == 0
    assert os.read(reader, 100) == b"ONBATT\n"
    os.close(reader)


def test_without_a_guard_nobody_waits(here: Path) -> None:
    os.mkfifo(here / "fifo")
    assert call(here / "hook", "UPS on battery").returncode == 0


def test_a_full_fifo_holds_up_neither_the_hook_nor_the_command_of_before(here: Path) -> None:
    os.mkfifo(here / "fifo")
    # A guard that was stopped holds it open, and reads nothing.
    fifo = os.open(here / "fifo", os.O_RDWR | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(fifo, b"\n" * 4096)
    (here / "kept").write_text("/bin/echo then\n", encoding="ascii")
    began = time.monotonic()
    done = call(here / "hook", "UPS on battery")
    assert (done.stdout, done.returncode) == ("then UPS on battery\n", 0)
    assert time.monotonic() - began < hook.LIMIT + 10
    os.close(fifo)


def test_where_no_fifo_is_no_file_comes_to_be(here: Path) -> None:
    assert call(here / "hook", "UPS on battery").returncode == 0
    assert not (here / "fifo").exists()


def test_the_command_of_before_gets_what_upsmon_says(here: Path) -> None:
    (here / "theirs").write_text('echo "$NOTIFYTYPE, $# words, $1, $2"\nexit 7\n', encoding="ascii")
    (here / "kept").write_text(f"/bin/sh {here}/theirs first\n", encoding="ascii")
    done = call(here / "hook", 'UPS "rack" on battery; $(id) `id`')
    assert done.stdout == 'ONBATT, 2 words, first, UPS "rack" on battery; $(id) `id`\n'
    assert done.returncode == 7


@pytest.mark.parametrize(("mode", "said"), [(0o755, "theirs rack\n"), (0o644, "")])
def test_a_script_of_apcupsd_s_is_run_as_it_was(tmp_path: Path, mode: int, said: str) -> None:
    command = tmp_path / "hook"
    command.write_text(f"#!/bin/sh\necho $NOTIFYTYPE >{tmp_path}/told\nexit 3\n", encoding="ascii")
    command.chmod(0o755)
    text = apcupsd_scripts.script("onbattery", str(command)).replace(
        apcupsd_scripts.CHAINED_SCRIPTS, str(tmp_path / "kept")
    )
    (tmp_path / "ours").write_text(text, encoding="ascii")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/onbattery").write_text("#!/bin/sh\necho theirs $1\nexit 99\n", encoding="ascii")
    (tmp_path / "kept/onbattery").chmod(mode)
    done = call(tmp_path / "ours", "rack", "1", "0")
    assert (tmp_path / "told").read_text(encoding="ascii") == "onbattery\n"
    assert (done.stdout, done.returncode) == (said, 99 if said else 0)
