# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tools the proof needs beyond the lab's own."""

from __future__ import annotations

import os
import shutil
import subprocess

from lab import doctor

PACKAGE_OF = {"nbdkit": "nbdkit", "e2fsck": "e2fsprogs", "debugfs": "e2fsprogs", "mkfs.xfs": "xfsprogs"}
PLUGIN = "nbdkit-plugin-python"


def missing() -> dict[str, str]:
    """Return the missing tools, each with the Debian package that holds it; `lab.doctor` installs them."""
    path = f"{os.environ.get('PATH', os.defpath)}:{doctor.SBIN}"
    absent = {tool: package for tool, package in PACKAGE_OF.items() if not shutil.which(tool, path=path)}
    if "nbdkit" in absent or not _has_plugin():
        absent["python (a plugin of nbdkit)"] = PLUGIN
    return doctor.missing() | absent


def _has_plugin() -> bool:
    asked = subprocess.run(["nbdkit", "--dump-plugin", "python"], capture_output=True, check=False)
    return asked.returncode == 0
