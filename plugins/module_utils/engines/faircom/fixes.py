# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of fixes, and of refusals to set, of FairCom DB's settings (facts/engine_fixes.py). Data."""

from __future__ import annotations

from .. import fixes

FIXES = {
    **fixes.FIXES,
    "create_file": "create an empty {path}, owned by the server's user, then run again",
}
#: Refusal of facts/engine_fixes.py -> its sentence.
REFUSALS = {
    **fixes.REFUSALS,
    "no_file": "observed no {file}: it runs with its defaults; expected a file to write them into",
}
