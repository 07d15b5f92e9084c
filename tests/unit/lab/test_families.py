# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rebuilt scripts of the family layouts are what the collection recognises as those of the distribution."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.engines import test_suse
from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.engines.test_next_start import (
    is_known,
)

LAYOUT = Path(__file__).resolve().parents[3] / "lab/layouts/family-suse.sh"


def written(path: str) -> str:
    """Return the text that the layout's script writes to a path."""
    found = re.search(rf"^cat > {re.escape(path)} <<'END'\n(.*?)^END$", LAYOUT.read_text(), re.M | re.S)
    assert found, f"{LAYOUT} writes no {path}"
    return found[1]


@pytest.mark.parametrize("running", [True, False])
def test_suses_rebuilt_scripts_are_known(running: bool) -> None:
    text = written(test_suse.SCRIPT)
    assert is_known(test_suse.suse(test_suse.AT, running=running, text=text), "postgresql")
    host = test_suse.helped(running=running)
    host.files[test_suse.HELPER] = written(test_suse.HELPER)
    assert is_known(host, "mariadb")
