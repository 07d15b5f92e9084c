#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Have a service remove barriers of file systems while a UPS protects the host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: power_guard
short_description: Disable write barriers while a UPS protects the host
version_added: 1.0.0
description:
  - Installs, enables and starts the guard, a service of systemd, and writes the lease that names the file systems that it
    watches.
  - The guard checks the UPS, its monitor and the host every few seconds. When all conditions have been met without a break for
    O(quiet) seconds, it remounts the leased file systems without barriers.
  - At any event of the monitor, any condition that is not met or cannot be read, its own end, and the end of the lease, it
    first brings the barriers back, then flushes each disk, syncs the file systems, and flushes each disk once more, with
    its flush counter observed to rise.
  - Options in C(/etc/fstab) stay as they are, with barriers on. What the guard does is lost at reboot.
  - Whether conditions and attestations are good enough for a lease is not checked by this module. The playbook
    C(durable.dbhost.harden_db) checks that first.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
options:
  targets:
    description:
      - The file systems. All others lose their lease.
    suboptions:
      mount:
        description: The mount point of an ext4 or ext3 file system. The lease is for the one that is mounted there now.
        type: str
        required: true
  expires:
    description: The last day of the lease, in UTC, as V(2026-12-31). Required unless O(state=released).
    type: str
    default: ''
  quiet:
    description: Seconds for which all must have been well before barriers go.
    type: int
    default: 300
  needed:
    description:
      - Seconds that the battery must last. Required unless O(state=released).
    type: dict
    suboptions:
      durability:
        description: To bring barriers back and flush the disks.
        type: float
        required: true
      clean_stop:
        description: To stop the databases and shut down.
        type: float
        required: true
  test_ups:
    description: Whether a driver that makes its UPS up counts, as C(dummy-ups) does. For tests only.
    type: bool
    default: false
  units:
    description: The databases' services. At shutdown they are stopped after the guard has tightened.
    type: list
    elements: str
    default: []
  state:
    description:
      - V(released) stops the guard, verifies that barriers are on and each disk is flushed, and removes the guard and its lease.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: No barriers below PostgreSQL while the UPS is well
  durable.dbhost.power_guard:
    targets:
      - mount: /srv/pgdata
    expires: "2026-12-31"
    needed:
      durability: 90
      clean_stop: 240
    units:
      - postgresql@15-main.service
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The file, the service, or the mount point.
      type: str
      returned: always
    setting:
      description: V(lease), V(enabled), V(state), V(mode), V(barrier), or the name of a file.
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
from ansible_collections.durable.dbhost.plugins.module_utils.ups.guard import apply as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
