# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of each engine, for the controller and for the watch, which assesses on the host. Pure."""

from __future__ import annotations

from ..facts.engines import InstanceFacts
from .faircom import rules as faircom
from .firebird import rules as firebird
from .mariadb import rules as mariadb
from .mssql import rules as mssql
from .postgresql import rules as postgresql
from .rules import Judge

#: By engine, whose name is that of its directory. Ansible and the watch pack only what an import statement names.
JUDGES: dict[str, Judge] = {
    rules.__name__.split(".")[-2]: rules.JUDGE
    for rules in (
        mssql,
        faircom,
        firebird,
        postgresql,
        mariadb,
    )
}


def judge_of(instance: InstanceFacts) -> Judge:
    """Return the rules that assess an instance of `durable_engines`."""
    return JUDGES[instance["engine"]]
