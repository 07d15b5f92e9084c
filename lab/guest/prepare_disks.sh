#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Partitions, formats and mounts disks. Each line of standard input is one disk:
#   serial  partition(yes|no)  fstype(-: none)  mount(-: none)  options
set -eu

by_serial() {
    udevadm settle
    for link in /dev/disk/by-id/ata-*_"$1" /dev/disk/by-id/scsi-*_"$1" \
        /dev/disk/by-id/nvme-*_"$1" /dev/disk/by-id/virtio-"$1"
    do
        [ -b "$link" ] && echo "$link" && return
    done
    echo "no disk with serial $1 in /dev/disk/by-id" >&2
    return 1
}

make_file_system() {
    case $1 in
        ext*) "mkfs.$1" -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$2" ;;
        *) "mkfs.$1" -q -f "$2" ;;
    esac
}

while read -r serial partition fstype mount options; do
    device=$(by_serial "$serial")
    if [ "$partition" = yes ]; then
        printf 'label: gpt\n,\n' | sfdisk --quiet --wipe always "$device"
        udevadm settle
        device=$device-part1
    fi
    [ "$fstype" = - ] && continue
    make_file_system "$fstype" "$device"
    [ "$mount" = - ] && continue
    mkdir -p "$mount"
    echo "UUID=$(blkid -p -s UUID -o value "$device") $mount $fstype $options 0 2" >> /etc/fstab
done

systemctl daemon-reload
mount -a
udevadm settle
sync
