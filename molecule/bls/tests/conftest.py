# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine that boots by its own GRUB."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "molecule")]

from lab import archive  # noqa: E402
from lab.layout import load  # noqa: E402
from lab.machine import Machine  # noqa: E402

PACKAGE = "ansible_collections/durable/dbhost/plugins/module_utils"


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The machine as its layout made it, with the collection's code, and then as each test leaves it."""
    packed = tmp_path_factory.mktemp("code") / "code.tar"
    with tarfile.open(packed, "w") as tar:
        archive.add_module_utils(tar, PACKAGE)
    machine = Machine("bls")
    machine.up(load(ROOT / "lab/layouts/bls.yml"), "sid")
    try:
        machine.put(packed, "/root/code.tar")
        machine.run(["sh", "-ec", "mkdir -p /root/code; tar -C /root/code -xf /root/code.tar"])
        yield machine
    finally:
        machine.down()
