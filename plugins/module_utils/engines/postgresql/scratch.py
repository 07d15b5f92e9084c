# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a PostgreSQL cluster that a power cut may destroy: temporary tablespaces, statistics.

"Database File Layout" names them: files of temporary relations are tBBB_FFF, those of sorts are in pgsql_tmp.
"""

from __future__ import annotations

import re

from ...host.seam import Host
from .. import temporary

_VERSION = re.compile(r"PG_[0-9][0-9._]{0,40}")
_SORTS = "pgsql_tmp"
_DATABASE = re.compile(r"[0-9]{1,10}")
_RELATION = re.compile(r"t[0-9]{1,10}_[0-9]{1,10}(_(fsm|vm|init))?(\.[0-9]{1,6})?")
#: Of `stats_temp_directory`, which is gone since PostgreSQL 15.
_STATISTICS = re.compile(r"(global|db_[0-9]{1,10})\.(stat|tmp)|pgss_query_texts\.stat")
#: Directories of databases in one tablespace that are examined.
_DATABASES = 64


def is_space(host: Host, root: str, directory: str) -> bool:
    """Return whether a tablespace holds temporary files and nothing else.

    One that was never used cannot be distinguished from one that is made for tables: it counts as data.
    """
    is_used = False
    versions = temporary.names_in(host, directory, root)
    for version in versions if versions is not None else [""]:
        inside = (
            temporary.names_in(host, f"{directory}/{version}", root) if _VERSION.fullmatch(version) else None
        )
        databases = [name for name in inside or () if name != _SORTS]
        if inside is None or len(databases) > _DATABASES or not all(map(_DATABASE.fullmatch, databases)):
            return False
        for name in databases:
            if not temporary.holds_only(host, f"{directory}/{version}/{name}", root, _RELATION.fullmatch):
                return False
        is_used = is_used or bool(inside)
    return is_used


def is_statistics(host: Host, root: str, directory: str) -> bool:
    """Return whether a directory holds statistics that are written again at each start, and nothing else."""
    return temporary.holds_only(host, directory, root, _STATISTICS.fullmatch)


def is_file(path: str) -> bool:
    """Return whether an open file in such a directory is one of these."""
    directory, _slash, name = path.rpartition("/")
    is_sort = f"/{_SORTS}/" in f"{directory}/"
    return is_sort or bool(_RELATION.fullmatch(name) or _STATISTICS.fullmatch(name))
