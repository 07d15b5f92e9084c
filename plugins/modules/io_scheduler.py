#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set the I/O scheduler and readahead of block devices, now and at each boot."""

from __future__ import annotations

DOCUMENTATION = r"""
module: io_scheduler
short_description: Set the I/O scheduler and readahead of block devices, now and at each boot
version_added: 1.0.0
description:
  - Writes the queue's attributes, reads them back, and keeps them by a udev rule by WWN, serial number, or the UUID of
    a device-mapper or md device.
  - Disks have a scheduler, LVM, md and dm-crypt have none. The readahead that counts is that of the device on which the
    file system lies.
  - It does not ask whether TuneD sets the same.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
options:
  targets:
    description:
      - The devices.
    suboptions:
      device:
        description:
          - The device's id, as RV(durable.dbhost.storage_facts#module:ansible_facts.durable_storage.disks[].id) or
            RV(durable.dbhost.storage_facts#module:ansible_facts.durable_storage.mounts[].carrier_id) names it.
        type: str
        required: true
      scheduler:
        description: The I/O scheduler; without one it is left alone.
        type: str
        choices: [none, mq-deadline, kyber, bfq]
      readahead:
        description: The readahead in KiB, a multiple of 4; without one it is left alone.
        type: int
  state:
    description: V(released) removes the udev rule file; the settings stay unchanged until the next boot.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: mq-deadline on the log disk, and 2 MiB of readahead
  durable.dbhost.io_scheduler:
    targets:
      - device: serial:WDC_WD4003FZEX_WD-WCC130000000
        scheduler: mq-deadline
        readahead: 2048
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The device's id, or the file that was removed.
      type: str
      returned: always
    setting:
      description: V(scheduler), V(readahead), or V(rules) when released.
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
from ansible_collections.durable.dbhost.plugins.module_utils.storage import io_scheduler as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
