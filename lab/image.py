# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Builds root images, without root rights beyond what mmdebstrap needs and without loop devices."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import mirror, vmlinux
from lab.errors import LabError
from lab.locks import locked
from lab.paths import Lab
from lab.progress import say, stream
from lab.recipe import KEPT, LEFT_OUT, NEWEST, SIZE, Recipe

ROOT = "root.tar"
#: A root as a tree of files, and what is unpacked beside it, as far as it is kept in memory.
TREES = 4 * 2**30
#: Gives a command a /dev/shm of its own, which goes with its last process.
_IN_MEMORY = 'mount -t tmpfs -o mode=1777,size="$1" tmpfs /dev/shm && shift && TMPDIR=/dev/shm exec "$@"'


@dataclass(frozen=True)
class Image:
    """A built image: root.raw in a directory; vmlinux, vmlinuz and initrd too, if its recipe has a kernel."""

    directory: Path
    root_uuid: str

    @property
    def key(self) -> str:
        """The recipe's key."""
        return self.directory.name

    @property
    def release(self) -> str:
        """The recipe's Debian release."""
        return self.key.partition("-")[0]

    @property
    def root(self) -> Path:
        """The root disk that machines lay their own copy-on-write layer over."""
        return self.directory / "root.raw"

    @property
    def kernel(self) -> Path:
        """The release's generic kernel, unpacked."""
        return self.directory / "vmlinux"

    @property
    def packed_kernel(self) -> Path:
        """That as the release has it."""
        return self.directory / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """Its initramfs, unpacked where it is one whole."""
        return self.directory / "initrd"


def ensure(lab: Lab, recipe: Recipe) -> Image:
    """Return the image of `recipe`, building it if it is not in the cache."""
    image = Image(lab.images / recipe.key, recipe.root_uuid)
    if image.directory.exists():
        return image
    with locked(lab, f"image-{recipe.key}"):
        if not image.directory.exists():
            _build(lab, recipe, image.directory)
    return image


def _build(lab: Lab, recipe: Recipe, target: Path) -> None:
    """Build in a directory beside `target`, and rename it when it is whole."""
    base = _base(lab, recipe)
    say(f"image {recipe.key}: packages")
    with _building(lab, recipe.key) as (work, log):
        (work / "authorized_keys").write_text(recipe.public_key + "\n")
        _mmdebstrap(recipe, derive(recipe, work), work, log, base)
        say(f"image {recipe.key}: making the file system")
        _pack(recipe, work, log)
        work.rename(target)
    say(f"image {recipe.key}: done")


@contextmanager
def _building(lab: Lab, name: str) -> Iterator[tuple[Path, Path]]:
    """Give a directory to build in, and a log, without what an earlier build left; only the log stays."""
    work, log = lab.images / f".building-{name}", lab.images / f"{name}.log"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    log.unlink(missing_ok=True)
    try:
        yield work, log
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _base(lab: Lab, recipe: Recipe) -> Path:
    """Return the archive that the images of a release are made from, bootstrapping it if it is not in the cache."""
    target = lab.images / f"base-{recipe.base}.tar"
    with locked(lab, f"image-{target.stem}"):
        if not target.exists():
            say(f"{target.stem}: bootstrapping {recipe.release} (about a minute)")
            with _building(lab, target.stem) as (work, log):
                _mmdebstrap(recipe, bootstrap(recipe), work, log)
                (work / ROOT).rename(target)
    return target


def _mmdebstrap(
    recipe: Recipe, steps: list[str], work: Path, log: Path, base: Path = Path(os.devnull)
) -> None:
    """Make root.tar in a directory; steps can read `base` from their input."""
    (work / "apt.conf").write_text("\n".join(mirror.apt_options()) + "\n")
    try:
        stream([*in_memory(), *argv(recipe, steps, work, mirror.mirror())], log, prefix="I: ", source=base)
    except LabError as error:
        raise LabError(
            f"cannot bootstrap {recipe.release}; the mirror may no longer hold it "
            f"(an older release moves to the Debian archive)\n{error}"
        ) from error


def in_memory() -> list[str]:
    """Return what comes before a command that makes trees of files in $TMPDIR and takes them away: it gets that in memory.

    Nothing, where there is little memory or this user may not mount. ext4 does not use an inode again for minutes after it
    was deleted, and at each new file passes over all of them: of images made one after the other that was most of the time.
    """
    found = ["unshare", "--mount", "sh", "-c", _IN_MEMORY, "in-memory", str(TREES)]
    if os.geteuid() or _available() < 1.5 * TREES:
        return []
    is_allowed = subprocess.run([*found, "true"], capture_output=True, check=False).returncode == 0
    return found if is_allowed else []


