# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All paths of this collection on a host. Files of others that it writes to are in catalog.py."""

from __future__ import annotations

CONFIGURED = "/etc/durable-dbhost"
#: What outlives a boot; and what goes with it.
PERSISTENT = "/var/lib/durable-dbhost"
VOLATILE = "/run/durable-dbhost"

#: What was there before us, by layer. The first is of mounts; the monitor's may hold a password.
ORIGINALS = f"{PERSISTENT}/originals.json"
ORIGINALS_POWER = f"{PERSISTENT}/originals-power.json"
ORIGINALS_FAIRCOM = f"{PERSISTENT}/originals-faircom.json"
ORIGINALS_POSTGRESQL = f"{PERSISTENT}/originals-postgresql.json"
ORIGINALS_MSSQL = f"{PERSISTENT}/originals-mssql.json"
ORIGINALS_FIREBIRD = f"{PERSISTENT}/firebird.json"
#: The spare disk of a comparison of file systems, and what the next run removes if this one is killed.
COMPARISON = f"{PERSISTENT}/comparison.json"
#: Where new mount options are tried.
TRIAL = f"{PERSISTENT}/trial"

#: They sort after the rules of distributions, vendors and administrators (60-, 85-hdparm, 99-), so that they set a value
#: last. The cache's come first: a change of a cache mode resets the readahead.
CACHE_RULES = "/etc/udev/rules.d/zz-durable-dbhost-1-write-cache.rules"
SCHEDULER_RULES = "/etc/udev/rules.d/zz-durable-dbhost-2-io-scheduler.rules"
#: Their names in earlier releases, in which the order was the other one. The next run removes them.
FORMER_CACHE_RULES = "/etc/udev/rules.d/99-durable-dbhost-write-cache.rules"
FORMER_SCHEDULER_RULES = "/etc/udev/rules.d/99-durable-dbhost-io-scheduler.rules"
#: A resume sends no udev event, so a unit triggers one.
RESUME_SERVICE = "durable-dbhost-resume.service"
RESUME_UNIT = f"/etc/systemd/system/{RESUME_SERVICE}"

#: The drop-in over a server's unit, in its directory below /etc/systemd/system.
UNIT_MOUNTS = "durable-dbhost-mounts.conf"

#: Who changes this host now, or was the last to begin since it booted.
LOCK = f"{VOLATILE}/lock"
#: What is pending: flushes of disks, and of what engines wrote without; and what ran before a change.
PENDING_FLUSHES = f"{VOLATILE}/flush-owed"
UNFLUSHED_POSTGRESQL = f"{VOLATILE}/postgresql-unflushed"
#: Sessions of PostgreSQL that go on with what ALTER ROLE or DATABASE had set when they began.
SESSIONS_POSTGRESQL = f"{VOLATILE}/postgresql-sessions"
UNFLUSHED_MARIADB = f"{VOLATILE}/mariadb-unflushed"
NOTES = f"{VOLATILE}/running"
#: The configuration of gfix while it logs in at a server.
FIREBIRD_CLIENT = f"{VOLATILE}/firebird-client"

#: The watch: its program, its inputs, and its last report.
WATCH_PROGRAM = "/usr/local/lib/durable-dbhost/watch.pyz"
WATCH_INPUTS = f"{CONFIGURED}/watch.json"
WATCH_REPORT = f"{PERSISTENT}/watch.json"
WATCH_SERVICE, WATCH_TIMER = "durable-dbhost-watch.service", "durable-dbhost-watch.timer"
WATCH_UNIT = f"/etc/systemd/system/{WATCH_SERVICE}"
WATCH_TIMER_UNIT = f"/etc/systemd/system/{WATCH_TIMER}"
#: systemd's, when the timer has last elapsed: it stays when the timer is gone.
WATCH_STAMP = f"/var/lib/systemd/timers/stamp-{WATCH_TIMER}"

#: The rollback timer: what a run changed, what puts it back, and what it says once it has. Beside fstab, on the file
#: system that is there before any other is mounted.
UNDO = f"{CONFIGURED}/undo"
UNDO_JOURNAL = f"{UNDO}/journal.json"
UNDO_PROGRAM = f"{UNDO}/undo.pyz"
UNDO_FIRED = f"{UNDO}/fired.json"
UNDO_SERVICE = "durable-dbhost-undo.service"
UNDO_UNIT = f"/etc/systemd/system/{UNDO_SERVICE}"

#: The guard's program and the hook that the UPS's monitor runs: policies of SELinux let it run what lies in a `bin`.
LIBRARY = "/usr/local/lib/durable-dbhost"
PROGRAM = f"{LIBRARY}/guard.pyz"
HOOK = f"{LIBRARY}/bin/ups-notify"
SERVICE = "durable-dbhost-guard.service"
UNIT = f"/etc/systemd/system/{SERVICE}"
#: Which file systems may lose their barriers, until when, and on what conditions.
LEASE = f"{CONFIGURED}/guard.json"
#: What an existing notify command was, and where apcupsd's scripts are; the hook runs it after its own word.
CHAINED = f"{CONFIGURED}/notify-command"
CHAINED_SCRIPTS = f"{LIBRARY}/bin/apcupsd"
#: The directories of hook, program, lease and notify command, the lowest first: the monitor's user comes through them.
UPS_WAY = (f"{LIBRARY}/bin", LIBRARY, CONFIGURED)
#: Units of this collection that a boot or an event starts.
UNITS = (RESUME_SERVICE, WATCH_SERVICE, WATCH_TIMER, UNDO_SERVICE, SERVICE)
#: Goes with the boot, as a lease's use does.
RUNTIME = f"{VOLATILE}/guard"
STATE = f"{RUNTIME}/state.json"
FIFO = f"{RUNTIME}/notify"
