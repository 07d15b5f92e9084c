# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host finds after the power is back: the file system's own recovery, then the files.

Recovery writes, so it works on a copy; holes are not copied. A check answers for one image; it raises ProofError only
if it could not be made.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from proof import loop
from proof.errors import ProofError
from proof.images import Twin
from proof.log import SECTOR

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
        said = preened(copy, "-f")
        return Checked(not said, said, _dumped(copy, paths, scratch))


def preened(image: Path, *options: str) -> str:
    """Let `e2fsck -p` mend an ext4; return what it refused to, which is then mended by force; empty: nothing."""
    done = _run("e2fsck", *options, "-p", str(image))
    if not done.returncode & LEFT:
        return ""
    _run("e2fsck", "-f", "-y", str(image))
    return done.stdout.strip()


def xfs(image: Path, paths: Sequence[str], scratch: Path) -> Checked:
    """Replay the log by a mount, read, and ask `xfs_repair -n`; needs root and the host's XFS."""
    return _by_mount(image, paths, scratch, "xfs")


def ext4_by_mount(image: Path, paths: Sequence[str], scratch: Path) -> Checked:
    """Replay the journal by a mount, as a boot without a file system check does; needs root."""
    return _by_mount(image, paths, scratch, "ext4")


CHECKS: dict[str, Check] = {"ext4": ext4, "xfs": xfs}

#: Takes an image, paths, and a directory for scratch files; returns the sectors of what each file has that was written.
#: Files that are not there have none.
Places = Callable[[Path, Sequence[str], Path], dict[str, list[int]]]


def places_in_ext4(image: Path, paths: Sequence[str], scratch: Path) -> dict[str, list[int]]:
    """Ask debugfs for extents, once the journal is replayed."""
    _refuse_what_debugfs_cannot_take(paths)
    with _copy(image, scratch) as copy:
        _run("e2fsck", "-f", "-p", str(copy))
        with copy.open("rb") as file:
            file.seek(_LOG_BLOCK_SIZE)
            width = 2 << int.from_bytes(file.read(4), "little")  # sectors of a block
        said = _debugfs(copy, [f'ex -l "{path}"' for path in paths]).split("debugfs: ex -l ")[1:]
    return {path: _in_extents(text, width) for path, text in zip(paths, said, strict=True)}


def places_in_xfs(image: Path, paths: Sequence[str], scratch: Path) -> dict[str, list[int]]:
    """Ask the kernel for extents, once the log is replayed; needs root and the host's XFS."""
    with mounted(image, scratch, "xfs") as (target, _said):
        return {path: _extents_of(target / path.lstrip("/")) if target else [] for path in paths}


PLACES: dict[str, Places] = {"ext4": places_in_ext4, "xfs": places_in_xfs}

#: Where the superblock of ext4 has the size of a block: 1024 is 0, 2048 is 1, and so on.
_LOG_BLOCK_SIZE = 1024 + 24
#: A line of debugfs about an extent that was written: depth, logical and physical blocks, length, and no flag.
_EXTENT = re.compile(r"^ *\d+/ *\d+ +\d+/ *\d+ +\d+ - +\d+ +(\d+) - +(\d+) +\d+ *$", re.MULTILINE)


def _in_extents(text: str, width: int) -> list[int]:
    blocks = (range(int(first), int(last) + 1) for first, last in _EXTENT.findall(text))
    return [block * width + at for extent in blocks for block in extent for at in range(width)]


#: linux/fiemap.h: the request, whose head an extent follows, and the flag of an extent that is the last one.
_FIEMAP, _HEAD, _ONE, _LAST = 0xC020660B, struct.Struct("<QQIIII"), struct.Struct("<QQQ16xI12x"), 1


