# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tools the lab needs, and how to get those that are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGE_OF = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    # with community.general
    "ansible-playbook": "ansible",
    "mkfs.ext4": "e2fsprogs",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "tar": "tar",
    "ip": "iproute2",
    "unshare": "util-linux",
    "cpio": "cpio",
    # kernels are packed with them
    "xz": "xz-utils",
    "zstd": "zstd",
    # a page prints it
    "jq": "jq",
}
# mmdebstrap and mkfs need these to stand in for root
PACKAGE_OF_USER = {"newuidmap": "uidmap", "fakeroot": "fakeroot"}
SBIN = "/usr/sbin:/sbin"


def missing() -> dict[str, str]:
    """Return the missing tools, each with the Debian package that holds it."""
    wanted = PACKAGE_OF | ({} if os.geteuid() == 0 else PACKAGE_OF_USER)
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}:{SBIN}"
    absent = {tool: package for tool, package in wanted.items() if not shutil.which(tool, path=path)}
    if not find_spec("yaml"):
        absent["yaml (Python)"] = "python3-yaml"
    return absent


def advice(absent: dict[str, str]) -> str:
    """Return what is missing and the command that installs it."""
    packages = " ".join(sorted(set(absent.values())))
    return f"missing: {', '.join(absent)}\napt-get install --no-install-recommends {packages}"


def install(absent: dict[str, str]) -> bool:
    """Install the missing tools with apt-get, where this user may; tell whether it worked."""
    packages = sorted(set(absent.values()))
    become = [] if os.geteuid() == 0 else ["sudo", "-n"]
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy"]
    for words in (["update"], ["install", "--no-install-recommends", *packages]):
        if subprocess.run([*become, *quiet, *words], check=False).returncode != 0:
            return False
    return True