def _available() -> int:
    """Return the bytes of memory that programs can have without swapping (proc_meminfo(5), MemAvailable)."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


def argv(recipe: Recipe, steps: list[str], work: Path, uri: str | None) -> list[str]:
    """Return mmdebstrap's command, which makes root.tar in a directory by these steps."""
    return [
        "mmdebstrap",
        '--aptopt=APT::Install-Recommends "false"',
        # A mirror may be weeks behind the unstable distribution, whose Release file is valid for one.
        *(['--aptopt=Acquire::Check-Valid-Until "false"'] if recipe.release == NEWEST else []),
        f"--aptopt={work / 'apt.conf'}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
        *(f"--dpkgopt=path-include={path}" for path in KEPT),
        *steps,
        recipe.release,
        str(work / ROOT),
        *([uri] if uri else []),
    ]


def bootstrap(recipe: Recipe) -> list[str]:
    """Return mmdebstrap's options for a release with the lab's own packages."""
    return [
        "--variant=minbase",
        # What it is unpacked into may be without the right to make devices.
        "--skip=output/dev",
        f"--include={','.join(recipe.base_packages)}",
        *(f"--essential-hook={line}" for line in _script(recipe.early)),
    ]


def derive(recipe: Recipe, work: Path) -> list[str]:
    """Return mmdebstrap's options for what its input has, with the layout's packages, as a machine that can be reached."""
    install = f'chroot "$1" apt-get --yes install {shlex.join(recipe.added)}'
    return [
        "--variant=custom",
        # From its input, open already: what runs in mmdebstrap's user namespace may not see this user's files. (Its own
        # way, tar-in, hands each 4 KiB from process to process.)
        '--setup-hook=tar -C "$1" -x',
        # ZFS is in contrib.
        """--setup-hook=sed -i 's/ main$/ main contrib/' "$1/etc/apt/sources.list\"""",
        *([f"--customize-hook={install}"] if recipe.added else []),
        '--customize-hook=mkdir -p "$1/root/.ssh"',
        f"--customize-hook=upload {_quoted(work / 'authorized_keys')} /root/.ssh/authorized_keys",
        *(
            f"--customize-hook={line}"
            for line in _script(recipe.directory / "configure.sh", recipe.root_uuid)
        ),
    ]


def _script(path: Path, *arguments: str) -> list[str]:
    """Return the hooks that run a script of ours inside the new root."""
    inside = f"/{path.name}"
    return [
        f"upload {_quoted(path)} {inside}",
        f'chroot "$1" sh {inside} {shlex.join(arguments)}',
        f'rm "$1{inside}"',
    ]


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _pack(recipe: Recipe, work: Path, log: Path) -> None:
    """Make root.raw (sparse), and both kernels and initrd if there is one, from root.tar.

    fakeroot keeps owners if we are not root.
    """
    script = """
        set -e
        root=$(mktemp -d)
        tar -C "$root" -xf root.tar --exclude=./dev/*
        # not in configure.sh: mmdebstrap wipes it, and without one a first boot enables all units
        echo "$2" | tr -d - > "$root/etc/machine-id"
        if [ "$3" ]; then
            cp -L "$root"/boot/vmlinuz-* vmlinuz
            # trixie's begins with a part that is not packed
            gzip -dc "$root"/boot/initrd.img-* > initrd 2>/dev/null || cp -L "$root"/boot/initrd.img-* initrd
        fi
        truncate -s "$1" root.raw
        mkfs.ext4 -q -F -L dbhost-root -U "$2" -d "$root" root.raw
        rm -rf "$root" root.tar apt.conf authorized_keys
    """
    fakeroot = [] if os.geteuid() == 0 else ["fakeroot"]
    stream(
        [
            *in_memory(),
            *fakeroot,
            *(
                "sh",
                "-c",
                f"cd {_quoted(work)}\n{script}",
                "pack",
                SIZE,
                recipe.root_uuid,
                "kernel" if recipe.kernel else "",
            ),
        ],
        log,
        env={**os.environ, "MKE2FS_CONFIG": str(recipe.directory / "mke2fs.conf")},
    )
    if recipe.kernel:
        (work / "vmlinux").write_bytes(vmlinux.unpack((work / "vmlinuz").read_bytes()))
