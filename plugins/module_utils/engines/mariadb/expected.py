# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings that MariaDB and MySQL need so that acknowledged commits are on disk. Pure."""

from __future__ import annotations

from ..rule import EARLY, Rules, rule

_FLUSH_LOG = (
    ("0", "a commit is acknowledged before it is written: a crash of the server alone loses the last second"),
    ("2", "a commit is acknowledged when it is written: a power cut loses the last second"),
)
_MYSQL = {
    "innodb_flush_log_at_trx_commit": rule("1", EARLY, loses=True, meanings=_FLUSH_LOG),
    "sync_binlog": rule(
        "1",
        "after a power cut the binary log lacks commits: recovery rolls them back, or replicas miss them",
        loses=True,
        unless=("log_bin", "OFF"),
    ),
    "innodb_doublewrite": rule(
        "ON DETECT_AND_RECOVER",
        "a half-written page after a power cut cannot be repaired",
        True,
        live=False,
    ),
    # ALL_O_DIRECT of Percona's flushes data files, and no logs.
    "innodb_flush_method": rule(
        "O_DIRECT O_DSYNC fsync", "not all that is written is flushed", loses=True, live=False
    ),
    "innodb_redo_log_enabled": rule("ON", "nothing is written that brings commits back", loses=True),
}
_MARIADB = {name: each for name, each in _MYSQL.items() if name != "innodb_redo_log_enabled"}
# No variable shows it: it is reported of a server that was started with it.
_MARIADB["debug_no_sync"] = rule(
    "OFF", "the server never asks that its files reach the disk", loses=True, live=False
)
# 3 flushes at each commit as 1 does, and once more for its group.
_MARIADB["innodb_flush_log_at_trx_commit"] = rule("1 3", EARLY, loses=True, meanings=_FLUSH_LOG)
#: MySQL's are not quite MariaDB's.
FULL = {"mariadb": _MARIADB, "mysql": _MYSQL}


def of_flavour(flavour: str | None) -> Rules:
    """Return the rules where commits have to survive; those of MariaDB unless it is known to be MySQL."""
    return FULL["mysql" if flavour == "mysql" else "mariadb"]
