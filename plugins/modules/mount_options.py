#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set barriers, journal mode, atime and sync of mounted file systems, live and at the next boot."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mount_options
short_description: Set barriers, data=, atime and sync of mounted file systems, live and at the next boot
version_added: 1.0.0
description:
  - Remounts live with exactly the flags in force and the wanted change; it never unmounts.
  - After barriers come back on, it syncs the file system and requires each disk's flush counter to rise.
  - Edits the options of one line of C(/etc/fstab) and leaves all other bytes. Where a systemd mount unit or a drop-in
    sets the options last, it writes its own drop-in over that instead.
  - New options are first tried on a throw-away image by the running kernel, and then written so that a power cut
    leaves the old file or the new one.
  - If the boot-time setting cannot be read, it is left unchanged, with a warning that gives the reason.
  - The kernel does not change C(data=) of a mounted file system; it is set for the next mount. That of C(/) goes into
    its superblock with C(tune2fs -o), because in C(/etc/fstab) it would make the remount at boot fail.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
options:
  targets:
    description:
      - The file systems, by mount point.
    suboptions:
      target:
        description: The mount point.
        type: str
        required: true
      barrier:
        description: Whether commits flush the disks (ext2, ext3, ext4, btrfs; XFS always does).
        type: str
        choices: ["on", "off"]
      data_mode:
        description: The journal's mode (ext3, ext4).
        type: str
        choices: [ordered, journal, writeback]
      atime:
        description: When reading a file writes its access time.
        type: str
        choices: [noatime, relatime, strictatime]
      sync:
        description: Whether each write waits for the disk.
        type: str
        choices: [async, sync]
      persist:
        description: Whether to set it for the next boot too, in C(/etc/fstab), a drop-in or the superblock of C(/).
        type: bool
        default: true
  state:
    description:
      - V(released) restores the original options of every line that was changed and the C(data=) of the superblock of C(/),
        and takes our drop-ins away. Mounts stay as they are until the next boot.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Barriers on
  durable.dbhost.mount_options:
    targets:
      - target: /srv/pgdata
        barrier: "on"
        data_mode: ordered
        atime: noatime
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The mount point, or the drop-in that was removed.
      type: str
      returned: always
    setting:
      description: V(barrier), V(data_mode), V(atime), V(sync); when released also V(options), V(originals) and V(drop_in).
      type: str
      returned: always
    when:
      description: V(running) or V(persisted).
      type: str
      returned: always
    before:
      description: What it was.
      type: str
      returned: always
    after:
      description: What it is now.
      type: str
      returned: always
"""

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.runner import run
from ansible_collections.durable.dbhost.plugins.module_utils.storage import mount_options as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
