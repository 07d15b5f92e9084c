#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configure the monitor of a UPS."""

from __future__ import annotations

DOCUMENTATION = r"""
module: power_config
short_description: Configure the monitor of a UPS
version_added: 1.0.0
description:
  - Edits single directives of NUT's C(upsmon.conf) and C(nut.conf), marked by a comment above each, and leaves every
    other byte. With apcupsd it puts scripts of events next to C(apcupsd.conf), which run the scripts that were there.
  - NUT's monitor is restarted after a change, not reloaded. A reload never reaches the part of it that shuts the host down.
  - A file of passwords that others may read becomes 0640, of the group of upsmon's user.
  - Drivers of UPSes are never configured.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
options:
  targets:
    description:
      - The settings, in as many parts as wanted. One that is not named is left alone.
    suboptions:
      notify_command:
        description:
          - The program that the monitor runs at each event. The collection's own,
            C(/usr/local/lib/durable-dbhost/bin/ups-notify), is written if it is not there yet; it wakes the guard, then runs
            the command that was there before.
        type: str
      notify_flags:
        description: V(EXEC) has every event run O(targets[].notify_command); what else happens at an event stays.
        type: str
        choices: [EXEC]
      shutdown_command:
        description: C(SHUTDOWNCMD), what shuts the host down. NUT only.
        type: str
      powerdown_flag:
        description:
          - C(POWERDOWNFLAG), the file that makes the end of a shutdown have the UPS cut its outlets. NUT only.
          - The hook that checks for it comes with the package and is never written.
        type: str
      final_delay:
        description: C(FINALDELAY), seconds between the last notice and the shutdown. NUT only.
        type: int
      host_sync:
        description: C(HOSTSYNC), seconds that a primary waits for its secondaries. NUT only.
        type: int
      mode:
        description:
          - C(MODE) of C(nut.conf), set only if it is C(none). NUT only.
          - Without it, a C(none) becomes what O(targets[].monitor) needs.
        type: str
        choices: [netclient, standalone, netserver]
      monitor:
        description: A UPS to watch, C(MONITOR), without its password. NUT only.
        type: dict
        suboptions:
          system:
            description: The UPS, as C(ups@host) or C(ups@host:port).
            type: str
            required: true
          power_value:
            description: How many of this host's power supplies it feeds.
            type: int
            default: 1
          user:
            description: The user of the host that the UPS is connected to, in its C(upsd.users).
            type: str
            required: true
          type:
            description: V(primary) for the host that shuts down last, V(secondary) for all others.
            type: str
            choices: [primary, secondary]
            required: true
  state:
    description: V(released) restores the original values; the monitor then reads it.
  password:
    description:
      - The password of the monitor's user. Empty keeps the one that is there; it is never shown.
    type: str
    default: ''
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Every event wakes the guard
  durable.dbhost.power_config:
    targets:
      - notify_command: /usr/local/lib/durable-dbhost/bin/ups-notify
      - notify_flags: EXEC

- name: Watch a UPS of another host
  durable.dbhost.power_config:
    targets:
      - shutdown_command: /sbin/shutdown -h +0
        monitor:
          system: rack@ups.example.com
          user: upsmon
          type: secondary
    password: "{{ vault_ups_password }}"
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: V(host).
      type: str
      returned: always
    setting:
      description: The directive, event or file, or the service that is restarted.
      type: str
      returned: always
    when:
      description: V(running) or V(persisted).
      type: str
      returned: always
    before:
      description: What it was; a password is not shown.
      type: str
      returned: always
    after:
      description: What it is now.
      type: str
      returned: always
"""

from ansible_collections.durable.dbhost.plugins.module_utils.enforce.runner import run
from ansible_collections.durable.dbhost.plugins.module_utils.ups import apply as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
