#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Before the kernel is installed: what its initramfs is made from. $1: UUID of the root file system.
set -eu

cat > /etc/fstab <<END
# /etc/fstab: static file system information.
#
# Use 'blkid' to print the universally unique identifier for a
# device; this may be used with UUID= as a more robust way to name devices
# that works even if disks are added and removed. See fstab(5).
#
# <file system> <mount point>   <type>  <options>       <dump>  <pass>
UUID=$1 / ext4 errors=remount-ro 0 1
END

# Few modules make a small initramfs, and emulated CPUs unpack slowly.
mkdir -p /etc/initramfs-tools/conf.d /usr/share/initramfs-tools/modules.d
printf 'MODULES=list\nCOMPRESS=gzip\nRESUME=none\n' > /etc/initramfs-tools/conf.d/lab
printf '%s\n' virtio_pci virtio_blk virtio_scsi ahci sd_mod ext4 \
    > /usr/share/initramfs-tools/modules.d/lab
