# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MariaDB and MySQL as Debian's packages lay them out: a machine has one of them."""

from __future__ import annotations

from dataclasses import dataclass

from lab.machine import Machine


@dataclass(frozen=True)
class Mysql:
    """`product` is also the name of its client and of its unit, `group` that of its options in `directory`.

    `sends_passwords`: whether its client refuses authentications that reveal the password. `password` and `socket` are
    ways of root's login. `has_our_file`: whether its defaults are not those of profile strict.
    """

    product: str
    group: str
    directory: str
    password: str
    socket: str
    sends_passwords: bool
    has_our_file: bool

    def ask(self, machine: Machine, statement: str) -> str:
        """Return what the server itself answers."""
        return machine.run([self.product, "--batch", "--skip-column-names", "-e", statement]).stdout.strip()


MARIADB = Mysql(
    "mariadb",
    "mariadbd",
    "/etc/mysql/mariadb.conf.d",
    "via mysql_native_password using password('{}')",
    "via unix_socket",
    sends_passwords=True,
    has_our_file=True,
)
MYSQL = Mysql(
    "mysql",
    "mysqld",
    "/etc/mysql/mysql.conf.d",
    "with caching_sha2_password by '{}'",
    "with auth_socket",
    sends_passwords=False,
    has_our_file=False,
)


def of(machine: Machine) -> Mysql:
    """Return the one that a machine has."""
    has_mariadb = machine.run(["test", "-e", "/usr/sbin/mariadbd"], check=False).returncode == 0
    return MARIADB if has_mariadb else MYSQL
