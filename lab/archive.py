# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packing the collection's own code for a machine that has no Ansible."""

from __future__ import annotations

import tarfile
from pathlib import Path

MODULE_UTILS = Path(__file__).resolve().parent.parent / "plugins/module_utils"


def add_module_utils(tar: tarfile.TarFile, name: str) -> None:
    """Add plugins/module_utils to an archive as the package `name`, without compiled files."""
    tar.add(MODULE_UTILS, name, filter=_source)


def _source(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in member.name else member
