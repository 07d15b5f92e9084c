# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a scenario runs whole: `make scenario` sets DBHOST_LAB_WHOLE=1 where there is a short part, `make test` does not."""

from __future__ import annotations

import os

import pytest

IS_WHOLE = os.environ.get("DBHOST_LAB_WHOLE") == "1"


def whole_only(reason: str) -> pytest.MarkDecorator:
    """Return the mark of a test that the short part of a scenario leaves out; `reason` names the command that runs it."""
    return pytest.mark.skipif(not IS_WHOLE, reason=reason)
