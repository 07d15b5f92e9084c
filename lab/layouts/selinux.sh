#!/bin/sh
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# The image was made by a program that knows no labels, and booted without a policy so far.
set -eu
# The quick kind of machine has its modules on a file system of the host, which the policy does not know.
echo '(genfscon hostfs "/" (system_u object_r modules_object_t ((s0) (s0))))' > /root/modules.cil
semodule --noreload --install /root/modules.cil
setfiles -q /etc/selinux/default/contexts/files/file_contexts / /srv/pgdata /srv/xfs
sed -i 's/^SELINUX=.*/SELINUX=enforcing/' /etc/selinux/config
sync
