# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said, and what is there then, where the kernel refuses a change; a real one where it lets us mount."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.durable.dbhost.plugins.module_utils.host.refusals import explained, remedy
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import (
    ChangeFailed,
    CommandFailed,
    Host,
)

HOST = Host()
ROOT = Path(__file__).resolve().parents[5]
#: $1: where a small file system is mounted, for this process alone; $2: what makes it refuse. The rest writes to it.
SCRIPT = """\
set -e
mount -t tmpfs -o size=16k none "$1" || exit 77
echo old > "$1/x"
directory=$1
eval "$2" || exit 77
shift 2
"$@" "$directory/x"
cat "$directory/x"
ls -A "$directory"
"""
WRITE = """\
import sys
from tests.unit.conftest import ROOT
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host
for act in (lambda path: Host().write_file(path, b"new" * 4096), Host().remove_file):
    try:
        act(sys.argv[1])
    except ChangeFailed as error:
        print(error)
        break
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root may mount here")
@pytest.mark.parametrize(
    ("makes", "said"),
    [
        (
            "head -c 99999 /dev/zero > $1/fill || :",
            "No space left on device: not changed; free space on {place} (df",
        ),
        (
            "mount -o remount,ro $1",
            "Read-only file system: not changed; the kernel log (dmesg) says why {place} is",
        ),
        (
            "chattr +i $1/x",
            "Operation not permitted: not changed; lsattr -d {place}/x {place} shows which is",
        ),
        ("chattr +i $1", "Operation not permitted: not changed; lsattr -d {place}/x {place} shows which is"),
    ],
)
def test_a_real_kernel_s_refusal_names_file_system_and_way_out(tmp_path: Path, makes: str, said: str) -> None:
    argv = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", str(tmp_path), makes, sys.executable, "-c", WRITE]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(f"NOT RUN: {done.stderr.strip()}")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{tmp_path}/x: {said.format(place=tmp_path)}"), done
    assert lines[1:] == ["old", *(["fill"] if "fill" in makes else []), "x"]


def test_what_has_its_name_and_is_not_synced_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    path = tmp_path / "x"
    for act, there in (
        (lambda: HOST.write_file(str(path), b"new"), True),
        (lambda: HOST.remove_file(str(path)), False),
    ):
        with pytest.raises(
            ChangeFailed, match="x: Input/output error: changed, but a power cut may take that back; the"
        ):
            act()
        assert path.exists() is there


@pytest.mark.parametrize(
    ("said", "path", "way_out"),
    [
        ("HDIO_DRIVE_CMD(setcache) failed: Input/output error", "", "check disk and cable"),
        ("sync: error opening '/dev/sda': No such file or directory", "", "whether it was pulled"),
        ("/sys/block/sda/queue/scheduler: No such device", "", "whether it was pulled"),
        ("/dev/nvme0: No such device or address", "", "whether it was pulled"),
        (
            "tune2fs: Read-only file system while trying to open /dev/vda1",
            "",
            "why that file system is read-only",
        ),
        ("mkfs.ext4: No space left on device", "", "free space on that file system"),
        ("Disk quota exceeded", "/etc/x", "free space on "),
        ("Permission denied, as user 26", "/etc/x", "check who may write in /etc,"),
        # Of a program nobody knows which file it is about, and no disk of its own is missing.
        ("Operation not permitted", "", "fix the cause that this error names"),
        ("hdparm: No such file or directory", "", "fix the cause that this error names"),
        ("Invalid argument", "", "the device or its driver does not take that"),
        ("Invalid argument", "/etc/x", "fix the cause that this error names"),
        ("NVMe status: Feature Not Changeable", "", "fix the cause that this error names"),
    ],
)
def test_each_refusal_has_its_way_out(said: str, path: str, way_out: str) -> None:
    assert way_out in remedy(said, path)
    assert remedy(said, path).endswith("then run again")
    if not path:
        assert str(CommandFailed(["x"], 5, said)) == f"x: exit 5: {said}; {remedy(said)}"


def test_a_device_that_is_gone_is_named_by_an_attribute_too(tmp_path: Path) -> None:
    with pytest.raises(ChangeFailed, match=r"No such file or directory; the device is not there any more"):
        HOST.write_attribute("/sys/block/no-such-disk/queue/scheduler", "none")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "/proc/x"),
            "/proc/x: No space left on device; free space on /proc (df -h, df -i), then run again",
        ),
        # Of a directory that is held open.
        (
            OSError(errno.ENOSPC, "No space left on device", "x"),
            "x: No space left on device; free space on that file system (df -h, df -i), then run again",
        ),
        (OSError("odd"), "odd; fix the cause that this error names, then run again"),
    ],
)
def test_an_error_of_a_file_system_names_its_path_and_a_fix(error: OSError, message: str) -> None:
    assert explained(error) == message
