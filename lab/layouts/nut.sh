#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# NUT with a UPS that dummy-ups makes up, as /run/lab/lab.dev says; `lab-ups STATUS SECONDS` writes that. At a boot the
# power is there, unless /etc/lab-ups has another status.
# `lab-notify` is what upsmon runs at each event.
set -eu

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
chmod 755 /usr/local/bin/lab-ups /usr/local/bin/lab-notify

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
