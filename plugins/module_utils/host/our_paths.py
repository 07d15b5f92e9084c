# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the guard keeps what is its own."""

from __future__ import annotations

#: The guard's program and the hook that the UPS's monitor runs.
LIBRARY = "/usr/local/lib/durable-dbhost"
PROGRAM = f"{LIBRARY}/guard.pyz"
HOOK = f"{LIBRARY}/ups-notify"
SERVICE = "durable-dbhost-guard.service"
UNIT = f"/etc/systemd/system/{SERVICE}"
#: Which file systems may lose their barriers, until when, and on what conditions.
LICENCE = "/etc/durable-dbhost/guard.json"
#: What an existing notify command was; the hook runs it after its own word.
CHAINED = "/etc/durable-dbhost/notify-command"
#: Goes with the boot, as a licence's use does.
RUNTIME = "/run/durable-dbhost/guard"
STATE = f"{RUNTIME}/state.json"
FIFO = f"{RUNTIME}/notify"
