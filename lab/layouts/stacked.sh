#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Each disk has a large partition 1 and a small one 2, some have small ones 3 and 4:
#   /srv/pgdata   ext4 < LV linear < md raid1   < SCSI0003-1 SCSI0001-1
#   /srv/thin     ext4 < LV thin < the same md
#   /srv/looped   ext4 < loop device < a file on /srv/pgdata
#   /srv/mssql    xfs < LUKS < md raid1         < SCSI0004-1 VIRT0001-1
#   /srv/maria    xfs < LV raid1 (dm-raid)      < SCSI0002-1 SCSI0005-1
#   /srv/cached   ext4 < LV cached, writeback   < SCSI0005-1, the cache on SCSI0002-1
#   /srv/bcache   ext4 < bcache, writeback      < VIRT0001-3, the cache on SCSI0002-4
#   /srv/hole     ext4 < md raid5               < SCSI0003-2 SCSI0001-2 VIRT0001-2
#   /srv/ppl      ext4 < md raid5 with PPL      < SCSI0004-2 SCSI0002-2 SCSI0005-2
#   /srv/nohole   ext4 < md raid5 with journal  < SCSI0003-3 SCSI0001-3 SCSI0002-3, journal SCSI0005-3
#   nothing                                     < SCSI0004-3
#   /srv/unnamed  ext4                          < a whole virtio disk that tells no serial; a second one is spare
set -eu

scsi1=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0001
scsi2=/dev/disk/by-id/wwn-0x5000c50012f6e202
scsi3=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0003
scsi4=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0004
scsi5=/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0005
virt1=/dev/disk/by-id/virtio-VIRT0001

for disk in $virt1 $scsi1 $scsi2 $scsi3 $scsi4 $scsi5; do
    printf 'label: gpt\n,640M\n,48M\n,48M\n,48M\n' | sfdisk --quiet --wipe always "$disk"
done
udevadm settle

# Empty disks are in sync: there is nothing to wait for.
array() {
    name=$1
    shift
    mdadm --create "/dev/md/$name" --run --assume-clean --homehost=any --name="$name" "$@"
}
array pg --level=1 --raid-devices=2 --bitmap=internal "$scsi3-part1" "$scsi1-part1"
array mssql --level=1 --raid-devices=2 --bitmap=internal "$scsi4-part1" "$virt1-part1"
array hole --level=5 --raid-devices=3 --bitmap=none "$scsi3-part2" "$scsi1-part2" "$virt1-part2"
array ppl --level=5 --raid-devices=3 --consistency-policy=ppl "$scsi4-part2" "$scsi2-part2" "$scsi5-part2"
array nohole --level=5 --raid-devices=3 --write-journal="$scsi5-part3" \
    "$scsi3-part3" "$scsi1-part3" "$scsi2-part3"
{ echo HOMEHOST any; mdadm --detail --scan; } > /etc/mdadm/mdadm.conf

vgcreate -qq pg /dev/md/pg
lvcreate -qq --yes --size 256M --name data pg
lvcreate -qq --yes --size 128M --thinpool pool pg
lvcreate -qq --yes --virtualsize 128M --thinpool pg/pool --name thin
vgcreate -qq maria "$scsi2-part1" "$scsi5-part1"
lvcreate -qq --yes --type raid1 --mirrors 1 --nosync --size 512M --name data maria
lvcreate -qq --yes --size 64M --name cached maria "$scsi5-part1"
lvcreate -qq --yes --size 48M --name fast maria "$scsi2-part1"
lvconvert -qq --yes --type cache --cachevol fast --cachemode writeback maria/cached

# Its own udev rules start it, here and at each boot.
modprobe bcache
make-bcache --writeback --bucket 64k --bdev "$virt1-part3" --cache "$scsi2-part4" > /dev/null
until [ -b /dev/bcache0 ]; do udevadm settle; sleep 0.2; done

# TuneD is there for one test, which turns it on.
systemctl --quiet disable --now tuned.service

# It talks to dmeventd, which is not here: seconds of each boot, and on trixie it may fail.
systemctl --quiet mask lvm2-monitor.service

head -c 64 /dev/urandom > /root/mssql.key
chmod 600 /root/mssql.key
cryptsetup luksFormat --batch-mode --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 \
    /dev/md/mssql /root/mssql.key
cryptsetup open --key-file /root/mssql.key /dev/md/mssql mssql
echo "mssql UUID=$(cryptsetup luksUUID /dev/md/mssql) /root/mssql.key luks" >> /etc/crypttab

# trixie has systemd-cryptsetup in a package of its own
if [ ! -e /lib/systemd/systemd-cryptsetup ]; then
    cat > /etc/systemd/system/mssql-crypt.service <<END
[Unit]
DefaultDependencies=no
BindsTo=dev-md-mssql.device
After=dev-md-mssql.device
Before=local-fs.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=cryptsetup open --key-file /root/mssql.key /dev/md/mssql mssql
[Install]
RequiredBy=local-fs.target
END
    systemctl enable mssql-crypt.service
fi

# mount point, file system, device, and how fstab names it. On a busy host the 90 seconds that
# systemd waits for a device are too few; and there is nothing to check.
volume() {
    "mkfs.$2" -q "$3"
    mkdir "/srv/$1"
    name=$3
    if [ "$4" = uuid ]; then name=UUID=$(blkid -p -s UUID -o value "$3"); fi
    echo "$name /srv/$1 $2 defaults,x-systemd.device-timeout=300 0 0" >> /etc/fstab
}
mkdir -p /srv
volume pgdata ext4 /dev/mapper/pg-data path
volume thin ext4 /dev/mapper/pg-thin path
volume mssql xfs /dev/mapper/mssql uuid
volume maria xfs /dev/mapper/maria-data path
volume cached ext4 /dev/mapper/maria-cached path
volume bcache ext4 /dev/bcache0 uuid
volume hole ext4 /dev/md/hole uuid
volume ppl ext4 /dev/md/ppl uuid
volume nohole ext4 /dev/md/nohole uuid
for disk in /sys/block/vd*; do
    if [ -z "$(cat "$disk/serial")" ]; then unnamed=/dev/${disk##*/}; fi
done
volume unnamed ext4 "$unnamed" uuid

mount /srv/pgdata
truncate --size 32M /srv/pgdata/looped.img
mkfs.ext4 -q /srv/pgdata/looped.img
mkdir /srv/looped
echo "/srv/pgdata/looped.img /srv/looped ext4 loop,x-systemd.requires-mounts-for=/srv/pgdata 0 0" >> /etc/fstab

systemctl daemon-reload
mount -a
udevadm settle
sync
