# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of fixes of SQL Server's settings (facts/engine_fixes.py). Data."""

from __future__ import annotations

from .. import fixes

FIXES = {
    **fixes.FIXES,
    "remove_trace_flag": "remove -T{flag} from ExecStart= (systemctl edit --full mssql-server), then restart it",
    "give_directory": "run chown mssql {path}, then run again",
    "give_file": "check its content, run chown -h {owner} {path}, then run again",
}
