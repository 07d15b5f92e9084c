#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare file systems, mount options and I/O schedulers on a spare disk, which is overwritten."""

from __future__ import annotations

DOCUMENTATION = r"""
module: compare_filesystems
short_description: Compare file systems, mount options and I/O schedulers on a spare disk, which is overwritten
version_added: 1.0.0
description:
  - B(All data on the disk is destroyed.) Its permanent name must be given twice, as O(device) and O(overwrite).
  - Refuses a disk that is mounted, is swap space, has partitions, a signature of any kind or holders, is a part of another
    device, is named in fstab, crypttab or a file of DRBD, libvirt or LIO, or is opened by a process. So is a disk that the
    kernel exports or has in a loop device, and one whose WWID or serial number another disk has too. A disk that another
    host uses cannot be detected.
  - Creates one file system after the other, mounts it at no path, and runs C(fio) on scratch files in it. The disk without a
    file system and with its present scheduler has the figure 100.
  - At any end the disk is wiped, so that it has no signature, and its scheduler is restored, also after the module was
    killed. If the process that does this is killed too, the next run does it.
  - In check mode nothing is written. The disk is still checked.
requirements:
  - fio 3, wipefs, and the programs that create the file systems
  - Linux 5.2
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.fio
options:
  device:
    description: The permanent name of a whole disk, below C(/dev/disk/by-id). It is overwritten.
    type: str
    required: true
  overwrite:
    description:
      - The same name again.
      - A disk without a known signature that is closed at the moment is not recognised as used, such as that of a
        database on a raw device, of plain dm-crypt, or of LUKS with a detached header.
    type: str
    required: true
  file_systems:
    description: What to compare. If none are named, all that kernel and programs of the host have.
    type: list
    elements: str
    choices: [ext2, ext3, ext4, xfs, btrfs, jfs]
    default: []
  mount_options:
    description: Options with which each is mounted.
    type: list
    elements: str
    choices: [defaults, noatime, sync, 'sync,noatime']
    default: [defaults, noatime, 'sync,noatime']
  ext3_options:
    description: More options for ext3.
    type: list
    elements: str
    choices: ['data=ordered', 'data=journal', 'data=writeback', 'barrier=0']
    default: ['data=journal', 'data=writeback', 'barrier=0']
  schedulers:
    description: I/O schedulers, in addition to the present one. If none are named, all that are loaded.
  patterns:
    choices: [direct_dsync, direct_fdatasync, osync, dsync]
    default: [dsync]
  clients:
    default: [1]
  seconds:
    default: 2
  minutes:
    default: 30
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Which file system commits fastest on a disk that is new
  durable.dbhost.compare_filesystems:
    device: /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0002
    overwrite: /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SCSI0002
"""

RETURN = r"""
device:
  description: The disk.
  returned: always
  type: str
rows:
  description: One for each file system, mount option, scheduler, pattern and number of clients; empty in check mode.
  returned: always
  type: list
  elements: dict
  contains:
    file_system:
      description: The file system, or V(raw device).
      type: str
      returned: always
    options:
      description: The mount options.
      type: str
      returned: always
    scheduler:
      description: The I/O scheduler.
      type: str
      returned: always
    pattern:
      description: How commits were written.
      type: str
      returned: always
    clients:
      description: How many committed at the same time.
      type: int
      returned: always
    rate:
      description: Commits in a second, by all clients.
      type: float
      returned: always
    mean:
      description: Milliseconds that a commit took, on average.
      type: float
      returned: always
    p99:
      description: Milliseconds within which 99 of 100 calls that wait for the disk returned.
      type: float
      returned: always
    flushes_per_commit:
      description: Flushes for each commit; V(unknown) if the kernel does not count them.
      type: raw
      returned: always
    runs:
      description: How often it was measured.
      type: int
      returned: always
    spread:
      description: The difference between the fastest and the slowest run, as a share of the median.
      type: float
      returned: always
    of_raw:
      description: The rate, with 100 for the disk without a file system and with its present scheduler.
      type: float
      returned: always
drift:
  description:
    - By which share the disk without a file system was faster after all measurements than before, negative if it was
      slower. Differences between file systems that are smaller are none.
  returned: always
  type: float
advice:
  description: What the figures recommend.
  returned: always
  type: list
  elements: str
group_vars:
  description: Lines of YAML with the recommended settings; empty without a recommendation.
  returned: always
  type: list
  elements: str
table:
  description: All of it as text.
  returned: always
  type: str
svg:
  description: A plot of the rates.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.refusals import explained
from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, finish, warn
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import ChangeFailed, Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.measure import compared, file_systems
from ansible_collections.durable.dbhost.plugins.module_utils.measure.limits import Refused
from ansible_collections.durable.dbhost.plugins.module_utils.measure.scratch import Ended

MADE_BY = "ansible-playbook durable.dbhost.compare_filesystems"
SPEC = {
    "device": {"type": "str", "required": True},
    "overwrite": {"type": "str", "required": True},
    "file_systems": {
        "type": "list",
        "elements": "str",
        "default": [],
        "choices": list(file_systems.KINDS),
    },
    "mount_options": {
        "type": "list",
        "elements": "str",
        "default": ["defaults", "noatime", "sync,noatime"],
        "choices": list(file_systems.OPTIONS),
    },
    "ext3_options": {
        "type": "list",
        "elements": "str",
        "default": ["data=journal", "data=writeback", "barrier=0"],
        "choices": list(file_systems.EXT3_OPTIONS),
    },
    "schedulers": {"type": "list", "elements": "str", "default": []},
    "patterns": {
        "type": "list",
        "elements": "str",
        "default": ["dsync"],
        "choices": list(file_systems.PATTERNS),
    },
    "clients": {"type": "list", "elements": "int", "default": [1]},
    "seconds": {"type": "int", "default": 2},
    "runs": {"type": "int", "default": 3},
    "minutes": {"type": "int", "default": 30},
    "size": {"type": "int", "default": 8},
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    host = Host()
    rows: list[file_systems.Row] = []
    drift, warning = 0.0, ""
    try:
        made = file_systems.plan(host, module.params)
        if not module.check_mode:
            rows, drift, warning = file_systems.run(host, made)
    except (Refused, ChangeFailed, Unobservable, Ended) as error:
        fail(module, error)
    except OSError as error:
        fail(module, explained(error))
    if warning:
        warn(module, warning)
    advised = compared.advice(rows, drift, made.left_out, made.setting) if rows else []
    copied = compared.group_vars(rows, made.setting) if rows else []
    finish(
        module,
        device=made.spare.device,
        rows=rows,
        drift=drift,
        advice=advised,
        group_vars=copied,
        table=compared.table(rows, advised, copied) if rows else "",
        svg=compared.svg(rows, MADE_BY) if rows else "",
    )


if __name__ == "__main__":
    main()