def _extents_of(path: Path) -> list[int]:
    """Return the sectors of a file; those that were allocated and never written are left out."""
    count = 64
    asked = bytearray(
        _HEAD.pack(0, (1 << 64) - 1, 0, 0, count, 0).ljust(_HEAD.size + count * _ONE.size, b"\0")
    )
    try:
        with path.open("rb") as file:
            fcntl.ioctl(file, _FIEMAP, asked)
    except OSError:
        return []
    found: list[int] = []
    for number in range(_HEAD.unpack_from(asked)[3]):
        _logical, physical, length, flags = _ONE.unpack_from(asked, _HEAD.size + number * _ONE.size)
        if not flags & ~_LAST:
            found += range(physical // SECTOR, (physical + length) // SECTOR)
    return found


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    """Make a directory for images: in memory if this host has that, for recovery syncs at each step."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(
        prefix="dbhost-proof-", dir=memory if os.access(memory, os.W_OK) else None
    )


#: Options of a mount: the host's own file systems are to be neither mistaken for the image, nor stopped by it.
MOUNTS = {"xfs": "nouuid", "ext4": "errors=continue"}


@contextmanager
def mounted(
    image: Path, scratch: Path, file_system: str, before: Callable[[Path], None] = lambda copy: None
) -> Iterator[tuple[Path | None, str]]:
    """Mount a copy of an image, `copy.img` in the scratch directory, which replays its log.

    Give the mount point, or None and what was said. `before` does something to the copy first. Needs root.
    """
    if os.geteuid() != 0:
        raise ProofError("only root can mount an image: run as root, or in a machine of the lab")
    target = scratch / "mount"
    target.mkdir(exist_ok=True)
    with _copy(image, scratch) as copy:
        before(copy)
        try:
            loop.mount(copy, target, file_system, MOUNTS[file_system])
        except OSError as error:
            yield None, f"it cannot be mounted: {error.strerror}"
            return
        try:
            yield target, ""
        finally:
            try:
                loop.unmount(target)
            except OSError as error:
                raise ProofError(f"cannot unmount {target}: {error.strerror}") from error


#: What looks at all of a file system that is not mounted, and changes nothing. For XFS neither prefetching nor a cache for a
#: large disk: they take longer than all else where all is in memory.
_LOOKS = {"ext4": ("e2fsck", "-f", "-n"), "xfs": ("xfs_repair", "-n", "-P", "-o", "bhash=64")}


def damage(image: Path, file_system: str) -> str:
    """Return what is wrong with a file system that has been recovered; empty: nothing is."""
    asked = _run(*_LOOKS[file_system], str(image))
    return (asked.stdout.strip() or f"it ended with {asked.returncode}") if asked.returncode else ""


def _by_mount(image: Path, paths: Sequence[str], scratch: Path, file_system: str) -> Checked:
    with mounted(image, scratch, file_system) as (target, said):
        if target is None:
            return Checked(False, said, dict.fromkeys(paths))
        files = {path: _content(target / path.lstrip("/")) for path in paths}
    said = damage(scratch / COPY, file_system)
    return Checked(not said, said, files)


def _dumped(image: Path, paths: Sequence[str], scratch: Path) -> dict[str, bytes | None]:
    """Read files with one debugfs for all of them."""
    targets = [scratch / f"file.{number}" for number in range(len(paths))]
    for target in targets:
        target.unlink(missing_ok=True)
    _refuse_what_debugfs_cannot_take(paths)
    lines = [f'dump "{path}" "{target}"' for path, target in zip(paths, targets, strict=True)]
    _debugfs(image, lines)
    return {path: _content(target) for path, target in zip(paths, targets, strict=True)}


def _debugfs(image: Path, commands: Sequence[str]) -> str:
    """Let debugfs carry out commands on an image; return what it says. One process of it serves all images of this one."""
    said = _the_debugfs(os.getpid(), threading.get_ident()).ask([f'open "{image}"', *commands, "close"])
    if "still open" in said:
        raise ProofError(f"debugfs reads another image: {said.strip()}")
    return said


@lru_cache(maxsize=1)
def _the_debugfs(_process: int, _thread: int) -> _Debugfs:
    return _Debugfs()


class _Debugfs:
    """A debugfs that reads commands, and echoes each before it carries it out. It ends with this process: so does its input."""

    def __init__(self) -> None:
        try:
            self._process = subprocess.Popen(
                ["debugfs", "-f", "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_environment(),
                text=True,
                errors="replace",
            )
        except FileNotFoundError as error:
            raise ProofError("debugfs is missing") from error

    def ask(self, commands: Sequence[str]) -> str:
        """Return what it says of these commands; ProofError: it has ended."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write("".join(f"{command}\n" for command in (*commands, _END)))
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # what it said last is read below
        lines = list[str]()
        for line in self._process.stdout:
            if line == f"debugfs: {_END}\n":
                return "".join(lines)
            lines.append(line)
        _the_debugfs.cache_clear()
        raise ProofError(f"debugfs has ended with {self._process.wait()}: {''.join(lines).strip()}")


#: A command of debugfs that says nothing, and changes nothing that is asked for by a whole path.
_END = "lcd /"


def _refuse_what_debugfs_cannot_take(paths: Sequence[str]) -> None:
    for path in paths:
        if '"' in path or "\n" in path:
            raise ProofError(f"debugfs cannot be asked for {path!r}")


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


@contextmanager
def _copy(image: Path, scratch: Path) -> Iterator[Path]:
    path = scratch / COPY
    path.touch()
    twin = _twin(image, path, tuple((status.st_dev, status.st_ino) for status in (image.stat(), path.stat())))
    twin.renew()
    yield twin.path


@lru_cache(maxsize=4)
def _twin(image: Path, path: Path, _files: tuple[tuple[int, int], ...]) -> Twin:
    """Return the same one as long as both are the same files: a run has two images, and looks at them in turn."""
    return Twin(image, path)


#: How glibc's allocators serve a tool that lives for milliseconds (the GNU C Library manual, Tunables). Its threads' stacks,
#: of all together never more than this, are used again, not mapped anew: xfs_repair makes a hundred. And what it asks for
#: comes from one heap that grows by much at a time, in huge pages where the kernel gives them: each small page is a fault.
_ALLOCATORS = {
    "glibc.pthread.stack_cache_size": 2**32,
    "glibc.malloc.arena_max": 1,
    "glibc.malloc.mmap_threshold": 2**25,
    "glibc.malloc.top_pad": 2**24,
    "glibc.malloc.hugetlb": 1,
}


def _environment() -> dict[str, str]:
    """Return the environment of a tool: little, for it is made anew for each."""
    return {
        "LC_ALL": "C",
        "PATH": f"{os.environ.get('PATH', os.defpath)}:{SBIN}",
        "GLIBC_TUNABLES": ":".join(f"{name}={value}" for name, value in _ALLOCATORS.items()),
    }


def _run(*argv: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a tool; its output and its complaints are one text."""
    try:
        return subprocess.run(
            argv,
            # With a pipe for it, each piece of what is said would wake this process up.
            **({"input": given} if given else {"stdin": subprocess.DEVNULL}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError as error:
        raise ProofError(f"{argv[0]} is missing") from error
