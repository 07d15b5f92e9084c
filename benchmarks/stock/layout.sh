#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PostgreSQL 15/main on ext4 (/srv/pgdata), 15/second on XFS (/srv/pgxfs) with its log on the first volume;
# MariaDB on XFS (/srv/maria) with its binary log on ext4 (/srv/pgdata).
set -eu

pg_dropcluster --stop 15 main 2>/dev/null || true
install -d -o postgres -g postgres -m 700 /srv/pgdata/main /srv/pgdata/wal /srv/pgxfs/second
pg_createcluster --datadir=/srv/pgdata/main 15 main > /dev/null
pg_createcluster --datadir=/srv/pgxfs/second 15 second -- --waldir=/srv/pgdata/wal/second > /dev/null
for cluster in main second; do
    printf 'shared_buffers = 16MB\nmax_connections = 20\n' > "/etc/postgresql/15/$cluster/conf.d/lab.conf"
    systemctl --quiet enable --now "postgresql@15-$cluster.service"
done

systemctl --quiet stop mariadb.service
install -d -o mysql -g mysql -m 755 /srv/maria/data /srv/pgdata/binlog
printf '[mariadbd]\ndatadir = /srv/maria/data\ninnodb_buffer_pool_size = 16M\nlog_bin = /srv/pgdata/binlog/binlog\n' \
    > /etc/mysql/mariadb.conf.d/60-lab.cnf
mariadb-install-db --user=mysql --datadir=/srv/maria/data --skip-test-db > /dev/null
systemctl --quiet enable --now mariadb.service
sync
