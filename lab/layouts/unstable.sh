#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PostgreSQL's cluster main on ext4 (/srv/pgdata), MySQL on XFS (/srv/mysql), Firebird's database by alias on ext4
# (/srv/fbdata). TuneD is active with the profile that it recommends for a virtual machine.
set -eu
postgresql=$(ls /usr/lib/postgresql)
firebird=$(basename "$(echo /etc/firebird/*/firebird.conf | xargs dirname)")

pg_dropcluster --stop "$postgresql" main 2>/dev/null || true
install -d -o postgres -g postgres -m 700 /srv/pgdata/main
pg_createcluster --datadir=/srv/pgdata/main "$postgresql" main > /dev/null
printf 'shared_buffers = 16MB\nmax_connections = 20\n' > "/etc/postgresql/$postgresql/main/conf.d/lab.conf"

systemctl --quiet stop mysql.service
cp -a /var/lib/mysql /srv/mysql/data
printf '[mysqld]\ndatadir = /srv/mysql/data\ninnodb_buffer_pool_size = 16M\n' > /etc/mysql/mysql.conf.d/zz-lab.cnf

install -d -o firebird -g firebird -m 770 /srv/fbdata/data
echo "create database '/srv/fbdata/data/alias.fdb'; create table t (n integer); commit;" \
    | setpriv --reuid firebird --regid firebird --clear-groups env HOME=/tmp isql-fb -q
echo 'lab = /srv/fbdata/data/alias.fdb' >> "/etc/firebird/$firebird/databases.conf"

echo virtual-guest > /etc/tuned/active_profile
echo auto > /etc/tuned/profile_mode
systemctl --quiet enable "postgresql@$postgresql-main.service" mysql.service "firebird$firebird.service" tuned.service
sync
