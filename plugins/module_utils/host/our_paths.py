# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every path of ours on a host, once. Files of others that we write to are in catalog.py."""

from __future__ import annotations

CONFIGURED = "/etc/durable-dbhost"
#: What outlives a boot; and what goes with it.
KEPT = "/var/lib/durable-dbhost"
VOLATILE = "/run/durable-dbhost"

#: What was there before us, by layer. The first is of mounts; the monitor's may hold a password.
ORIGINALS = f"{KEPT}/originals.json"
ORIGINALS_POWER = f"{KEPT}/originals-power.json"
ORIGINALS_FAIRCOM = f"{KEPT}/originals-faircom.json"
ORIGINALS_MSSQL = f"{KEPT}/originals-mssql.json"
ORIGINALS_FIREBIRD = f"{KEPT}/firebird.json"
#: Where new mount options are tried.
TRIAL = f"{KEPT}/trial"

#: They sort after the distributions' and vendors' own rules (60-, 85-hdparm), so that they have the last word.
CACHE_RULES = "/etc/udev/rules.d/99-durable-dbhost-write-cache.rules"
SCHEDULER_RULES = "/etc/udev/rules.d/99-durable-dbhost-io-scheduler.rules"
#: udev hears nothing of a resume, so a unit tells it.
RESUME_SERVICE = "durable-dbhost-resume.service"
RESUME_UNIT = f"/etc/systemd/system/{RESUME_SERVICE}"

#: What is pending: flushes of disks, and of what engines wrote without; and what ran before a change.
OWED = f"{VOLATILE}/flush-owed"
OWED_POSTGRESQL = f"{VOLATILE}/postgresql-unflushed"
OWED_MARIADB = f"{VOLATILE}/mariadb-unflushed"
NOTES = f"{VOLATILE}/running"

#: The guard's program and the hook that the UPS's monitor runs.
LIBRARY = "/usr/local/lib/durable-dbhost"
PROGRAM = f"{LIBRARY}/guard.pyz"
HOOK = f"{LIBRARY}/ups-notify"
SERVICE = "durable-dbhost-guard.service"
UNIT = f"/etc/systemd/system/{SERVICE}"
#: Which file systems may lose their barriers, until when, and on what conditions.
LEASE = f"{CONFIGURED}/guard.json"
#: What an existing notify command was, and where apcupsd's scripts are; the hook runs it after its own word.
CHAINED = f"{CONFIGURED}/notify-command"
CHAINED_SCRIPTS = f"{CONFIGURED}/apcupsd"
#: Goes with the boot, as a lease's use does.
RUNTIME = f"{VOLATILE}/guard"
STATE = f"{RUNTIME}/state.json"
FIFO = f"{RUNTIME}/notify"
