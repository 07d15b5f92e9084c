#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect disks, their write caches, and the file systems on them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: storage_facts
short_description: Detect write caches, barriers and the disks below each mount
version_added: 0.1.0
description:
  - Asks the kernel, the devices and the boot configuration what stands between a commit and the medium.
  - What cannot be read is the word V(unknown), with its reason under RV(ansible_facts.durable_storage.disks[].evidence);
    it is never taken for safe.
  - A device that does not answer costs its time limit of ten seconds, and the others are read all the same.
  - Changes nothing and writes nothing on the host.
extends_documentation_fragment:
  - durable.dbhost.attributes
options:
  databases:
    description:
      - As in C(durable_databases). Where the C(paths) in it really lie, links followed, comes back as
        RV(ansible_facts.durable_storage.resolved).
    type: raw
requirements:
  - dumpe2fs for ext4, hdparm for SATA disks, udevadm for stable names; what is missing makes values unknown.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Ask the disks
  durable.dbhost.storage_facts:

- name: Show which caches are on
  ansible.builtin.debug:
    msg: "{{ ansible_facts.durable_storage.disks | items2dict(key_name='name', value_name='write_cache') }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts, under one name.
  returned: always
  type: dict
  contains:
    durable_storage:
      description: Disks and mounted file systems. Words, never booleans, where a value can be unknown.
      type: dict
      returned: always
      contains:
        boot_id:
          description: The kernel's id of this boot.
          type: str
          returned: always
        time:
          description: When the facts were taken, by the host's clock, in UTC and ISO 8601.
          type: str
          returned: always
          sample: "2026-01-31T12:00:00Z"
        kernel:
          description: The kernel's release.
          type: str
          returned: always
        virtualization:
          description: What systemd-detect-virt says; V(none) on bare metal.
          type: str
          returned: always
        fstab_error:
          description: What is wrong with C(/etc/fstab), or null.
          type: str
          returned: always
        resolved:
          description: For each database path where it really lies, or null when it is not there.
          type: dict
          returned: always
        elsewhere:
          description: Mount points of file systems that hold no data or hold it in memory, with their type.
          type: dict
          returned: always
        disks:
          description: One entry for each whole disk.
          type: list
          elements: dict
          returned: always
          contains:
            name:
              description: The kernel's name, which can change at each boot.
              type: str
              returned: always
            id:
              description: The name that stays (C(wwn:) or C(serial:)), or null; without one nothing can be persisted.
              type: str
              returned: always
            kind:
              description: V(physical), V(virtual), V(network), V(memory) or V(unknown).
              type: str
              returned: always
            transport:
              description: V(sata), V(virtio), V(scsi), V(nvme), V(usb) or V(unknown).
              type: str
              returned: always
            model:
              description: The model, or null.
              type: str
              returned: always
            serial:
              description: The serial number, or null.
              type: str
              returned: always
            rotational:
              description: V(yes), V(no) or V(unknown).
              type: str
              returned: always
            write_cache:
              description:
                - RV(ansible_facts.durable_storage.disks[].write_cache.device) is the device's own word (V(enabled),
                  V(disabled), V(none) or V(unknown)), C(kernel) what the kernel believes (V(write back),
                  V(write through) or V(unknown)), C(persisted) what our udev rule sets at the next boot (V(unset)
                  without one), C(volatile) whether the cache loses its content (V(volatile), V(non_volatile)
                  or V(unknown)).
              type: dict
              returned: always
              contains:
                device:
                  description: The device's own word.
                  type: str
                  returned: always
            fua:
              description: V(supported), V(unsupported) or V(unknown).
              type: str
              returned: always
            fua_efficient:
              description: Whether a log write needs no flush of its own. V(yes), V(no) or V(unknown).
              type: str
              returned: always
            scheduler:
              description: The I/O scheduler, C(running), C(available) and C(persisted).
              type: dict
              returned: always
            evidence:
              description: For each value its C(source), and for an unknown one the C(reason).
              type: dict
              returned: always
        mounts:
          description: One entry for each superblock that can hold data.
          type: list
          elements: dict
          returned: always
          contains:
            target:
              description: Where it is mounted first.
              type: str
              returned: always
            targets:
              description: Everywhere it is mounted.
              type: list
              elements: str
              returned: always
            source:
              description: The device, as the kernel names it.
              type: str
              returned: always
            device:
              description: The superblock's number, C(major:minor).
              type: str
              returned: always
            fstype:
              description: The file system's type.
              type: str
              returned: always
            barrier:
              description: Whether a commit flushes the disks. V(on), V(off) or V(unknown).
              type: str
              returned: always
            data_mode:
              description: V(ordered), V(journal), V(writeback), V(none) (no such mode) or V(unknown).
              type: str
              returned: always
            atime:
              description: The running atime option.
              type: str
              returned: always
            options_running:
              description: Options of the mount and of its superblock.
              type: list
              elements: str
              returned: always
            options_fstab:
              description: Options of its line in C(/etc/fstab), or null.
              type: list
              elements: str
              returned: always
            persisted:
              description:
                - C(barrier), C(data_mode) and C(atime) of the next mount, from superblock defaults, rootflags and fstab.
                  V(unset) without a line, V(refused) where the kernel would not mount it.
              type: dict
              returned: always
            stack:
              description: The layers below, top first, each with C(name) and C(type).
              type: list
              elements: dict
              returned: always
            disks:
              description: The kernel names of the disks at the bottom, or V(unknown).
              type: raw
              returned: always
            external_log:
              description: A second device that it writes to, or null.
              type: str
              returned: always
            evidence:
              description: For each value its C(source), and for an unknown one the C(reason).
              type: dict
              returned: always
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.paths import of_databases
from ansible_collections.durable.dbhost.plugins.module_utils.storage import collect


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={"databases": {"type": "raw"}}, supports_check_mode=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        facts = collect(Host(), now, of_databases(module.params["databases"]))
    except Unobservable as error:
        module.fail_json(msg=f"This machine cannot be observed: {error}")
    module.exit_json(changed=False, ansible_facts={"durable_storage": _printable(facts)})


def _printable(value: Any) -> Any:
    """Return a value with bytes that are no UTF-8 written out: JSON cannot carry them."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {_printable(key): _printable(inner) for key, inner in value.items()}
    return [_printable(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
