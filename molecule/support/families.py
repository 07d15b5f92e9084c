# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rebuilt layouts of distribution families: where each stores databases, and what its documents say of owners and modes."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Of the stand-in for SQL Server, as the vendor's permissions guide lists them.
MSSQL = {"/var/opt/mssql": "mssql:mssql 770", "/var/opt/mssql/mssql.conf": "root:root 644"}


@dataclass(frozen=True)
class Family:
    """A layout below lab/layouts, which is its machine's name too.

    `clusters`: {unit: (name in reports, postgresql.conf)}, the first one drifts. `programs`: {unit: program of one of
    its processes}. `owners`: {path: `owner:group mode`}. `numbers`: {user: uid}. `mounts`: {mount point: file system} of what
    files are open on.
    """

    name: str
    clusters: dict[str, tuple[str, str]]
    programs: dict[str, str]
    mounts: dict[str, str]
    owners: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    tuned: str = "inactive"
    release: str = "bookworm"
    products: tuple[str, ...] = ("postgresql", "mariadb", "firebird")
    client: tuple[str, ...] = ("mariadb",)


_PGSQL = "/var/lib/pgsql/data"
_PROJECT = "/var/lib/pgsql/15/data"
_DEBIAN = "/etc/postgresql/15/main/postgresql.conf"

FAMILIES = {
    "rhel": Family(
        "family-rhel",
        clusters={
            "postgresql.service": (_PGSQL, f"{_PGSQL}/postgresql.conf"),
            "postgresql-15.service": (_PROJECT, f"{_PROJECT}/postgresql.conf"),
        },
        programs={
            "postgresql.service": "/usr/bin/postgres",
            "postgresql-15.service": "/usr/pgsql-15/bin/postgres",
            "mariadb.service": "/usr/libexec/mariadbd",
            "firebird.service": "/usr/sbin/fbguard",
        },
        mounts={"/var": "xfs"},
        owners={
            "/var/lib/pgsql": "postgres:postgres 700",
            _PGSQL: "postgres:postgres 700",
            _PROJECT: "postgres:postgres 700",
            "/var/lib/mysql": "mysql:mysql 755",
            "/var/log/mariadb": "mysql:mysql 750",
            "/var/lib/firebird": "root:root 755",
            "/var/lib/firebird/secdb": "firebird:firebird 700",
            "/var/lib/firebird/data": "firebird:firebird 700",
            "/etc/my.cnf": "root:root 644",
        },
        numbers={"postgres": 26, "mysql": 27},
        tuned="active",
        client=("mariadb", "--socket=/var/lib/mysql/mysql.sock"),
    ),
    "suse": Family(
        "family-suse",
        clusters={"postgresql.service": (_PGSQL, f"{_PGSQL}/postgresql.conf")},
        programs={
            "postgresql.service": "/usr/lib/postgresql15/bin/postgres",
            "mariadb.service": "/usr/sbin/mariadbd",
            "firebird.service": "/usr/sbin/fbguard",
        },
        mounts={"/var": "btrfs"},
        owners={
            _PGSQL: "postgres:postgres 700",
            "/var/lib/mysql": "mysql:mysql 700",
            "/etc/my.cnf": "root:root 644",
            "/srv/firebird": "firebird:firebird 750",
            "/var/lib/firebird/secdb/security3.fdb": "firebird:firebird 600",
            "/var/log/firebird": "firebird:firebird 750",
        },
        numbers={"postgres": 26, "mysql": 60},
        client=("mariadb", "--socket=/run/mysql/mysql.sock"),
    ),
    "ubuntu": Family(
        "family-ubuntu",
        clusters={"postgresql@15-main.service": ("15/main", _DEBIAN)},
        programs={
            "postgresql@15-main.service": "/usr/lib/postgresql/15/bin/postgres",
            "mariadb.service": "/usr/sbin/mariadbd",
            "firebird3.0.service": "/usr/sbin/fbguard",
        },
        mounts={"/": "ext4"},
        owners={"/var/lib/postgresql/15/main": "postgres:postgres 700", "/var/lib/mysql": "mysql:mysql 755"},
    ),
    # Debian's unstable distribution: its own packages, and the newest servers.
    "unstable": Family(
        "unstable",
        release="sid",
        clusters={"postgresql@18-main.service": ("18/main", "/etc/postgresql/18/main/postgresql.conf")},
        programs={
            "postgresql@18-main.service": "/usr/lib/postgresql/18/bin/postgres",
            "mysql.service": "/usr/sbin/mysqld",
            "firebird4.0.service": "/usr/lib/firebird/4.0/bin/fbguard",
        },
        mounts={"/srv/pgdata": "ext4", "/srv/mysql": "xfs"},
        owners={"/srv/pgdata/main": "postgres:postgres 700", "/srv/mysql/data": "mysql:mysql 700"},
        tuned="active",
        products=("postgresql", "mysql", "firebird"),
        client=("mysql",),
    ),
}
