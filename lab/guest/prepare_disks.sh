#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Partitions, formats and mounts disks. Each line of standard input is one disk:
#   serial  partition(yes|no)  fstype(-: none)  mount(-: none)  options
set -eu

# The machine is gone when somebody reads of the failure.
told() {
    code=$?
    [ $code -eq 0 ] || { lsblk --output +FSTYPE,UUID,SERIAL; cat /etc/fstab; dmesg | tail -n 20; } >&2
    exit $code
}
trap told EXIT

# The links in /dev/disk/by-id do not hold the serial of a SCSI disk that has a WWN.
by_serial() {
    udevadm settle
    device=$(lsblk --nodeps --noheadings --paths --raw --output SERIAL,NAME | sed -n "s/^$1 //p")
    if [ ! -b "$device" ]; then
        echo "no disk with serial $1" >&2
        return 1
    fi
    echo "$device"
}

first_partition() {
    printf 'label: gpt\n,\n' | sfdisk --quiet --wipe always "$1"
    udevadm settle
    lsblk --noheadings --paths --raw --output NAME "$1" | sed -n 2p
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
        device=$(first_partition "$device")
    fi
    [ "$fstype" = - ] && continue
    make_file_system "$fstype" "$device" < /dev/null
    [ "$mount" = - ] && continue
    mkdir -p "$mount"
    uuid=$(blkid -p -s UUID -o value "$device")
    echo "UUID=$uuid $mount $fstype $options 0 2" >> /etc/fstab
done

systemctl daemon-reload
# Without udev's link, mount asks each device of /proc/partitions.
udevadm settle
mount -a
udevadm settle
sync
