# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How MariaDB and MySQL are assessed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...host.observation import UNKNOWN
from ...rows import Kind, Reason
from ..rule import relaxed
from ..rules import Judge, Subject
from .expected import FULL
from .fixes import FIXES

#: Words that lose the last commits and never corrupt; and those that keep less still.
_RELAXED = {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"}
_WEAKER = {"innodb_flush_log_at_trx_commit": ("0",)}

FLAVOUR = Kind(
    "unknown.mariadb.flavour",
    "unknown",
    "{engine}: whether it is MariaDB or MySQL is unknown, and their settings differ",
    "let root log in without a password (unix_socket, in MySQL auth_socket), then run again",
)
FLAVOUR_STOPPED = FLAVOUR._replace(id="unknown.mariadb.flavour_stopped", fix="start it once, then run again")


def _unknowns(subject: Subject) -> Iterator[Reason]:
    if subject.instance.get("flavour") == UNKNOWN:
        kind = FLAVOUR_STOPPED if subject.instance["state"] == "stopped" else FLAVOUR
        yield kind.found(subject.label, engine=subject.label)


JUDGE = Judge(
    full=FULL,
    relaxed={kind: relaxed(rules, _RELAXED, _WEAKER) for kind, rules in FULL.items()},
    unknowns=_unknowns,
    kinds=(FLAVOUR, FLAVOUR_STOPPED),
    fix_texts=FIXES,
)
