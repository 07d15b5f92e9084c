#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Before the kernel is installed: what its initramfs is made from.
set -eu

# Few modules make a small initramfs, which an emulated processor soon has unpacked: those of the disk that the root is on.
mkdir -p /etc/initramfs-tools/conf.d /etc/initramfs-tools/hooks /etc/initramfs-tools/scripts/init-bottom \
    /usr/share/initramfs-tools/modules.d
printf 'MODULES=list\nCOMPRESS=gzip\nRESUME=none\n' > /etc/initramfs-tools/conf.d/lab
printf '%s\n' virtio_pci virtio_blk ext4 > /usr/share/initramfs-tools/modules.d/lab

# No udev in it: it waits for all devices, and does so again in the system. What its scripts do last, and the program
# that finds the root, are left to bring.
cat > /etc/initramfs-tools/scripts/init-bottom/dev <<'END'
#!/bin/sh
[ "$1" = prereqs ] && exit 0
mount -n -o move /dev "${rootmnt:?}/dev"
END
# A root may be moved to XFS: its driver is there, and loaded by who needs it.
cat > /etc/initramfs-tools/hooks/root <<'END'
#!/bin/sh
[ "$1" = prereqs ] && exit 0
. /usr/share/initramfs-tools/hook-functions
copy_exec /sbin/blkid
manual_add_modules xfs
END
chmod +x /etc/initramfs-tools/scripts/init-bottom/dev /etc/initramfs-tools/hooks/root
