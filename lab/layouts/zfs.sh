#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

#   tank   mirror of SCSI0001 and SCSI0002; PostgreSQL's cluster main is on tank/pgdata (/srv/pgdata)
set -eu
by_id=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI
modprobe zfs
for disk in "${by_id}0001" "${by_id}0002"; do printf 'label: gpt\n,\n' | sfdisk --quiet --wipe always "$disk"; done
udevadm settle --timeout=300
zpool create -f -m none tank mirror "${by_id}0001-part1" "${by_id}0002-part1"
zfs create -o mountpoint=/srv/pgdata tank/pgdata
version=$(ls /usr/lib/postgresql)
pg_dropcluster --stop "$version" main 2>/dev/null || true
install -d -o postgres -g postgres -m 700 /srv/pgdata/main
pg_createcluster --datadir=/srv/pgdata/main "$version" main > /dev/null
printf 'shared_buffers = 16MB\nmax_connections = 20\n' > "/etc/postgresql/$version/main/conf.d/lab.conf"
systemctl --quiet enable --now "postgresql@$version-main.service"
sync
