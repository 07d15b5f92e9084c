#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PostgreSQL: cluster main on ext4 (/srv/pgdata), second on XFS (/srv/pgxfs) with its log on the first volume;
# MariaDB on XFS (/srv/maria) with its binary log on ext4 (/srv/pgdata); Firebird's databases on ext4
# (/srv/fbdata): one by alias, one without; and one by alias on XFS (/srv/pgxfs).
# /srv/mssql and /srv/faircom stay empty.
set -eu

# The versions of the release.
postgresql=$(ls /usr/lib/postgresql)
firebird=$(basename "$(echo /etc/firebird/*/firebird.conf | xargs dirname)")

pg_dropcluster --stop "$postgresql" main 2>/dev/null || true
install -d -o postgres -g postgres -m 700 /srv/pgdata/main /srv/pgdata/wal /srv/pgxfs/second
pg_createcluster --datadir=/srv/pgdata/main "$postgresql" main > /dev/null
pg_createcluster --datadir=/srv/pgxfs/second "$postgresql" second -- --waldir=/srv/pgdata/wal/second > /dev/null
for cluster in main second; do
    printf 'shared_buffers = 16MB\nmax_connections = 20\n' > "/etc/postgresql/$postgresql/$cluster/conf.d/lab.conf"
    systemctl --quiet enable --now "postgresql@$postgresql-$cluster.service"
done

# MySQL in its place on the unstable distribution.
if [ -e /usr/sbin/mariadbd ]; then product=mariadb group=mariadbd; else product=mysql group=mysqld; fi
systemctl --quiet stop "$product.service"
install -d -o mysql -g mysql -m 755 /srv/pgdata/binlog
cp -a /var/lib/mysql /srv/maria/data
printf '[%s]\ndatadir = /srv/maria/data\ninnodb_buffer_pool_size = 16M\nlog_bin = /srv/pgdata/binlog/binlog\n' "$group" \
    > "/etc/mysql/$product.conf.d/x-lab.cnf"
systemctl --quiet enable --now "$product.service"

install -d -o firebird -g firebird -m 770 /srv/fbdata/data /srv/pgxfs/firebird
for path in /srv/fbdata/data/alias.fdb /srv/fbdata/data/bare.fdb /srv/pgxfs/firebird/xfs.fdb; do
    printf "create database '%s'; create table t (n integer); commit;" "$path" \
        | setpriv --reuid firebird --regid firebird --clear-groups env HOME=/tmp isql-fb -q
done
printf 'lab = /srv/fbdata/data/alias.fdb\nlabxfs = /srv/pgxfs/firebird/xfs.fdb\n' >> "/etc/firebird/$firebird/databases.conf"
systemctl --quiet enable --now "firebird$firebird.service"
sync
