#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch disks' volatile write caches, now and at each boot."""

from __future__ import annotations

DOCUMENTATION = r"""
module: write_cache
short_description: Set the volatile write cache of disks, now and at each boot
version_added: 1.0.0
description:
  - Switches the cache in the device, with C(hdparm) for SATA, the kernel's C(cache_type) for SCSI, SAS and virtio, and
    C(nvme set-feature) for NVMe, and reads it back from there.
  - Refuses a disk whose cache is not this host's to switch (RAID volume, SAN, network, USB), before anything changes.
  - The kernel cache mode is raised to write back and the disk is flushed, with its flush counter observed to rise, before
    a cache is switched. It writes C(queue/write_cache) only to raise a cache mode that nothing else raises.
  - The kernel cache mode of a SATA, SCSI or NVMe disk stays at write back even with the cache off, because a disk may
    forget that setting at a reset. A virtio disk has one switch for its cache and its kernel cache mode.
  - A cache is not turned on live below a device-mapper device that drops flushes. Its rule is written, and it comes
    on at the next boot.
  - A udev rule by WWN or serial number keeps the state at each boot, reset and hotplug; a systemd unit makes udev apply it
    after sleep.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
options:
  targets:
    description:
      - The disks.
    suboptions:
      disk:
        description: The disk's id, as RV(durable.dbhost.storage_facts#module:ansible_facts.durable_storage.disks[].id) names it.
        type: str
        required: true
      state:
        description: The cache's state. V(keep) leaves the cache alone and only makes the kernel flush it.
        type: str
        choices: [enabled, disabled, keep]
        required: true
  state:
    description: V(released) removes the udev rule file and the unit; the caches stay unchanged until the next boot.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: No volatile cache on the log disk
  durable.dbhost.write_cache:
    targets:
      - disk: serial:WDC_WD4003FZEX_WD-WCC130000000
        state: disabled
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The disk's id, or the file that was removed.
      type: str
      returned: always
    setting:
      description: V(write_cache), V(kernel_cache_mode), V(flush), or V(rules) when released.
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
from ansible_collections.durable.dbhost.plugins.module_utils.storage import write_cache as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
