#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# On this cable the mains have failed when the wire RI of the second serial port rises, which QEMU's port without a line
# never does.
set -eu
cat > /etc/apcupsd/apcupsd.conf <<CONF
## apcupsd.conf v1.1 ##
UPSNAME lab
UPSCABLE 940-0095B
UPSTYPE dumb
DEVICE /dev/ttyS1
LOCKFILE /var/lock
ONBATTERYDELAY 6
BATTERYLEVEL -1
MINUTES -1
TIMEOUT 0
NETSERVER on
NISIP 127.0.0.1
NISPORT 3551
UPSCLASS standalone
UPSMODE disable
CONF
echo ISCONFIGURED=yes > /etc/default/apcupsd
# Its tests start it: no other is to wait for it at each boot.
systemctl --quiet disable --now apcupsd.service
