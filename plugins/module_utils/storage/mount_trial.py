# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Would the next boot be able to mount this? Asked of the running kernel, on a throw-away image.

`mount -f` and `findmnt --verify` accept options that the kernel refuses. Mounting an image of the
same file system with the very same options is the test that does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..enforce import our_files
from ..host import our_paths
from ..host.seam import ChangeFailed, CommandFailed, Host
from . import ext4
from .shown_options import as_written

#: Ours alone; made and removed by each trial.
DIRECTORY = our_paths.TRIAL
_IMAGE = f"{DIRECTORY}/image"
_POINT = f"{DIRECTORY}/mnt"
#: Name things that the image does not have.
_OF_OTHER_DEVICES = ("journal_path=", "journal_dev=", "logdev=", "rtdev=", "device=", "subvol=", "subvolid=")
_STAY = "fstab, mount units and superblock stay as they are"
_NAMESPACE = ("unshare", "--mount", "--propagation", "private")
#: Image, type, options of the initramfs, mount point, options of the remount. mount(8) would make a
#: loop device of its own read-only for a read-only mount, and the remount fail. Detached while it is
#: mounted, a loop device goes with its mount. Why a mount was refused, the kernel says in its log alone.
_REPLAY = """set -e
device=$(losetup --find --show "$1")
trap 'losetup --detach "$device"' EXIT
log() { dmesg | grep -F "(${device##*/}): " | grep -v -e 'mounted filesystem' -e 'unmounting filesystem' | tail -n 1; }
before=$(log)
try() {
    if said=$("$@" 2>&1); then return; fi
    why=$(log)
    [ "$why" != "$before" ] || why=$said
    printf '%s\n' "${why##*): }" >&2
    exit 1
}
try mount -t "$2" -o "$3" "$device" "$4"
try mount -o "$5" --options-source=disable "$device" "$4"
"""


class Image(NamedTuple):
    """What a throw-away image has to be like to stand for a file system.

    `defaults` are the mount options that an ext superblock sets; `rootflags` are the options with which
    the initramfs mounts the root, read-only, None for other file systems.
    """

    fstype: str
    journal: bool = True
    defaults: tuple[str, ...] = ()
    rootflags: tuple[str, ...] | None = None


def try_options(host: Host, image: Image, options: tuple[str, ...]) -> None:
    """Mount an image with these options in a mount namespace that ends at once.

    The root is mounted as a boot does it: read-only with `rootflags`, then made writable with the options.
    Raises ChangeFailed when the kernel refuses them, or when no trial can be made: then neither the line
    nor the superblock must be written.
    """
    try:
        _make(host, image)
        _mount(host, image, options)
    finally:
        host.change(["rm", "-rf", DIRECTORY])


def is_left(host: Host) -> bool:
    """Tell whether a run that was killed in a trial has left its image."""
    return host.exists(DIRECTORY)


def clear(host: Host) -> None:
    """Take away what a trial has left, and its directory if nothing else is there. Raises ChangeFailed."""
    if is_left(host):
        host.change(["rm", "-rf", DIRECTORY])
        our_files.remove_directories(host, (our_paths.KEPT,))


def _make(host: Host, image: Image) -> None:
    try:
        host.change(["mkdir", "-p", _POINT])
        host.change(_mkfs(host, image.fstype, image.journal))
        for name in filter(None, map(ext4.tune2fs_name, image.defaults)):
            host.change(["tune2fs", "-o", name, _IMAGE])
    except ChangeFailed as error:
        raise ChangeFailed(f"no test image could be made, so {_STAY}: {error}") from error


def _mount(host: Host, image: Image, options: tuple[str, ...]) -> None:
    # What tune2fs keeps as a text comes before the options of the mount.
    texts = [option for option in image.defaults if ext4.tune2fs_name(option) is None]
    try:
        if image.rootflags is None:
            words = ["loop", *_of_image(texts), *_of_image(options)]
            host.change([*_NAMESPACE, "mount", "-t", image.fstype, "-o", ",".join(words), _IMAGE, _POINT])
        else:
            first = ",".join(["ro", *_of_image(texts), *_of_image(image.rootflags)])
            then = ",".join(["remount", "rw", *_of_image(options)])
            replay = [*_NAMESPACE, "sh", "-c", _REPLAY, "sh", _IMAGE, image.fstype, first, _POINT, then]
            host.change(replay)
    except ChangeFailed as error:
        said = as_written(options)
        raise ChangeFailed(
            f"options {said} for {image.fstype}{_with_defaults(image)}: the running kernel did not"
            f" mount a test image with them, so {_STAY}; take out what it refuses: {_refusal(error, options)}"
        ) from error


def _of_image(options: Iterable[str]) -> list[str]:
    return [option for option in options if not option.startswith(_OF_OTHER_DEVICES)]


def _with_defaults(image: Image) -> str:
    return f" with {','.join(image.defaults)} in its superblock" if image.defaults else ""


def _mkfs(host: Host, fstype: str, journal: bool) -> list[str]:
    if fstype == "xfs":
        return ["mkfs.xfs", "-q", "-f", "-d", f"file,name={_IMAGE},size=320m"]
    if fstype == "btrfs":
        # The smallest that mkfs.btrfs makes with its defaults; a hole, all but a few blocks of it.
        host.change(["truncate", "--size=256M", _IMAGE])
        return ["mkfs.btrfs", "-q", "-f", _IMAGE]
    features = [] if journal or fstype == "ext2" else ["-O", "^has_journal"]
    # The kernel mounts no image with ext4's own features as ext3 or ext2.
    return [f"mkfs.{fstype}", "-q", "-F", *features, _IMAGE, "16M"]


def _refusal(error: ChangeFailed, options: tuple[str, ...]) -> str:
    """Return what the kernel or a command said of a trial, without passwords among its options."""
    if isinstance(error, CommandFailed):
        return error.said
    tried = _of_image(options)
    return str(error).replace(",".join(tried), as_written(tried))
