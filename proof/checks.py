# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host finds after the power is back: the file system's own recovery, then the files.

Recovery writes, so it works on a copy; holes are not copied. A check answers for one image; it raises ProofError only
if it could not be made.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proof.errors import ProofError
from proof.images import copy_sparse

SBIN = "/usr/sbin:/sbin"
#: Of e2fsck's exit code: errors are left, and everything beyond.
LEFT = ~3
COPY = "copy.img"


@dataclass(frozen=True)
class Checked:
    """Whether recovery found the file system whole, what was said otherwise, and the files; None for one that is gone."""

    clean: bool
    said: str
    files: dict[str, bytes | None] = field(default_factory=dict)


#: Takes an image, paths inside its file system, and a directory for scratch files.
Check = Callable[[Path, Sequence[str], Path], Checked]


def ext4(image: Path, paths: Sequence[str], scratch: Path) -> Checked:
    """Replay the journal as boot does, with `e2fsck -p`, and read with debugfs; needs no privilege.

    What -p refuses to mend is damage. It is then mended by force, so that it can be said what is left.
    """
    with _copy(image, scratch) as copy:
        done = _run("e2fsck", "-f", "-p", str(copy))
        clean = not done.returncode & LEFT
        if not clean:
            _run("e2fsck", "-f", "-y", str(copy))
        return Checked(clean, "" if clean else done.stdout.strip(), _dumped(copy, paths, scratch))


def xfs(image: Path, paths: Sequence[str], scratch: Path) -> Checked:
    """Replay the log by a mount, read, and ask `xfs_repair -n`; needs root and the host's XFS."""
    return _by_mount(image, paths, scratch, "xfs", ["xfs_repair", "-n"])


def ext4_by_mount(image: Path, paths: Sequence[str], scratch: Path) -> Checked:
    """Replay the journal by a mount, as a boot without a file system check does; needs root."""
    return _by_mount(image, paths, scratch, "ext4", ["e2fsck", "-f", "-n"])


CHECKS: dict[str, Check] = {"ext4": ext4, "xfs": xfs}


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """Make a directory for images: in memory if this host has that, for recovery syncs at each step."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(
        prefix="dbhost-proof-", dir=memory if os.access(memory, os.W_OK) else None
    )


#: Options of mount(8): the host's own file systems are to be neither mistaken for the image, nor stopped by it.
MOUNTS = {"xfs": "loop,nouuid", "ext4": "loop,errors=continue"}


@contextmanager
def mounted(image: Path, scratch: Path, file_system: str) -> Iterator[tuple[Path | None, str]]:
    """Mount a copy of an image, `copy.img` in the scratch directory, which replays its log.

    Give the mount point, or None and what was said. Needs root.
    """
    if os.geteuid() != 0:
        raise ProofError("only root can mount an image: run as root, or in a machine of the lab")
    target = scratch / "mount"
    target.mkdir(exist_ok=True)
    with _copy(image, scratch) as copy:
        done = _run("mount", "-t", file_system, "-o", MOUNTS[file_system], str(copy), str(target))
        if done.returncode:
            yield None, done.stdout.strip()
            return
        try:
            yield target, ""
        finally:
            unmounted = _run("umount", str(target))
        if unmounted.returncode:
            raise ProofError(f"cannot unmount {target}: {unmounted.stdout.strip()}")


def _by_mount(
    image: Path, paths: Sequence[str], scratch: Path, file_system: str, repair: list[str]
) -> Checked:
    with mounted(image, scratch, file_system) as (target, said):
        if target is None:
            return Checked(False, said, dict.fromkeys(paths))
        files = {path: _content(target / path.lstrip("/")) for path in paths}
    asked = _run(*repair, str(scratch / COPY))
    return Checked(asked.returncode == 0, asked.stdout.strip() if asked.returncode else "", files)


def _dumped(image: Path, paths: Sequence[str], scratch: Path) -> dict[str, bytes | None]:
    """Read files with one debugfs for all of them."""
    targets = [scratch / f"file.{number}" for number in range(len(paths))]
    for target in targets:
        target.unlink(missing_ok=True)
    for path in paths:
        if '"' in path or "\n" in path:
            raise ProofError(f"debugfs cannot be asked for {path!r}")
    lines = [f'dump "{path}" "{target}"\n' for path, target in zip(paths, targets, strict=True)]
    _run("debugfs", "-f", "-", str(image), given="".join(lines))
    return {path: _content(target) for path, target in zip(paths, targets, strict=True)}


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


@contextmanager
def _copy(image: Path, scratch: Path) -> Iterator[Path]:
    path = scratch / COPY
    copy_sparse(image, path)
    yield path


def _run(*argv: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a tool; its output and its complaints are one text."""
    environment = os.environ | {"LC_ALL": "C", "PATH": f"{os.environ.get('PATH', os.defpath)}:{SBIN}"}
    try:
        return subprocess.run(
            argv,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError as error:
        raise ProofError(f"{argv[0]} is missing") from error
