#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

#   /boot   ext4 < BOOT0001-1, with GRUB before the partition
# Debian's own grub.cfg has no entries of the specification: this one takes them as those of Fedora and Red Hat do, from
# files that kernel-install writes, with the command line in `kernelopts` of grubenv. dracut makes the initramfs.
set -eu
disk=$(readlink -f /dev/disk/by-id/virtio-BOOT0001)
version=$(ls /lib/modules)

cp "/boot/vmlinuz-$version" /root/vmlinuz
printf 'label: dos\nstart=2048\n' | sfdisk --quiet --wipe always "$disk"
udevadm settle
mkfs.ext4 -q "${disk}1"
echo "UUID=$(blkid -p -s UUID -o value "${disk}1") /boot ext4 defaults 0 2" >> /etc/fstab
systemctl daemon-reload
mount /boot
grub-install --target=i386-pc "$disk" 2> /dev/null

chmod -x /etc/grub.d/*
chmod +x /etc/grub.d/00_header
cat > /etc/grub.d/10_bls <<'END'
#!/bin/sh
cat <<'CFG'
insmod ext2
search --no-floppy --fs-uuid --set=root BOOT
if [ -z "${kernelopts}" ]; then
  set kernelopts="FALLBACK lab.from=cfg"
fi
insmod blsuki
blscfg
CFG
END
chmod +x /etc/grub.d/10_bls
# A busy host emulates slowly: devices take minutes to appear.
line="root=UUID=$(findmnt -no UUID /) ro console=ttyS0 quiet net.ifnames=0 mitigations=off"
line="$line systemd.default_device_timeout_sec=600"
sed -i "s/ BOOT$/ $(findmnt -no UUID /boot)/; s|FALLBACK|$line|" /etc/grub.d/10_bls
printf '%s\n' GRUB_DEFAULT=saved GRUB_TIMEOUT=0 'GRUB_TERMINAL=serial' > /etc/default/grub
grub-mkconfig -o /boot/grub/grub.cfg 2> /dev/null
grub-editenv /boot/grub/grubenv create
grub-editenv /boot/grub/grubenv set "kernelopts=$line lab.from=env"

mkdir -p /etc/kernel/install.d /etc/dracut.conf.d /boot/loader/entries
# Emulated, that takes a minute.
ln -s /dev/null /etc/kernel/install.d/50-depmod.install
echo '$kernelopts' > /etc/kernel/cmdline
printf '%s\n' layout=bls initrd_generator=dracut > /etc/kernel/install.conf
printf '%s\n' 'hostonly=yes' 'compress=cat' 'dracutmodules+=" base kernel-modules rootfs-block fs-lib udev-rules "' \
    > /etc/dracut.conf.d/lab.conf
kernel-install add "$version" /root/vmlinuz
sync
