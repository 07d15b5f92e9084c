# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tarball in new virtual environments with the oldest and the newest ansible-core, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("core", ["ansible-core>=2.16,<2.17", "ansible-core>=2.19"])
def test_the_tarball_alone_is_enough(core: str, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    python = subprocess.run(
        [str(ROOT / "tools/find-python"), "3.11", "3.12"], stdout=subprocess.PIPE, text=True, check=False
    ).stdout.strip()
    if "2.16" in core and not python:
        pytest.skip("ansible-core 2.16 needs Python 3.11 or 3.12, which is not here: NOT RUN")
    subprocess.run([python if "2.16" in core else sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([str(venv / "bin/pip"), "install", "--quiet", core], check=True)
    tests = "tests/unit/test_collection/test_tarball.py"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-k", "alone", tests],
        cwd=ROOT,
        env={**os.environ, "DBHOST_ANSIBLE_BIN": str(venv / "bin")},
        check=True,
    )
