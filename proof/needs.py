# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tools the proof needs beyond the lab's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable

from lab import doctor
from proof.engine import Engine

PACKAGE_OF = {"nbdkit": "nbdkit", "e2fsck": "e2fsprogs", "debugfs": "e2fsprogs", "mkfs.xfs": "xfsprogs"}
PLUGIN = "nbdkit-plugin-python"


def missing(engines: Iterable[Engine] = ()) -> dict[str, str]:
    """Return the missing tools, each with the Debian package that holds it; `lab.doctor` installs them.

    `engines` are those whose own servers have to recover here.
    """
    path = f"{os.environ.get('PATH', os.defpath)}:{doctor.SBIN}"
    wanted = PACKAGE_OF | {tool: package for one in engines for tool, package in one.programs.items()}
    absent = {tool: package for tool, package in wanted.items() if not is_there(tool, path)}
    if "nbdkit" in absent or not _has_plugin():
        absent["python (a plugin of nbdkit)"] = PLUGIN
    return doctor.missing() | absent


def is_there(tool: str, path: str) -> bool:
    """Return whether a program is in one of the directories of `path`; or a file, such as a library, that is named in full."""
    return os.path.exists(tool) if tool.startswith("/") else bool(shutil.which(tool, path=path))


def _has_plugin() -> bool:
    asked = subprocess.run(["nbdkit", "--dump-plugin", "python"], capture_output=True, check=False)
    return asked.returncode == 0
