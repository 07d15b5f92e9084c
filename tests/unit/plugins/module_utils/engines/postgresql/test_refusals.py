# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of psql: its own text, and for a refused login the line of pg_hba.conf that permits it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.engines.postgresql import server
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Result

LOGIN = server.Login("postgres", 26, "/usr/bin", "/var/lib/pgsql/data", "/usr/bin/psql")
LINE = ". Fix: make 'local postgres postgres peer' the first line of pg_hba.conf, reload the server, then run again"
FATAL = 'psql: error: connection to server on socket "/run/postgresql/.s.PGSQL.5432" failed: FATAL:  '


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            FATAL + 'Peer authentication failed for user "postgres"',
            f'{" ".join(FATAL.split())} Peer authentication failed for user "postgres"{LINE}',
        ),
        (
            FATAL + 'no pg_hba.conf entry for host "[local]", user "postgres"',
            f'{" ".join(FATAL.split())} no pg_hba.conf entry for host "[local]", user "postgres"{LINE}',
        ),
        ("fe_sendauth: no password supplied\n", f"fe_sendauth: no password supplied{LINE}"),
        ("FATAL:  the database system is starting up\n", "FATAL: the database system is starting up"),
        (
            'could not change directory to "/root": Permission denied\nFATAL:  sorry, too many clients already\n',
            "FATAL: sorry, too many clients already",
        ),
        ("", "exit 2"),
    ],
)
def test_the_reason_is_the_error_of_psql_and_a_refused_login_has_a_fix(said: str, why: str) -> None:
    assert server._why(Result(2, "", said), LOGIN) == why


def test_commands_run_in_the_root_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the directory of root's login, which the server's user cannot enter, psql complains of that instead."""
    monkeypatch.chdir(tmp_path)
    assert Host().run(["/bin/pwd"]).stdout == "/\n"
    assert os.getcwd() == str(tmp_path)
