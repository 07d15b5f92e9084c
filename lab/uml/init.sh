#!/bin/busybox sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# First program of a machine of User Mode Linux: loads the driver of the root disk, mounts the root, and hands over.
# The modules stay where the package has them, on the host: /lib/modules of the guest shows them, read-only.
set -eu
PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /modules /root
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t hostfs -o ro,/usr/lib/uml/modules none /modules

value() {
    sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

insmod "/modules/$(uname -r)/kernel/drivers/block/virtio_blk.ko"
if grep -qw lab_probe /proc/cmdline; then
    echo "lab: the probe has come this far"
    poweroff -f
fi
uuid=$(value "root=UUID")
device=
for try in $(seq 100); do
    device=$(findfs "UUID=$uuid" 2> /dev/null) && break
    sleep 0.1
done
[ -n "$device" ] || { echo "lab: no disk has the root file system $uuid"; poweroff -f; }
flags=$(value rootflags)
mount -o "ro${flags:+,$flags}" "$device" /root
mount --move /modules /root/lib/modules
mount --move /dev /root/dev
umount /sys
umount /proc
exec switch_root /root /sbin/init
