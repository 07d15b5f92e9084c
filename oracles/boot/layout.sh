#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PostgreSQL: cluster main on ext4 (/srv/pgdata), its log on XFS (/srv/pgwal). MariaDB: data on XFS (/srv/maria), binary log
# on ext4 (/srv/binlog). TuneD and sysfsutils are installed and set nothing. /etc/rc.local takes effect, unlike in other layouts.
set -eu

version=$(ls /usr/lib/postgresql)
pg_dropcluster --stop "$version" main 2>/dev/null || true
install -d -o postgres -g postgres -m 700 /srv/pgdata/main /srv/pgwal/main
pg_createcluster --datadir=/srv/pgdata/main "$version" main -- --waldir=/srv/pgwal/main/wal > /dev/null
printf 'shared_buffers = 16MB\nmax_connections = 20\nmin_wal_size = 32MB\nmax_wal_size = 64MB\n' \
    > "/etc/postgresql/$version/main/conf.d/lab.conf"
systemctl --quiet enable --now "postgresql@$version-main.service"

systemctl --quiet stop mariadb.service
install -d -o mysql -g mysql -m 755 /srv/maria/data /srv/binlog/binlog
printf '[mariadbd]\ndatadir = /srv/maria/data\ninnodb_buffer_pool_size = 16M\nlog_bin = /srv/binlog/binlog/binlog\n' \
    > /etc/mysql/mariadb.conf.d/60-lab.cnf
mariadb-install-db --user=mysql --datadir=/srv/maria/data --skip-test-db > /dev/null
systemctl --quiet enable --now mariadb.service

systemctl --quiet disable --now tuned.service
rm -f /etc/systemd/system-generators/systemd-rc-local-generator

# Nobody sits at the console. A boot that stops prints one line there, and ends nothing.
mkdir -p /etc/systemd/system.conf.d
for mode in emergency rescue; do
    mkdir "/etc/systemd/system/$mode.service.d"
    cat > "/etc/systemd/system/$mode.service.d/lab.conf" <<UNIT
[Service]
Type=idle
StandardInput=null
ExecStartPre=
ExecStart=
ExecStart=/bin/sh -c 'echo "lab: $mode mode" > /dev/console; exec sleep inf'
UNIT
done
printf '[Manager]\nDefaultDeviceTimeoutSec=60s\n' > /etc/systemd/system.conf.d/lab.conf
sync
