#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect the facts again after a run, then remove its rollback timer."""

from __future__ import annotations

DOCUMENTATION = r"""
module: confirm
short_description: Collect the facts again after a run, then remove its rollback timer
version_added: 1.0.0
description:
  - Private. Only the action of M(durable.dbhost.assess) calls it, over a new connection. Options and results can change in
    each release.
  - The options and the response are those of M(durable.dbhost.host_facts).
  - The timer stays armed in check mode, and if the facts of storage cannot be collected.
extends_documentation_fragment:
  - durable.dbhost.attributes
  - durable.dbhost.attributes.facts
  - durable.dbhost.attributes.host_facts
requirements:
  - Root. What M(durable.dbhost.host_facts) requires.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Preserve the changes of a run
  durable.dbhost.confirm:
"""

RETURN = r"""
ansible_facts:
  description: As M(durable.dbhost.host_facts) returns it.
  returned: always
  type: dict
looked_at:
  description: As M(durable.dbhost.host_facts) returns it.
  returned: always
  type: int
switch:
  description: The rollback timer at the end.
  returned: always
  type: dict
failures:
  description: As M(durable.dbhost.host_facts) returns it.
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
    before = installed.switch_of(host)
    is_confirmed = "durable_storage" in found.facts and not module.check_mode
    after = installed.disarm(host, now) if is_confirmed else before
    observed_all(module, *found, after._asdict(), changed=after != before)


if __name__ == "__main__":
    main()
