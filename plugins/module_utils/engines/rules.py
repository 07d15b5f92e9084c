# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each engine must be set to, so that a commit that it acknowledges is on disk. Data.

SQL Server's settings depend on the storage below: they are in engines/mssql/rules.py.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """What one setting has to be.

    `accepts`: the words that will do, () for all. `value`: what a run sets.
    `means`: what any other word means, in plain words; `meanings`: of single ones, (word, what it means).
    `weaker`: words that keep less than `value` does: to leave them is no loosening. `loses`: with another word, commits that were
    acknowledged can vanish. `live`: a running server takes a change of it. `phase`: loosen, where setting it
    waits until all that it rests on is true. `unless`: another setting
    and the words of it with which this one means nothing.
    """

    accepts: tuple[str, ...]
    value: str
    means: str
    loses: bool
    live: bool = True
    klass: str = "safety"
    phase: str = "tighten"
    unless: tuple[str, ...] = ()
    meanings: tuple[tuple[str, str], ...] = ()
    weaker: tuple[str, ...] = ()

    def allows(self, word: str) -> bool:
        """Tell whether a word will do."""
        return word in self.accepts or not self.accepts

    def meaning(self, word: str) -> str:
        """Return what a word that will not do means."""
        return _UNFLUSHED if word == "unflushed" else dict(self.meanings).get(word, self.means)

    def against(self, seen: set[str]) -> Rule:
        """Return the rule for a setting that is seen with these words: what keeps less is not loosened."""
        differing = {word for word in seen if not self.allows(word)}
        return self._replace(phase="tighten") if differing and differing <= set(self.weaker) else self


_UNFLUSHED = "it is on, and what was written while it was off may not be on disk yet"
_EARLY = "a commit is acknowledged before it is on disk"

_POSTGRESQL = {
    "fsync": Rule(("on",), "on", "the server never asks that its files reach the disk", loses=True),
    "full_page_writes": Rule(
        ("on",), "on", "a page that a power cut left half written cannot be mended", loses=True
    ),
    # What waits for more than this host's disk is kept.
    "synchronous_commit": Rule(("on", "local", "remote_write", "remote_apply"), "on", _EARLY, loses=True),
    "wal_sync_method": Rule(
        ("fdatasync", "fsync", "open_datasync", "open_sync"),
        "fdatasync",
        "no such way of writing the log is known here",
        loses=False,
    ),
    "data_sync_retry": Rule(
        ("off",),
        "off",
        "after a failed fsync the server goes on, with pages that may never reach the disk",
        loses=False,
        live=False,
    ),
}
_FLUSH_LOG = (
    ("0", "a commit is acknowledged before it is written: a crash of the server alone loses the last second"),
    ("2", "a commit is acknowledged when it is written: a power cut loses the last second"),
)
_MYSQL = {
    "innodb_flush_log_at_trx_commit": Rule(("1",), "1", _EARLY, loses=True, meanings=_FLUSH_LOG),
    "sync_binlog": Rule(
        ("1",),
        "1",
        "after a power cut the binary log lacks commits: recovery rolls them back, or replicas miss them",
        loses=True,
        unless=("log_bin", "OFF"),
    ),
    "innodb_doublewrite": Rule(
        ("ON", "DETECT_AND_RECOVER"),
        "ON",
        "a page that a power cut left half written cannot be mended",
        loses=True,
        live=False,
    ),
    # ALL_O_DIRECT of Percona's flushes data files, and no logs.
    "innodb_flush_method": Rule(
        ("O_DIRECT", "O_DSYNC", "fsync"),
        "O_DIRECT",
        "not all that is written is flushed",
        loses=True,
        live=False,
    ),
    "innodb_redo_log_enabled": Rule(("ON",), "ON", "nothing is written that brings commits back", loses=True),
}
_MARIADB = {name: rule for name, rule in _MYSQL.items() if name != "innodb_redo_log_enabled"}
# No variable shows it: it is told of a server that was started with it.
_MARIADB["debug_no_sync"] = Rule(
    ("OFF",), "OFF", "the server never asks that its files reach the disk", loses=True, live=False
)
# 3 flushes at each commit as 1 does, and once more for its group.
_MARIADB["innodb_flush_log_at_trx_commit"] = _MYSQL["innodb_flush_log_at_trx_commit"]._replace(
    accepts=("1", "3")
)
_FAIRCOM = {
    "LOG_WRITETHRU": Rule(
        ("on",), "on", "the transaction log is not opened for synchronous writes", loses=False, live=False
    ),
    "TDATA_WRITETHRU": Rule(
        ("on",),
        "on",
        "data files under transactions are not opened for synchronous writes",
        loses=False,
        live=False,
    ),
    "TINDEX_WRITETHRU": Rule(
        ("on",),
        "on",
        "index files under transactions are not opened for synchronous writes",
        loses=False,
        live=False,
    ),
    # An option of its own, whatever LOG_WRITETHRU says.
    "SYNC_LOG": Rule(
        ("off",),
        "off",
        "the transaction log is opened without O_SYNC, and flushed by another call",
        loses=False,
        live=False,
    ),
    "NO_SYS_FLUSH_ON_CLOSE": Rule(
        ("off",),
        "off",
        "what is in memory when a file is closed may not reach the disk",
        loses=True,
        live=False,
    ),
    "NO_FLUSH_DIR": Rule(
        ("off",),
        "off",
        "after a power cut a transaction log may have no name under which recovery looks for it",
        loses=True,
        live=False,
    ),
    "DELAYED_DURABILITY": Rule(("0",), "0", _EARLY, loses=True, live=False),
    # Parts of it that can be asked for by themselves.
    "SUPPRESS_LOG_FLUSH": Rule(("NO",), "NO", _EARLY, loses=True, live=False),
    "SUPPRESS_LOG_SYNC": Rule(("NO",), "NO", _EARLY, loses=True, live=False),
    # It groups commits and loses none: which words will do is the profile's to say, in engines/faircom/rules.py.
    "COMMIT_DELAY": Rule(
        (),
        "1",
        "commits wait for each other",
        loses=False,
        live=False,
        klass="performance",
    ),
}
_FIREBIRD = {
    "forced_writes": Rule(("on",), "on", "writes wait in memory for the kernel to get to them", loses=True)
}

#: Engine, or flavour of one -> setting -> rule, where commits have to survive.
FULL = {
    "postgresql": _POSTGRESQL,
    "mariadb": _MARIADB,
    "mysql": _MYSQL,
    "faircom": _FAIRCOM,
    "firebird": _FIREBIRD,
    "mssql": {},
}
_RELAXED_WORDS = {
    # Loses the last commits, and never corrupts.
    "postgresql": {"synchronous_commit": "off"},
    "mariadb": {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"},
    "mysql": {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"},
}
#: Words of them that keep less than the relaxed ones.
_WEAKER = {"innodb_flush_log_at_trx_commit": ("0",)}
#: The same where losing them is accepted: what would corrupt stays as above.
RELAXED = {
    engine: {
        name: rule._replace(
            accepts=(words[name],),
            value=words[name],
            means="a commit waits for the disk, which this profile does not ask for",
            klass="performance",
            phase="loosen",
            loses=False,
            weaker=_WEAKER.get(name, ()),
        )
        if name in words
        else rule
        for name, rule in rules.items()
    }
    for engine, rules in FULL.items()
    for words in (_RELAXED_WORDS.get(engine, {}),)
}

#: Engine -> what looks for damage that is there already, after a host was exposed.
CHECKS = {
    "postgresql": "pg_amcheck --all",
    "mariadb": "mariadb-check --all-databases",
    "mysql": "mysqlcheck --all-databases",
    "mssql": "DBCC CHECKDB",
    "firebird": "gfix -v -full",
    "faircom": "ctvfyfil and ctvfyidx",
}
