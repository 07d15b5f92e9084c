# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tests of real engines share: programs as an unprivileged account, and an image of a directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from proof import checks
from proof.engine import ACCOUNT, Engine
from proof.needs import is_there

PATH = f"{os.environ['PATH']}:{checks.SBIN}"
ENVIRONMENT = os.environ | {"PATH": PATH, "LC_ALL": "C"}


def needs(engine: Engine, *more: str) -> pytest.MarkDecorator:
    """Skip where the engine, or what its images are made and mounted with, is not there."""
    tools = [*engine.programs, "losetup", "mkfs.ext4", "debugfs", "setpriv", *more]
    there = all(is_there(tool, PATH) for tool in tools)
    loops = os.geteuid() == 0 and Path("/dev/loop-control").exists()
    packages = " ".join(sorted(set(engine.programs.values())))
    return pytest.mark.skipif(
        not (there and loops), reason=f"needs root, loop devices, and the packages {packages}"
    )


def as_account(*argv: str) -> list[str]:
    """Return the words that run a program as ACCOUNT."""
    return ["setpriv", f"--reuid={ACCOUNT}", "--regid=nogroup", "--clear-groups", *argv]


def run(argv: Iterable[str], given: str = "") -> str:
    """Run what must work."""
    done = subprocess.run(
        [*argv], input=given, capture_output=True, text=True, cwd="/", env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def image_of(tree: Path, target: Path) -> None:
    """Make an ext4 that holds a directory."""
    run(["mkfs.ext4", "-q", "-d", str(tree), str(target), "160M"])


def without(image: Path, path: str, target: Path) -> Path:
    """Return a copy of an image that lacks one file."""
    shutil.copy(image, target)
    run(["debugfs", "-w", "-R", f"rm {path}", str(target)])
    return target
