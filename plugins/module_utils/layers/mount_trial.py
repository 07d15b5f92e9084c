# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Would the next boot be able to mount this? Asked of the running kernel, on a throw-away image.

`mount -f` and `findmnt --verify` accept options that the kernel refuses. Mounting an image of the
same file system with the very same options is the test that does not.
"""

from __future__ import annotations

from ..host import ChangeFailed, Host

#: Ours alone; made and removed by each trial.
DIRECTORY = "/var/lib/durable-dbhost/trial"
_IMAGE = f"{DIRECTORY}/image"
_POINT = f"{DIRECTORY}/mnt"
#: Name things that the image does not have.
_OF_OTHER_DEVICES = ("journal_path=", "journal_dev=", "logdev=", "rtdev=", "device=", "subvol=", "subvolid=")


def try_options(host: Host, fstype: str, options: tuple[str, ...], journal: bool) -> None:
    """Mount an image with these options in a mount namespace that ends at once.

    Raises ChangeFailed when the kernel refuses them, or when no trial can be made: then the
    line must not be written.
    """
    tried = [option for option in options if not option.startswith(_OF_OTHER_DEVICES)]
    host.change(["mkdir", "-p", _POINT])
    try:
        host.change(_mkfs(host, fstype, journal))
        mount = ["mount", "-t", fstype, "-o", ",".join(["loop", *tried]), _IMAGE, _POINT]
        host.change(["unshare", "--mount", "--propagation", "private", *mount])
    except ChangeFailed as error:
        raise ChangeFailed(
            f"options {','.join(options)} for {fstype}: the running kernel did not mount"
            f" a test image with them, so fstab and mount units stay as they are: {error}"
        ) from error
    finally:
        host.change(["rm", "-rf", DIRECTORY])


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
