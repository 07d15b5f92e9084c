# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of systemd-tmpfiles below /sys, and specifiers that only systemd expands."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host import tmpfiles_d
from ansible_collections.durable.dbhost.plugins.module_utils.next_boot import tmpfiles

PLACE = "/sys/block/sda/queue/scheduler"


@pytest.mark.parametrize(
    ("path", "argument", "value", "is_certain"),
    [
        (PLACE, "bfq", "bfq", True),
        (PLACE, "a%%b", "a%b", True),
        (PLACE, "%H", "%H", False),
        (PLACE, "a%%b%H", "a%b%H", False),
        ("/sys/block/%m/%%/x", "bfq", "bfq", False),
    ],
)
def test_a_specifier_makes_a_write_uncertain_also_next_to_a_percent_sign(
    path: str, argument: str, value: str, is_certain: bool
) -> None:
    (act,) = tmpfiles.written(tmpfiles_d.parse(f"w {path} - - - - {argument}\n", "/etc/tmpfiles.d/x.conf"))
    assert (act.words[1], act.is_certain) == (value, is_certain)
