# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the docs print of the proof is what its command line takes, and names cells that there are."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from proof.run import main

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "molecule"))

from support import pages  # noqa: E402

#: Runs of their own, without cells.
ALONE = {"--price", "--boot-files"}


@pytest.mark.parametrize("row", pages.table()["proof"], ids=lambda row: row["command"])
def test_the_proof_takes_what_is_printed_of_it(
    row: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(row["command"])
    make = words[words.index("make") :]
    assert make[1] == "prove"
    (asked,) = [word.removeprefix("CELLS=").split() for word in make[2:]] or [[]]
    assert main([*asked, "--list"]) == 0
    count = re.search(r"^(\d+) cells", capsys.readouterr().err, re.M)
    assert count
    assert (int(count[1]) > 0) is ALONE.isdisjoint(asked)
