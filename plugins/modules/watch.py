# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Have a host watch itself."""

from __future__ import annotations

DOCUMENTATION = r"""
module: watch
short_description: Make a host assess itself regularly, without a controller
version_added: 1.0.0
description:
  - Installs a program, what it goes by, and a timer of systemd that runs it.
  - The program takes the same facts, makes the same assessment and writes the same report as a check run of
    C(durable.dbhost.harden_db). It changes nothing.
  - The report is C(/var/lib/durable-dbhost/watch.json). One line goes to the journal, and the service fails where the verdict is
    one of C(durable_fail_on).
  - The inventory's values of the host are read by this module's action, and stored on the host in a file for root alone. No
    password is among it. When the inventory changes, the module must be run again.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.action
attributes:
  diff_mode:
    description: Returns what each file was and is, and its lines, without those that can contain a secret.
    support: full
options:
  calendar:
    description: When the host is assessed, as a calendar event of systemd. It is also assessed once when this is installed.
    type: str
    default: hourly
  metrics:
    description:
      - Directory of node_exporter's textfile collector, for C(durable_dbhost.prom). With V('') there are no numbers.
    type: str
    default: ''
  inputs:
    description: Set by the action itself, from the inventory.
    type: dict
    default: {}
  version:
    description: Set by the action itself, the version of the collection.
    type: str
    default: ''
  state:
    description: V(released) removes the watch and its files.
    type: str
    choices: [present, released]
    default: present
requirements:
  - Root, systemd, and Python 3.9 or later that root alone may change.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Look every quarter of an hour, and tell node_exporter
  durable.dbhost.watch:
    calendar: "*:0/15"
    metrics: /var/lib/prometheus/node-exporter
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The file, or the timer.
      type: str
      returned: always
    setting:
      description: The name of the file, or V(enabled).
      type: str
      returned: always
    when:
      description: V(persisted).
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
from ansible_collections.durable.dbhost.plugins.module_utils.watch import apply as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
