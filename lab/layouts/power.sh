#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PostgreSQL 15/main and all of Firebird on /srv/db, each with a table `said`.
# nut.sh comes before it.
# `lab-mark WORD` writes a mark to the disk of acknowledgements, which only the scenario gives.
set -eu

# Both stop within the battery's time: else a package's own timeouts count, an hour for PostgreSQL.
for unit in postgresql@ firebird3.0; do
    mkdir -p "/etc/systemd/system/$unit.service.d"
    printf '[Service]\nTimeoutStopSec=60\n' > "/etc/systemd/system/$unit.service.d/lab.conf"
done
systemctl daemon-reload

pg_dropcluster --stop 15 main 2> /dev/null || true
install -d -o postgres -g postgres -m 700 /srv/db/postgresql
pg_createcluster --datadir=/srv/db/postgresql 15 main > /dev/null
cat > /etc/postgresql/15/main/conf.d/lab.conf <<CONF
shared_buffers = 16MB
max_connections = 20
min_wal_size = 32MB
max_wal_size = 64MB
autovacuum = off
CONF
hba=/etc/postgresql/15/main/pg_hba.conf
{ echo 'local all all trust'; cat "$hba"; } > "$hba.new"
chown postgres:postgres "$hba.new"
mv "$hba.new" "$hba"
systemctl --quiet enable --now postgresql@15-main.service
psql -qX -h /run/postgresql -U postgres -c 'create table said (words text)' \
    -c 'create table commits (seed integer, client integer, number integer)' -c checkpoint

systemctl --quiet stop firebird3.0.service
mv /var/lib/firebird /srv/db/firebird
ln -s /srv/db/firebird /var/lib/firebird
chown -R firebird:firebird /srv/db/firebird
as_firebird() {
    setpriv --reuid firebird --regid firebird --clear-groups env HOME=/tmp "$@"
}
echo "create or alter user SYSDBA password 'masterkey';" \
    | as_firebird isql-fb -q -bail -user SYSDBA /var/lib/firebird/3.0/system/security3.fdb
printf "create database '/srv/db/firebird/lab.fdb' page_size 4096;\ncreate table said (words varchar(60));\ncommit;\n" \
    | as_firebird isql-fb -q -bail -user SYSDBA
echo 'lab = /srv/db/firebird/lab.fdb' >> /etc/firebird/3.0/databases.conf
systemctl --quiet enable --now firebird3.0.service

cat > /usr/local/bin/lab-mark <<'SCRIPT'
#!/bin/sh
# Into the last sector, where no client acknowledges.
printf '%-512s' "mark $1" | dd of=/dev/disk/by-id/virtio-POWERACK bs=512 seek=2047 iflag=fullblock oflag=direct \
    conv=notrunc status=none
SCRIPT
chmod 755 /usr/local/bin/lab-mark
systemctl --quiet is-active nut-monitor.service postgresql@15-main.service firebird3.0.service
sync
