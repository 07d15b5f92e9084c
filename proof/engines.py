# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real engines. Another one is a module like these and a name here."""

from __future__ import annotations

from proof import firebird, mariadb, postgresql
from proof.engine import Engine

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (postgresql.ENGINE, mariadb.ENGINE, firebird.ENGINE)
}
