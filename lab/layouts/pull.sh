#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The programs of PostgreSQL, MariaDB and Firebird without a server that runs.
set -eu

pg_dropcluster --stop "$(ls /usr/lib/postgresql)" main
systemctl --quiet disable --now mariadb.service
for unit in /lib/systemd/system/firebird[0-9]*.service; do
    systemctl --quiet disable --now "$(basename "$unit")"
done
