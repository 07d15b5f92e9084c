# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What we read of a few random configurations is what the programs read: `make oracles` asks about thousands."""

from __future__ import annotations

import pytest
from support.site import Site

from oracles import rig


@pytest.mark.parametrize("name", rig.SCENARIOS["power"])
def test_our_reading_is_that_of_the_program(loose: Site, name: str) -> None:
    rig.install(loose.machine)
    text, is_well = rig.ask_shortly(loose.machine, name)
    print(text)
    assert is_well, text
