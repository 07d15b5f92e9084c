# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trial of mount options by the running kernel, on a scratch image.

`mount -f` and `findmnt --verify` accept options that the kernel refuses. A mount of an image of the
same file system with the same options does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..enforce import our_files
from ..host import our_paths
from ..host.seam import ChangeFailed, Host, TrialRefused
from . import ext4
from .shown_options import as_written

#: Ours alone; made and removed by each trial.
DIRECTORY = our_paths.TRIAL
_IMAGE = f"{DIRECTORY}/image"
#: Name things that the image does not have.
_OF_OTHER_DEVICES = ("journal_path=", "journal_dev=", "logdev=", "rtdev=", "device=", "subvol=", "subvolid=")
_STAY = "fstab, mount units and superblock stay as they are"


class Image(NamedTuple):
    """What a temporary image must be like to replace a file system in a trial.

    `defaults` are the mount options that an ext superblock sets; `rootflags` are the options with which
    the initramfs mounts the root, read-only, None for other file systems.
    """

    fstype: str
    journal: bool = True
    defaults: tuple[str, ...] = ()
    rootflags: tuple[str, ...] | None = None


def try_options(host: Host, image: Image, options: tuple[str, ...]) -> None:
    """Mount a scratch image with these options, detached from every path.

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
    """Return whether a run that was killed in a trial has left its image."""
    return host.exists(DIRECTORY)


def clear(host: Host) -> None:
    """Remove the files of a trial, and its directory if it is empty. Raises ChangeFailed."""
    if is_left(host):
        host.change(["rm", "-rf", DIRECTORY])
        our_files.remove_directories(host, (our_paths.PERSISTENT,))


def _make(host: Host, image: Image) -> None:
    try:
        host.change(["mkdir", "-p", DIRECTORY])
        host.change(_mkfs(host, image.fstype, image.journal))
        for name in filter(None, map(ext4.tune2fs_name, image.defaults)):
            host.change(["tune2fs", "-o", name, _IMAGE])
    except ChangeFailed as error:
        raise ChangeFailed(f"no test image could be made, so {_STAY}: {error}") from error


def _mount(host: Host, image: Image, options: tuple[str, ...]) -> None:
    # What tune2fs keeps as a text comes before the options of the mount.
    texts = [option for option in image.defaults if ext4.tune2fs_name(option) is None]
    steps = [[*texts, *options]]
    if image.rootflags is not None:
        steps = [["ro", *texts, *image.rootflags], ["rw", *options]]
    try:
        host.try_mount(_IMAGE, image.fstype, [_of_image(step) for step in steps])
    except TrialRefused as error:
        raise ChangeFailed(
            f"options {as_written(options)} for {image.fstype}{_with_defaults(image)}: the running kernel does not"
            f" mount a test image with them, so {_STAY}; remove the option that it refuses: {_hidden(str(error), options)}"
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


def _hidden(reason: str, options: tuple[str, ...]) -> str:
    """Return the kernel's reason without the values of options that may hold a password."""
    for option in options:
        if as_written([option]) != option:
            reason = reason.replace(option, as_written([option]))
    return reason
