# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of fixes, and of refusals to set, of PostgreSQL's settings (facts/engine_fixes.py). Data."""

from __future__ import annotations

from .. import fixes

FIXES = {
    **fixes.FIXES,
    "remove_option": "remove {setting} from {source}, then restart the server",
    "reset_altered": "as a superuser run ALTER SYSTEM RESET {setting}",
    "reset_overrides": "run {statements}",
    "reset_login": "run ALTER ROLE or ALTER DATABASE ... RESET {setting} for the login that asks",
    "update": "update PostgreSQL to a version that has {setting}",
    "allow_login": "let its operating system user log in over its unix socket (peer in pg_hba.conf), then run again",
    "allow_peer": (
        "make 'local postgres {user} peer' the first line of pg_hba.conf, reload the server, then run again"
    ),
    "install_psql": "install PostgreSQL's client, then run again",
    "trust_psql": "let only root change {path} (chown), or install the system's psql, then run again",
    "grant_superuser": 'as a superuser run ALTER ROLE "{user}" SUPERUSER',
    "grant_superuser.unnamed": "as a superuser run ALTER ROLE ... SUPERUSER for it",
    "rename_socket": "set unix_socket_directories to paths without a comma, restart the server, then run again",
}
#: Refusal of facts/engine_fixes.py -> its sentence.
REFUSALS = {
    **fixes.REFUSALS,
    "alter_system_off": "allow_alter_system is off",
    "no_superuser": "its operating system user is no superuser in it, as which it is set",
}
