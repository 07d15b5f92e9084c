#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PostgreSQL: cluster fua in /srv/fua opens its log for direct, synchronous writes; cluster flush in /srv/flush has the default,
# fdatasync. A test starts them.
set -eu

version=$(ls /usr/lib/postgresql)
pg_dropcluster --stop "$version" main
for name in fua flush; do
    install -d -o postgres -g postgres -m 700 "/srv/$name/pg"
    pg_createcluster --start-conf=manual --datadir="/srv/$name/pg" "$version" "$name" > /dev/null
    printf 'shared_buffers = 16MB\nmax_connections = 20\nmin_wal_size = 32MB\nmax_wal_size = 64MB\n' \
        > "/etc/postgresql/$version/$name/conf.d/lab.conf"
done
# Only a log that no process reads is written with O_DIRECT.
printf 'wal_sync_method = open_datasync\nwal_level = minimal\nmax_wal_senders = 0\n' \
    >> "/etc/postgresql/$version/fua/conf.d/lab.conf"
sync
