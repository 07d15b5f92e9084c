# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of molecule/README.md, as printed, in a fresh clone: `make molecule`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = "/tmp/molecule"


def test_the_readme_of_molecule_runs_in_a_fresh_clone(tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")], check=True)
    text = (tmp_path / "clone/molecule/README.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```console\n(.+?)```", text, re.S)
    assert script.rstrip().endswith("molecule test -s default")
    # In a directory that this test deletes.
    script = script.replace(VENV, str(tmp_path / "venv"))
    subprocess.run(["bash", "-euxo", "pipefail", "-c", script], cwd=tmp_path / "clone", check=True)
