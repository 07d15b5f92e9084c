#!/usr/bin/python
# Copyright (c) 2026, durable.dbhost contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Set the durability of FairCom DB's writes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: faircom_config
short_description: Set the durability of FairCom DB's writes
version_added: 1.0.0
description:
  - Edits C(ctsrvr.cfg) and leaves every other byte of it. What it writes is marked by a comment above it.
  - FairCom DB reads the file at its start. Without O(restart) changes wait for the next one.
  - Refuses builds before V10.3.1.21834 (140307), whose write-through does nothing on Linux, and a file that is not what
    counts, because C(ctsrvr.set) or the command line goes before it.
extends_documentation_fragment:
  - durable.dbhost.attributes.layer
  - durable.dbhost.attributes.restart
options:
  targets:
    description:
      - The instances.
    suboptions:
      instance:
        description:
          - The instance's name, as
            RV(durable.dbhost.engine_facts#module:ansible_facts.durable_engines.engines[].name) names it.
        type: str
        required: true
      settings:
        description: The settings; one that is not named is left alone.
        type: dict
        required: true
        suboptions:
          LOG_WRITETHRU:
            description: C(COMPATIBILITY LOG_WRITETHRU), the transaction logs are opened for synchronous writes.
            type: str
            choices: ['on', 'off']
          TDATA_WRITETHRU:
            description: C(COMPATIBILITY TDATA_WRITETHRU), the same for data files under transactions.
            type: str
            choices: ['on', 'off']
          TINDEX_WRITETHRU:
            description: C(COMPATIBILITY TINDEX_WRITETHRU), the same for index files under transactions.
            type: str
            choices: ['on', 'off']
          SYNC_LOG:
            description: C(COMPATIBILITY SYNC_LOG), a separate option with which the logs are opened without O_SYNC.
            type: str
            choices: ['off']
          NO_SYS_FLUSH_ON_CLOSE:
            description: C(COMPATIBILITY NO_SYS_FLUSH_ON_CLOSE), which leaves files unflushed when they are closed.
            type: str
            choices: ['off']
          NO_FLUSH_DIR:
            description: C(COMPATIBILITY NO_FLUSH_DIR), with which a new log's name may not be on disk.
            type: str
            choices: ['off']
          DELAYED_DURABILITY:
            description: C(DELAYED_DURABILITY); above 0 commits are acknowledged before they are on disk.
            type: str
            choices: ['0']
          SUPPRESS_LOG_FLUSH:
            description: C(SUPPRESS_LOG_FLUSH), a part of C(DELAYED_DURABILITY).
            type: str
            choices: ['NO']
          SUPPRESS_LOG_SYNC:
            description: C(SUPPRESS_LOG_SYNC), a part of C(DELAYED_DURABILITY).
            type: str
            choices: ['NO']
          COMMIT_DELAY:
            description: C(COMMIT_DELAY) in milliseconds; it groups commits and loses none.
            type: int
  state:
    description: V(released) restores the original values; the server reads them at its next start.
author:
  - durable.dbhost contributors (@durable-db)
"""

EXAMPLES = r"""
- name: Synchronous writes of logs, data and indices
  durable.dbhost.faircom_config:
    targets:
      - instance: /opt/faircom
        settings:
          LOG_WRITETHRU: 'on'
          TDATA_WRITETHRU: 'on'
          TINDEX_WRITETHRU: 'on'
    restart: true
"""

RETURN = r"""
changes:
  description: What was changed, or in check mode would be.
  returned: always
  type: list
  elements: dict
  contains:
    target:
      description: The instance's name, or the file that was released.
      type: str
      returned: always
    setting:
      description: The setting.
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
from ansible_collections.durable.dbhost.plugins.module_utils.engines.faircom import apply as layer


def main() -> None:
    """Run the module."""
    run(layer)


if __name__ == "__main__":
    main()
