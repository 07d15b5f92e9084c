# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mounts by the kernel's own calls: they are there, refused with a reason, and gone when they are to be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.tests.unit.plugins.module_utils.fakes.real_mounts import left
from proof import checks, loop

PATH = f"{os.environ['PATH']}:{checks.SBIN}"
root = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/loop-control").exists()
    or not shutil.which("mkfs.ext4", path=PATH)
    or not shutil.which("losetup", path=PATH),
    reason="needs root, loop devices, mkfs.ext4 and losetup",
)
JUDGE = """
import sys, time
from pathlib import Path
from proof import loop
loop.own_mounts()
loop.mount(Path(sys.argv[1]), Path(sys.argv[2]), "ext4", "errors=continue")
print(*Path(sys.argv[2]).iterdir(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Return an image of an empty ext4."""
    path = tmp_path / "a.img"
    subprocess.run(["mkfs.ext4", "-q", str(path), "16M"], check=True, env=os.environ | {"PATH": PATH})
    return path


def devices_of(image: Path) -> str:
    """Return the loop devices of an image."""
    argv = ["losetup", "-n", "-O", "NAME", "-j", str(image)]
    return subprocess.run(
        argv, check=True, capture_output=True, text=True, env=os.environ | {"PATH": PATH}
    ).stdout


@root
def test_an_image_is_mounted_and_unmounted(image: Path, tmp_path: Path) -> None:
    """With its loop device."""
    target = tmp_path / "mount"
    target.mkdir()
    loop.mount(image, target, "ext4", "errors=continue")
    assert [path.name for path in target.iterdir()] == ["lost+found"]
    assert devices_of(image)
    loop.unmount(target)
    assert (list(target.iterdir()), left(lambda: devices_of(image))) == ([], "")
    with pytest.raises(OSError, match="Invalid argument"):
        loop.unmount(target)


@root
def test_what_cannot_be_mounted_leaves_no_device(tmp_path: Path) -> None:
    """And the kernel's reason is told."""
    image, target = tmp_path / "a.img", tmp_path / "mount"
    image.write_bytes(bytes(1 << 20))
    target.mkdir()
    with pytest.raises(OSError, match="Invalid argument"):
        loop.mount(image, target, "ext4", "errors=continue")
    assert left(lambda: devices_of(image)) == ""


@root
def test_mounts_of_a_judge_end_with_it(image: Path, tmp_path: Path) -> None:
    """Killed in the middle, it leaves neither a mount nor a loop device; and nobody else saw its mount."""
    target = tmp_path / "mount"
    target.mkdir()
    argv = [sys.executable, "-c", JUDGE, str(image), str(target)]
    root_of_sources = Path(__file__).parents[3]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=root_of_sources) as judge:
        assert judge.stdout
        assert judge.stdout.readline().strip() == str(target / "lost+found")
        assert list(target.iterdir()) == []
        assert devices_of(image)
        judge.kill()
    assert left(lambda: devices_of(image)) == ""
