# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An assessment is the same text after a template of each ansible-core."""

from __future__ import annotations

import pytest

pytest.importorskip("ansible")

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.durable.dbhost.plugins.plugin_utils.as_text import packed, unpacked

REPORT = {"verdict": "at_risk", "why": [], "fails": True, "profile": None, "host": "d\u00f6\U0001f600"}


def test_a_template_leaves_a_packed_report_unchanged() -> None:
    try:
        from ansible.template import trust_as_template
    except ImportError:  # ansible-core before 2.19

        def trust_as_template(value: str) -> str:
            return value

    templar = Templar(DataLoader(), variables={"found": packed(REPORT)})
    handed_on = templar.template(trust_as_template("{{ found }}"))
    assert isinstance(handed_on, str)
    assert unpacked(handed_on) == REPORT


def test_what_is_no_report_is_refused() -> None:
    with pytest.raises(ValueError, match="observed list"):
        unpacked(" []")
