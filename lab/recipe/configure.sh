#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Inside the new root, after all packages: make it a quiet, reachable machine. $1: UUID of the root file system.
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

# Without a kernel nothing else makes it; a machine that brings its own has its modules there.
mkdir -p /lib/modules

echo dbhost > /etc/hostname
echo LANG=C.UTF-8 > /etc/default/locale
printf '127.0.0.1 localhost\n127.0.1.1 dbhost\n::1 localhost\n' > /etc/hosts

# Network: the addresses of QEMU's user network are fixed, and User Mode Linux's (vec0) are the same.
# (systemd-networkd needs 15 s on an emulated CPU.)
cat > /etc/udev/rules.d/80-lab-network.rules <<'END'
ACTION=="add", SUBSYSTEM=="net", KERNEL=="e*|vec0", RUN+="/bin/sh -c 'ip link set $name up; \
ip addr replace 10.0.2.15/24 dev $name; ip route replace default via 10.0.2.2'"
END
rm -f /etc/resolv.conf
echo 'nameserver 10.0.2.3' > /etc/resolv.conf
systemctl enable ssh.service
systemctl set-default multi-user.target

# Root by key only.
chmod 700 /root/.ssh
chmod 600 /root/.ssh/authorized_keys
chown -R root:root /root/.ssh
mkdir -p /etc/ssh/sshd_config.d
printf 'UseDNS no\nGSSAPIAuthentication no\nMaxSessions 100\n' > /etc/ssh/sshd_config.d/lab.conf

# The journal must survive reboots: tests read it.
mkdir -p /var/log/journal

# Nothing may wake up in the middle of a measurement, wait for hardware that is not there, or leave
# the machine "degraded".
for unit in \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer man-db.timer logrotate.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer \
    mdmonitor.service mdmonitor-oneshot.timer mdcheck_start.timer mdcheck_continue.timer \
    nvmf-autoconnect.service nvmefc-boot-connections.service \
    smartd.service smartmontools.service \
    systemd-pstore.service
do
    ln -sf /dev/null "/etc/systemd/system/$unit"
done

# Nor what no test needs, for it costs seconds on an emulated CPU.
for unit in \
    getty@tty1.service serial-getty@ttyS0.service \
    dev-hugepages.mount dev-mqueue.mount sys-fs-fuse-connections.mount \
    proc-sys-fs-binfmt_misc.automount systemd-binfmt.service \
    modprobe@drm.service modprobe@fuse.service uuidd.socket lvm2-monitor.service
do
    ln -sf /dev/null "/etc/systemd/system/$unit"
done
# Each boot and each daemon-reload starts all generators: these have nothing to make here. (ssh: trixie's; there is no vsock.)
mkdir -p /etc/systemd/system-generators
for generator in debug gpt-auto hibernate-resume integritysetup rc-local run ssh system-update veritysetup
do
    ln -s /dev/null "/etc/systemd/system-generators/systemd-$generator-generator"
done
# A busy computer can need more than the 90 seconds that systemd waits for a device. (bullseye's systemd ignores the key.)
mkdir -p /etc/systemd/system.conf.d
printf '[Manager]\nDefaultDeviceTimeoutSec=300\n' > /etc/systemd/system.conf.d/lab.conf
# Of 600 devices and modules that udev is told of at a boot, two thirds are of kinds that no test looks at.
mkdir -p /etc/systemd/system/systemd-udev-trigger.service.d
cat > /etc/systemd/system/systemd-udev-trigger.service.d/lab.conf <<'END'
[Service]
ExecStart=
ExecStart=udevadm trigger --type=devices --action=add --subsystem-nomatch=acpi --subsystem-nomatch=tty \
    --subsystem-nomatch=vc --subsystem-nomatch=wakeup
END
printf 'blacklist %s\n' \
    aesni_intel ghash_clmulni_intel sha512_ssse3 sha256_ssse3 sha1_ssse3 crct10dif_pclmul \
    crc32_pclmul polyval_clmulni psmouse pcspkr i2c_i801 lpc_ich iTCO_wdt evdev button joydev \
    qemu_fw_cfg > /etc/modprobe.d/lab.conf

# The build host's proxies and certificates are not the guest's.
rm -f /etc/apt/apt.conf.d/99mmdebstrap
