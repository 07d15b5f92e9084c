#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# PostgreSQL 15/main and all of Firebird on /srv/db, each with a table `said`.
# NUT with a UPS that dummy-ups makes up, as /run/lab/lab.dev says; `lab-ups STATUS SECONDS` writes that. At a boot the
# power is there, unless /etc/lab-ups has another status.
# `lab-notify` is what upsmon runs at each event.
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
cat > /usr/local/bin/lab-ups <<'SCRIPT'
#!/bin/sh
# The status comes last: as it is read, the driver looks whether the runtime is a low battery's.
# By a rename, or the driver may read half of it.
set -eu
mkdir -p /run/lab
printf 'ups.mfr: lab\nbattery.charge: 100\nbattery.runtime: %s\nups.status: %s\n' "$2" "$1" > /run/lab/new
chmod 644 /run/lab/new
mv /run/lab/new /run/lab/lab.dev
SCRIPT
cat > /etc/systemd/system/lab-ups.service <<'UNIT'
[Unit]
Before=nut-driver@lab.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=sh -c 'lab-ups "$(cat /etc/lab-ups 2> /dev/null || echo OL)" 3600'
[Install]
WantedBy=multi-user.target nut-driver@lab.service
UNIT
cat > /usr/local/bin/lab-notify <<'SCRIPT'
#!/bin/sh
logger --tag lab-notify "$NOTIFYTYPE: $1"
SCRIPT
chmod 755 /usr/local/bin/lab-mark /usr/local/bin/lab-ups /usr/local/bin/lab-notify

configure() {
    cat > "/etc/nut/$1"
    chown root:nut "/etc/nut/$1"
    chmod 640 "/etc/nut/$1"
}
systemctl daemon-reload
systemctl --quiet enable --now lab-ups.service
echo 'MODE=standalone' | configure nut.conf
configure ups.conf <<CONF
[lab]
    driver = dummy-ups
    port = /run/lab/lab.dev
    desc = "a UPS that is made up"
    pollinterval = 1
    ignorelb
    override.battery.runtime.low = 600
CONF
echo 'LISTEN 127.0.0.1 3493' | configure upsd.conf
configure upsd.users <<CONF
[upsmon]
    password = lab
    upsmon primary
CONF
configure upsmon.conf <<CONF
# The lab's. A comment, to be found again.
MONITOR lab@localhost 1 upsmon lab primary
MINSUPPLIES 1
SHUTDOWNCMD "/sbin/shutdown -h +0"
NOTIFYCMD /usr/local/bin/lab-notify
POWERDOWNFLAG /etc/killpower
NOTIFYFLAG ONBATT SYSLOG

POLLFREQ 1
POLLFREQALERT 1
HOSTSYNC 15
DEADTIME 15
FINALDELAY 2
CONF

systemctl --quiet reset-failed
systemctl stop nut-monitor.service nut-server.service
systemctl --quiet enable nut.target nut-driver.target nut-driver-enumerator.service nut-driver-enumerator.path \
    nut-server.service nut-monitor.service
# Makes nut-driver@lab.service of ups.conf, and enables it.
systemctl restart nut-driver-enumerator.service
systemctl --quiet enable nut-driver@lab.service
systemctl restart nut-driver@lab.service
systemctl start nut-server.service
systemctl start nut-monitor.service
for second in $(seq 60); do
    said=$(upsc lab@localhost ups.status 2> /dev/null) || true  # it speaks of SSL there
    [ "$said" = OL ] && break
    sleep 1
done
[ "$said" = OL ] || { echo "the UPS says: $said"; systemctl status --no-pager 'nut-*'; exit 1; }
systemctl --quiet is-active nut-monitor.service postgresql@15-main.service firebird3.0.service
sync
