# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engines' rules, said a second time: which values will do, which will not, and which lose commits."""

from __future__ import annotations

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.judges import JUDGES

FULL = {kind: rules for judge in JUDGES.values() for kind, rules in judge.full.items()}
#: Setting -> (values that will do, values that will not, whether those lose commits or tear pages).
MYSQL = {
    "innodb_flush_log_at_trx_commit": ("1", "0 2 3", True),
    "sync_binlog": ("1", "0 2 100", True),
    "innodb_doublewrite": ("ON DETECT_AND_RECOVER", "OFF DETECT_ONLY", True),
    "innodb_flush_method": (
        "O_DIRECT O_DSYNC fsync",
        "O_DIRECT_NO_FSYNC ALL_O_DIRECT nosync littlesync",
        True,
    ),
    "innodb_redo_log_enabled": ("ON", "OFF", True),
}
RULES = {
    "postgresql": {
        "fsync": ("on", "off", True),
        "full_page_writes": ("on", "off", True),
        "synchronous_commit": ("on local remote_write remote_apply", "off", True),
        "wal_sync_method": ("fdatasync fsync open_datasync open_sync", "fsync_writethrough", False),
        "data_sync_retry": ("off", "on", False),
    },
    "mysql": MYSQL,
    "mariadb": {
        **{name: row for name, row in MYSQL.items() if name != "innodb_redo_log_enabled"},
        "innodb_flush_log_at_trx_commit": ("1 3", "0 2", True),
        "debug_no_sync": ("OFF", "ON", True),
    },
    "faircom": {
        "LOG_WRITETHRU": ("on", "off", False),
        "TDATA_WRITETHRU": ("on", "off", False),
        "TINDEX_WRITETHRU": ("on", "off", False),
        "SYNC_LOG": ("off", "on", False),
        "NO_SYS_FLUSH_ON_CLOSE": ("off", "on", True),
        "NO_FLUSH_DIR": ("off", "on", True),
        "DELAYED_DURABILITY": ("0", "1 2", True),
        "SUPPRESS_LOG_FLUSH": ("NO", "YES", True),
        "SUPPRESS_LOG_SYNC": ("NO", "YES", True),
        # How long is the profile's to say.
        "COMMIT_DELAY": ("-1 0 1 100", "", False),
    },
    "firebird": {"forced_writes": ("on", "off", True)},
    # Which of its two ways fits is the storage's to say.
    "mssql": {},
}


def test_each_rule_is_said_here() -> None:
    assert {engine: set(rules) for engine, rules in FULL.items()} == {
        engine: set(rules) for engine, rules in RULES.items()
    }


@pytest.mark.parametrize(("engine", "name"), [(engine, name) for engine in RULES for name in RULES[engine]])
def test_which_values_keep_commits(engine: str, name: str) -> None:
    rule = FULL[engine][name]
    right, wrong, loses = RULES[engine][name]
    assert [word for word in right.split() if not rule.allows(word)] == []
    assert [word for word in (*wrong.split(), "unknown") if wrong and rule.allows(word)] == []
    assert rule.loses is loses
    assert rule.allows(rule.value)
