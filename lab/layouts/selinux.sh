#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# nut.sh comes before it.
# The image was made by a program that knows no labels, and booted without a policy so far.
set -eu
# The quick kind of machine has its modules on a file system of the host, which the policy does not know.
echo '(genfscon hostfs "/" (system_u object_r modules_object_t ((s0) (s0))))' > /root/modules.cil
# What Debian 12's policy misses for its own NUT to start: upsd is a script there, and upsmon wants random numbers. And the
# file of the made-up UPS.
cat > /root/lab-nut.cil <<'CIL'
(allow nut_upsd_t bin_t (dir (search)))
(allow nut_upsd_t bin_t (lnk_file (read)))
(allow nut_upsd_t bin_t (file (getattr open read map execute execute_no_trans)))
(allow nut_upsd_t shell_exec_t (file (getattr open read map execute)))
(allow nut_upsmon_t urandom_device_t (chr_file (getattr open read)))
(allow nut_upsdrvctl_t initrc_runtime_t (dir (search)))
(allow nut_upsdrvctl_t initrc_runtime_t (file (getattr open read)))
CIL
semodule --noreload --install /root/modules.cil --install /root/lab-nut.cil
setfiles -q /etc/selinux/default/contexts/files/file_contexts / /srv/pgdata /srv/xfs
sed -i 's/^SELINUX=.*/SELINUX=enforcing/' /etc/selinux/config
sync
