#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Both ends of each line are this machine:
#   /srv/lun      ext4 < dm-multipath < two iSCSI sessions < the kernel's target < SCSI0001
#   /srv/nfs      nfs4 < this machine's server, which exports /srv/exported on VIRT0001
#   /srv/drbd     ext4 < DRBD 8.4, protocol C, SCSI0002 < its peer, another resource, on SCSI0003
# The target and DRBD's resources are kernel objects that no boot keeps: two services make them.
set -eu

cat > /usr/local/sbin/lab-array <<'END'
#!/bin/sh
# An array: one LUN, and two portals.
set -eu
target=iqn.2026-01.org.example:array
modprobe -a target_core_iblock iscsi_target_mod
cd /sys/kernel/config/target
mkdir -p core/iblock_0/lun
echo "udev_path=$(readlink -f /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0001)" > core/iblock_0/lun/control
echo 1 > core/iblock_0/lun/enable
echo array0001 > core/iblock_0/lun/wwn/vpd_unit_serial
group=iscsi/$target/tpgt_1
mkdir -p $group/lun/lun_0 $group/np/127.0.0.1:3260 $group/np/127.0.0.2:3260
ln -s /sys/kernel/config/target/core/iblock_0/lun $group/lun/lun_0/lun
echo 0 > $group/attrib/authentication
echo 1 > $group/attrib/generate_node_acls
echo 0 > $group/attrib/demo_mode_write_protect
echo 1 > $group/enable
END

cat > /usr/local/sbin/lab-replicas <<'END'
#!/bin/sh
# Two resources that are each other's peer: r0 is this node's, r1 stands for the other node.
set -eu
# Its helper, drbdadm, fails for r1, which stands in no configuration.
modprobe drbd
echo /bin/true > /sys/module/drbd/parameters/usermode_helper
here=7789 there=7790
for number in 0 1; do
    disk=$(readlink -f "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI000$((number + 2))")
    # After a power cut: what was being written is written out, and copied anew.
    drbdmeta $number v08 "$disk" internal apply-al
    drbdsetup new-resource r$number
    drbdsetup new-minor r$number $number 0
    drbdsetup attach $number "$disk" "$disk" internal --c-plan-ahead=0 --resync-rate=100M
    drbdsetup connect r$number ipv4:127.0.0.1:$here ipv4:127.0.0.1:$there
    swap=$here here=$there there=$swap
done
drbdsetup wait-connect 0 --wfc-timeout=60 > /dev/null 2>&1
# Of a new pair nothing is to be copied.
if drbdsetup status r0 | grep -q ' disk:Inconsistent'; then drbdsetup new-current-uuid 0 --clear-bitmap; fi
drbdsetup primary 0
drbdsetup wait-sync 0 > /dev/null 2>&1
END
chmod 755 /usr/local/sbin/lab-*

service() {
    cat > "/etc/systemd/system/$1.service" <<END
[Unit]
DefaultDependencies=no
After=systemd-udev-settle.service local-fs.target network.target
Wants=systemd-udev-settle.service
Before=$2
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/$1
[Install]
RequiredBy=$2
END
    systemctl --quiet enable "$1.service"
}
service lab-array open-iscsi.service
service lab-replicas remote-fs-pre.target

# A machine that answers is one that is up.
mkdir -p /etc/systemd/system/ssh.service.d
printf '[Unit]\nAfter=remote-fs.target\n' > /etc/systemd/system/ssh.service.d/last.conf

# r0 stands in a configuration too, as on any node.
echo 'global { usage-count no; }
common { disk { c-plan-ahead 0; resync-rate 100M; } net { protocol C; } }' > /etc/drbd.d/global_common.conf
cat > /etc/drbd.d/r0.res <<END
resource r0 {
    volume 0 {
        device minor 0;
        disk /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0002;
        meta-disk internal;
    }
    on $(uname -n) { address 127.0.0.1:7789; }
    on peer { address 127.0.0.1:7790; }
}
END

# The built-in table of arrays says 12 checks for this target, and goes before `defaults`.
cat > /etc/multipath.conf <<END
defaults {
    find_multipaths yes
}
overrides {
    no_path_retry queue
}
END
systemctl restart multipathd

/usr/local/sbin/lab-array
iscsiadm --mode discovery --type sendtargets --portal 127.0.0.1 > /dev/null
iscsiadm --mode node --op update --name node.startup --value automatic
iscsiadm --mode node --login > /dev/null
for disk in /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0002 /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0003; do
    drbdmeta --force 0 v08 "$disk" internal create-md > /dev/null
done
/usr/local/sbin/lab-replicas

# Until both paths are there.
for _ in $(seq 60); do
    if [ "$(multipathd show paths raw format %m | grep -vc orphan)" = 2 ]; then break; fi
    sleep 0.5
done
lun=/dev/mapper/$(multipathd show maps raw format %n)
mkfs.ext4 -q "$lun"
mkfs.ext4 -q /dev/drbd0
echo '/srv/exported 127.0.0.1(rw,sync,no_subtree_check,no_root_squash)' > /etc/exports
systemctl restart nfs-server
mkdir -p /srv/lun /srv/nfs /srv/drbd
cat >> /etc/fstab <<END
$lun /srv/lun ext4 _netdev 0 0
/dev/drbd0 /srv/drbd ext4 _netdev 0 0
127.0.0.1:/srv/exported /srv/nfs nfs4 hard,x-systemd.requires=nfs-server.service 0 0
END
systemctl daemon-reload
mount -a
sync
