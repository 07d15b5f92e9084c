# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nut.conf: MODE as a shell reads it, and nothing else touched. Written after nut.conf(5)."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.textfile import Malformed
from ansible_collections.durable.dbhost.plugins.module_utils.ups import nut_mode

TEXT = "# MODE=netserver\n\nMODE=none\nUPSD_OPTIONS=\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TEXT, "none"),
        ('MODE="standalone"\n', "standalone"),
        ("export MODE='netclient' # here\n", "netclient"),
        ("MODE=none\r\n", "none"),
        ("MODE=\n", ""),
        ("MODE=a\nMODE=a\n", "a"),
        ("# nothing\nMODES=x\n", None),
    ],
)
def test_the_mode(text: str, wanted: str | None) -> None:
    found = nut_mode.value(text)
    assert (found.value if found else None) == wanted


@pytest.mark.parametrize(
    "text", ["MODE = none\n", "MODE=$OTHER\n", "MODE=none\nMODE=netclient\n", 'MODE="none\n']
)
def test_what_a_shell_would_have_to_work_out_is_refused(text: str) -> None:
    with pytest.raises(Malformed, match=r"nut\.conf line [12]: observed .*; expected "):
        nut_mode.value(text)


def test_one_word_changes() -> None:
    after = nut_mode.set_mode(TEXT, "netclient", "managed")
    assert after == TEXT.replace("MODE=none", "# durable.dbhost: managed\nMODE=netclient")
    assert nut_mode.set_mode(after, "netclient", "managed") == after
    assert nut_mode.set_mode("", "netclient", "managed") == "# durable.dbhost: managed\nMODE=netclient\n"
