#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect the facts of engines, storage and power in one execution."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_facts
short_description: Collect the facts of engines, storage and power in one execution
version_added: 1.0.0
description:
  - The same facts as M(durable.dbhost.engine_facts), M(durable.dbhost.storage_facts) and M(durable.dbhost.power_facts), which
    are documented there. Storage is read where the engines have their files, and a clean stop of the engines is compared
    with the battery.
  - Each of the three may fail alone, and the others are returned. All together are bounded; if they would be too
    large, the largest is left out.
  - Changes nothing and writes nothing on the host.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.facts
  - durable.dbhost.attributes.host_facts
requirements:
  - Root. What the three modules require.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Collect the facts
  durable.dbhost.host_facts:

- name: Show why some of them are not there
  ansible.builtin.debug:
    msg: "{{ result.failures }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts, each under the name that its own module gives it.
  returned: always
  type: dict
  contains:
    durable_engines:
      description: As M(durable.dbhost.engine_facts) returns it.
      type: dict
      returned: where it could be collected
    durable_storage:
      description: As M(durable.dbhost.storage_facts) returns it.
      type: dict
      returned: where it could be collected
    durable_power:
      description: As M(durable.dbhost.power_facts) returns it.
      type: dict
      returned: if it was requested and could be collected
looked_at:
  description:
    - Number of the last run that started to change the host since boot, for O(durable.dbhost.apply#module:looked_at).
    - V(-1) while a run changes the host, V(-2) if the number cannot be read. Nothing is changed with either.
  returned: always
  type: int
switch:
  description: The rollback timer.
  returned: always
  type: dict
  contains:
    state:
      description: V(none), V(armed), V(fired) if it has restored the host, or V(broken) if it cannot.
      type: str
      returned: always
    said:
      description: Its message, in one line.
      type: str
      returned: always
failures:
  description: For each of the three names that was requested and is missing, the reason.
  returned: always
  type: dict
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.durable.dbhost.plugins.module_utils.host.reply import fail, observed_all
from ansible_collections.durable.dbhost.plugins.module_utils.host.seam import Host, Unobservable
from ansible_collections.durable.dbhost.plugins.module_utils.host_facts import ARGUMENTS, collect_for
from ansible_collections.durable.dbhost.plugins.module_utils.undo import installed


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    host = Host()
    try:
        found = collect_for(host, now, module.params)
    except Unobservable as error:
        fail(module, error)
    observed_all(module, *found, installed.switch_of(host)._asdict())


if __name__ == "__main__":
    main()
