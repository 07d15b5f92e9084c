# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hook that a UPS's monitor runs at each event: it notifies the guard, then runs the previous command."""

from __future__ import annotations

from ..host.our_paths import CHAINED, FIFO, HOOK

MODE = 0o755
#: Seconds that telling the guard may take: one that was stopped, or hangs, lets its fifo fill up.
LIMIT = 3

#: Opened for both reading and writing, a fifo never makes anybody wait for the other end. upsmon hands its
#: message to a shell as the command's last word, in quotes, and so does this.
TEXT = f"""\
#!/bin/sh
# Managed by durable.dbhost. playbooks/release_db.yml takes it away.
# Run by the monitor of the UPS at each event: wakes the guard, then runs the command that was there before.
if [ -p {FIFO} ]; then
    timeout -s KILL {LIMIT} sh -c 'printf "%s\\n" "$1" 1<>{FIFO}' sh "${{NOTIFYTYPE:-unknown}}" 2>/dev/null
fi
command=
if [ -r {CHAINED} ]; then
    IFS= read -r command <{CHAINED}
fi
if [ -n "$command" ]; then
    exec /bin/sh -c "$command \\"\\$1\\"" {HOOK} "$1"
fi
exit 0
"""
