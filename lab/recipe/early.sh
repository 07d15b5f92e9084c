#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Before the kernel is installed: what its initramfs is made from.
set -eu

# Few modules make a small initramfs, and emulated CPUs unpack slowly.
mkdir -p /etc/initramfs-tools/conf.d /usr/share/initramfs-tools/modules.d
printf 'MODULES=list\nCOMPRESS=gzip\nRESUME=none\n' > /etc/initramfs-tools/conf.d/lab
printf '%s\n' virtio_pci virtio_blk virtio_scsi ahci sd_mod ext4 \
    > /usr/share/initramfs-tools/modules.d/lab
