# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pages of engines print to see it on the host shows it there."""

from __future__ import annotations

from typing import Any

import pytest
from support import pages
from support.mysqls import MYSQL, Mysql
from support.runs import Playbooks

from lab.machine import Machine

ROWS = pages.table()["engines"]


@pytest.mark.parametrize("row", ROWS, ids=[f"{number}-{row['page']}" for number, row in enumerate(ROWS, 1)])
def test_a_command_shows_something(
    machine: Machine, postgresql: str, mysql: Mysql, row: dict[str, Any]
) -> None:
    names = {
        "/srv/firebird/shop.fdb": "/srv/fbdata/data/alias.fdb",
        "gstat": "fbstat",
        "/15/": f"/{postgresql}/",
    }
    code, shows = row.get("code", 0), row.get("shows", True)
    if row["command"].endswith("zz-durable-dbhost.cnf") and not mysql.has_our_file:
        code, shows = 1, False
    if mysql is MYSQL:
        # The only command for MySQL shows nothing on MariaDB.
        shows = shows or row["command"].startswith("mysql ")
        names.update({"mariadb --": "mysql --", "/mariadb.conf.d/": "/mysql.conf.d/", "--mysqld": "mysqld"})
    done = machine.run(["sh", "-c", pages.with_names(row["command"], names)], check=False)
    assert done.returncode == code, done.stderr
    assert bool(done.stdout.strip()) is shows


def test_the_facts_of_engines_are_shown_by_their_module(playbooks: Playbooks) -> None:
    said = playbooks.ask("engines", "durable.dbhost.engine_facts")
    assert '"durable_engines"' in said
