#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

#   /srv/extjournal  ext4, its journal on another disk
#   /srv/xfslog      xfs, its log on another disk
#   /srv/btrfs       btrfs raid1 over two disks
#   /srv/ext3, /srv/ext2
#   /srv/nojournal   ext4 without a journal
#   /srv/journaled   ext4, data=journal by the superblock's default
#   /srv/bound       ext4, seen read-only at /srv/bound-ro
#   /srv/unit        ext4, mounted by a unit, not by fstab
#   /srv/hidden      ext4, mounted in the name space of lab-hidden.service only
#   /srv/tmpfs, /srv/overlay
#   lab-private.service has a name space of its own, in which /srv/ext3 alone can be written
set -eu

id=/dev/disk/by-id
extjournal=$id/scsi-0QEMU_QEMU_HARDDISK_SCSI0005
journal=$id/scsi-0QEMU_QEMU_HARDDISK_SCSI0001
xfslog=$id/virtio-VIRT0001
log=$id/scsi-0QEMU_QEMU_HARDDISK_SCSI0006
btrfs1=$id/scsi-0QEMU_QEMU_HARDDISK_SCSI0002
btrfs2=$id/virtio-VIRT0002
nojournal=$id/scsi-0QEMU_QEMU_HARDDISK_SCSI0003
journaled=$id/virtio-VIRT0004
unit=$id/virtio-VIRT0005
hidden=$id/scsi-0QEMU_QEMU_HARDDISK_SCSI0008

mke2fs -q -F -b 4096 -O journal_dev "$journal"
mkfs.ext4 -q -F -b 4096 -J device="$journal" "$extjournal"
mkfs.xfs -q -f -l logdev="$log" "$xfslog"
mkfs.btrfs -q -f -d raid1 -m raid1 "$btrfs1" "$btrfs2"
mkfs.ext4 -q -F -O ^has_journal "$nojournal"
mkfs.ext4 -q -F "$journaled"
tune2fs -o journal_data "$journaled"
mkfs.ext4 -q -F "$unit"
mkfs.ext4 -q -F "$hidden"
# Once more for all: udev may have looked at a disk before its file system was whole, and what it
# does not know systemd unmounts.
udevadm trigger --action=change --subsystem-match=block
udevadm settle

uuid() {
    blkid -p -s UUID -o value "$1"
}
cd /srv
mkdir extjournal xfslog btrfs nojournal journaled bound-ro unit hidden tmpfs overlay lower
mkdir -p /var/lib/overlay/upper /var/lib/overlay/work
cat >> /etc/fstab <<END
UUID=$(uuid "$extjournal") /srv/extjournal ext4 journal_path=$journal,x-systemd.requires=$journal 0 2
UUID=$(uuid "$xfslog") /srv/xfslog xfs logdev=$log,x-systemd.requires=$log 0 2
UUID=$(uuid "$btrfs1") /srv/btrfs btrfs defaults,x-systemd.requires=$btrfs2 0 0
UUID=$(uuid "$nojournal") /srv/nojournal ext4 defaults 0 2
UUID=$(uuid "$journaled") /srv/journaled ext4 defaults 0 2
/srv/bound /srv/bound-ro none bind,ro 0 0
tmpfs /srv/tmpfs tmpfs size=16M 0 0
overlay /srv/overlay overlay lowerdir=/srv/lower,upperdir=/var/lib/overlay/upper,workdir=/var/lib/overlay/work 0 0
END

cd /etc/systemd/system
cat > srv-unit.mount <<END
[Mount]
What=/dev/disk/by-uuid/$(uuid "$unit")
Where=/srv/unit
Type=ext4
Options=noatime
[Install]
WantedBy=local-fs.target
END
cat > lab-private.service <<END
[Unit]
RequiresMountsFor=/srv/ext3 /srv/journaled /srv/unit
[Service]
ExecStart=sleep infinity
PrivateMounts=yes
ProtectSystem=strict
ReadWritePaths=/srv/ext3
[Install]
WantedBy=multi-user.target
END
cat > lab-hidden.service <<END
[Unit]
BindsTo=dev-disk-by\x2duuid-$(uuid "$hidden" | sed 's/-/\\x2d/g').device
After=dev-disk-by\x2duuid-$(uuid "$hidden" | sed 's/-/\\x2d/g').device
[Service]
ExecStart=sh -c 'mount UUID=$(uuid "$hidden") /srv/hidden && exec sleep infinity'
PrivateMounts=yes
[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
mount -a
systemctl --quiet enable --now srv-unit.mount lab-private.service lab-hidden.service
udevadm settle
for target in extjournal xfslog btrfs ext3 ext2 nojournal journaled bound bound-ro unit tmpfs overlay; do
    mountpoint --quiet "/srv/$target"
done
sync
