#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

#   /          ext4, by its label, with `discard`: all databases are stored there
#   /boot/efi  vfat < VIRT0001-1
#   The cluster `main`, MariaDB and Firebird, with a database by alias, as their packages make them. TuneD is installed and
#   inactive.
set -eu
efi=/dev/disk/by-id/virtio-VIRT0001

systemctl --quiet disable --now tuned.service
version=$(ls /usr/lib/postgresql)
pg_lsclusters --no-header | grep -q main || pg_createcluster "$version" main > /dev/null
printf 'shared_buffers = 16MB\nmax_connections = 20\n' > "/etc/postgresql/$version/main/conf.d/lab.conf"
printf '[mariadbd]\ninnodb_buffer_pool_size = 16M\n' > /etc/mysql/mariadb.conf.d/60-lab.cnf
data=/var/lib/firebird/3.0/data
echo "create database '$data/alias.fdb'; create table t (n integer); commit;" \
    | setpriv --reuid firebird --regid firebird --clear-groups env HOME=/tmp isql-fb -q
echo "lab = $data/alias.fdb" >> /etc/firebird/3.0/databases.conf
systemctl --quiet enable postgresql.service mariadb.service firebird3.0.service

e2label "$(findmnt -no SOURCE /)" cloudimg-rootfs
printf 'label: gpt\n,,U\n' | sfdisk --quiet --wipe always "$efi"
udevadm settle
mkfs.vfat -n UEFI "$efi-part1" > /dev/null
mkdir -p /boot/efi
cat > /etc/fstab <<END
LABEL=cloudimg-rootfs	/	 ext4	discard,errors=remount-ro	0 1
LABEL=UEFI	/boot/efi	vfat	umask=0077	0 1
END
systemctl daemon-reload
sync
